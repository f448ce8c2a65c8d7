"""Would catch a stripped file that still holds weights or paths, lost a shape tensor, or is no longer valid ONNX."""
import pathlib
import sys
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import strip_model  # noqa: E402

SECRET = numpy.full((20, 20), 0.7071, numpy.float32)
LONG_SECRET = numpy.full((40, 20), 0.7071, numpy.float16)  # half the width, so more elements to pass the limit


def build_model():
    """Weights as initializer, as Constant, and inside a branch of an If; shape tensor; small scale; text everywhere."""
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["inner"], value=numpy_helper.from_array(SECRET, "inner_value"))],
        "branch",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [20, 20])],
    )
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["a"], doc_string="/somewhere/model.py"),
        helper.make_node("MatMul", ["a", "weight"], ["b"]),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(LONG_SECRET, "value")),
        helper.make_node("If", ["flag"], ["d"], then_branch=branch, else_branch=branch),
        helper.make_node("Mul", ["b", "scale"], ["e"]),
        helper.make_node("Add", ["e", "d"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [400]), helper.make_tensor_value_info("flag", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [20, 20])],
        [
            numpy_helper.from_array(numpy.array([20, 20]), "shape"),
            numpy_helper.from_array(SECRET, "weight"),
            numpy_helper.from_array(numpy.float32(0.5), "scale"),
            numpy_helper.from_array(numpy.arange(1000), "table"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], doc_string="/somewhere")
    helper.set_model_props(model, {"stack": "/somewhere"})
    return model


class StripModel(unittest.TestCase):
    def setUp(self):
        self.model = build_model()
        self.count = strip_model.strip_model(self.model)

    def test_no_weight_and_no_text_is_left(self):
        self.assertEqual(self.count, 4)
        data = self.model.SerializeToString()
        self.assertNotIn(numpy.float32(0.7071).tobytes() * 2, data)
        self.assertNotIn(numpy.float16(0.7071).tobytes() * 2, data)
        self.assertNotIn(b"somewhere", data)

    def test_the_mark(self):
        weight = next(tensor for tensor in self.model.graph.initializer if tensor.name == "weight")
        self.assertEqual(weight.data_location, TensorProto.EXTERNAL)
        entries = [(entry.key, entry.value) for entry in weight.external_data]
        self.assertEqual(entries, [("location", "thrice:stripped"), ("length", "1600")])

    def test_integers_and_small_tensors_stay(self):
        kept = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self.assertEqual(numpy_helper.to_array(kept["table"]).tolist(), list(range(1000)))
        self.assertEqual(numpy_helper.to_array(kept["shape"]).tolist(), [20, 20])
        self.assertEqual(float(numpy_helper.to_array(kept["scale"])), 0.5)

    def test_limit_is_exclusive(self):
        tensor = numpy_helper.from_array(numpy.zeros(256, numpy.float32), "w")
        self.assertFalse(strip_model.strip_tensor(tensor))
        tensor = numpy_helper.from_array(numpy.zeros(257, numpy.float32), "w")
        self.assertTrue(strip_model.strip_tensor(tensor))

    def test_stripping_again_changes_nothing(self):
        before = self.model.SerializeToString(deterministic=True)
        strip_model.strip_model(self.model)
        self.assertEqual(self.model.SerializeToString(deterministic=True), before)

    def test_shapes_can_still_be_inferred(self):
        inferred = onnx.shape_inference.infer_shapes(self.model)
        shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in inferred.graph.value_info}
        self.assertEqual(shapes["b"], [20, 20])


if __name__ == "__main__":
    unittest.main()
