#!/usr/bin/env python3
"""Times operators that memory bounds beside a copy of as many bytes, PyTorch eager and torch.compile, in one process.

    bench/memory_bound.py --output bench/results/h200/memory_bound.json
    bench/memory_bound.py --only softmax,adam --rivals copy --seconds 20

Each case is an ONNX model of one operator or a short chain; `thrice optimize` gives it rule-chosen schedules (all cases at
once, on the host, before anything is timed), the answers are compared with torch in float64, then all contenders are timed in
turns on the same tensors. A sample is the time between two CUDA events around one call, queued behind a read of 512 MB, which
hides the host's work and leaves the L2 cache full of other, clean data. `bytes` are what must be read and written once;
the rival `copy` copies half as many to as many. The file is written after every case. Needs torch, onnx; thrice by PYTHONPATH.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import statistics
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))
sys.path.append(str(ROOT / "tools"))
import memory_bound_cases  # noqa: E402
import side_by_side  # noqa: E402
import thrice  # noqa: E402

RIVALS = "copy,torch_eager,torch_compile_max_autotune"
FLUSH_BYTES = 512 << 20


def build(folder: pathlib.Path, name: str) -> None:
    """Writes the model and its release without a card: nothing is searched, so nothing need run."""
    case = memory_bound_cases.CASES[name]()
    case.save(folder / f"{name}.onnx")
    thrice.optimize(folder / f"{name}.onnx", folder / f"{name}.thrice", progress=False, no_tune=True, cache=folder / "cache",
                    store=folder / f"{name}.sqlite", target="cuda:sm_90a")


def build_all(names: list, folder: pathlib.Path) -> dict:
    """name -> what went wrong, of cases without a release."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # of the children: this process has its context
    wrong = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(build, folder, name): name for name in names}
        for job in concurrent.futures.as_completed(jobs):
            if job.exception():
                wrong[jobs[job]] = str(job.exception())[-400:]
    if hidden is None:
        del os.environ["CUDA_VISIBLE_DEVICES"]
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = hidden
    return wrong


def sample_us(call, flush: torch.Tensor) -> float:
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.sum()
    before.record()
    call()
    after.record()
    after.synchronize()
    return before.elapsed_time(after) * 1e3


def interleaved(contenders: dict, flush: torch.Tensor, rounds: int) -> dict:
    """name -> (median, median absolute deviation) in microseconds."""
    for call in contenders.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    samples = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            samples[name].append(sample_us(contenders[name], flush))
    middles = {name: statistics.median(values) for name, values in samples.items()}
    return {name: (middles[name], statistics.median(abs(v - middles[name]) for v in values)) for name, values in samples.items()}


def limit(case, ordinary: float) -> float:
    """Rounding of the result's dtype, or twice what eager has where that is more (docs/numerics.md)."""
    floor = {"f32": 2e-6, "f16": 2.0**-10, "bf16": 2.0**-7}[case.dtype]
    return max(floor, 2 * ordinary) if math.isfinite(ordinary) else floor


