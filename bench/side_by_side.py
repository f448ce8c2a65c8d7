#!/usr/bin/env python3
"""Times thrice beside PyTorch eager and torch.compile on torch CUDA tensors, in one process, interleaved case by case.

    bench/side_by_side.py --budget 60s --output bench/results/h200/skeleton.json
    bench/side_by_side.py --only resnet50 --no-tune --rivals torch_eager --rounds 10

For each network: torch builds it with random weights (nothing is downloaded) and exports it to ONNX; `thrice optimize` makes a
release of it; all answers are compared with torch in float64; then all contenders are timed on the same tensors, in turns
(A B C, B C A, ...). A sample is the time between two CUDA events around a block of calls, over the number of calls: what a
caller pays who does not wait in between, host time included where it is not hidden. L2 is warm, as for repeated requests.
TF32 is off everywhere (thrice never uses it) unless --tf32. The file is written after every case (docs/measurement.md says
what its keys are). Needs torch, torchvision, transformers, onnx, onnxscript, NumPy; thrice by PYTHONPATH or as a wheel.
"""
from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.path.append(str(ROOT / "python"))  # an installed wheel comes first
import report  # noqa: E402
import thrice  # noqa: E402

SUITE = "skeleton_b1"
RIVALS = ("torch_eager", "torch_compile_reduce_overhead")


class Case:
    """A network with example inputs on the card."""

    def __init__(self, model, inputs: dict, shape: str):
        scatter_constants(model)
        self.model, self.inputs, self.shape = model.eval().cuda(), {k: v.cuda() for k, v in inputs.items()}, shape

    def arguments(self) -> tuple:
        return tuple(self.inputs.values())


def scatter_constants(model) -> None:
    """Random numbers where a fresh network has zeros or ones (heads, biases, statistics of norms): zeros would hide errors."""
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point() or tensor.numel() <= 1 or not (tensor == tensor.flatten()[0]).all():
                continue
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5)
            else:
                tensor.add_(0.05 * torch.randn_like(tensor))


def vision(name: str) -> Case:
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return Case(model, {"image": torch.randn(1, 3, 224, 224)}, "1x3x224x224")


def bert_base() -> Case:
    import export_zoo
    from transformers import BertConfig

    ids = torch.randint(0, 30000, (1, 128))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    return Case(export_zoo.Encoder(BertConfig(), pool=False), inputs, "batch=1 sequence=128")


CASES = {
    "resnet50": lambda: vision("resnet50"),
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "vit_b_16": lambda: vision("vit_b_16"),
    "bert_base": bert_base,
}


def export(case: Case, path: pathlib.Path) -> None:
    import onnx

    outputs = case.model(*case.arguments())
    count = len(outputs) if isinstance(outputs, (tuple, list)) else 1
    program = torch.onnx.export(case.model, case.arguments(), dynamo=True, opset_version=20, input_names=list(case.inputs),
                                output_names=[f"output_{i}" for i in range(count)], verbose=False)
    onnx.save(program.model_proto, path)


def as_tuple(outputs) -> tuple:
    if isinstance(outputs, torch.Tensor):
        return (outputs,)
    return tuple(outputs)


def error(outputs: tuple, references: tuple) -> float:
    """docs/numerics.md: max(||y - r|| / ||r||, max|y - r| / max|r|), the worst output; infinite where one is not finite, or
    not zero where the reference is."""
    worst = 0.0
    for y, r in zip(outputs, references):
        difference = y.double() - r
        if not r.any():
            one = math.inf if difference.any() else 0.0
        else:
            one = max((difference.norm() / r.norm()).item(), (difference.abs().max() / r.abs().max()).item())
        worst = max(worst, one if one >= 0 else math.inf)
    return worst


def limit(ordinary: float) -> float:
    """The float32 limit of docs/numerics.md; the ordinary operator is eager's."""
    if not math.isfinite(ordinary):
        return 1e-5
    bound = min(1e-5, max(2 * ordinary, 2e-6))
    return max(bound, 2 * ordinary) if ordinary > 5e-6 else bound


def block_us(call, count: int) -> float:
    """Microseconds of a call, over a block of `count`."""
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    for _ in range(count):
        call()
    after.record()
    after.synchronize()
    return before.elapsed_time(after) * 1e3 / count


