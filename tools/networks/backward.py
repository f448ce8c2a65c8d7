"""Training steps: one graph with forward pass, backward pass and updated parameters; parameters are inputs, as a trainer holds them, so
these are whole nets with recorded results, not structures.

make_fx writes the backward pass that autograd takes as a graph; the exporter then sees it as any other model. ONNX has no operator for the
gradients of convolutions, so they are written here as convolutions themselves.
"""
import torch
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import export_zoo

from .exporters import dynamo

RATE = 0.1  # large, so that a wrong gradient shows in the updated parameters


def convolution_backward(gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    if transposed or groups != 1 or dilation != [1, 1]:
        raise NotImplementedError("only plain convolutions")
    of_x = of_weight = of_bias = None
    size = [x.shape[axis] - ((gradient.shape[axis] - 1) * stride[axis - 2] - 2 * padding[axis - 2] + weight.shape[axis]) for axis in (2, 3)]
    if mask[0]:
        of_x = functional.conv_transpose2d(gradient, weight, None, stride, padding, size)
    if mask[1]:
        # Channels of the batch are summed over: batch takes the place of channels, and strides become dilations.
        of_weight = functional.conv2d(x.transpose(0, 1), gradient.transpose(0, 1), None, 1, padding, stride).transpose(0, 1)
        of_weight = of_weight[:, :, : weight.shape[2], : weight.shape[3]]
    if mask[2]:
        of_bias = gradient.sum((0, 2, 3))
    return of_x, of_weight, of_bias


def max_pool_backward(gradient, x, kernel, stride, padding, dilation, ceil_mode, indices):
    flat = torch.zeros_like(x).flatten(2)
    return flat.scatter_add(2, indices.flatten(2), gradient.flatten(2)).view(x.shape)


class Training:
    """Loss of a module for one batch, and each parameter after one step of descent, as a graph and as recorded numbers."""

    def __init__(self, module, loss, batch, names):
        self.module, self.loss, self.batch = module, loss, batch
        self.parameters = {name: value.detach() for name, value in module.named_parameters()}
        words = [name.replace(".", "_") for name in self.parameters]
        self.inputs, self.outputs = [*words, *names], ["loss", *(f"next_{word}" for word in words)]

    def step(self, *values):
        count = len(self.parameters)
        given = [value.detach().requires_grad_() for value in values[:count]]
        result = self.loss(torch.func.functional_call(self.module, dict(zip(self.parameters, given)), values[count:-1]), values[-1])
        gradients = torch.autograd.grad(result, given)
        return (result.detach(), *(value.detach() - RATE * gradient for value, gradient in zip(given, gradients)))

    def model(self):
        table = dict(core_aten_decompositions())
        table[torch.ops.aten.convolution_backward.default] = convolution_backward
        table[torch.ops.aten.max_pool2d_with_indices_backward.default] = max_pool_backward
        example = (*self.parameters.values(), *self.batch)
        graph = make_fx(self.step, decomposition_table=table, tracing_mode="fake")(*example)
        return dynamo(graph, example, tuple({} for _ in example), self.inputs, self.outputs)

    def write(self, folder):
        """A case (tests/data/README.md): expected numbers are autograd's in float64."""
        model = export_zoo.drop_text(self.model())
        values = [*self.parameters.values(), *self.batch]
        self.module.double()
        exact = self.step(*(value.double() if value.is_floating_point() else value for value in values))
        results = [value.float().numpy() for value in exact]
        export_zoo.write_case(folder, model, [([value.numpy() for value in values], results)], self.inputs, self.outputs, 1e-4, 1e-5)
        return model


def mlp():
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    return Training(net, functional.cross_entropy, (torch.randn(32, 16), torch.randint(0, 10, (32,))), ["x", "label"])


class SmallCnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.Conv2d(16, 32, 3, 1, 1)
        self.norm = torch.nn.BatchNorm2d(16, track_running_stats=False)
        self.last = torch.nn.Linear(32, 10)

    def forward(self, image):
        x = functional.relu(self.norm(self.first(image)))
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        return self.last(x.mean((2, 3)))


def cnn():
    batch = (torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,)))
    return Training(SmallCnn().train(), functional.cross_entropy, batch, ["image", "label"])


class Block(torch.nn.Module):
    """One transformer block before its norm, written out so that its backward pass has plain operators."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = torch.nn.Embedding(50, width)
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.head = torch.nn.Linear(width, 50)

    def forward(self, ids):
        x = self.embed(ids)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + self.out(torch.matmul(scores, v).transpose(1, 2).flatten(2))
        x = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return self.head(x)


def transformer():
    def loss(logits, labels):
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    ids = torch.randint(0, 50, (4, 16))
    return Training(Block(), loss, (ids, torch.randint(0, 50, (4, 16))), ["ids", "label"])


CASES = {"train_mlp": mlp, "train_cnn": cnn, "train_transformer": transformer}
