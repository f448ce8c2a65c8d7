#!/usr/bin/env python3
"""Times the three OCR models at five input sizes each: one release a model, tuned at one size, beside the original plan.

    bench/ocr_sizes.py --thrice PROGRAM --models FOLDER [--budget 60s] [--device T] --output FILE

FOLDER holds PP-OCRv4's three models (tools/setup.sh --demo puts them into .models). For each size `thrice run --check` compares one
run on random inputs with float64, and `thrice bench` times release and original (operator by operator, default schedules) in turns.
The figures go to FILE in the form of bench/results_file.py, suite `ocr`.
"""
from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import results_file

MODELS = {
    "ch_PP-OCRv4_det_infer": ("x=batch,3,height,width", "batch=1,height=640,width=640",
                              [f"batch=1,height={h},width={w}" for h, w in ((320, 320), (480, 640), (640, 640), (736, 1280), (960, 960))]),
    "ch_PP-OCRv4_rec_infer": ("x=batch,3,48,width", "batch=1,width=320",
                              [f"batch=1,width={w}" for w in (100, 201, 320, 480, 763)]),
    "ch_ppocr_mobile_v2.0_cls_infer": ("x=batch,3,48,width", "batch=1,width=192",
                                       [f"batch=1,width={w}" for w in (100, 151, 192, 256, 320)]),
}


def thrice(program: pathlib.Path, *words: object) -> dict:
    done = subprocess.run([str(program), *map(str, words), "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"ocr_sizes: exit {done.returncode} from: {' '.join(map(str, words))}\n{done.stdout}", file=sys.stderr)
        raise SystemExit(2)
    return json.loads(done.stdout)


def environment(program: pathlib.Path, name: str) -> dict:
    for backend in thrice(program, "devices")["backends"]:
        for device in backend["devices"]:
            if device["name"] == name:
                return {"device": name, "driver": device["driver"], "architecture": device["architecture"]}
    return {"device": name}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thrice", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--device", default="")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    run = {"id": f"ocr-{now}", "date": now, "command": f"bench/ocr_sizes.py --budget {arguments.budget}", "environment": {}}
    data = {"schema": 1, "runs": [run], "cases": []}
    device = ["--device", arguments.device] if arguments.device else []
    with tempfile.TemporaryDirectory() as folder:
        for name, (shape, tuned, sizes) in MODELS.items():
            release = pathlib.Path(folder) / f"{name}.thrice"
            made = thrice(arguments.thrice, "optimize", arguments.models / f"{name}.onnx", "--shape", shape, "--dims", tuned,
                          "--budget", arguments.budget, "--output", release, "--quiet", *device)
            run["environment"] = run["environment"] or environment(arguments.thrice, made["device"])
            for dims in sizes:
                checked = thrice(arguments.thrice, "run", release, "--dims", dims, "--check", *device)
                timed = thrice(arguments.thrice, "bench", release, "--dims", dims, *device)
                worst = max(checked["check"]["outputs"], key=lambda output: output["error"] / output["limit"])
                data["cases"].append({
                    "run": run["id"], "suite": "ocr", "name": name, "shape": dims.replace(",", " "), "dtype": "f32", "numerics": "strict",
                    "thrice_us": timed["best_us"], "thrice_spread_us": timed["best_spread_us"],
                    "rivals": {"default_schedule": timed["original_us"]},
                    "rivals_spread_us": {"default_schedule": timed["original_spread_us"]},
                    "error": worst["error"], "error_limit": worst["limit"], "trials": made["trials"],
                    "note": f"tuned at {tuned}; default_schedule: operator by operator, default schedules"})
                print(f"{name} {dims}: {timed['original_us']:.0f} -> {timed['best_us']:.0f} us = {timed['speedup']:.2f}x, "
                      f"error {worst['error']:.2g}", flush=True)
                arguments.output.write_text(json.dumps(data, indent=1) + "\n")
    wrong = results_file.problems(data)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
