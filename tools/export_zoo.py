#!/usr/bin/env python3
"""Exports structures of common networks with PyTorch's current exporter, weights dropped, and small nets with weights.

    python tools/export_zoo.py OUT [--only NAME,NAME]
    tools/pack_data.sh zoo OUT

Not a part of any build: its result is tests/data/zoo.tar.zst. Made with Python 3.11, torch 2.11.0, torchvision 0.26.0, transformers 5.24.0,
onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0. Weights are random (nothing is downloaded): the structure is what counts.

OUT/NAME.onnx: stripped as docs/stripped_models.md says; batch (and sequence length) are symbolic.
OUT/NAME/{model.onnx, case.json, in_I.npy, out_I.npy, altN/}: small nets with weights, in the layout of the cases (tests/data/README.md),
expected outputs from PyTorch in float64; those of the quantised net come from ONNX Runtime without optimisations.
"""
import argparse
import json
import pathlib
import tempfile

import numpy
import onnx
import torch
from torch.export import Dim

import strip_model

OPSET = 20


def export(model, example, dynamic, inputs, outputs):
    """ModelProto of `model` for the example inputs; `dynamic` has one {axis: Dim} per input."""
    program = torch.onnx.export(
        model.eval(), example, dynamo=True, opset_version=OPSET, dynamic_shapes=dynamic, input_names=inputs, output_names=outputs
    )
    return program.model_proto


def vision(name):
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return export(model, (torch.randn(2, 3, 224, 224),), ({0: Dim("batch")},), ["image"], ["logits"])


class Encoder(torch.nn.Module):
    """Last hidden states of a BERT-like encoder; with `pool`, the normalised mean over real tokens, as sentence encoders use it."""

    def __init__(self, config, pool):
        super().__init__()
        from transformers import BertModel

        self.bert = BertModel(config, add_pooling_layer=not pool)
        self.pool = pool

    def forward(self, input_ids, attention_mask, token_type_ids):
        result = self.bert(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        if not self.pool:
            return result.last_hidden_state, result.pooler_output
        weights = attention_mask.unsqueeze(-1).to(result.last_hidden_state.dtype)
        mean = (result.last_hidden_state * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1)


def encoder(pool, **sizes):
    from transformers import BertConfig

    torch.manual_seed(0)
    ids = torch.randint(0, 1000, (2, 9))
    example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    axes = {0: Dim("batch"), 1: Dim("sequence", max=512)}
    outputs = ["sentence_vector"] if pool else ["last_hidden_state", "pooled"]
    names = ["input_ids", "attention_mask", "token_type_ids"]
    return export(Encoder(BertConfig(**sizes), pool), example, (axes, axes, axes), names, outputs)


class LanguageModel(torch.nn.Module):
    """Logits of GPT-2 for whole sequences, without a key-value cache."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(use_cache=False))

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


def gpt2():
    ids = torch.randint(0, 1000, (2, 9))
    axes = {0: Dim("batch"), 1: Dim("sequence", max=1024)}
    return export(LanguageModel(), (ids, torch.ones_like(ids)), (axes, axes), ["input_ids", "attention_mask"], ["logits"])


class VoiceDetector(torch.nn.Module):
    """Like a small voice detector: convolutions over frames, a recurrent cell with its state as input and output, a sigmoid."""

    def __init__(self, cell):
        super().__init__()
        self.first = torch.nn.Conv1d(16, 24, 3, padding=1)
        self.second = torch.nn.Conv1d(24, 20, 3, stride=2, padding=1)
        self.cell = cell
        self.decoder = torch.nn.Conv1d(cell.hidden_size, 1, 1)

    def forward(self, frames, *state):
        x = torch.relu(self.second(torch.relu(self.first(frames))))
        state = state if len(state) == 2 else state[0]
        x, state = self.cell(x.permute(2, 0, 1), state)
        speech = torch.sigmoid(self.decoder(torch.relu(x).permute(1, 2, 0))).squeeze(1)
        return (speech, *state) if isinstance(state, tuple) else (speech, state)


class LstmDetector(VoiceDetector):
    def forward(self, frames, hidden, cell):
        return super().forward(frames, hidden, cell)


class GruDetector(VoiceDetector):
    def forward(self, frames, hidden):
        return super().forward(frames, hidden)


def write_case(folder, model, sets, feeds, outputs, rtol, atol):
    """One case in the layout of the cases: set 0 in the folder itself, further sets in alt1, alt2, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for number, (inputs, results) in enumerate(sets):
        target = folder / (f"alt{number}" if number else "")
        target.mkdir(exist_ok=True)
        for word, values in (("in", inputs), ("out", results)):
            for index, value in enumerate(values):
                numpy.save(target / f"{word}_{index}.npy", value)
    case = {
        "feeds": feeds,
        "outputs": outputs,
        "expect": "result",
        "rtol": rtol,
        "atol": atol,
        "sets": len(sets),
        "opset": next(entry.version for entry in model.opset_import if entry.domain == ""),
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1))


def drop_text(model):
    """Drops what the exporter says about its own machine; the weights stay."""
    keep, strip_model.KEEP_BYTES = strip_model.KEEP_BYTES, float("inf")
    strip_model.strip_model(model)
    strip_model.KEEP_BYTES = keep
    return model


