#!/usr/bin/env python3
"""Times whole networks by thrice alone, structures of tests/data/zoo with random weights, float32 and bf16.

    bench/model_times.py --zoo build/release/data/zoo --output bench/results/h200/models.json
    bench/model_times.py --zoo ... --only resnet50_b32 --trace traces

Releases are built without a card (rule-chosen schedules, nothing is run or verified then), all at once; a time is the median
of seven blocks of calls on torch CUDA tensors, L2 warm. Whether results are finite is all that is checked here; bench/
side_by_side.py compares with PyTorch. bf16 structures are made from the float32 ones. Needs torch and onnx.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))
import side_by_side  # noqa: E402
import thrice  # noqa: E402

# (structure, batch, tokens or 0)
SIZES = [("resnet50", 1, 0), ("resnet50", 32, 0), ("mobilenet_v2", 1, 0), ("mobilenet_v2", 32, 0), ("vit_b_16", 1, 0), ("vit_b_16", 32, 0),
         ("bert_base", 1, 128), ("bert_base", 32, 128), ("bert_base", 8, 512), ("gpt2", 4, 512)]
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def name_of(structure: str, batch: int, tokens: int, dtype: str) -> str:
    return f"{structure}_{f's{tokens}_' if tokens else ''}b{batch}_{dtype}"


def to_bf16(graph) -> None:
    """Every float32 tensor and cast of an ONNX graph becomes bf16."""
    import numpy as np
    from onnx import TensorProto, numpy_helper

    def convert(tensor) -> None:
        if tensor.data_type != TensorProto.FLOAT:
            return
        tensor.data_type = TensorProto.BFLOAT16
        if tensor.data_location == TensorProto.EXTERNAL:  # weights that were stripped
            for entry in tensor.external_data:
                if entry.key == "length":
                    entry.value = str(int(entry.value) // 2)
            return
        tensor.data_type = TensorProto.FLOAT
        bits = numpy_helper.to_array(tensor).astype(np.float32).view(np.uint32)
        tensor.ClearField("float_data")
        tensor.raw_data = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()
        tensor.data_type = TensorProto.BFLOAT16

    for tensor in graph.initializer:
        convert(tensor)
    for port in [*graph.input, *graph.output]:
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = TensorProto.BFLOAT16
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                convert(attribute.t)
            if attribute.HasField("g"):
                to_bf16(attribute.g)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.BFLOAT16


def build(work: pathlib.Path, zoo: pathlib.Path, structure: str, batch: int, tokens: int, dtype: str) -> None:
    name = name_of(structure, batch, tokens, dtype)
    model = zoo / f"{structure}.onnx"
    if dtype == "bf16":
        import onnx

        proto = onnx.load(model, load_external_data=False)
        to_bf16(proto.graph)
        model = work / f"{name}.onnx"
        onnx.save(proto, model)
    dims = {"batch": batch, **({"sequence": tokens} if tokens else {})}
    thrice.optimize(model, work / f"{name}.thrice", progress=False, no_tune=True, target="cuda:sm_90a", dims=dims, random_weights=1,
                    cache=work / "cache", store=work / f"{name}.sqlite")


def inputs_of(structure: str, batch: int, tokens: int, dtype: str) -> tuple:
    if not tokens:
        return (torch.randn(batch, 3, 224, 224, device="cuda", dtype=TYPES[dtype]),)
    ids = torch.randint(0, 30000, (batch, tokens), device="cuda")
    ones = torch.ones_like(ids)
    return (ids, ones, torch.zeros_like(ids)) if structure == "bert_base" else (ids, ones)


def measure(work: pathlib.Path, case: tuple, trace: pathlib.Path | None) -> dict:
    name, inputs = name_of(*case), inputs_of(*case)
    session = thrice.load(work / f"{name}.thrice", device="cuda:0")
    for _ in range(5):
        results = session.run(*inputs)
    torch.cuda.synchronize()
    count = max(3, min(100, int(5e3 / side_by_side.block_us(lambda: session.run(*inputs), 3)) + 1))
    samples = [side_by_side.block_us(lambda: session.run(*inputs), count) for _ in range(7)]
    middle = statistics.median(samples)
    if not all(torch.isfinite(t).all().item() for t in results):
        raise RuntimeError("results are not finite")
    if trace:
        trace.mkdir(parents=True, exist_ok=True)
        dims = f"batch={case[1]}" + (f",sequence={case[2]}" if case[2] else "")
        subprocess.run([os.environ.get("THRICE_EXECUTABLE", "thrice"), "run", str(work / f"{name}.thrice"), "--target", "cuda:0", "--dims", dims,
                        "--trace", str(trace / f"{name}.trace")], check=True, capture_output=True)
    return {"suite": f"models_{case[3]}", "name": name, "shape": f"batch={case[1]}" + (f" sequence={case[2]}" if case[2] else ""), "dtype": case[3],
            "numerics": "strict", "thrice_us": middle, "thrice_spread_us": statistics.median(abs(v - middle) for v in samples), "rivals": {},
            "samples": len(samples), "note": "random weights, rule-chosen schedules, results finite but compared with nothing; L2 warm"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=pathlib.Path, required=True, help="folder of the structures")
    parser.add_argument("--only", default="", help="cases whose name begins with one of these, with commas")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("model_times_work"))
    parser.add_argument("--trace", type=pathlib.Path, help="folder for one trace a case (thrice run --trace)")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    wanted = tuple(arguments.only.split(","))
    cases = [(*size, dtype) for dtype in arguments.types.split(",") for size in SIZES if name_of(*size, dtype).startswith(wanted)]
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # of the children
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = {case: pool.submit(build, arguments.work, arguments.zoo, *case) for case in cases}
    if hidden is None:
        del os.environ["CUDA_VISIBLE_DEVICES"]
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = hidden
    date = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"model_times_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%d}", "command": "bench/model_times.py " + " ".join(sys.argv[1:]),
           "environment": side_by_side.environment() | side_by_side.card_state()}
    rows, failed = [], 0
    for case in cases:
        try:
            built[case].result()
            rows.append({"run": run["id"], **measure(arguments.work, case, arguments.trace)})
            print(f"{rows[-1]['name']}: {rows[-1]['thrice_us']:.1f} us", flush=True)
        except Exception as e:  # one network's trouble must not cost the others their time on the card
            failed += 1
            print(f"{name_of(*case)}: FAILED: {type(e).__name__}: {e}", flush=True)
        torch.cuda.empty_cache()
        if arguments.output and rows:
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
