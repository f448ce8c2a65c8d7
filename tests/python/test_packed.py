"""Catches: packed releases whose answers differ from the padded model's where positions count, whose interface changed, masks that
are read in one spelling only, and models that depend on padding but are released."""
import json
import subprocess
import sys
import unittest

import numpy as np

import small_model

sys.path.insert(0, str(small_model.ROOT / "python"))
import thrice  # noqa: E402

HIDDEN, HEADS, VOCABULARY, LONGEST = 32, 4, 50, 48


def write_encoder(path, spelling: str = "added", output: str = "all", layers: int = 1, attention: str = "parts") -> None:
    """input_ids, attention_mask [batch, length] -> hidden [batch, length, HIDDEN] and first [batch, HIDDEN]; or another `output`."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(3)
    nodes, weights = [], []

    def constant(value) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), f"c{len(weights)}"))
        return weights[-1].name

    def weight(*shape: int) -> str:
        return constant((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(op: str, inputs: list, name: str = "", domain: str = "", **attributes) -> str:
        name = name or f"t{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{len(nodes)}", domain=domain, **attributes))
        return name

    def norm(x: str) -> str:
        return node("LayerNormalization", [x, constant(np.ones(HIDDEN, np.float32)), weight(HIDDEN)], axis=-1)

    length = node("Slice", [node("Shape", ["input_ids"]), constant([1]), constant([2])])
    positions = node("Slice", [constant(np.arange(LONGEST)[None]), constant([0]), length, constant([1])])
    x = norm(node("Add", [node("Gather", [weight(VOCABULARY, HIDDEN), "input_ids"]), node("Gather", [weight(LONGEST, HIDDEN), positions])]))
    flags = node("Unsqueeze", ["attention_mask", constant([1, 2])])
    for _ in range(layers):
        q, k, v = (node("Add", [node("MatMul", [x, weight(HIDDEN, HIDDEN)]), weight(HIDDEN)]) for _ in range(3))
        if attention == "MultiHeadAttention":
            mask32 = node("Cast", ["attention_mask"], to=TensorProto.INT32)
            mixed = node("MultiHeadAttention", [q, k, v, "", mask32], domain="com.microsoft", num_heads=HEADS)
        else:
            heads = [node("Reshape", [y, constant([0, 0, HEADS, HIDDEN // HEADS])]) for y in (q, k, v)]
            q, k, v = (node("Transpose", [y], perm=p) for y, p in zip(heads, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
            scores = node("Div", [node("MatMul", [q, k]), constant(np.float32(np.sqrt(HIDDEN // HEADS)))])
            if spelling == "window":  # keys more than 20 positions away are hidden as well
                at = node("Range", [constant(np.int64(0)), node("Squeeze", [length]), constant(np.int64(1))])
                apart = node("Abs", [node("Sub", [node("Unsqueeze", [at, constant([1])]), node("Unsqueeze", [at, constant([0])])])])
                near = node("LessOrEqual", [apart, constant(np.int64(20))])
                scores = node("Where", [near, scores, constant(np.float32(-10000))])
            if spelling in ("added", "window"):
                hidden = node("Sub", [constant(np.float32(1)), node("Cast", [flags], to=TensorProto.FLOAT)])
                scores = node("Add", [scores, node("Mul", [hidden, constant(np.float32(-10000))])])
            elif spelling == "chosen":
                scores = node("Where", [node("Equal", [flags, constant(np.int64(0))]), constant(np.float32(-np.inf)), scores])
            mixed = node("MatMul", [node("Softmax", [scores], axis=-1), v])
            mixed = node("Reshape", [node("Transpose", [mixed], perm=[0, 2, 1, 3]), constant([0, 0, HIDDEN])])
        x = norm(node("Add", [x, node("MatMul", [mixed, weight(HIDDEN, HIDDEN)])]))
        wide = node("Relu", [node("MatMul", [x, weight(HIDDEN, 2 * HIDDEN)])])
        x = norm(node("Add", [x, node("MatMul", [wide, weight(2 * HIDDEN, HIDDEN)])]))
    if output == "capped":
        x = node("Slice", [x, constant([0]), constant([24]), constant([1])])
    if output == "mean":
        outputs = [(node("ReduceMean", [x], "mean", axes=[1], keepdims=0), ["batch", HIDDEN])]
    else:
        first = node("Gather", [x, constant(np.int64(0))], axis=1)
        outputs = [(node("Identity", [x], "hidden"), ["batch", "length", HIDDEN]), (node("Tanh", [first], "first"), ["batch", HIDDEN])]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("input_ids", "attention_mask")]
    graph = helper.make_graph(nodes, "encoder", inputs,
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def optimize(model, output, *flags: str) -> subprocess.CompletedProcess:
    command = [small_model.EXECUTABLE, "optimize", model, "--no-tune", "--in-process", "--quiet", "--json", "--output", output,
               "--cache", small_model.folder() / "cache", *flags]
    return subprocess.run(command, capture_output=True, text=True)


class Packed(unittest.TestCase):
    def compare(self, name: str, **form) -> None:
        model, release = small_model.folder() / f"{name}.onnx", small_model.folder() / f"{name}.thrice"
        write_encoder(model, **form)
        done = optimize(model, release, "--packed", "--device", "opencl:0", "--dims", "batch=3,length=12")
        if done.returncode == 5:
            raise unittest.SkipTest(f"no device opencl:0: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertTrue(report["verified"])
        self.assertIn("tokens=", report["timed_at"])
        session = thrice.load(release, device="opencl:0")
        self.assertEqual([p.name for p in session.inputs], ["input_ids", "attention_mask"])
        import onnxruntime
        padded = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        random = np.random.default_rng(5)
        for lengths in ([12, 1, 7], [20, 20, 20], [3], [0, 9, 2, 31], [0, 0]):
            ids = random.integers(0, VOCABULARY, (len(lengths), max(*lengths, 4)), np.int64)
            mask = (np.arange(ids.shape[1])[None] < np.array(lengths)[:, None]).astype(np.int64)
            hidden, first = session.run(ids, mask)
            want_hidden, want_first = padded.run(None, {"input_ids": ids, "attention_mask": mask})
            counts = mask.astype(bool)
            np.testing.assert_allclose(hidden[counts], want_hidden[counts], rtol=1e-4, atol=1e-4)
            self.assertTrue(np.all(hidden[~counts] == 0))
            np.testing.assert_allclose(first[counts[:, 0]], want_first[counts[:, 0]], rtol=1e-4, atol=1e-4)

    def test_mask_that_is_added(self):
        self.compare("added", layers=2)

    def test_mask_that_chooses(self):
        self.compare("chosen", spelling="chosen")

    def test_operator_for_attention(self):
        self.compare("operator", attention="MultiHeadAttention")

    def test_what_depends_on_padding_is_refused(self):
        # The last two are as any other model at the extents here, and at those that masks are looked at first.
        for name, form, words in (("mean", {"output": "mean"}, "ReduceMean"), ("unmasked", {"spelling": "none"}, "looks at every key"),
                                  ("capped", {"output": "capped"}, "Slice"), ("window", {"spelling": "window"}, "no mask of padding")):
            model = small_model.folder() / f"{name}.onnx"
            write_encoder(model, **form)
            done = optimize(model, small_model.folder() / "refused.thrice", "--packed", "--device", "null:0", "--dims", "batch=2,length=8")
            self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
            self.assertIn("cannot be packed", done.stderr)
            self.assertIn(words, done.stderr)

    def test_unknown_mask_and_null_device(self):
        model, release = small_model.folder() / "null.onnx", small_model.folder() / "null.thrice"
        write_encoder(model)
        done = optimize(model, release, "--packed-mask", "nothing", "--device", "null:0", "--dims", "batch=2,length=8")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("input_ids, attention_mask", done.stderr)
        done = optimize(model, release, "--packed-mask", "attention_mask", "--device", "null:0", "--dims", "batch=2,length=8")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
