"""The models of ``programs8dev.py``: jets, slides, hearts, codes, heat and others."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Jets(nn.Module):
    """What a spray of particles came from: each by itself, and their sum."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.each = nn.Sequential(
            nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.whole = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5))

    def forward(self, particles: Tensor) -> Tensor:
        return self.whole(self.each(particles).sum(1))


class Colours(nn.Module):
    """Colours of a grey picture."""

    def __init__(self, channels: int = 32, depth: int = 8, *, again: bool = False) -> None:
        super().__init__()
        self.again = again
        self.enter = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1),
                nn.GroupNorm(4, channels),
                nn.SiLU(),
            )
            for _ in range(depth)
        )
        self.leave = nn.Conv2d(channels, 2, 1)

    def forward(self, grey: Tensor) -> Tensor:
        x = self.enter(grey)
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.again else block(x))
        return self.leave(x)


class Slides(nn.Module):
    """Whether any patch of a slide is ill, by attention over the patches."""

    def __init__(self, width: int = 64, *, in_turn: bool = False) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.seen = nn.Sequential(nn.Linear(128, width), nn.ReLU())
        self.weight = nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, 1))
        self.told = nn.Linear(width, 2)

    def forward(self, slides: Tensor) -> Tensor:
        if self.in_turn:
            return torch.cat([self.of(slide[None]) for slide in slides])
        return self.of(slides)

    def of(self, slides: Tensor) -> Tensor:
        seen = self.seen(slides)
        return self.told((self.weight(seen).softmax(1) * seen).sum(1))


class Additive(nn.Module):
    """A sum of small networks, one for each column of a table."""

    def __init__(self, columns: int = 48, width: int = 32) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                nn.Linear(width, 2),
            )
            for _ in range(columns)
        )  # fmt: skip

    def forward(self, rows: Tensor) -> Tensor:
        parts = zip(self.parts, rows.split(1, 1), strict=True)
        return torch.stack([part(column) for part, column in parts]).sum(0)


class Own(torch.optim.Optimizer):
    """AdamW as people write it from the paper."""

    def __init__(self, parameters: Iterator[nn.Parameter], rate: float = 1e-3) -> None:
        super().__init__(parameters, {"lr": rate})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for each in group["params"]:
                state = self.state[each]
                if not state:
                    state |= {"step": 0, "mean": each.new_zeros(each.shape)}
                    state["square"] = each.new_zeros(each.shape)
                state["step"] += 1
                mean, square, grad = state["mean"], state["square"], each.grad
                mean.copy_(0.9 * mean + 0.1 * grad)
                square.copy_(0.999 * square + 0.001 * grad * grad)
                mean_now = mean / (1 - 0.9 ** state["step"])
                square_now = square / (1 - 0.999 ** state["step"])
                each.sub_(group["lr"] * (mean_now / (square_now.sqrt() + 1e-8) + 0.01 * each))


