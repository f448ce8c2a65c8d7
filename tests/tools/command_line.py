"""What tests of the real command line share: where the executable is, small models, and how a run is judged.

THRICE=PATH chooses the executable; otherwise build/$THRICE_PRESET/thrice (preset: release). Skipped where it is not built.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXECUTABLE = pathlib.Path(os.environ.get("THRICE", ROOT / "build" / os.environ.get("THRICE_PRESET", "release") / "thrice"))
OK, USAGE, MODEL, UNSUPPORTED, NOT_FOUND, IO, CORRUPT, MEMORY, COMPILE, WRONG = 0, 2, 3, 4, 5, 6, 7, 8, 9, 12
# Words that only an accident prints.
ACCIDENTS = ("terminate called", "Aborted", "Segmentation", "Assertion", "Traceback", "std::", "basic_string", "[Internal]")


def matmul_model(path, rows="n", width=16, external=None):
    """x[rows,16] * w[16,width] -> Relu -> z, written to `path`; `external`: where the weights say they lie."""
    weights = numpy.random.default_rng(1).standard_normal((16, width)).astype(numpy.float32)
    tensor = numpy_helper.from_array(weights, "w")
    if external is not None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=external)
    write_model(path, [helper.make_node("MatMul", ["x", "w"], ["y"], name="product"), helper.make_node("Relu", ["y"], ["z"])],
                {"x": [rows, 16]}, {"z": [rows, width]}, [tensor])


def write_model(path, nodes, inputs, outputs, tensors=()):
    def infos(shapes):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]

    graph = helper.make_graph(nodes, "small", infos(inputs), infos(outputs), list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    pathlib.Path(path).write_bytes(model.SerializeToString())


@unittest.skipUnless(EXECUTABLE.exists(), f"{EXECUTABLE} is not built")
class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keeper = tempfile.TemporaryDirectory(prefix="thrice_errors_")
        cls.shared = pathlib.Path(cls.keeper.name)
        cls.environment = {
            k: v for k, v in os.environ.items() if not k.startswith("THRICE_")} | {
            "OMP_WAIT_POLICY": "passive", "XDG_CACHE_HOME": str(cls.shared / "cache"), "THRICE_CACHE": str(cls.shared / "cache/thrice")}
        matmul_model(cls.shared / "model.onnx")
        done = subprocess.run([EXECUTABLE, "optimize", cls.shared / "model.onnx", "--device", "null:0", "--output",
                               cls.shared / "null.thrice"], env=cls.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        backends = json.loads(subprocess.run([EXECUTABLE, "devices", "--json"], env=cls.environment, capture_output=True,
                                             text=True, check=True).stdout)["backends"]
        cls.device = next((d["id"] for b in backends for d in b["devices"] if b["name"] == "opencl"), None)

    @classmethod
    def tearDownClass(cls):
        cls.keeper.cleanup()

    def setUp(self):
        self.here = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        self.model, self.null_release = self.shared / "model.onnx", self.shared / "null.thrice"

    def tearDown(self):
        shutil.rmtree(self.here, ignore_errors=True)

    def start(self, *arguments, **more):
        return subprocess.Popen([EXECUTABLE, *arguments], env=self.environment, cwd=self.here, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, errors="replace", **more)

    def thrice(self, *arguments, **more):
        process = self.start(*arguments, **more)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"still running after 60 s: {arguments}")
        for words in ACCIDENTS:
            self.assertNotIn(words, err, arguments)
        return process.returncode, out, err

    def refused(self, code, words, *arguments, **more):
        """Exits with `code` and one message that holds all `words`, no accident among it; returns the message."""
        got, _, err = self.thrice(*arguments, **more)
        self.assertEqual(got, code, f"{arguments}\n{err}")
        message = err.strip().splitlines()[-1] if code != USAGE else err
        if code != USAGE:
            self.assertRegex(message, r"^thrice: .{12,}\[\w+\]$")
        for word in words:
            self.assertIn(word.lower(), message.lower(), arguments)
        return message

    def optimize_refused(self, code, words, model, *arguments):
        self.refused(code, words, "optimize", model, "--device", "null:0", "--output", "out.thrice", *arguments)
        self.assertEqual(list(self.here.glob("out.thrice*")), [], "something was released")

    def need_device(self):
        if self.device is None:
            self.skipTest("no OpenCL device: apt install pocl-opencl-icd")

    def optimize(self, model, *arguments):
        return ("optimize", model, "--device", self.device, "--dims", "n=4", "--output", self.here / "out.thrice",
                "--store", self.here / "store.sqlite", "--json", *arguments)
