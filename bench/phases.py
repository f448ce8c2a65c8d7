#!/usr/bin/env python3
"""Measures where `thrice optimize --no-tune` spends its time, from an empty cache and from a warm one.

    bench/phases.py --zoo build/release/data/zoo --device opencl:0 --output bench/results/phases_pocl.json
    bench/phases.py --zoo ... --only resnet50_b1 --label before --thrice OLD/thrice --output ...

Each case has caches of its own (kernels, store, PoCL's), emptied before the cold run; the warm run follows in them. Weights are
random. A case that is in the file already with the same label is replaced. `--limit` seconds a run: one that takes longer is
kept as "limit". bench/phase_times.py prints single reports.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {"resnet50_b1": ("resnet50", "batch=1"), "resnet50_b8": ("resnet50", "batch=8"), "resnet50_b32": ("resnet50", "batch=32"),
         "vit_b_16_b1": ("vit_b_16", "batch=1"), "vit_b_16_b32": ("vit_b_16", "batch=32"),
         "bert_base_s128_b1": ("bert_base", "batch=1,sequence=128"), "bert_base_s128_b32": ("bert_base", "batch=32,sequence=128"),
         "gpt2_s512_b4": ("gpt2", "batch=4,sequence=512"), "mobilenet_v2_b1": ("mobilenet_v2", "batch=1")}


def run(arguments, case: str, state: str, folder: pathlib.Path) -> dict:
    structure, dims = CASES[case]
    environment = os.environ | {"POCL_CACHE_DIR": str(folder / "pocl"), "CUDA_CACHE_PATH": str(folder / "cuda")}
    command = [arguments.thrice, "optimize", str(pathlib.Path(arguments.zoo) / f"{structure}.onnx"), "--random-weights", "1", "--dims", dims,
               "--no-tune", "--device", arguments.device, "--cache", str(folder), "--output", str(folder / "out.thrice"), "--quiet", "--json"]
    row = {"case": case, "state": state, "label": arguments.label, "device": arguments.device}
    begin = time.monotonic()
    load = os.getloadavg()[0]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=arguments.limit, check=False)
    except subprocess.TimeoutExpired:
        return row | {"limit": arguments.limit, "load": round(load, 2)}
    row |= {"total_s": round(time.monotonic() - begin, 3), "load": round(load, 2), "exit": done.returncode}
    if done.returncode:
        return row | {"message": done.stderr.strip()[-300:]}
    report = json.loads(done.stdout)
    seconds: dict = {}
    for entry in report["phases"]:
        seconds[entry["phase"]] = round(seconds.get(entry["phase"], 0.0) + entry["seconds"], 3)
    row |= {"phases": seconds, "verified": report["verified"], "device_name": report["device"]}
    if "first_release_s" in report:
        row["first_release_s"] = round(report["first_release_s"], 3)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thrice", default=str(ROOT / "build/release/thrice"))
    parser.add_argument("--zoo", default=str(ROOT / "build/release/data/zoo"))
    parser.add_argument("--device", required=True)
    parser.add_argument("--only", help="cases, separated by commas; all: " + ", ".join(CASES))
    parser.add_argument("--states", default="cold,warm")
    parser.add_argument("--label", default="now")
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--work", default="/tmp/thrice_phases", help="folder for caches; emptied")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}")
    output = pathlib.Path(arguments.output)
    data = json.loads(output.read_text()) if output.exists() else {"program": "bench/phases.py", "cores": os.cpu_count(), "rows": []}
    for case in names:
        folder = pathlib.Path(arguments.work) / case
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for state in arguments.states.split(","):
            row = run(arguments, case, state, folder) | {"date": datetime.date.today().isoformat(), "host": platform.machine()}
            same = lambda other: all(other[key] == row[key] for key in ("case", "state", "label", "device"))  # noqa: B023, E731
            data["rows"] = [other for other in data["rows"] if not same(other)] + [row]
            output.write_text(json.dumps(data, indent=1) + "\n")
            print(f"{case:20} {state:5} {row.get('total_s', 'limit')} s, first release {row.get('first_release_s', '-')} s  {row.get('phases', row.get('message', ''))}",
                  flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
