#!/usr/bin/env python3
"""Times a model of padded batches served packed (optimize --packed) beside the same model padded to the longest.

    bench/packed.py --model build/release/data/zoo/minilm_l6.onnx --device opencl:0 --output bench/results/pocl/packed.json

Both releases have rule-chosen schedules (--no-tune), or are tuned for --budget; lengths are drawn uniformly from 1 to the longest,
anew for each seed, the same for both; calls go in turns, inputs and outputs on the host. The padded side gets every batch at the
full length, as a fixed-batch model does. Where positions count, the outputs of both must agree.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))
import thrice  # noqa: E402

EXECUTABLE = os.environ.get("THRICE_EXECUTABLE", ROOT / "build/release/thrice")


def release(args, packed: bool, batch: int) -> pathlib.Path:
    path = args.work / f"{args.model.stem}_{batch}_{'packed' if packed else 'padded'}.thrice"
    if path.exists() and args.reuse:
        return path
    command = [EXECUTABLE, "optimize", args.model, "--random-weights", "1", "--quiet",
               "--device", args.device, "--dims", f"batch={batch},sequence={args.length}", "--output", path, "--cache", args.work / "cache"]
    command += ["--budget", args.budget] if args.budget else ["--no-tune"]
    done = subprocess.run(command + (["--packed"] if packed else []), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path.name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{path.name} built", flush=True)
    return path


def times(sessions: list, inputs: dict, rounds: int) -> list:
    """Medians of each side, in microseconds."""
    samples: list = [[], []]
    for _ in range(rounds):
        for side, session in zip(samples, sessions):
            begin = time.perf_counter()
            session.run(inputs)
            side.append((time.perf_counter() - begin) * 1e6)
    return [statistics.median(side) for side in samples]


def measure(args, batch: int, run: str) -> list:
    sessions = [thrice.load(release(args, packed, batch), device=args.device) for packed in (False, True)]
    cases = []
    for seed in range(args.seeds):
        random = np.random.default_rng(seed)
        lengths = random.integers(1, args.length + 1, batch)
        mask = (np.arange(args.length)[None] < lengths[:, None]).astype(np.int64)
        inputs = {p.name: random.integers(0, 2, mask.shape).astype(np.int64) for p in sessions[0].inputs}
        inputs.update(input_ids=random.integers(0, 1000, mask.shape).astype(np.int64), attention_mask=mask)
        begin = time.perf_counter()
        packed = sessions[1].run(inputs)
        first_ms = (time.perf_counter() - begin) * 1e3
        padded = sessions[0].run(inputs)
        worst = 0.0
        for a, b in zip(padded.values(), packed.values()):
            counts = mask.astype(bool) if a.shape[:2] == mask.shape else slice(None)
            worst = max(worst, float(np.abs(a[counts] - b[counts]).max() / np.abs(a[counts]).max()))
        if not worst <= 1e-4:
            sys.exit(f"batch {batch}, seed {seed}: outputs differ by {worst}")
        padded_us, packed_us = times(sessions, inputs, args.rounds)
        tokens = int(lengths.sum())
        print(f"batch {batch} seed {seed}: {tokens} of {mask.size} positions, padded {padded_us:.0f} us, packed {packed_us:.0f} us "
              f"= {padded_us / packed_us:.2f}x, first call {first_ms:.0f} ms, difference {worst:.1e}", flush=True)
        cases.append({"run": run, "suite": "packed", "name": f"{args.model.stem} {batch} sequences, seed {seed}",
                      "shape": f"{batch}x{args.length}, {tokens} tokens", "dtype": "f32", "numerics": "strict", "thrice_us": packed_us,
                      "rivals": {"thrice_padded": padded_us},
                      "note": f"{tokens / mask.size:.0%} of the positions; first call with this number of tokens {first_ms:.0f} ms; largest difference {worst:.1e}"})
    gain = statistics.geometric_mean(c["rivals"]["thrice_padded"] / c["thrice_us"] for c in cases)
    print(f"batch {batch}: {gain:.2f}x in geometric mean", flush=True)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="ONNX, inputs input_ids, attention_mask ... [batch, sequence]")
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--batches", default="8", help="e.g. 8,32")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", default="", help="tuning time; none: rule-chosen schedules")
    parser.add_argument("--reuse", action="store_true", help="takes releases that are in --work")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("packed_work"))
    parser.add_argument("--output", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    devices = json.loads(subprocess.run([EXECUTABLE, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
    now = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"packed_{now:%Y-%m-%d_%H%M}", "date": f"{now:%Y-%m-%d}",
           "command": f"bench/packed.py --model {args.model.name} --device {args.device} --batches {args.batches} --length {args.length}",
           "environment": {"device": args.device, "devices": devices, "tuned": args.budget or "no", "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}}
    cases = [case for batch in args.batches.split(",") for case in measure(args, int(batch), run["id"])]
    args.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
