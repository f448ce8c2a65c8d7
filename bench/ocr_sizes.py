#!/usr/bin/env python3
"""Times the three OCR models at five input sizes each: one release a model, tuned at one size, beside the original plan.

    bench/ocr_sizes.py --thrice PROGRAM --models FOLDER [--budget 60s] [--device T] --output FILE

FOLDER holds PP-OCRv4's three models (tools/setup.sh --demo puts them into .models). For each size `thrice run --check` compares one
run of the release, and one of the original plan (operator by operator, default schedules), on the same random inputs with float64; the
limit follows from the original's error (docs/numerics.md). All releases are made at the same time (so tuning is disturbed, what is
chosen may be a little slower than it could be), then all checks run side by side; `thrice bench` then times the two of a model in
turns, alone. Exit 1 when a result is above its limit. The figures go to FILE in the form of bench/results_file.py, suite `ocr`.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import results_file

MODELS = {
    "ch_PP-OCRv4_det_infer": ("x=batch,3,height,width", "batch=1,height=320,width=320",
                              [f"batch=1,height={h},width={w}" for h, w in ((192, 256), (256, 256), (320, 320), (320, 480), (480, 480))]),
    "ch_PP-OCRv4_rec_infer": ("x=batch,3,48,width", "batch=1,width=320",
                              [f"batch=1,width={w}" for w in (100, 201, 320, 480, 763)]),
    "ch_ppocr_mobile_v2.0_cls_infer": ("x=batch,3,48,width", "batch=1,width=192",
                                       [f"batch=1,width={w}" for w in (100, 151, 192, 256, 320)]),
}


AT_ONCE = 8
WRONG_RESULT = 12  # docs/exit_codes.md: with the limit for an unknown ordinary error; here the limit is known


def thrice(program: pathlib.Path, *words: object) -> dict:
    done = subprocess.run([str(program.resolve()), *map(str, words), "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, WRONG_RESULT):
        print(f"ocr_sizes: exit {done.returncode} from: {' '.join(map(str, words))}\n{done.stdout}", file=sys.stderr)
        raise SystemExit(2)
    return json.loads(done.stdout)


def worst_error(program: pathlib.Path, release: pathlib.Path, dims: str, device: list) -> float:
    checked = thrice(program, "run", release, "--dims", dims, "--check", *device)
    return max(output["error"] for output in checked["check"]["outputs"])


def limit_of(ordinary: float) -> float:
    """The limit of a float32 result from the error of the ordinary operators (docs/numerics.md)."""
    limit = min(1e-5, max(2 * ordinary, 2e-6))
    return max(limit, 2 * ordinary) if ordinary > 5e-6 else limit


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
    right = True
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        releases, checks = {}, {}
        def release_of(name: str, *words: object) -> dict:
            shape, tuned, _ = MODELS[name]
            return thrice(arguments.thrice, "optimize", arguments.models / f"{name}.onnx", "--shape", shape, "--dims", tuned, "--quiet",
                          *words, *device)

        for name in MODELS:
            release, plain = pathlib.Path(folder) / f"{name}.thrice", pathlib.Path(folder) / f"{name}_original.thrice"
            releases[name] = [release, plain,
                              pool.submit(release_of, name, "--budget", arguments.budget, "--output", release),
                              pool.submit(release_of, name, "--planner", "original", "--no-tune", "--output", plain)]
        for name, (_, _, sizes) in MODELS.items():
            made = releases[name][2].result()
            releases[name][3].result()
            run["environment"] = run["environment"] or environment(arguments.thrice, made["device"])
            releases[name][2] = made["trials"]
            seconds = {phase["phase"]: round(phase["seconds"], 1) for phase in made["phases"] if phase["seconds"] > 0.5}
            print(f"{name}: {made['trials']} trials; {seconds}", flush=True)
            for dims in sizes:
                checks[name, dims] = [pool.submit(worst_error, arguments.thrice, path, dims, device) for path in releases[name][:2]]
        concurrent.futures.wait(check for pair in checks.values() for check in pair)
        for (name, dims), pair in checks.items():
            error, limit = pair[0].result(), limit_of(pair[1].result())
            right = right and error <= limit
            timed = thrice(arguments.thrice, "bench", releases[name][0], "--dims", dims, *device)
            data["cases"].append({
                "run": run["id"], "suite": "ocr", "name": name, "shape": dims.replace(",", " "), "dtype": "f32", "numerics": "strict",
                "thrice_us": timed["best_us"], "thrice_spread_us": timed["best_spread_us"],
                "rivals": {"default_schedule": timed["original_us"]},
                "rivals_spread_us": {"default_schedule": timed["original_spread_us"]},
                "error": error, "error_limit": limit, "trials": releases[name][2],
                "note": f"tuned at {MODELS[name][1]}; default_schedule: operator by operator, default schedules"})
            print(f"{name} {dims}: {timed['original_us']:.0f} -> {timed['best_us']:.0f} us = {timed['speedup']:.2f}x, "
                  f"error {error:.2g} of {limit:.2g}", flush=True)
            arguments.output.write_text(json.dumps(data, indent=1) + "\n")
    wrong = results_file.problems(data)
    print("\n".join(wrong))
    return 0 if right and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