def interleaved(contenders: dict, rounds: int, block_ms: float) -> dict:
    """name -> (median, median absolute deviation, samples) in microseconds."""
    counts = {}
    for name, call in contenders.items():
        for _ in range(5):
            call()
        torch.cuda.synchronize()
        counts[name] = min(200, max(3, math.ceil(block_ms * 1e3 / block_us(call, 3))))
        block_us(call, counts[name])
    samples = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            samples[name].append(block_us(contenders[name], counts[name]))
    result = {}
    for name, values in samples.items():
        middle = statistics.median(values)
        result[name] = (middle, statistics.median(abs(v - middle) for v in values), values)
    return result


def peak_bytes(call, inputs: tuple) -> dict:
    """What one call of eager takes beside the weights, by torch's allocator, inputs included (docs/measurement.md): with the
    workspace that the product library allocates at its first call, and in a later call, which finds it there."""
    torch.cuda.synchronize()
    if clear := getattr(torch._C, "_cuda_clearCublasWorkspaces", None):
        clear()  # the export called the model before
    peaks = {}
    for name in ("torch_eager", "torch_eager_warm"):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        peaks[name] = torch.cuda.max_memory_allocated() - before + sum(t.nbytes for t in inputs)
    return peaks


def weight_bytes(model) -> int:
    return sum(t.nbytes for t in [*model.parameters(), *model.buffers()])


def show(step: dict) -> None:
    global _phase
    if step["phase"] != _phase:
        _phase = step["phase"]
        print(f"    {_phase}", flush=True)


_phase = ""


def optimize(name: str, case: Case, arguments: argparse.Namespace) -> tuple:
    """(release, its report); a release that is there already is used as it is with --reuse."""
    release, kept = arguments.work / f"{name}.thrice", arguments.work / f"{name}.json"
    if arguments.reuse and release.is_file() and kept.is_file():
        return release, json.loads(kept.read_text())
    model = arguments.work / f"{name}.onnx"
    export(case, model)
    begin = time.monotonic()
    options = {"no_tune": True} if arguments.no_tune else {"budget": arguments.budget}
    told = thrice.optimize(model, release, progress=show, device="cuda:0", cache=arguments.work / "cache", **options)
    told["seconds"] = time.monotonic() - begin
    kept.write_text(json.dumps(told, indent=1))
    model.unlink()  # hundreds of megabytes of random numbers
    return release, told


