"""Networks written out in plain PyTorch after their published descriptions: recommendation, speech, pictures."""
import torch
from torch import nn
from torch.nn import functional

from .exporters import dynamo, script

TABLES = (1000, 20000, 50, 3000, 10, 500, 8000, 200)


def layers(*widths, last=True):
    parts = []
    for index in range(len(widths) - 1):
        parts.append(nn.Linear(widths[index], widths[index + 1]))
        if last or index + 2 < len(widths):
            parts.append(nn.ReLU())
    return nn.Sequential(*parts)


class Dlrm(nn.Module):
    """Dense features through layers, one row of a table per category, products of all pairs, layers, probability of a click."""

    def __init__(self, width=32):
        super().__init__()
        self.bottom = layers(13, 256, 64, width)
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in TABLES)
        count = len(TABLES) + 1
        pairs = torch.tril_indices(count, count, offset=-1)
        self.register_buffer("flat", pairs[0] * count + pairs[1])
        self.top = layers(width + self.flat.numel(), 256, 64, 1, last=False)

    def forward(self, dense, categories):
        x = self.bottom(dense)
        rows = [x, *(table(categories[:, index]) for index, table in enumerate(self.tables))]
        rows = torch.stack(rows, 1)
        products = torch.bmm(rows, rows.transpose(1, 2)).flatten(1).index_select(1, self.flat)
        return torch.sigmoid(self.top(torch.cat([x, products], 1))).squeeze(1)


class WideAndDeep(nn.Module):
    """A linear part over one table of weights, deep layers over embeddings, a history averaged over its real entries."""

    def __init__(self, width=16):
        super().__init__()
        self.wide = nn.Embedding(sum(TABLES), 1)
        self.deep = nn.Embedding(sum(TABLES), width)
        starts = torch.tensor([sum(TABLES[:index]) for index in range(len(TABLES))])
        self.register_buffer("starts", starts)
        self.layers = layers(width * (len(TABLES) + 1) + 13, 256, 128, 1, last=False)

    def forward(self, dense, categories, history):
        ids = categories + self.starts
        present = (history >= 0).unsqueeze(-1)
        past = torch.where(present, self.deep(history.clamp(min=0)), 0.0).sum(1) / present.sum(1).clamp(min=1)
        deep = self.layers(torch.cat([self.deep(ids).flatten(1), past, dense], 1))
        return torch.sigmoid(self.wide(ids).sum(1) + deep).squeeze(1)


class TwoTowers(nn.Module):
    """Scores of items for users, best ten."""

    def __init__(self, width=64):
        super().__init__()
        self.users, self.items = nn.Embedding(50000, width), nn.Embedding(20000, width)
        self.user, self.item = layers(width, 128, width, last=False), layers(width, 128, width, last=False)

    def forward(self, user, item):
        left = functional.normalize(self.user(self.users(user)), dim=1)
        right = functional.normalize(self.item(self.items(item)), dim=1)
        return torch.topk(left @ right.T, 10, dim=1)