def recurrent(folder, kind, fixed_length):
    """A detector as a case: from the current exporter for one fixed length, or from the TorchScript exporter for any length.

    The current exporter fails on a recurrent net of symbolic length; the other is also how published voice detectors were made.
    """
    torch.manual_seed(7)
    if kind == "lstm":
        net, states = LstmDetector(torch.nn.LSTM(20, 32)), ["hidden", "cell"]
    else:
        net, states = GruDetector(torch.nn.GRU(20, 32)), ["hidden"]
    length = 6 if fixed_length else 30
    example = (torch.randn(2, 16, length), *(torch.randn(1, 2, 32) for _ in states))
    names = ["frames", *states]
    outputs = ["speech", *(f"next_{state}" for state in states)]
    if fixed_length:
        axes = ({0: Dim("batch")}, *({1: Dim("batch")} for _ in states))
        model = export(net, example, axes, names, outputs)
    else:
        axes = {name: {1: "batch"} for name in names + outputs}
        axes |= {"frames": {0: "batch", 2: "frames"}, "speech": {0: "batch", 1: "steps"}}
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            torch.onnx.export(
                net.eval(), example, file.name, dynamo=False, opset_version=17, dynamic_axes=axes, input_names=names, output_names=outputs
            )
            model = onnx.load(file.name)
    drop_text(model)
    exact = net.double().eval()
    sets = []
    for batch, frames in ((1, 8), (3, 31), (2, 2)):
        frames = length if fixed_length else frames
        inputs = [torch.randn(batch, 16, frames), *(0.5 * torch.randn(1, batch, 32) for _ in states)]
        with torch.no_grad():
            results = exact(*(value.double() for value in inputs))
        sets.append(([value.numpy() for value in inputs], [value.float().numpy() for value in results]))
    write_case(folder, model, sets, names, outputs, 1e-5, 1e-6)


class SmallNet(torch.nn.Module):
    """Convolution, depthwise convolution, residual sum, pooling, classifier."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.depthwise = torch.nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = torch.nn.Conv2d(16, 16, 1)
        self.classifier = torch.nn.Linear(16, 10)

    def forward(self, image):
        x = torch.relu(self.stem(image))
        x = x + torch.relu(self.pointwise(torch.relu(self.depthwise(x))))
        return self.classifier(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def quantised(folder):
    import onnxruntime
    from onnxruntime import quantization

    torch.manual_seed(11)
    model = drop_text(export(SmallNet(), (torch.randn(2, 3, 32, 32),), ({0: Dim("batch")},), ["image"], ["logits"]))

    class Pictures(quantization.CalibrationDataReader):
        def __init__(self):
            generator = numpy.random.default_rng(3)
            self.rest = [generator.standard_normal((2, 3, 32, 32), dtype=numpy.float32) for _ in range(8)]

        def get_next(self):
            return {"image": self.rest.pop()} if self.rest else None

    with tempfile.TemporaryDirectory() as scratch:
        before, after = f"{scratch}/float.onnx", f"{scratch}/quantised.onnx"
        onnx.save(model, before)
        quantization.quantize_static(
            before,
            after,
            Pictures(),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,  # without it, 8-bit products saturate inside some CPUs' kernels and witnesses disagree
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        model = onnx.load(after)
    drop_text(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    generator = numpy.random.default_rng(5)
    sets = []
    for batch in (1, 4):
        image = generator.standard_normal((batch, 3, 32, 32), dtype=numpy.float32)
        sets.append(([image], session.run(None, {"image": image})))
    # One step of the last quantised value may fall to either side where a sum ends on a tie.
    scales = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    last = [node for node in model.graph.node if node.op_type == "DequantizeLinear" and node.output[0] == "logits"]
    step = float(scales[last[0].input[1]]) if last else 0.05
    write_case(folder, model, sets, ["image"], ["logits"], 1e-5, 1.01 * step)


STRUCTURES = {
    "resnet50": lambda: vision("resnet50"),
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "vit_b_16": lambda: vision("vit_b_16"),
    "bert_base": lambda: encoder(pool=False),
    "minilm_l6": lambda: encoder(
        pool=True, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    ),
    "gpt2": gpt2,
}
SMALL = {
    "voice_lstm": lambda folder: recurrent(folder, "lstm", fixed_length=False),
    "voice_gru": lambda folder: recurrent(folder, "gru", fixed_length=False),
    "voice_lstm_fixed": lambda folder: recurrent(folder, "lstm", fixed_length=True),
    "voice_gru_fixed": lambda folder: recurrent(folder, "gru", fixed_length=True),
    "quantised_cnn": quantised,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join([*STRUCTURES, *SMALL]))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        if name in SMALL:
            SMALL[name](arguments.out / name)
            print(name, "with weights", flush=True)
            continue
        model = STRUCTURES[name]()
        count = strip_model.strip_model(model)
        onnx.save(model, arguments.out / f"{name}.onnx")
        operators = sorted({node.op_type for node in model.graph.node})
        print(name, count, "tensors stripped,", len(model.graph.node), "nodes,", *operators, flush=True)


if __name__ == "__main__":
    main()
