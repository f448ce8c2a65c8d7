#!/usr/bin/env python3
"""The demo: draws text, optimises PP-OCRv4's recognition model on the best device found, reads the text with the result.

    tools/ocr_demo.py --thrice PROGRAM --out FOLDER [--device T] [--budget 90s] [--model FILE] [--lines N]

Commands of thrice that it uses:
    thrice optimize MODEL --shape x=batch,3,48,width --dims batch=1,width=W --budget B [--device T] --output RELEASE --json
                                                                               progress on stderr, one JSON object on stdout
    thrice run RELEASE --input x=IN.npy --output FOLDER --json                 writes FOLDER/out_0.npy
Exit 0 only when every line was read as ONNX Runtime reads it, the scores are within the model's error limit of float64, and the
release is verified; 1 when not, with the lines that differ; 2 when a command of thrice failed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

import ocr_pictures

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / ".models/ch_PP-OCRv4_rec_infer.onnx"
WITNESS_REPEATS = 5


def thrice(program: pathlib.Path, *words: object) -> dict:
    """Runs one command and returns its JSON; its progress and messages go straight to the terminal."""
    command = [str(program), *map(str, words), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, end="")
        print(f"demo: exit {done.returncode} from: {' '.join(command)}", file=sys.stderr)
        raise SystemExit(2)
    return json.loads(done.stdout) if done.stdout.strip() else {}


def witness_session(model: pathlib.Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def median_ms(call) -> float:
    """Median time of a few calls after one that warms up."""
    call()
    times = []
    for _ in range(WITNESS_REPEATS):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


TUNED_WIDTH = 320  # the width that the recogniser was trained at


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thrice", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=MODEL)
    parser.add_argument("--device", default="", help="device, as `thrice devices` names it; default: the best found")
    parser.add_argument("--budget", default="90s")
    parser.add_argument("--lines", type=int, default=len(ocr_pictures.LINES), help="use the first N pictures only")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    witness = witness_session(arguments.model)
    letters = ocr_pictures.letters_of(witness.get_modelmeta().custom_metadata_map)
    input_name = witness.get_inputs()[0].name
    inputs = []
    for number, (words, font) in enumerate(ocr_pictures.LINES[: arguments.lines]):
        picture = ocr_pictures.draw(words, font)
        picture.save(arguments.out / f"{number:02}.png")
        inputs.append(ocr_pictures.model_input(picture))
        numpy.save(arguments.out / f"{number:02}.npy", inputs[-1])
    print(f"demo: {len(inputs)} pictures of text in {arguments.out}, {ocr_pictures.HEIGHT} pixels high, "
          f"{min(x.shape[3] for x in inputs)} to {max(x.shape[3] for x in inputs)} wide", flush=True)

    release = arguments.out / "recognition.thrice"
    device = ["--device", arguments.device] if arguments.device else []
    # The model file leaves all extents open; what it reads is 48 high. Tuned at one width, right at every width.
    shapes = ["--shape", f"{input_name}=batch,3,{ocr_pictures.HEIGHT},width", "--dims", f"batch=1,width={TUNED_WIDTH}"]
    summary = thrice(arguments.thrice, "optimize", arguments.model, *shapes, "--budget", arguments.budget, *device, "--output", release)
    tuned_input = numpy.random.default_rng(1).random((1, 3, ocr_pictures.HEIGHT, TUNED_WIDTH), dtype=numpy.float32)
    witness_ms = median_ms(lambda: witness.run(None, {input_name: tuned_input}))

    print(f"\n{'read by thrice':<54}{'as ONNX Runtime':>16}{'ONNX Runtime ms':>17}")
    differing = 0
    for number, values in enumerate(inputs):
        folder = arguments.out / f"{number:02}.out"
        folder.mkdir(exist_ok=True)
        thrice(arguments.thrice, "run", release, "--input", f"{input_name}={arguments.out / f'{number:02}.npy'}", "--output", folder)
        ours = ocr_pictures.words_of(numpy.load(folder / "out_0.npy"), letters)
        theirs = ocr_pictures.words_of(witness.run(None, {input_name: values})[0], letters)
        differing += ours != theirs
        elapsed = median_ms(lambda: witness.run(None, {input_name: values}))
        print(f"{ours:<54}{'yes' if ours == theirs else 'NO':>16}{elapsed:>17.1f}", flush=True)
        if ours != theirs:
            print(f"  ONNX Runtime reads: {theirs}")

    print(f"\ndevice {summary['device']}: original {summary['original_us'] / 1e3:.1f} ms, optimised {summary['best_us'] / 1e3:.1f} ms, "
          f"{summary['speedup']:.2f} times faster; error {summary['max_error']:.2g}, limit {summary['error_limit']:.2g}; "
          f"{summary['trials']} trials")
    print(f"ONNX Runtime on the same processor at the same size: {witness_ms:.1f} ms")
    print("where the time goes:")
    for region in summary.get("regions", [])[:6]:
        share = region["now_us"] / sum(r["now_us"] for r in summary["regions"])
        print(f"  {share:5.1%}  {region['now_us'] / 1e3:7.2f} ms  {region['uses']} x {region['name']}  [{region['schedule']}]")
    if differing:
        print(f"demo: {differing} of {len(inputs)} lines differ from ONNX Runtime's")
    if not summary["verified"]:
        print("demo: the release is not verified")
    within = summary["max_error"] <= summary["error_limit"]
    if not within:
        print("demo: the error is above its limit")
    return 0 if differing == 0 and summary["verified"] and within else 1


if __name__ == "__main__":
    sys.exit(main())
