"""A small model with a symbolic length, and releases of it made by the executable: what the tests of this folder share."""
import functools
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
IS_PACKAGE = not (ROOT / "CMakeLists.txt").is_file()  # in the archive of tools/package.sh; the wheel is installed or on PYTHONPATH
BUILD = pathlib.Path(os.environ.get("THRICE_BUILD_DIR", ROOT / "build" / "release"))
LIBRARY = ROOT / "lib" / "libthrice.so" if IS_PACKAGE else BUILD / "libthrice.so"
EXECUTABLE = ROOT / "bin" / "thrice" if IS_PACKAGE else BUILD / "thrice"
# The package finds both through these; without a build there is nothing to test, which is an error and no skip.
os.environ["THRICE_LIBRARY"] = str(LIBRARY)
os.environ["THRICE_EXECUTABLE"] = str(EXECUTABLE)

WEIGHT = (np.arange(32, dtype=np.float32).reshape(8, 4) - 16) / 8


@functools.lru_cache(maxsize=None)
def folder() -> pathlib.Path:
    """One temporary folder a process; removed when it ends."""
    global _keep
    _keep = tempfile.TemporaryDirectory(prefix="thrice_test_")
    return pathlib.Path(_keep.name)


def write_model(path: pathlib.Path, bias: float) -> None:
    """y = relu(x @ W) + bias; same = x; rows = shape of x. x: [length, 8], scale: [8]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "W"], ["product"]),
        helper.make_node("Relu", ["product"], ["positive"]),
        helper.make_node("Add", ["positive", "bias"], ["y"]),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Shape", ["x"], ["extents"]),
    ]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["length", 8]),
         helper.make_tensor_value_info("scale", TensorProto.FLOAT, [8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["length", 4]),
         helper.make_tensor_value_info("same", TensorProto.FLOAT, ["length", 8]),
         helper.make_tensor_value_info("extents", TensorProto.INT64, [2])],
        [numpy_helper.from_array(WEIGHT, "W"), numpy_helper.from_array(np.float32([bias] * 4), "bias")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def expected(x: np.ndarray, scale: np.ndarray, bias: float) -> np.ndarray:
    return np.maximum((x.astype(np.float64) * scale) @ WEIGHT, 0) + bias


@functools.lru_cache(maxsize=None)
def release(bias: float = 1.0, device: str = "opencl:0") -> pathlib.Path:
    """Path of a release of the model, made once a process."""
    model, path = folder() / f"small_{bias}.onnx", folder() / f"small_{bias}_{device.split(':')[0]}.thrice"
    write_model(model, bias)
    command = [EXECUTABLE, "optimize", model, "--dims", "length=6", "--no-tune", "--device", device, "--output", path,
               "--cache", folder() / "cache", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 5:
        raise unittest.SkipTest(f"no device {device}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return path


@functools.lru_cache(maxsize=None)
def other_release() -> pathlib.Path:
    """A release whose input has another name: no swap partner of the others."""
    import onnx
    from onnx import TensorProto, helper

    model, path = folder() / "other.onnx", folder() / "other.thrice"
    graph = helper.make_graph([helper.make_node("Relu", ["other"], ["y"])], "other",
                              [helper.make_tensor_value_info("other", TensorProto.FLOAT, [8]),
                               helper.make_tensor_value_info("scale", TensorProto.FLOAT, [8])],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, [8]) for n in ("y",)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    subprocess.run([EXECUTABLE, "optimize", model, "--no-tune", "--device", "null:0", "--output", path, "--quiet",
                    "--cache", folder() / "cache"], check=True, capture_output=True)
    return path
