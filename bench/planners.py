#!/usr/bin/env python3
"""The planners `greedy` and `dp` on the same networks: regions, prices, and times of the whole model.

    bench/planners.py --device opencl:0 --output bench/results/pocl/planners.json MODEL[@NAME=N,...[@INPUT=D,...]] ...
    bench/planners.py --device cuda:0 --zoo build/release/data/zoo --output planners.json --rounds 5

Each network is planned by both and made a release with rule-chosen schedules (`optimize --no-tune`), which are then timed in turns
(`run`'s own clock is not used: `optimize` times its plan against the original, alternating, and the speed-up over it does not mind
other work on the machine). Rounds alternate the planners; medians of rounds are kept. A stripped network gets random weights.
Rows have the form of bench/results_file.py: thrice_us is dp's, rivals.greedy the greedy planner's, both from the original's median
time over the median speed-up. Set THRICE_EXECUTABLE to choose the program.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

PLANNERS = ("greedy", "dp")
# structure of the zoo, extents
ZOO = [("resnet50", "batch=1"), ("resnet50", "batch=32"), ("mobilenet_v2", "batch=1"), ("mobilenet_v2", "batch=32"), ("vit_b_16", "batch=1"),
       ("vit_b_16", "batch=32"), ("bert_base", "batch=1,sequence=128"), ("bert_base", "batch=32,sequence=128"), ("gpt2", "batch=4,sequence=512")]


def optimize(executable: str, model: pathlib.Path, dims: str, shape: str, planner: str, device: str, folder: pathlib.Path) -> dict:
    command = [executable, "optimize", str(model), "--no-tune", "--json", "--quiet", "--planner", planner, "--target", device, "--random-weights", "1",
               "--output", str(folder / f"{model.stem}_{planner}.thrice"), "--cache", str(folder / "cache"),
               "--store", str(folder / f"store_{planner}.sqlite")]
    if dims:
        command += ["--dims", dims]
    if shape:
        command += ["--shape", shape]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{planner}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
    return json.loads(done.stdout)


def compare(executable: str, model: pathlib.Path, dims: str, shape: str, device: str, rounds: int, folder: pathlib.Path) -> dict:
    reports: dict = {planner: [] for planner in PLANNERS}
    for i in range(rounds):
        for planner in PLANNERS if i % 2 == 0 else PLANNERS[::-1]:
            reports[planner].append(optimize(executable, model, dims, shape, planner, device, folder))
    original = statistics.median(r["original_us"] for runs in reports.values() for r in runs)
    times = {p: [original / r["speedup"] for r in reports[p]] for p in PLANNERS}
    middle = {p: statistics.median(times[p]) for p in PLANNERS}
    spread = {p: statistics.median(abs(t - middle[p]) for t in times[p]) for p in PLANNERS}
    last = {p: reports[p][-1] for p in PLANNERS}
    regions = {p: sum(r["uses"] for r in last[p]["regions"]) for p in PLANNERS}
    plans = len({r["plan_digest"] for r in reports["dp"]})  # later rounds have records of the first
    taken_apart = {p: sum("not fused" in note for note in last[p]["notes"]) for p in PLANNERS}
    first = reports["dp"][0]["fusion"]  # by rooflines: the store was empty
    name = model.parent.name if model.stem == "model" else model.stem  # stripped structures with data beside them
    return {"suite": "planners", "name": name, "shape": dims or "as the model says", "dtype": "f32", "numerics": "strict", "thrice_us": middle["dp"],
            "thrice_spread_us": spread["dp"], "rivals": {"greedy": middle["greedy"]}, "rivals_spread_us": {"greedy": spread["greedy"]},
            "samples": rounds, "error": last["dp"]["max_error"], "error_limit": last["dp"]["error_limit"],
            "note": f"regions after choosing {regions['dp']} (greedy {regions['greedy']}), of these planned as one and taken apart again "
                    f"{taken_apart['dp']} (greedy {taken_apart['greedy']}); price by rooflines {first['price_us']:.1f} us (greedy "
                    f"{first['greedy_price_us']:.1f} us); {first['exact_parts']} of {first['parts']} parts exact, {first['states']} states; "
                    f"{plans} different plans of dp in {rounds} rounds; rule-chosen schedules"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="FILE, FILE@NAME=N,... or FILE@NAME=N,...@INPUT=D,... (--dims and --shape of optimize)")
    parser.add_argument("--zoo", type=pathlib.Path, help="folder of structures: the sizes of the list in this file")
    parser.add_argument("--only", default="", help="of the zoo: structures whose name begins with one of these, with commas")
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    executable = os.environ.get("THRICE_EXECUTABLE", "thrice")
    cases = []
    for text in arguments.models:
        name, dims, shape = (text.split("@") + ["", ""])[:3]
        cases.append((pathlib.Path(name), dims, shape))
    if arguments.zoo:
        cases += [(arguments.zoo / f"{name}.onnx", dims, "") for name, dims in ZOO if name.startswith(tuple(arguments.only.split(",")))]
    date = datetime.datetime.now(datetime.timezone.utc)
    devices = json.loads(subprocess.run([executable, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
    run = {"id": f"planners_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%d}",
           "command": f"bench/planners.py --device {arguments.device} --rounds {arguments.rounds}",
           "environment": {"device": arguments.device, "devices": devices, "cores": os.cpu_count(), "load": os.getloadavg()[0],
                           "machine": platform.machine()}}
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for model, dims, shape in cases:
            try:
                rows.append({"run": run["id"], **compare(executable, model, dims, shape, arguments.device, arguments.rounds, pathlib.Path(folder))})
                row = rows[-1]
                print(f"{row['name']} {row['shape']}: dp {row['thrice_us']:.1f} us, greedy {row['rivals']['greedy']:.1f} us; {row['note']}", flush=True)
            except Exception as e:  # one network's trouble must not cost the others their time
                failed += 1
                print(f"{model.stem} {dims}: FAILED: {e}", flush=True)
            if arguments.output and rows:
                arguments.output.parent.mkdir(parents=True, exist_ok=True)
                arguments.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
