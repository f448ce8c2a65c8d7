#!/usr/bin/env python3
"""The demo: draws text, optimises PP-OCRv4's recognition model on the best device found, reads the text with the result.

    tools/ocr_demo.py --build FOLDER --out FOLDER [--device T] [--budget 90s] [--model FILE] [--lines N] [--json FILE]

`thrice optimize` makes the release; the Python package runs it, in this process. At the tuned size the release and ONNX Runtime are
timed in turns on the same array. bench_naive_model tells what plain C++ loops on one thread need for the convolutions and products.
--json keeps the figures (schema of docs/measurement.md).
Exit 0 only when every line was read as ONNX Runtime reads it, the scores are within the model's error limit of float64, and the
release is verified; 1 when not, with the lines that differ; 2 when a command of thrice failed.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

import ocr_pictures

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))  # behind an installed package
MODEL = ROOT / ".models/ch_PP-OCRv4_rec_infer.onnx"
ROUNDS = 15


def run_thrice(program: pathlib.Path, *words: object) -> dict:
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


def in_turns(calls: dict) -> dict:
    """Times of several calls in milliseconds: each once to warm up, then in turns, beginning with another one each round."""
    names = list(calls)
    times = {name: [] for name in names}
    for call in calls.values():
        call()
    for turn in range(ROUNDS):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            begin = time.perf_counter()
            calls[name]()
            times[name].append((time.perf_counter() - begin) * 1e3)
    return {name: {"median": statistics.median(t), "spread": statistics.median(abs(x - statistics.median(t)) for x in t)}
            for name, t in times.items()}


def naive_cpp(build: pathlib.Path, model: pathlib.Path, shape: str) -> dict:
    """What plain C++ loops need; {} where the program was not built."""
    program = build / "bench_naive_model"
    if not program.is_file():
        return {}
    done = subprocess.run([str(program), str(model), "--shape", shape], stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def results(summary: dict, times: dict, naive: dict, seconds: float, lines: int, differing: int) -> dict:
    """The figures in the form of bench/results_file.py: as optimize timed them, and as a caller in Python sees them."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    common = {"run": f"demo-{now}", "suite": "demo", "dtype": "f32", "numerics": "strict",
              "shape": f"1x3x{ocr_pictures.HEIGHT}x{TUNED_WIDTH}"}
    inside = {
        **common, "name": "ch_PP-OCRv4_rec_infer", "thrice_us": summary["best_us"], "rivals": {"default_schedule": summary["original_us"]},
        "error": summary["max_error"], "error_limit": summary["error_limit"], "peak_bytes": summary["peak_bytes"],
        "rivals_peak_bytes": {"default_schedule": summary["original_peak_bytes"]}, "trials": summary["trials"],
        "note": f"default_schedule: operator by operator, in turns with thrice; naive_cpp_one_thread: convolutions and products only; "
                f"{lines - differing} of {lines} lines read as ONNX Runtime reads them; {seconds:.0f} s after the build"}
    if naive:
        inside["rivals"]["naive_cpp_one_thread"] = naive["naive_us"]
    outside = {
        **common, "name": "ch_PP-OCRv4_rec_infer called from Python", "thrice_us": times["thrice"]["median"] * 1e3,
        "thrice_spread_us": times["thrice"]["spread"] * 1e3, "rivals": {"onnxruntime_cpu": times["onnxruntime"]["median"] * 1e3},
        "rivals_spread_us": {"onnxruntime_cpu": times["onnxruntime"]["spread"] * 1e3}, "note": "in turns, on the same array"}
    environment = {"device": summary["device"], "host_cpu": cpu_name(), "cores": os.cpu_count(),
                   "onnxruntime": onnxruntime.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
    run = {"id": f"demo-{now}", "date": now, "command": "tools/demo.sh --json FILE", "environment": environment}
    return {"schema": 1, "runs": [run], "cases": [inside, outside]}


def first_of(outputs):
    """The first output, whether they come by name or by position."""
    return next(iter(outputs.values())) if isinstance(outputs, dict) else outputs[0]


TUNED_WIDTH = 320  # the width that the recogniser was trained at


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder with thrice and libthrice.so")
    parser.add_argument("--json", type=pathlib.Path, help="keep the figures in this file")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=MODEL)
    parser.add_argument("--device", default="", help="device, as `thrice devices` names it; default: the best found")
    parser.add_argument("--budget", default="90s")
    parser.add_argument("--lines", type=int, default=len(ocr_pictures.LINES), help="use the first N pictures only")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    os.environ.setdefault("THRICE_LIBRARY", str(arguments.build.resolve() / "libthrice.so"))
    import thrice as package

    program = arguments.build / "thrice"

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
    summary = run_thrice(program, "optimize", arguments.model, *shapes, "--budget", arguments.budget, *device, "--output", release)
    tuned_input = numpy.random.default_rng(1).random((1, 3, ocr_pictures.HEIGHT, TUNED_WIDTH), dtype=numpy.float32)
    session = package.load(release)
    times = in_turns({"thrice": lambda: session.run({input_name: tuned_input}),
                      "onnxruntime": lambda: witness.run(None, {input_name: tuned_input})})
    naive = naive_cpp(arguments.build, arguments.model, f"{input_name}=1,3,{ocr_pictures.HEIGHT},{TUNED_WIDTH}")

    print(f"\n{'read by thrice':<54}{'as ONNX Runtime':>16}")
    differing = 0
    for values in inputs:
        ours = ocr_pictures.words_of(first_of(session.run({input_name: values})), letters)
        theirs = ocr_pictures.words_of(witness.run(None, {input_name: values})[0], letters)
        differing += ours != theirs
        print(f"{ours:<54}{'yes' if ours == theirs else 'NO':>16}", flush=True)
        if ours != theirs:
            print(f"  ONNX Runtime reads: {theirs}")

    print(f"\ndevice {summary['device']}: original {summary['original_us'] / 1e3:.1f} ms, optimised {summary['best_us'] / 1e3:.1f} ms, "
          f"{summary['speedup']:.2f} times faster; error {summary['max_error']:.2g}, limit {summary['error_limit']:.2g}; "
          f"{summary['trials']} trials")
    print(f"called from Python, in turns: thrice {times['thrice']['median']:.1f} ms, ONNX Runtime on the processor "
          f"{times['onnxruntime']['median']:.1f} ms")
    if naive:
        print(f"plain C++ loops on one thread, convolutions and products alone: {naive['naive_us'] / 1e3:.0f} ms, "
              f"{naive['naive_us'] / summary['best_us']:.1f} times as long")
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
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        figures = results(summary, times, naive, time.monotonic() - started, len(inputs), differing)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if differing == 0 and summary["verified"] and within else 1


if __name__ == "__main__":
    sys.exit(main())
