#!/usr/bin/env python3
"""Optimises an ONNX model, loads the release, runs it on random numbers, and prints what comes out.

    python examples/03_optimize_and_run.py model.onnx --budget 1m --extent 4

Every symbolic extent takes --extent.
"""
import argparse

import numpy as np

import thrice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--output", default="example.thrice")
    parser.add_argument("--device", default=thrice.devices()[0]["id"])
    parser.add_argument("--budget", default="1m")
    parser.add_argument("--extent", type=int, default=1)
    arguments = parser.parse_args()

    def show(step: dict) -> None:
        print(f"\r{step['phase']:<20} {step.get('done', 0)}/{step.get('total', '?')}", end="", flush=True)

    report = thrice.optimize(arguments.model, arguments.output, progress=show, device=arguments.device,
                             budget=arguments.budget)
    print(f"\n{report['original_us']:.0f} us -> {report['best_us']:.0f} us, error {report['max_error']:.1e}, "
          f"verified: {report['verified']}")

    session = thrice.load(arguments.output, device=arguments.device)
    print(session)
    rng = np.random.default_rng(1)
    inputs = {}
    for port in session.inputs:
        shape = [extent if isinstance(extent, int) else arguments.extent for extent in port.shape]
        inputs[port.name] = rng.uniform(0, 2, shape).astype(port.dtype)
    for name, output in session.run(inputs).items():
        print(name, output.dtype, output.shape, "mean", output.mean())


if __name__ == "__main__":
    main()
