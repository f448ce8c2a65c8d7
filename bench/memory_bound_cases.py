"""The cases of bench/memory_bound.py: those of the baselines that memory bounds, in float32 and bf16, and 23 more."""
from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Callable

import torch

TYPES = {"f32": (torch.float32, 1), "f16": (torch.float16, 10), "bf16": (torch.bfloat16, 16), "i64": (torch.int64, 7)}


@dataclasses.dataclass
class Case:
    family: str
    shape: str
    dtype: str
    function: Callable  # of torch tensors, the model's inputs
    feeds: list  # (name, dtype, shape, least value, end of the range for integers)
    results: list  # (name, dtype, shape)
    nodes: list  # (operator, inputs, outputs, attributes)
    constants: dict = dataclasses.field(default_factory=dict)  # name -> integers or floats (a float is of `dtype`)
    traffic: Callable = None  # bytes of the inputs that are read, where that is not all

    def inputs(self) -> tuple:
        made = []
        for _, dtype, shape, *ends in self.feeds:
            kind = TYPES[dtype][0]
            if dtype == "i64":
                made.append(torch.randint(ends[0], ends[1], shape, device="cuda"))
            else:
                x = torch.randn(shape, device="cuda", dtype=torch.float32)
                made.append((x.abs() if ends else x).to(kind))
        return tuple(made)

    def bytes(self, inputs: tuple) -> int:
        read = self.traffic(inputs) if self.traffic else sum(t.nbytes for t in inputs)
        return read + sum(torch.empty(0, dtype=TYPES[d][0]).element_size() * torch.Size(s).numel() for _, d, s in self.results)

    def save(self, path: pathlib.Path) -> None:
        import onnx
        from onnx import helper

        ports = [[helper.make_tensor_value_info(name, TYPES[d][1], shape) for name, d, shape, *_ in each] for each in (self.feeds, self.results)]
        initializers = []
        for name, value in self.constants.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            whole = isinstance(values[0], int)
            kind = TYPES["i64" if whole else "f32" if name.endswith("32") else self.dtype][1]
            initializers.append(helper.make_tensor(name, kind, [len(values)] if isinstance(value, (list, tuple)) else [], values))
        nodes = [helper.make_node(op, ins, outs, **attributes) for op, ins, outs, attributes in self.nodes]
        graph = helper.make_graph(nodes, "case", *ports, initializer=initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]), path)


def one(family, dtype, x, y, op, function, more=(), constants=None, attributes=None, out=None, traffic=None) -> Case:
    """One operator of x, further feeds and constants."""
    constants = constants or {}
    feeds = [("x", dtype, x), *more]
    names = [feed[0] for feed in feeds] + list(constants)
    text = "x".join(map(str, x))
    return Case(family, text, dtype, function, feeds, [("y", out or dtype, y)], [(op, names, ["y"], attributes or {})], constants, traffic)


def softmax(dtype, n, m):
    return one("row", dtype, (n, m), (n, m), "Softmax", lambda x: torch.softmax(x, -1), attributes={"axis": -1})


def layernorm(dtype, n, m):
    norm = torch.nn.functional.layer_norm
    return one("row", dtype, (n, m), (n, m), "LayerNormalization", lambda x, w, b: norm(x, (m,), w, b),
               more=[("w", dtype, (m,)), ("b", dtype, (m,))], attributes={"axis": -1, "epsilon": 1e-5})


def add_layernorm(dtype, n, m):
    norm = torch.nn.functional.layer_norm
    return Case("row", f"{n}x{m}", dtype, lambda x, r, w, b: norm(x + r, (m,), w, b),
                [("x", dtype, (n, m)), ("r", dtype, (n, m)), ("w", dtype, (m,)), ("b", dtype, (m,))], [("y", dtype, (n, m))],
                [("Add", ["x", "r"], ["h"], {}), ("LayerNormalization", ["h", "w", "b"], ["y"], {"axis": -1, "epsilon": 1e-5})])


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def rmsnorm(dtype, n, m, add):
    def function(x, *rest):
        h = wide(x + rest[0]) if add else wide(x)
        return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * rest[-1]

    feeds = [("x", dtype, (n, m)), *([("r", dtype, (n, m))] if add else []), ("w", dtype, (m,))]
    nodes = [*([("Add", ["x", "r"], ["s"], {})] if add else []), ("Cast", ["s" if add else "x"], ["h"], {"to": 1}),
             ("Mul", ["h", "h"], ["q"], {}), ("ReduceMean", ["q", "axis"], ["mean"], {}), ("Add", ["mean", "eps32"], ["shifted"], {}),
             ("Sqrt", ["shifted"], ["root"], {}), ("Div", ["h", "root"], ["n"], {}), ("Cast", ["n"], ["narrow"], {"to": TYPES[dtype][1]}),
             ("Mul", ["narrow", "w"], ["y"], {})]
    return Case("row", f"{n}x{m}", dtype, function, feeds, [("y", dtype, (n, m))], nodes, {"axis": [-1], "eps32": 1e-6})