class Hearts(nn.Module):
    """Beats of a heart, named by residual convolutions over twelve leads."""

    def __init__(self, channels: int = 48, depth: int = 4, kernel: int = 15) -> None:
        super().__init__()
        self.enter = nn.Conv1d(12, channels, kernel, stride=2, padding=kernel // 2)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(channels), nn.ReLU(),
                nn.Conv1d(channels, channels, kernel, padding=kernel // 2),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.named = nn.Linear(channels, 7)

    def forward(self, leads: Tensor) -> Tensor:
        x = self.enter(leads)
        for block in self.blocks:
            x = x + block(x)
        return self.named(x.mean(2))


class Minerals(nn.Module):
    """Minerals by the light that they reflect."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, channels, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(channels, 2 * channels, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
            nn.Flatten(), nn.Linear(64 * 2 * channels, 256), nn.ReLU(), nn.Linear(256, 12),
        )  # fmt: skip

    def forward(self, light: Tensor) -> Tensor:
        return self.layers(light)


class Stays(nn.Module):
    """The next code of a patient's stay; each visit sees itself and what was before."""

    def __init__(self, width: int = 96, depth: int = 2, *, written: bool = False) -> None:
        super().__init__()
        self.written, self.heads = written, 6
        self.codes = nn.Embedding(500, width)
        self.threes = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.mixed = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.next = nn.Linear(width, 500)

    def forward(self, stay: Tensor) -> Tensor:
        x = self.codes(stay)
        for three, mixed in zip(self.threes, self.mixed, strict=True):
            parts = three(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + mixed(self.attended(*parts).transpose(1, 2).flatten(2))
        return self.next(x).transpose(1, 2)

    def attended(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if not self.written:
            return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later.expand_as(scores), -1e9)
        return nn.functional.dropout(scores.softmax(-1), 0.1) @ value


class Queries(nn.Module):
    """How long a query of a database will take."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.time = nn.Linear(width, 4)

    def forward(self, query: Tensor) -> Tensor:
        empty = query == 0
        read = self.layers(self.words(query), src_key_padding_mask=empty)
        return self.time(read.masked_fill(empty[..., None], 0).sum(1))


class Rooms(nn.Module):
    """The echo of a room, as a long filter that is learnt."""

    def __init__(self, taps: int = 2048, *, direct: bool = False) -> None:
        super().__init__()
        self.direct, self.taps = direct, taps
        self.echo = nn.Parameter(0.01 * torch.randn(1, 1, taps))

    def forward(self, dry: Tensor) -> Tensor:
        if self.direct:
            padded = nn.functional.pad(dry, (self.taps - 1, 0))
            return nn.functional.conv1d(padded, self.echo.flip(2))
        size = dry.shape[2] + self.taps
        both = torch.fft.rfft(dry, size) * torch.fft.rfft(self.echo, size)
        return torch.fft.irfft(both, size)[..., : dry.shape[2]]


class Bytes(nn.Module):
    """Programs told apart by few latents that read all bytes (a perceiver)."""

    def __init__(self, width: int = 256, depth: int = 6, *, again: bool = False) -> None:
        super().__init__()
        self.again = again
        self.bytes = nn.Embedding(256, width)
        self.latents = nn.Parameter(torch.randn(1, 64, width))
        self.reads = nn.MultiheadAttention(width, 4, batch_first=True)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
            for _ in range(depth)
        )
        self.named = nn.Linear(width, 9)

    def forward(self, program: Tensor) -> Tensor:
        read = self.bytes(program)
        x, _ = self.reads(self.latents.expand(len(read), -1, -1), read, read, need_weights=False)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True) if self.again else layer(x)
        return self.named(x.mean(1))


class Signatures(nn.Module):
    """Signatures held against a bank of earlier ones."""

    queue: Tensor

    def __init__(self, kept: int = 32768) -> None:
        super().__init__()
        self.at = 0
        self.written = nn.Sequential(
            nn.Conv2d(1, 32, 5, stride=2), nn.ReLU(), nn.Conv2d(32, 32, 5, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 5 * 9, 128),
        )  # fmt: skip
        self.register_buffer("queue", nn.functional.normalize(torch.randn(kept, 128), dim=1))
        self.new = torch.empty(0, 128)

    def forward(self, both: Tensor) -> Tensor:
        one, two = (nn.functional.normalize(self.written(each), dim=1) for each in both.split(1, 1))
        self.new = two.detach()
        near = (one * self.new).sum(1, keepdim=True)
        return torch.cat([near, one @ self.queue.T], 1) / 0.1

    def keep(self, *, anew: bool) -> None:
        """Put the new ones in the place of the oldest."""
        if anew:
            self.queue = torch.cat([self.queue, self.new])[len(self.new) :].contiguous()
            return
        self.queue[self.at : self.at + len(self.new)] = self.new
        self.at = (self.at + len(self.new)) % len(self.queue)


class Waves(nn.Module):
    """What a layer keeps of a field's waves, each by weights of its own."""

    def __init__(self, width: int, kept: int) -> None:
        super().__init__()
        self.kept = kept
        weights = torch.randn(width, width, kept, kept, dtype=torch.complex64) / width
        self.weights = nn.Parameter(weights)
        self.here = nn.Conv2d(width, width, 1)

    def forward(self, field: Tensor) -> Tensor:
        waves = torch.fft.rfft2(field)
        passed = torch.zeros_like(waves)
        low = waves[:, :, : self.kept, : self.kept]
        mixed = torch.einsum("bixy,ioxy->boxy", low, self.weights)
        passed[:, :, : self.kept, : self.kept] = mixed
        return torch.fft.irfft2(passed, s=field.shape[-2:]) + self.here(field)


class Plates(nn.Module):
    """How heat spreads in a plate, by waves (a Fourier operator)."""

    def __init__(self, width: int = 24, depth: int = 3, kept: int = 12) -> None:
        super().__init__()
        layers = [[Waves(width, kept), nn.GELU()] for _ in range(depth)]
        inside = [part for layer in layers for part in layer]
        self.layers = nn.Sequential(nn.Conv2d(1, width, 1), *inside, nn.Conv2d(width, 1, 1))

    def forward(self, field: Tensor) -> Tensor:
        return self.layers(field)


class Codes(nn.Module):
    """Pictures as codes of a small book, and back."""

    def __init__(self, channels: int = 48, book: int = 256) -> None:
        super().__init__()
        self.enter = nn.Sequential(
            nn.Conv2d(3, channels, 4, 2, 1), nn.ReLU(), nn.Conv2d(channels, channels, 4, 2, 1)
        )
        self.leave = nn.Sequential(
            nn.ConvTranspose2d(channels, channels, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(channels, 3, 4, 2, 1),
        )  # fmt: skip
        self.book = nn.Embedding(book, channels)

    def forward(self, picture: Tensor) -> Tensor:
        seen = self.enter(picture)
        flat = seen.permute(0, 2, 3, 1)
        near = torch.cdist(flat.flatten(0, 2), self.book.weight).argmin(1)
        code = self.book(near).view(flat.shape).permute(0, 3, 1, 2)
        return self.leave(seen + (code - seen).detach()) + 0.1 * (code - seen).square().mean()


class Features(nn.Module):
    """What a layer of another network says, in few of many features (a sparse autoencoder)."""

    def __init__(self, width: int = 256, features: int = 4096) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, features), nn.Linear(features, width)

    def forward(self, said: Tensor) -> Tensor:
        found = self.enter(said).relu()
        return self.leave(found) + 1e-3 * found.mean()


class Paths(nn.Module):
    """What an agent does next, by what it saw and what is still to be won."""

    def __init__(self, width: int = 128, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(18, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, depth)
        self.act = nn.Linear(width, 6)

    def forward(self, seen: Tensor) -> Tensor:
        before = nn.Transformer.generate_square_subsequent_mask(seen.shape[1])
        return self.act(self.layers(self.enter(seen), mask=before, is_causal=True))