def measure(name: str, arguments: argparse.Namespace) -> tuple:
    """(row of the results file, state of the card right after the timing)."""
    torch.manual_seed(1)
    case = CASES[name]()
    inputs = case.arguments()
    with torch.no_grad():
        release, told = optimize(name, case, arguments)
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        session = thrice.load(release, device="cuda:0")
        session.run(*inputs)
        torch.cuda.synchronize()
        device_bytes = free - torch.cuda.mem_get_info()[0]
        contenders = {"thrice": lambda: session.run(*inputs)}
        for rival in arguments.rivals.split(","):
            if rival == "torch_eager":
                contenders[rival] = lambda: case.model(*inputs)
            elif rival.startswith("torch_compile_"):
                mode = rival[len("torch_compile_"):].replace("_", "-")
                compiled = torch.compile(case.model, mode=mode)
                begin = time.monotonic()
                compiled(*inputs)
                print(f"    {rival}: compiled in {time.monotonic() - begin:.0f} s", flush=True)
                contenders[rival] = lambda compiled=compiled: compiled(*inputs)
            else:
                raise SystemExit(f"side_by_side: no rival '{rival}'; known: torch_eager, torch_compile_MODE")
        # Not of compiled models: their graphs hold memory of their own since they were compiled.
        peaks = peak_bytes(contenders["torch_eager"], inputs) if "torch_eager" in contenders else {}
        weights = weight_bytes(case.model)
        answers = {rival: tuple(t.clone() for t in as_tuple(call())) for rival, call in contenders.items()}
        times = interleaved(contenders, arguments.rounds, arguments.block_ms)
        state = card_state()  # while the clocks are still those of the work
        after = session.run(*inputs)
        # Last, since it changes the model's weights in place.
        exact = case.model.double()
        references = as_tuple(exact(*[t.double() if t.is_floating_point() else t for t in inputs]))
        errors = {rival: error(answer, references) for rival, answer in answers.items()}
        errors["thrice"] = max(errors["thrice"], error(after, references))
    bound = limit(errors["torch_eager"]) if "torch_eager" in errors else 1e-5
    row = {
        "suite": SUITE, "name": name, "shape": case.shape, "dtype": "f32", "numerics": "strict",
        "thrice_us": times["thrice"][0], "thrice_spread_us": times["thrice"][1],
        "rivals": {rival: times[rival][0] for rival in contenders if rival != "thrice"},
        "rivals_spread_us": {rival: times[rival][1] for rival in contenders if rival != "thrice"},
        "error": errors["thrice"], "error_limit": bound,
        "rivals_error": {rival: e for rival, e in errors.items() if rival != "thrice"},
        "rivals_peak_bytes": peaks, "trials": told["trials"], "tuning_s": told["seconds"], "samples": arguments.rounds,
        "note": "random weights; blocks of calls without waiting, L2 warm; TF32 " + ("as PyTorch has it" if arguments.tf32 else "off"),
    }
    if told.get("peak_bytes", -1) >= 0:
        row |= {"peak_bytes": told["peak_bytes"], "weight_bytes": told["constant_bytes"],
                "held_weight_bytes": told["held_weight_bytes"], "rivals_weight_bytes": {"torch_eager": weights}}
    if device_bytes > 0:
        row["device_bytes"] = device_bytes
    if told.get("best_us", -1) > 0:
        row["rivals"]["default_schedule"] = told["original_us"]
        row["note"] += f"; default_schedule timed by optimize, which gave {told['best_us']:.0f} us for thrice"
    verdict = "right" if errors["thrice"] <= bound else "WRONG"
    print(f"    error {errors['thrice']:.1e} of {bound:.1e}: {verdict}", flush=True)
    return row, state


def environment() -> dict:
    return {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__,
            "cudnn": str(torch.backends.cudnn.version()), "host_cpu": platform.processor() or platform.machine(),
            "thrice": thrice.version()}


def card_state() -> dict:
    """driver, sm_clock_mhz, power_w; nothing where nvidia-smi is missing."""
    query = ["nvidia-smi", "-i", "0", "--query-gpu=driver_version,clocks.sm,power.draw", "--format=csv,noheader,nounits"]
    try:
        driver, clock, power = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
        return {"driver": driver, "sm_clock_mhz": float(clock), "power_w": float(power)}
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}


def tree_hash() -> str:
    try:
        return subprocess.run(["git", "rev-parse", "HEAD^{tree}"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("THRICE_TREE_HASH", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="networks, with commas")
    parser.add_argument("--budget", default="60s", help="tuning time a network")
    parser.add_argument("--no-tune", action="store_true")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="torch_eager, torch_compile_MODE with underscores")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--block-ms", type=float, default=4, help="least length of a block")
    parser.add_argument("--tf32", action="store_true", help="leave PyTorch's TF32 switches as they come")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("side_by_side_work"), help="releases, cache, store")
    parser.add_argument("--reuse", action="store_true", help="use the releases that --work holds")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if not arguments.tf32:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    date = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"side_by_side_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%d}",
           "command": "bench/side_by_side.py " + " ".join(sys.argv[1:]), "environment": environment()}
    if tree_hash():
        run["tree_hash"] = tree_hash()
    cases, failed = [], 0
    for name in arguments.only.split(","):
        print(name, flush=True)
        try:
            row, state = measure(name, arguments)
            cases.append({"run": run["id"], **row})
            run["environment"] |= state
        except Exception as e:  # one network's trouble must not cost the others their minutes on the card
            failed += 1
            print(f"    FAILED: {type(e).__name__}: {e}", flush=True)
        torch.cuda.empty_cache()
        if arguments.output and cases:
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": cases}, indent=1) + "\n")
    if cases:
        print(report.report({"runs": [run], "cases": cases}))
    wrong = sum(not case["error"] <= case["error_limit"] for case in cases)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