class Conformer(nn.Module):
    """One block: half feed-forward, self-attention, gated depthwise convolution, half feed-forward, normalisation."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                                   for _ in range(2))
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.conv_norm, self.gate = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.depthwise, self.batch_norm = nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width)
        self.point, self.last = nn.Conv1d(width, width, 1), nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        y = functional.glu(self.gate(self.conv_norm(x).transpose(1, 2)), 1)
        x = x + self.point(functional.silu(self.batch_norm(self.depthwise(y)))).transpose(1, 2)
        return self.last(x + 0.5 * self.after(x))


class ConformerEncoder(nn.Module):
    def __init__(self, width=144, heads=4, blocks=4):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, width, 3, 2), nn.Conv2d(width, width, 3, 2)
        self.start = nn.Linear(width * 19, width)
        self.blocks = nn.Sequential(*(Conformer(width, heads) for _ in range(blocks)))
        self.letters = nn.Linear(width, 64)

    def forward(self, mel):
        x = functional.relu(self.second(functional.relu(self.first(mel.unsqueeze(1)))))
        x = self.blocks(self.start(x.transpose(1, 2).flatten(2)))
        return functional.log_softmax(self.letters(x), -1)


class Separator(nn.Module):
    """Two speakers from one microphone: learned frames, dilated depthwise convolutions with global norms, masks, transposed frames."""

    def __init__(self, filters=256, width=128, inner=256, depth=6, repeats=2):
        super().__init__()
        self.encode = nn.Conv1d(1, filters, 16, 8, bias=False)
        self.start = nn.Sequential(nn.GroupNorm(1, filters), nn.Conv1d(filters, width, 1))
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, inner, 1), nn.PReLU(), nn.GroupNorm(1, inner),
                          nn.Conv1d(inner, inner, 3, padding=2**index, dilation=2**index, groups=inner), nn.PReLU(),
                          nn.GroupNorm(1, inner), nn.Conv1d(inner, width, 1))
            for _ in range(repeats) for index in range(depth))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, 2 * filters, 1))
        self.decode = nn.ConvTranspose1d(filters, 1, 16, 8, bias=False)
        self.filters = filters

    def forward(self, sound):
        frames = functional.relu(self.encode(sound.unsqueeze(1)))
        x = self.start(frames)
        for block in self.blocks:
            x = x + block(x)
        masks = torch.sigmoid(self.masks(x)).unflatten(1, (2, self.filters))
        parts = (masks * frames.unsqueeze(1)).flatten(0, 1)
        return self.decode(parts).squeeze(1).unflatten(0, (-1, 2))


class UNet(nn.Module):
    def __init__(self, width=32, depth=4, classes=4):
        super().__init__()

        def double(before, after):
            return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
                                 nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())

        widths = [width * 2**index for index in range(depth + 1)]
        self.down = nn.ModuleList(double(before, after) for before, after in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * size, size, 2, 2) for size in reversed(widths[:-1]))
        self.join = nn.ModuleList(double(2 * size, size) for size in reversed(widths[:-1]))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, image):
        kept = []
        for index, block in enumerate(self.down):
            image = block(image if index == 0 else functional.max_pool2d(image, 2))
            kept.append(image)
        for up, join, beside in zip(self.up, self.join, reversed(kept[:-1])):
            image = join(torch.cat([up(image), beside], 1))
        return self.last(image)


class SuperResolution(nn.Module):
    """Any picture size: convolutions, then each pixel's channels become a block of 3 x 3 pixels."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                                  nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, image):
        return self.body(image)


def dlrm():
    example = (torch.randn(4, 13), torch.randint(0, 10, (4, len(TABLES))))
    return dynamo(Dlrm(), example, ({0: "batch"}, {0: "batch"}), ["dense", "categories"], ["click"])


def wide_and_deep():
    example = (torch.randn(4, 13), torch.randint(0, 10, (4, len(TABLES))), torch.randint(-1, 10, (4, 20)))
    names = ["dense", "categories", "history"]
    return dynamo(WideAndDeep(), example, ({0: "batch"}, {0: "batch"}, {0: "batch", 1: "history"}), names, ["click"])


def two_towers():
    example = (torch.randint(0, 50, (4,)), torch.randint(0, 50, (40,)))
    return dynamo(TwoTowers(), example, ({0: "users"}, {0: "items"}), ["user", "item"], ["scores", "best"])


def conformer():
    return dynamo(ConformerEncoder(), (torch.randn(2, 99, 80),), ({0: "batch", 1: "time"},), ["mel"], ["letters"])


def separator():
    return dynamo(Separator(), (torch.randn(2, 4000),), ({0: "batch"},), ["sound"], ["speakers"])


def unet():
    return dynamo(UNet(), (torch.randn(2, 3, 128, 128),), ({0: "batch"},), ["image"], ["classes"])


def super_resolution():
    axes = {0: "batch", 2: "height", 3: "width"}
    return script(SuperResolution(), (torch.randn(2, 1, 24, 32),), {"image": axes, "large": {0: "batch"}}, ["image"], ["large"])


NETWORKS = {
    "dlrm": dlrm,
    "wide_and_deep": wide_and_deep,
    "two_towers": two_towers,
    "conformer_ctc": conformer,
    "conv_tasnet": separator,
    "unet": unet,
    "super_resolution": super_resolution,
}
