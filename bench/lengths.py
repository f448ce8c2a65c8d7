#!/usr/bin/env python3
"""Serves requests of random length by three releases of one model, request by request in turns.

    bench/lengths.py --thrice PROGRAM MODEL [--shape INPUT=D,...] [--dims NAME=N,...] --symbol NAME --lengths uniform:100-960
                     [--budget 60s] [--requests 1000] [--random-weights SEED] [--device T] --output FILE

`one`: tuned at the longest length only; `buckets`: thrice optimize --lengths; `padded`: the release `one`, each request padded with
zeros to the longest length (what a fixed shape costs; its answers differ from the others' and are not looked at). THRICE_LIBRARY
names libthrice.so for the Python package. Every length is seen once before timing begins, unless --cold. A request's time is
wall-clock from NumPy to NumPy. The figures go to FILE in the form of bench/results_file.py, suite `lengths`.
"""
from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ocr_sizes
import results_file
import thrice


def lengths_of(text: str, count: int, seed: int) -> list[int]:
    first, last = (int(word) for word in text.removeprefix("uniform:").split("-"))
    return [int(n) for n in numpy.random.default_rng(seed).integers(first, last + 1, count)]


def release(arguments: argparse.Namespace, path: pathlib.Path, *words: str) -> dict:
    optional = [word for flag in ("shape", "random_weights", "device") if getattr(arguments, flag)
                for word in (f"--{flag.replace('_', '-')}", getattr(arguments, flag))]
    command = [str(arguments.thrice.resolve()), "optimize", str(arguments.model), "--budget", arguments.budget, "--quiet", "--json",
               "--output", str(path), *optional, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def inputs_at(session: thrice.Session, dims: dict[str, int], rng: numpy.random.Generator) -> dict:
    found = {}
    for name, dtype, symbolic in session.inputs:
        shape = [dims[d] if isinstance(d, str) else d for d in symbolic]
        whole = numpy.issubdtype(numpy.dtype(dtype), numpy.integer)
        found[name] = numpy.ones(shape, dtype) if whole else rng.standard_normal(shape).astype(dtype)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thrice", type=pathlib.Path, required=True)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--shape", default="")
    parser.add_argument("--dims", default="batch=1")
    parser.add_argument("--symbol", required=True)
    parser.add_argument("--lengths", required=True)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--random-weights", default="")
    parser.add_argument("--device", default="")
    parser.add_argument("--cold", action="store_true", help="lengths come unseen: the first request of each pays for its binding")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    asked = lengths_of(arguments.lengths, arguments.requests, 1)
    longest = int(arguments.lengths.split("-")[1])
    dims = {name: int(value) for name, value in (pair.split("=") for pair in arguments.dims.split(",") if pair)}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: pathlib.Path(folder) / f"{name}.thrice" for name in ("one", "buckets")}
        made = {"one": release(arguments, paths["one"], "--dims", f"{arguments.dims},{arguments.symbol}={longest}"),
                "buckets": release(arguments, paths["buckets"], "--dims", arguments.dims,
                                   "--lengths", f"{arguments.symbol}={arguments.lengths}")}
        for note in made["buckets"]["notes"]:
            print(f"note: {note}", flush=True)
        options = {"device": arguments.device} if arguments.device else {}
        sessions = {name: thrice.load(str(path), **options) for name, path in paths.items()}
        sessions["padded"] = sessions["one"]
        rng = numpy.random.default_rng(2)
        data = {length: inputs_at(sessions["one"], {**dims, arguments.symbol: length}, rng) for length in {*asked, longest}}
        if not arguments.cold:
            for name in ("one", "buckets"):
                for length in sorted(data):
                    sessions[name].run(data[length])
        took: dict[str, list[float]] = {name: [] for name in sessions}
        for number, length in enumerate(asked):
            order = sorted(sessions) if number % 2 else sorted(sessions, reverse=True)
            for name in order:
                begin = time.perf_counter()
                sessions[name].run(data[longest if name == "padded" else length])
                took[name].append((time.perf_counter() - begin) * 1e6)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    run = {"id": f"lengths-{now}", "date": now, "environment": ocr_sizes.environment(arguments.thrice, made["one"]["device"]),
           "command": f"bench/lengths.py {arguments.model.name} --symbol {arguments.symbol} --lengths {arguments.lengths} "
                      f"--budget {arguments.budget} --requests {arguments.requests}{' --cold' if arguments.cold else ''}"}
    mean = {name: statistics.fmean(times) for name, times in took.items()}
    tails = {name: [float(numpy.percentile(times, p)) for p in (50, 99, 100)] for name, times in took.items()}
    case = {"run": run["id"], "suite": "lengths", "name": arguments.model.stem, "shape": f"{arguments.symbol}={arguments.lengths}",
            "dtype": "f32", "numerics": "strict", "thrice_us": mean["buckets"],
            "rivals": {"one schedule a region": mean["one"], "padded to the longest": mean["padded"]},
            "error": made["buckets"]["max_error"], "error_limit": made["buckets"]["error_limit"],
            "note": "mean wall-clock time of a request; p50, p99, most: " +
                    "; ".join(f"{name} {a:.0f}, {b:.0f}, {c:.0f} us" for name, (a, b, c) in tails.items()) +
                    "".join(f"; {note}" for note in made["buckets"]["notes"] if "schedules" in note)}
    result = {"schema": 1, "runs": [run], "cases": [case]}
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    for name in took:
        print(f"{name}: mean {mean[name]:.0f} us, p50 {tails[name][0]:.0f}, p99 {tails[name][1]:.0f}, most {tails[name][2]:.0f}")
    print(f"buckets: {mean['one'] / mean['buckets']:.3f}x of one schedule, {mean['padded'] / mean['buckets']:.2f}x of padding")
    wrong = results_file.problems(result)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