def measure(name: str, folder: pathlib.Path, rivals: list, flush: torch.Tensor, rounds: int) -> dict:
    torch.manual_seed(1)
    case = memory_bound_cases.CASES[name]()
    inputs = case.inputs()
    session = thrice.load(folder / f"{name}.thrice", device="cuda:0")
    half = torch.empty(case.bytes(inputs) // 2, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(half)
    contenders = {"thrice": lambda: session.run(*inputs)}
    compile_s = 0.0
    for rival in rivals:
        if rival == "copy":
            contenders[rival] = lambda: other.copy_(half)
        elif rival == "torch_eager":
            contenders[rival] = lambda: case.function(*inputs)
        else:
            torch._dynamo.reset()
            mode = rival[len("torch_compile_"):].replace("_", "-")
            mode = "max-autotune-no-cudagraphs" if mode == "max-autotune" else mode
            compiled = torch.compile(case.function, mode=mode, dynamic=False)
            begin = time.monotonic()
            compiled(*inputs)
            torch.cuda.synchronize()
            compile_s += time.monotonic() - begin
            contenders[rival] = lambda compiled=compiled: compiled(*inputs)
    def answers(call, *arguments) -> tuple:
        return tuple(t if t.is_floating_point() else t.double() for t in side_by_side.as_tuple(call(*arguments)))

    exact = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    references = answers(case.function, *exact)
    errors = {}
    for rival in contenders:
        if rival != "copy":
            errors[rival] = side_by_side.error(answers(contenders[rival]), references)
    ordinary = errors["torch_eager"] if "torch_eager" in errors else side_by_side.error(
        answers(case.function, *inputs), references)
    del exact, references
    times = interleaved(contenders, flush, rounds)
    row = {"suite": "memory_bound", "name": name, "family": case.family, "shape": case.shape, "dtype": case.dtype, "numerics": "strict",
           "thrice_us": times["thrice"][0], "thrice_spread_us": times["thrice"][1],
           "rivals": {r: times[r][0] for r in contenders if r != "thrice"},
           "rivals_spread_us": {r: times[r][1] for r in contenders if r != "thrice"},
           "rivals_error": {r: e for r, e in errors.items() if r != "thrice" and math.isfinite(e)},
           "sol_bound": "memory", "samples": rounds,
           "note": f"{case.bytes(inputs)} bytes; L2 cold; rule-chosen schedule"}
    if compile_s:
        row["note"] += f"; compiled in {compile_s:.1f} s, without CUDA graphs"
    if math.isfinite(errors["thrice"]):
        row |= {"error": errors["thrice"], "error_limit": limit(case, ordinary)}
    else:
        row["note"] += "; WRONG"
    return row


def copy_gbs(flush: torch.Tensor) -> float:
    """GB/s (read and written) of a copy of 512 MB."""
    other = torch.empty_like(flush)
    return 2 * flush.nbytes / interleaved({"copy": lambda: other.copy_(flush)}, flush, 9)["copy"][0] / 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name begins with one of these, with commas")
    parser.add_argument("--rivals", default=RIVALS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9, help="no case is begun after so long")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("memory_bound_work"))
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    begin = time.monotonic()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    wanted = tuple(arguments.only.split(","))
    names = [name for name in memory_bound_cases.CASES if name.startswith(wanted)]
    wrong = build_all(names, arguments.work)
    print(f"{len(names) - len(wrong)} releases after {time.monotonic() - begin:.1f} s", flush=True)
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
    date = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"memory_bound_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%d}",
           "command": "bench/memory_bound.py " + " ".join(sys.argv[1:]), "environment": side_by_side.environment(),
           "anchor": {"copy_gbs": round(copy_gbs(flush), 1)}}
    if side_by_side.tree_hash():
        run["tree_hash"] = side_by_side.tree_hash()
    print(f"copy: {run['anchor']['copy_gbs']} GB/s", flush=True)
    rows = []
    for name in names:
        if time.monotonic() - begin > arguments.seconds:
            print(f"{name}: no time left", flush=True)
            continue
        try:
            if name in wrong:
                raise RuntimeError(wrong[name])
            with torch.no_grad():
                row = measure(name, arguments.work, arguments.rivals.split(","), flush, arguments.rounds)
            row["run"] = run["id"]
            row["sol_us"] = float(row["note"].split()[0]) / run["anchor"]["copy_gbs"] / 1e3
            rows.append(row)
            rest = " ".join(f"{r} {us:.1f}" for r, us in row["rivals"].items())
            share = row["rivals"].get("copy", row["sol_us"]) / row["thrice_us"]
            bad = "" if row.get("error", 1) <= row.get("error_limit", 0) else " WRONG"
            print(f"{name}: {row['thrice_us']:.1f} us, {share:.0%} of the copy; {rest}; error {row.get('error', 9):.1e}{bad}", flush=True)
        except Exception as e:  # one case's trouble must not cost the others their time on the card
            print(f"{name}: FAILED: {type(e).__name__}: {e}", flush=True)
        torch.cuda.empty_cache()
        if arguments.output and rows:
            run["environment"] |= side_by_side.card_state() if len(rows) == 1 else {}
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": rows}, indent=1) + "\n")
    shares = [row["rivals"]["copy"] / row["thrice_us"] for row in rows if "copy" in row["rivals"]]
    if shares:
        print(f"of the copy: geometric mean {statistics.geometric_mean(shares):.0%}, least {min(shares):.0%}, {len(shares)} cases")
    return 0 if len(rows) == len(names) and all(row.get("error", 1) <= row.get("error_limit", 0) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
