#!/usr/bin/env python3
"""Exports structures (no weights) of further networks, as PyTorch's exporters write them, for tests of import and planning.

    OMP_NUM_THREADS=1 python tools/export_networks.py OUT [--only NAME,NAME]
    tools/pack_data.sh networks OUT

Not a part of any build: its result is tests/data/networks.tar.zst. Made with the versions that export_zoo.py names. Weights are random
(nothing is downloaded) and dropped as docs/stripped_models.md says. `dynamo`: the current exporter, opset 18 to 20; `script`: the older
TorchScript exporter, opset 17. OUT/NAME.onnx are structures, OUT/NAME/ are training steps in the layout of the cases. What fails is printed and left out.
"""
import argparse
import pathlib
import sys
import time
import traceback

import onnx
import torch

import strip_model
from networks import backward, language, plain, vision

NETWORKS = {**vision.NETWORKS, **language.NETWORKS, **plain.NETWORKS}


def cheap_start():
    """Weights need no careful distribution here; on one core drawing them takes longer than the export."""

    def fill(tensor, *_, **__):
        with torch.no_grad():
            return tensor.uniform_(-0.05, 0.05)

    for name in ("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "trunc_normal_", "normal_"):
        setattr(torch.nn.init, name, fill)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join([*NETWORKS, *backward.CASES]))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cheap_start()
    failed = []
    for name in arguments.only.split(","):
        start = time.time()
        torch.manual_seed(0)
        try:
            if name in backward.CASES:
                model, count = backward.CASES[name]().write(arguments.out / name), 0
            else:
                model = NETWORKS[name]()
                count = strip_model.strip_model(model)
                onnx.save(model, arguments.out / f"{name}.onnx")
        except Exception:  # one network that an exporter refuses must not stop the others
            failed.append(name)
            print(name, "FAILED", traceback.format_exc()[-1500:], flush=True)
            continue
        operators = sorted({node.op_type for node in model.graph.node})
        print(f"{name}: {time.time() - start:.0f} s, {count} tensors stripped,", len(model.graph.node), "nodes,", *operators, flush=True)
    print("failed:", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
