#!/usr/bin/env python3
"""Writes the structure of an ONNX model without its weights: the format of docs/stripped_models.md, as `thrice strip` writes it.

    tools/strip_model.py MODEL OUT
"""
import sys

import onnx

LOCATION = "thrice:stripped"
# Larger float tensors lose their values; smaller ones (scales, epsilons, shapes' factors) say more about the structure than they cost.
KEEP_BYTES = 1024
BITS = {
    onnx.TensorProto.FLOAT: 32,
    onnx.TensorProto.DOUBLE: 64,
    onnx.TensorProto.FLOAT16: 16,
    onnx.TensorProto.BFLOAT16: 16,
    onnx.TensorProto.COMPLEX64: 64,
    onnx.TensorProto.COMPLEX128: 128,
    onnx.TensorProto.FLOAT8E4M3FN: 8,
    onnx.TensorProto.FLOAT8E4M3FNUZ: 8,
    onnx.TensorProto.FLOAT8E5M2: 8,
    onnx.TensorProto.FLOAT8E5M2FNUZ: 8,
    onnx.TensorProto.FLOAT8E8M0: 8,
    onnx.TensorProto.FLOAT4E2M1: 4,
}
VALUES = ("raw_data", "float_data", "double_data", "int32_data", "uint64_data", "int64_data", "string_data")


def strip_tensor(tensor: onnx.TensorProto) -> bool:
    """Drops the values of a large float tensor; True when it did."""
    if tensor.data_type not in BITS:
        return False
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    size = (elements * BITS[tensor.data_type] + 7) // 8
    if size <= KEEP_BYTES:
        return False
    for field in VALUES:
        tensor.ClearField(field)
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", LOCATION), ("length", str(size))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return True


def forget(message) -> None:
    """Drops free text, which may hold names and paths of the machine that wrote the model."""
    for field in ("doc_string", "metadata_props"):
        if field in message.DESCRIPTOR.fields_by_name:
            message.ClearField(field)


def strip_nodes(nodes) -> int:
    count = 0
    for node in nodes:
        forget(node)
        for attribute in node.attribute:
            forget(attribute)
            for tensor in ([attribute.t] if attribute.HasField("t") else []) + list(attribute.tensors):
                count += strip_tensor(tensor)
            sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for tensor in sparse + list(attribute.sparse_tensors):
                count += strip_tensor(tensor.values)
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                count += strip_graph(graph)
    return count


def strip_graph(graph: onnx.GraphProto) -> int:
    forget(graph)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        forget(value)
    for tensor in graph.initializer:
        forget(tensor)
    count = sum(strip_tensor(tensor) for tensor in graph.initializer)
    count += sum(strip_tensor(tensor.values) for tensor in graph.sparse_initializer)
    return count + strip_nodes(graph.node)


def strip_model(model: onnx.ModelProto) -> int:
    """Strips `model` in place; returns the number of tensors whose values were dropped."""
    forget(model)
    count = strip_graph(model.graph)
    for function in model.functions:
        forget(function)
        count += strip_nodes(function.node)
    return count


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: tools/strip_model.py MODEL OUT", file=sys.stderr)
        return 2
    model = onnx.load(sys.argv[1], load_external_data=False)
    count = strip_model(model)
    onnx.save(model, sys.argv[2])
    print(f"strip_model: {count} tensors without values in {sys.argv[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
