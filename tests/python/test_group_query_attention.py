"""Catches: GroupQueryAttention of com.microsoft whose answers or caches differ from ONNX Runtime's: prompts, steps with a cache that
grows or has room, sequences of different lengths, rotary positions, windows, joined operands; and forms that are not refused in words."""
import json
import subprocess
import unittest

import numpy as np

import small_model

RUNNER = small_model.BUILD / "run_node_tests"
HEADS, KV_HEADS, SIZE, LONGEST = 4, 2, 16, 64


def write_case(folder, totals: list, length: int, past: int | None = None, packed: bool = False, bias: bool = False, norms: bool = False,
               **attributes) -> None:
    """A node test: `totals` keys of each sequence after `length` new ones; `past`: rows of the cache that comes in."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(7)
    batch, most = len(totals), max(totals)

    def floats(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    given = {"query": floats(batch, length, SIZE * (HEADS + 2 * KV_HEADS if packed else HEADS))}
    if not packed:
        given |= {"key": floats(batch, length, SIZE * KV_HEADS), "value": floats(batch, length, SIZE * KV_HEADS)}
    if past is not None:
        given |= {"past_key": floats(batch, KV_HEADS, past, SIZE), "past_value": floats(batch, KV_HEADS, past, SIZE)}
    given |= {"seqlens_k": np.array(totals, np.int32) - 1, "total_sequence_length": np.array(most, np.int32)}
    angle = np.outer(np.arange(LONGEST), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
    constants = {"total_sequence_length": given["total_sequence_length"]}
    if attributes.get("do_rotary"):
        constants |= {"cos_cache": np.cos(angle).astype(np.float32), "sin_cache": np.sin(angle).astype(np.float32)}
    if bias:
        given["attention_bias"] = floats(1, HEADS, length, most)
    if norms:
        given |= {"q_norm_weight": floats(SIZE), "k_norm_weight": floats(SIZE)}
    order = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos_cache", "sin_cache", "position_ids",
             "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight"]
    names = [name if name in given or name in constants else "" for name in order]
    node = helper.make_node("GroupQueryAttention", names, ["output", "present_key", "present_value"], domain="com.microsoft", num_heads=HEADS,
                            kv_num_heads=KV_HEADS, **attributes)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in given.items() if name not in constants]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
    graph = helper.make_graph([node], "case", inputs, outputs, [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    feeds = {name: value for name, value in given.items() if name not in constants}
    reference, given_there = onnx.ModelProto.FromString(model.SerializeToString()), dict(feeds)
    if norms:  # which ONNX Runtime has on cards only: done here
        for name, weight, heads in (("query", "q_norm_weight", HEADS), ("key", "k_norm_weight", KV_HEADS)):
            apart = given[name].reshape(batch, length, heads, SIZE)
            normed = apart / np.sqrt((apart.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * given_there.pop(weight)
            given_there[name] = normed.reshape(batch, length, heads * SIZE).astype(np.float32)
        del reference.graph.node[0].input[14:], reference.graph.input[-2:]
    session = onnxruntime.InferenceSession(reference.SerializeToString(), providers=["CPUExecutionProvider"])
    output, *present = session.run(None, given_there)
    # Rows that the operator leaves open: results of padded queries, cache behind a sequence. What was put there is expected.
    graph.node[0].output[:] = ["raw", "raw_key", "raw_value"]
    rows = np.arange(length)[None] < np.array([min(length, total) for total in totals])[:, None]
    cache = np.arange(present[0].shape[2])[None] < np.array(totals)[:, None]
    masks = {"output": rows[:, :, None], "present_key": cache[:, None, :, None], "present_value": cache[:, None, :, None]}
    for raw, (name, mask) in zip(("raw", "raw_key", "raw_value"), masks.items()):
        graph.initializer.append(numpy_helper.from_array(mask, f"{name}_counts"))
        graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), f"{name}_zero"))
        graph.node.append(helper.make_node("Where", [f"{name}_counts", raw, f"{name}_zero"], [name]))
    expected = [np.where(mask, value, np.float32(0)) for mask, value in zip(masks.values(), (output, *present))]
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    del graph.output[:]
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in zip(masks, expected))
    onnx.save(helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=8), folder / "model.onnx")
    for kind, tensors in (("input", feeds), ("output", dict(zip(masks, expected)))):
        for i, (name, value) in enumerate(tensors.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


CASES = {
    "prompt": dict(totals=[9, 9], length=9),
    "prompt_rotary": dict(totals=[9], length=9, do_rotary=1),
    "prompt_padded": dict(totals=[9, 5, 1], length=9, do_rotary=1),
    "prompt_interleaved": dict(totals=[7], length=7, do_rotary=1, rotary_interleaved=1),
    "prompt_window": dict(totals=[20], length=20, local_window_size=6),
    "prompt_packed": dict(totals=[8, 8], length=8, packed=True, do_rotary=1),
    "prompt_softcap": dict(totals=[8], length=8, softcap=5.0, scale=0.3),
    "step": dict(totals=[13, 13], length=1, past=12, do_rotary=1),
    "step_uneven": dict(totals=[13, 4, 1], length=1, past=12, do_rotary=1),
    "step_window": dict(totals=[13, 9], length=1, past=12, local_window_size=5),
    "step_room": dict(totals=[13, 6], length=1, past=32, do_rotary=1),
    "chunk": dict(totals=[15], length=5, past=10, do_rotary=1),
    "biased": dict(totals=[6, 6], length=6, bias=True),
    "norms": dict(totals=[8], length=8, norms=True, do_rotary=1),
}


class GroupQueryAttention(unittest.TestCase):
    def check(self, *flags: str) -> None:
        done = subprocess.run([RUNNER, *flags, small_model.folder() / "gqa"], capture_output=True, text=True)
        if done.returncode == 5 or "no device" in done.stderr:
            raise unittest.SkipTest(f"no device opencl:0: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        engine = "device" if flags else "interpreter"
        self.assertEqual({row["name"]: row[engine]["word"] for row in rows}, {name: "pass" for name in CASES}, done.stdout)

    @classmethod
    def setUpClass(cls):
        for name, case in CASES.items():
            write_case(small_model.folder() / "gqa" / name, **case)

    def test_interpreter(self):
        self.check()

    def test_kernels(self):
        self.check("--device", "opencl:0", "--cache", str(small_model.folder() / "cache"))


if __name__ == "__main__":
    unittest.main()
