#!/usr/bin/env python3
"""Writes the operator library anew from the networks that the repository holds, and PP-OCRv4 (docs/library.md).

    tools/operator_library.py BUILD_DIR [--folder library]

Runs `thrice library import` on each network with the extents that it supports, then chooses the benchmark sets:
FOLDER/operators/PATTERN.txt, FOLDER/benchmark/fixed.txt and variable.txt. Ends with the counts; exit 1 when an import fails.
"""
import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEQUENCE = ["--range", "sequence=1..512@128"]
# What a network's symbols may be; `batch` is 1..64@1 everywhere. LOW and HIGH are what the network itself allows (learned
# positions, windows that must fit) or, where it allows anything, what it is used with.
RANGES = {
    "bert_base": SEQUENCE, "minilm_l6": SEQUENCE, "distilbert": SEQUENCE, "electra_small": SEQUENCE, "roberta_base": SEQUENCE,
    "gpt2": ["--range", "sequence=1..1024@128"],
    "llama_small": ["--range", "sequence=1..2048@128"],
    "llama_step": ["--range", "past=1..2047@128"],
    "conformer_ctc": ["--range", "time=64..3000@400"],
    "voice_gru": ["--range", "frames=16..1000@100"], "voice_lstm": ["--range", "frames=16..1000@100"],
    "super_resolution": ["--range", "height=32..1080@224", "--range", "width=32..1920@224"],
    "two_towers": ["--samples", "users,items", "--range", "users=1..4096@64", "--range", "items=1..4096@64"],
    "wide_and_deep": ["--range", "history=1..200@20"],
    "ch_PP-OCRv4_rec_infer": ["--shape", "x=batch,3,48,width", "--range", "width=32..3200@320"],
    "ch_PP-OCRv4_det_infer": ["--shape", "x=batch,3,height,width", "--range", "height=64..1920@640", "--range", "width=64..1920@640"],
    "ch_ppocr_mobile_v2.0_cls_infer": ["--shape", "x=batch,3,48,192"],
}
SPLIT_SIZE = 96


def networks(build):
    files = sorted((ROOT / ".models").glob("ch_*.onnx"))
    for archive in ("zoo", "networks"):
        folder = build / "data" / archive
        files += sorted(folder.glob("*.onnx")) + sorted(folder.glob("*/model.onnx"))
    return files


def choose(entries, count):
    """The largest of every kind and pattern in turns, so that no kind fills the set: by operations, then by bytes."""
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[entry["pattern"], entry["kind"]].append(entry)
    for group in groups.values():
        group.sort(key=lambda e: (-e["features"]["flops"], -e["features"]["bytes"], e["id"]))
    chosen = []
    while len(chosen) < count and any(groups.values()):
        for key in sorted(groups):
            if groups[key] and len(chosen) < count:
                chosen.append(groups[key].pop(0))
    return sorted(chosen, key=lambda e: (e["pattern"], e["kind"], e["id"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "library")
    arguments = parser.parse_args()
    program = str(arguments.build / "thrice")
    folder = arguments.folder
    store = arguments.build / "operator_library.sqlite"
    for old in store.parent.glob(store.name + "*"):
        old.unlink()
    for part in ("operators", "benchmark"):
        shutil.rmtree(folder / part, ignore_errors=True)

    def thrice(*words):
        return subprocess.run([program, "library", *map(str, words), "--store", str(store)], stdout=subprocess.PIPE, text=True, check=False)

    failed = 0
    for file in networks(arguments.build):
        name = file.parent.name if file.stem == "model" else file.stem
        done = thrice("import", file, "--name", name, "--folder", folder / "operators", *RANGES.get(name, []))
        print(done.stdout.strip() or f"{name}: exit {done.returncode}", flush=True)
        failed += done.returncode != 0
    thrice("update", "--folder", folder / "operators")
    entries = json.loads(thrice("list", "--json").stdout)
    (folder / "benchmark").mkdir(parents=True, exist_ok=True)
    for length, words in (("fixed", "shapes fixed but for the number of samples (images of 224 x 224 and the like)"),
                          ("variable", "an extent known at run time only (128 to 512 tokens, lines of text, sounds)")):
        chosen = choose([e for e in entries if e["length"] == length and e["features"]["flops"] > 0], SPLIT_SIZE)
        lines = [f"# Benchmark set `{length}`: {words}; chosen by tools/operator_library.py.", "# id  kind  pattern"]
        lines += [f"{e['id']} {e['kind']} {e['pattern']}" for e in chosen]
        (folder / "benchmark" / f"{length}.txt").write_text("\n".join(lines) + "\n")
    print(thrice("update", "--folder", folder / "operators").stdout + thrice("stats").stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
