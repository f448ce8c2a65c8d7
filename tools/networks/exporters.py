"""The two exporters of PyTorch, called the same way."""
import tempfile

import onnx
import torch
from torch.export import Dim


def dynamo(model, example, axes, inputs, outputs, opset=20):
    """`axes`: one {axis: symbol} per input; a symbol's name decides its largest extent (sequence 512, others free)."""
    symbols = {}

    def dim(name):
        if name not in symbols:
            symbols[name] = Dim(name, max=512) if name in ("sequence", "frames") else Dim(name)
        return symbols[name]

    dynamic = tuple({axis: dim(name) for axis, name in entry.items()} for entry in axes)
    program = torch.onnx.export(
        model.eval(), example, dynamo=True, opset_version=opset, dynamic_shapes=dynamic, input_names=inputs, output_names=outputs
    )
    return program.model_proto


def script(model, example, axes, inputs, outputs, opset=17):
    """`axes` also names the outputs' symbols where the exporter shall declare them."""
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        torch.onnx.export(
            model.eval(), example, file.name, dynamo=False, opset_version=opset, dynamic_axes=axes, input_names=inputs, output_names=outputs
        )
        return onnx.load(file.name)
