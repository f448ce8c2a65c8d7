#!/usr/bin/env python3
"""Times attention through thrice beside PyTorch's back ends on the same tensors, in one process, interleaved case by case.

    bench/attention.py --models FOLDER                       # writes the models; needs onnx, no card
    bench/attention.py --work FOLDER --output bench/results/h200/attention.json --suite attention_bf16

A case is a model of one node Attention with q, k and v as inputs. `thrice optimize` makes a release of it (rule-chosen schedules
unless --budget), which passes the product's verification, and its answer is compared here with float64. Times are those of a
caller who does not wait (blocks of calls between two CUDA events), rivals taken in turns; L2 is as the case leaves it. PyTorch's
back ends are called alone, each with scaled_dot_product_attention; TF32 is off. --output joins the file that is there. Needs torch; onnx
only where FOLDER lacks a model.
"""
from __future__ import annotations

import argparse
import datetime
import json
import math
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = {"attention_bf16": [(4, 16, 2048, 128), (1, 16, 8192, 128), (8, 16, 512, 64)], "attention_f32": [(4, 16, 1024, 64), (1, 16, 2048, 128), (8, 12, 128, 64)],
          "attention_decode_bf16": [(1, 32, 8192, 128), (1, 32, 32768, 128), (16, 32, 4096, 128), (64, 32, 2048, 128)]}  # one query each
BACK_ENDS = {"torch_cudnn": "CUDNN_ATTENTION", "torch_flash": "FLASH_ATTENTION", "torch_efficient": "EFFICIENT_ATTENTION", "torch_math": "MATH"}


def cases(suite: str) -> list[dict]:
    kind = suite.rsplit("_", 1)[1]
    decodes = "decode" in suite
    return [{"name": f"{'decode' if decodes else 'attention'}_{kind}_{b}x{h}x{s}x{d}" + ("_causal" if causal else ""), "b": b, "h": h,
             "q": 1 if decodes else s, "s": s, "d": d, "causal": causal}
            for b, h, s, d in SHAPES[suite] for causal in ((False,) if decodes else (False, True))]