def swiglu(dtype, n, m):
    def function(x):
        a, b = x.chunk(2, -1)
        return torch.nn.functional.silu(a) * b

    nodes = [("Split", ["x"], ["a", "b"], {"axis": -1, "num_outputs": 2}), ("Sigmoid", ["a"], ["s"], {}), ("Mul", ["a", "s"], ["t"], {}),
             ("Mul", ["t", "b"], ["y"], {})]
    return Case("map", f"{n}x{m}", dtype, function, [("x", dtype, (n, m))], [("y", dtype, (n, m // 2))], nodes)


def gelu_chain(dtype, n):
    nodes = [("Mul", ["x", "a"], ["t"], {}), ("Add", ["t", "b"], ["u"], {}), ("Gelu", ["u"], ["g"], {}), ("Mul", ["g", "x"], ["y"], {})]
    return Case("map", str(n), dtype, lambda x: torch.nn.functional.gelu(x * 0.5 + 0.25) * x, [("x", dtype, (n,))], [("y", dtype, (n,))],
                nodes, {"a": 0.5, "b": 0.25})


def reduce(family, dtype, shape, axes, op="ReduceSum"):
    function = torch.sum if op == "ReduceSum" else torch.mean
    rest = tuple(d for a, d in enumerate(shape) if a not in axes)
    return one(family, dtype, shape, rest, op, lambda x: function(x, axes), constants={"axes": list(axes)}, attributes={"keepdims": 0})


def transpose(dtype, shape, perm):
    return one("map", dtype, shape, tuple(shape[p] for p in perm), "Transpose", lambda x: x.permute(perm).contiguous(),
               attributes={"perm": list(perm)})


def max_pool(dtype):
    return one("pool", dtype, (32, 64, 112, 112), (32, 64, 56, 56), "MaxPool", lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
               attributes={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})


def average_pool(dtype):
    return one("pool", dtype, (64, 64, 112, 112), (64, 64, 56, 56), "AveragePool", lambda x: torch.nn.functional.avg_pool2d(x, 2),
               attributes={"kernel_shape": [2, 2], "strides": [2, 2]})


def embedding(dtype, rows, width, ids, norm):
    size = TYPES[dtype][0].itemsize
    feeds = [("x", dtype, (rows, width)), ("ids", "i64", ids, 0, rows)]
    nodes = [("Gather", ["x", "ids"], ["e" if norm else "y"], {"axis": 0})]

    def traffic(inputs):
        return inputs[1].nbytes + min(torch.unique(inputs[1]).numel(), rows) * width * size

    def function(x, i, *rest):
        y = torch.nn.functional.embedding(i, x)
        return torch.nn.functional.layer_norm(y, (width,), *rest) if norm else y

    if norm:
        feeds += [("w", dtype, (width,)), ("b", dtype, (width,))]
        nodes.append(("LayerNormalization", ["e", "w", "b"], ["y"], {"axis": -1, "epsilon": 1e-5}))
    return Case("row" if norm else "map", f"{rows}x{width} at {'x'.join(map(str, ids))}", dtype, function, feeds, [("y", dtype, (*ids, width))],
                nodes, traffic=traffic)


def cross_entropy(dtype, n, m):
    return Case("row", f"{n}x{m}", dtype, lambda x, t: torch.nn.functional.cross_entropy(x, t), [("x", dtype, (n, m)), ("t", "i64", (n,), 0, m)],
                [("y", dtype, ())], [("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"], {"reduction": "mean"})])


def running_sum(dtype, n, m):
    return one("scan", dtype, (n, m), (n, m), "CumSum", lambda x: torch.cumsum(x, 1), constants={"axis": 1})


def depthwise(dtype):
    return one("conv", dtype, (32, 144, 56, 56), (32, 144, 56, 56), "Conv", lambda x, w: torch.nn.functional.conv2d(x, w, padding=1, groups=144),
               more=[("w", dtype, (144, 1, 3, 3))], attributes={"group": 144, "pads": [1, 1, 1, 1]})


def add_bias(dtype, n, m):
    return one("map", dtype, (n, m), (n, m), "Add", lambda x, b: x + b, more=[("b", dtype, (m,))])


def cast(n):
    case = one("map", "f32", (n,), (n,), "Cast", lambda x: x.bfloat16(), attributes={"to": 16}, out="bf16")
    return dataclasses.replace(case, dtype="bf16")


def relu(dtype, n):
    return one("map", dtype, (n,), (n,), "Relu", torch.relu)


def masked_softmax(dtype, b, h, s):
    return Case("row", f"{b}x{h}x{s}x{s}", dtype, lambda x, m: torch.softmax(x * 0.125 + m, -1),
                [("x", dtype, (b, h, s, s)), ("m", dtype, (b, 1, 1, s))], [("y", dtype, (b, h, s, s))],
                [("Mul", ["x", "c"], ["t"], {}), ("Add", ["t", "m"], ["u"], {}), ("Softmax", ["u"], ["y"], {"axis": -1})], {"c": 0.125})


def adam(gradient, n):
    """One step at fixed powers of the rates; state in float32, gradients in `gradient`."""
    def function(p, m, v, g):
        g = g.to(p.dtype)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.001 * m / (torch.sqrt(v) + 1e-8), m, v

    nodes = [("Cast", ["g"], ["w"], {"to": 1}), ("Mul", ["m", "b1_32"], ["m1"], {}), ("Mul", ["w", "c1_32"], ["m2"], {}),
             ("Add", ["m1", "m2"], ["mm"], {}), ("Mul", ["v", "b2_32"], ["v1"], {}), ("Mul", ["w", "w"], ["ww"], {}),
             ("Mul", ["ww", "c2_32"], ["v2"], {}), ("Add", ["v1", "v2"], ["vv"], {}), ("Sqrt", ["vv"], ["r"], {}), ("Add", ["r", "e_32"], ["d"], {}),
             ("Mul", ["mm", "l_32"], ["lm"], {}), ("Div", ["lm", "d"], ["q"], {}), ("Sub", ["p", "q"], ["pp"], {})]
    constants = {"b1_32": 0.9, "c1_32": 0.1, "b2_32": 0.999, "c2_32": 0.001, "e_32": 1e-8, "l_32": 0.001}
    return Case("map", str(n), "f32", function, [("p", "f32", (n,)), ("m", "f32", (n,)), ("v", "f32", (n,), 0), ("g", gradient, (n,))],
                [("pp", "f32", (n,)), ("mm", "f32", (n,)), ("vv", "f32", (n,))], nodes, constants)


def batch_norm_relu(dtype, shape):
    c = (shape[1],)
    feeds = [("x", dtype, shape), ("s", dtype, c), ("b", dtype, c), ("m", dtype, c), ("v", dtype, c, 0)]
    return Case("map", "x".join(map(str, shape)), dtype,
                lambda x, s, b, m, v: torch.relu(torch.nn.functional.batch_norm(x, m, v, s, b, eps=1e-2)), feeds, [("y", dtype, shape)],
                [("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], {"epsilon": 1e-2}), ("Relu", ["n"], ["y"], {})])


def concat(dtype, n, m):
    return Case("map", f"2x{n}x{m}", dtype, lambda a, b: torch.cat([a, b], 1), [("a", dtype, (n, m)), ("b", dtype, (n, m))],
                [("y", dtype, (n, 2 * m))], [("Concat", ["a", "b"], ["y"], {"axis": 1})])


def arg_max(dtype, n, m):
    return one("row", dtype, (n, m), (n,), "ArgMax", lambda x: torch.argmax(x, -1), attributes={"axis": -1, "keepdims": 0}, out="i64")


def nearest(dtype):
    return Case(
        "resize", "16x64x112x112", dtype, lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"),
        [("x", dtype, (16, 64, 112, 112))], [("y", dtype, (16, 64, 224, 224))],
        [("Resize", ["x", "", "", "sizes"], ["y"], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})],
        {"sizes": [16, 64, 224, 224]})


BASE = {
    "softmax_16384x1024": lambda d: softmax(d, 16384, 1024),
    "softmax_4096x32768": lambda d: softmax(d, 4096, 32768),
    "layernorm_16384x1024": lambda d: layernorm(d, 16384, 1024),
    "add_rmsnorm_8192x4096": lambda d: rmsnorm(d, 8192, 4096, True),
    "swiglu_8192x22016": lambda d: swiglu(d, 8192, 22016),
    "gelu_chain_64M": lambda d: gelu_chain(d, 1 << 26),
    "sum_rows_8192x8192": lambda d: reduce("row", d, (8192, 8192), (1,)),
    "sum_cols_8192x8192": lambda d: reduce("column", d, (8192, 8192), (0,)),
    "transpose_8192x8192": lambda d: transpose(d, (8192, 8192), (1, 0)),
    "maxpool_32x64x112": max_pool,
    "embed_ln_32x512x768": lambda d: embedding(d, 30522, 768, (32, 512), True),
    "ce_8192x32000": lambda d: cross_entropy(d, 8192, 32000),
    "cumsum_4096x8192": lambda d: running_sum(d, 4096, 8192),
    "conv_mbv2_dw_56": depthwise,
}
MORE = {
    "add_bias_f16_8191x4097": lambda: add_bias("f16", 8191, 4097),
    "cast_bf16_64M": lambda: cast(1 << 26),
    "relu_f32_33554431": lambda: relu("f32", 33554431),
    "softmax_f16_16383x1023": lambda: softmax("f16", 16383, 1023),
    "layernorm_f32_8191x2049": lambda: layernorm("f32", 8191, 2049),
    "rmsnorm_f16_32768x1024": lambda: rmsnorm("f16", 32768, 1024, False),
    "masked_softmax_bf16_32x12x512x512": lambda: masked_softmax("bf16", 32, 12, 512),
    "add_layernorm_f16_8192x8192": lambda: add_layernorm("f16", 8192, 8192),
    "sum_mid_f32_64x1024x1024": lambda: reduce("column", "f32", (64, 1024, 1024), (1,)),
    "mean_cols_bf16_32768x2048": lambda: reduce("column", "bf16", (32768, 2048), (0,), "ReduceMean"),
    "transpose0213_bf16_16x1024x16x64": lambda: transpose("bf16", (16, 1024, 16, 64), (0, 2, 1, 3)),
    "nchw_to_nhwc_f16_32x256x56x56": lambda: transpose("f16", (32, 256, 56, 56), (0, 2, 3, 1)),
    "transpose_f32_8193x4095": lambda: transpose("f32", (8193, 4095), (1, 0)),
    "gather_f16_50257x1024_65536": lambda: embedding("f16", 50257, 1024, (65536,), False),
    "avgpool_bf16_64x64x112": lambda: average_pool("bf16"),
    "global_mean_f32_128x2048x14x14": lambda: reduce("row", "f32", (128, 2048, 14, 14), (2, 3), "ReduceMean"),
    "ce_f16_4096x50257": lambda: cross_entropy("f16", 4096, 50257),
    "adam_f32_16M": lambda: adam("f32", 1 << 24),
    "adam_mixed_16M": lambda: adam("bf16", 1 << 24),
    "batchnorm_relu_f16_64x256x28x28": lambda: batch_norm_relu("f16", (64, 256, 28, 28)),
    "concat_bf16_8192x4096": lambda: concat("bf16", 8192, 4096),
    "argmax_f32_8192x16384": lambda: arg_max("f32", 8192, 16384),
    "nearest_f32_16x64x112": lambda: nearest("f32"),
}


def named(name: str, dtype: str) -> str:
    head, tail = name.rsplit("_", 1)
    return f"{head}_{dtype}_{tail}"


CASES = {named(name, dtype): functools.partial(make, dtype) for name, make in BASE.items() for dtype in ("f32", "bf16")} | MORE