def write_model(path: pathlib.Path, case: dict, suite: str) -> None:
    import onnx
    from onnx import TensorProto, helper

    dtype = TensorProto.BFLOAT16 if suite.endswith("bf16") else TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, dtype, [case["b"], case["h"], case["q" if name in "qy" else "s"], case["d"]]) for name in "qkvy"]
    node = helper.make_node("Attention", list("qkv"), ["y"], is_causal=int(case["causal"]))
    graph = helper.make_graph([node], "attention", values[:3], values[3:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)


def block_us(torch, call, count: int) -> float:
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    for _ in range(count):
        call()
    after.record()
    after.synchronize()
    return before.elapsed_time(after) * 1e3 / count


def exact(torch, q, k, v, causal: bool):
    """float64, head by head."""
    y = torch.empty_like(q, dtype=torch.float64)
    s = q.shape[2]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = q[b, h].double() @ k[b, h].double().T * q.shape[3] ** -0.5
            if causal:
                scores.masked_fill_(torch.ones(s, s, device=q.device, dtype=torch.bool).triu(1), -math.inf)
            y[b, h] = torch.softmax(scores, -1) @ v[b, h].double()
    return y


def error(y, reference) -> float:
    difference = y.double() - reference
    worst = max((difference.norm() / reference.norm()).item(), (difference.abs().max() / reference.abs().max()).item())
    return worst if worst >= 0 else math.inf


def copy_gbs(torch) -> float:
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() / min(block_us(torch, lambda: b.copy_(a), 3) for _ in range(5)) * 1e-3


def measure(torch, thrice, case: dict, suite: str, arguments: argparse.Namespace) -> dict:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kind = suite.rsplit("_", 1)[1]
    model, release = arguments.work / f"{case['name']}.onnx", arguments.work / f"{case['name']}.thrice"
    told = {}
    if not (arguments.reuse and release.is_file()):
        if not model.is_file():
            write_model(model, case, suite)
        options = {"budget": arguments.budget} if arguments.budget else {"no_tune": True}
        told = thrice.optimize(model, release, device="cuda:0", cache=arguments.work / "cache", **options)
    session = thrice.load(release, device="cuda:0")
    torch.manual_seed(1)
    shape = (case["b"], case["h"], case["s"], case["d"])
    q, k, v = (torch.randn((case["b"], case["h"], rows, case["d"]), device="cuda", dtype=torch.bfloat16 if kind == "bf16" else torch.float32)
               for rows in (case["q"], case["s"], case["s"]))
    reference = exact(torch, q, k, v, case["causal"])

    def rival(back_end):
        with sdpa_kernel(back_end):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case["causal"])

    contenders, errors = {"thrice": lambda: session.run(q, k, v)}, {}
    for name, back_end in BACK_ENDS.items():
        contenders[name] = lambda back_end=getattr(SDPBackend, back_end): rival(back_end)
    for name, call in list(contenders.items()):
        try:
            y = call()
            y = y[0] if isinstance(y, (tuple, list)) else y
            torch.cuda.synchronize()
            errors[name] = error(y, reference)
        except RuntimeError as e:  # a back end that does not take the dtype
            if name == "thrice":
                raise
            print(f"    {name}: {str(e).splitlines()[0]}", flush=True)
            del contenders[name]
    counts = {name: min(200, max(3, math.ceil(arguments.block_ms * 1e3 / min(block_us(torch, call, 2) for _ in range(3))))) for name, call in contenders.items()}
    samples: dict = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(arguments.rounds):
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            samples[name].append(block_us(torch, contenders[name], counts[name]))
    middle = {name: statistics.median(values) for name, values in samples.items()}
    spread = {name: statistics.median(abs(x - middle[name]) for x in values) for name, values in samples.items()}
    flop = 4.0 * case["b"] * case["h"] * case["q"] * case["s"] * case["d"] * (0.5 if case["causal"] else 1)
    best = min(us for name, us in middle.items() if name != "thrice")
    print(f"    {middle['thrice']:.1f} us, {flop / middle['thrice'] * 1e-6:.0f} TFLOPS, {best / middle['thrice']:.2f}x of the best of "
          + ", ".join(f"{name} {us:.1f}" for name, us in middle.items() if name != "thrice") + f"; error {errors['thrice']:.2e}", flush=True)
    limit = max(1e-2 if kind == "bf16" else 1e-5, 0.0)
    regions = [r for r in told.get("regions", []) if r.get("family") == "attention"]
    row = {"suite": suite, "name": case["name"], "family": "attention", "shape": "x".join(map(str, shape)), "dtype": kind,
           "numerics": "float32 sums and softmax" if kind == "bf16" else "strict", "thrice_us": middle.pop("thrice"), "thrice_spread_us": spread.pop("thrice"),
           "samples": arguments.rounds, "rivals": middle, "rivals_spread_us": spread, "error": errors.pop("thrice"), "error_limit": limit,
           "rivals_error": errors, "sol_us": flop / (989e6 if kind == "bf16" else 165e6), "sol_bound": "compute",
           "note": "through the product, host time included where it is not hidden; sol: peak of the tensor cores, half of it where causal"}
    if case["q"] == 1:  # keys and values are read once
        row |= {"sol_us": 2 * k.numel() * k.element_size() / 4.25e6, "sol_bound": "memory",
                "note": "one query; through the product, host time included where it is not hidden; sol: keys and values at 4.25 TB/s"}
    if regions and regions[0].get("schedule"):
        row["schedule"] = str(regions[0]["schedule"])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, help="write the models there, and end")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("attention_work"))
    parser.add_argument("--suite", default=",".join(SHAPES))
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--budget", default="", help="tuning time a case; rule-chosen schedules without")
    parser.add_argument("--reuse", action="store_true", help="use the releases that --work holds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block-ms", type=float, default=4)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    chosen = [(suite, case) for suite in arguments.suite.split(",") for case in cases(suite) if arguments.only in case["name"]]
    if arguments.models:
        arguments.models.mkdir(parents=True, exist_ok=True)
        for suite, case in chosen:
            write_model(arguments.models / f"{case['name']}.onnx", case, suite)
        return 0
    sys.path.append(str(ROOT / "python"))  # an installed wheel comes first
    sys.path.insert(0, str(ROOT / "bench"))
    import torch
    import thrice
    import results_file

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    arguments.work.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"attention_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%dT%H:%M:%SZ}", "command": f"bench/attention.py --suite {arguments.suite}",
           "environment": {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__,
                           "cudnn": str(torch.backends.cudnn.version()), "thrice": thrice.version()},
           "anchor": {"copy_gbs": round(copy_gbs(torch))}}
    before = json.loads(arguments.output.read_text()) if arguments.output and arguments.output.is_file() else None
    rows, failed = [], 0
    for suite, case in chosen:
        print(case["name"], flush=True)
        try:
            rows.append({"run": run["id"], **measure(torch, thrice, case, suite, arguments)})
            failed += not rows[-1]["error"] <= rows[-1]["error_limit"]
        except Exception as e:  # one case's trouble must not cost the others their minutes on the card
            failed += 1
            print(f"    FAILED: {type(e).__name__}: {e}", flush=True)
        torch.cuda.empty_cache()
        if arguments.output and rows:
            new = {"schema": 1, "runs": [run], "cases": rows}
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps(results_file.join([before, new] if before else [new]), indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
