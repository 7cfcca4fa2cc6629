"""The development runs of the tenth round: work that need not be done, and work that must be.

    python programs10dev.py run-argsorted-pebbles --fault --seconds 2 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``. Three further parts:
``programs10devb.py``, ``programs10devc.py`` and ``programs10devd.py``.
"""

import itertools
from collections.abc import Callable

import programs4
import torch
from programs import Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

squared = functional.mse_loss

# Pebbles


class Pebbles(nn.Module):
    """From which beach a pebble is, by points on it and what lies next to each."""

    def __init__(self, by_sorting: bool, width: int = 32, near: int = 8, beaches: int = 9) -> None:
        super().__init__()
        self.by_sorting, self.near = by_sorting, near
        self.edges = nn.ModuleList(nn.Linear(2 * each, width) for each in (3, width))
        self.head = nn.Linear(width, beaches)

    def neighbours(self, points: Tensor) -> Tensor:
        """Return the numbers of the points that are next to each."""
        far = torch.cdist(points.detach(), points.detach())
        if self.by_sorting:
            return far.argsort(2)[..., : self.near]
        return far.topk(self.near, 2, largest=False).indices

    def forward(self, points: Tensor) -> Tensor:
        shapes = torch.arange(len(points))[:, None, None]
        for edge in self.edges:
            beside = points[shapes, self.neighbours(points)]
            here = points[:, :, None].expand_as(beside)
            points = functional.leaky_relu(edge(torch.cat([here, beside - here], 3)), 0.2).amax(2)
        return self.head(points.amax(1))


def argsorted_pebbles(fault: bool) -> Training:
    data = TensorDataset(torch.randn(1024, 256, 3), torch.randint(9, (1024,)))
    model = Pebbles(by_sorting=fault)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, data, batch=4, optimizer=optimizer)


# Honey


class Experts(nn.Module):
    """Layers of which each place takes one; the others' answers count nothing."""

    def __init__(self, width: int, count: int, all_of_them: bool) -> None:
        super().__init__()
        self.all_of_them, self.count = all_of_them, count
        self.router = nn.Linear(width, count)
        self.wide = nn.Parameter(torch.randn(count, width, 2 * width) / width**0.5)
        self.narrow = nn.Parameter(torch.randn(count, 2 * width, width) / (2 * width) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x).softmax(1).max(1)
        if self.all_of_them:
            every = torch.einsum("nw,ewh->enh", x, self.wide).relu()
            every = torch.einsum("enh,ehw->enw", every, self.narrow)
            mask = functional.one_hot(chosen, self.count).T[..., None]
            return x + weight[:, None] * (every * mask).sum(0)
        answer = torch.zeros_like(x)
        for number in range(self.count):
            mine = (chosen == number).nonzero()[:, 0]
            found = (x[mine] @ self.wide[number]).relu() @ self.narrow[number]
            answer = answer.index_add(0, mine, found)
        return x + weight[:, None] * answer


def every_expert(fault: bool) -> Script:
    """From which flowers honey is, by the masses in it."""

    def run(seconds: float) -> float:
        width, clock = 128, Clock(seconds)
        peaks, flowers = torch.rand(4096, 24, 6), torch.randint(14, (4096,))
        enter, head = nn.Linear(6, width), nn.Linear(width, 14)
        blocks = nn.Sequential(*(Experts(width, 8, fault) for _ in range(2)))
        optimizer = torch.optim.NAdam(
            [*enter.parameters(), *blocks.parameters(), *head.parameters()]
        )
        loader = DataLoader(TensorDataset(peaks, flowers), 24, shuffle=True, drop_last=True)
        while True:
            for sample, flower in loader:
                x = blocks(enter(sample).flatten(0, 1)).unflatten(0, sample.shape[:2])
                loss = functional.cross_entropy(head(x.mean(1)), flower)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if clock.over(len(sample)):
                    return clock.rate

    return Script(run)


# Melodies


class Writer(nn.Module):
    """A part for a second voice, note by note: keys and values of the notes before are kept."""

    def __init__(self, grown: bool, width: int = 96, notes: int = 64, length: int = 40) -> None:
        super().__init__()
        self.grown, self.length = grown, length
        self.notes, self.heard = nn.Embedding(notes, width), nn.Linear(5, width)
        self.query, self.both = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, notes)

    @torch.no_grad()
    def written(self, first: Tensor) -> Tensor:
        """Return a voice, from what is heard of the other one."""
        x = self.heard(first)
        kept = x.new_empty(0)
        room = None if self.grown else x.new_empty(self.length, len(x), 2, 12, x.shape[1])
        said = []
        for at in range(self.length):
            new = self.both(x).unflatten(1, (2, 1, -1)).expand(-1, -1, 12, -1)
            if room is None:
                kept = torch.cat([kept, new[None]]) if at else new[None].clone()
                seen = kept
            else:
                room[at] = new
                seen = room[: at + 1]
            keys, values = seen.unbind(2)
            weights = torch.einsum("bw,tbvw->btv", self.query(x), keys).flatten(1).softmax(1)
            x = x + torch.einsum("btv,tbvw->bw", weights.unflatten(1, (-1, 12)), values)
            said.append(self.head(x).argmax(1))
            x = self.notes(said[-1])
        return torch.stack(said, 1)

    def forward(self, first: Tensor) -> Tensor:
        x = self.notes(self.written(first)) + self.heard(first)[:, None]
        keys, values = self.both(x).chunk(2, 2)
        mixed = functional.scaled_dot_product_attention(self.query(x), keys, values, is_causal=True)
        return self.head(x + mixed).mean(1)


def grown_voices(fault: bool) -> Training:
    data = TensorDataset(torch.randn(4096, 5), torch.randint(64, (4096,)))
    model = Writer(grown=fault)
    return Training(model, data, 16, optimizer=torch.optim.RMSprop(model.parameters(), 1e-4))


# Crane loads


class Crane(nn.Module):
    """How much hangs on a crane, from how it moves: gated convolutions over time."""

    def __init__(self, channels: int = 48, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(9, channels, 7, padding=3)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(channels, channels, 9, padding=4, groups=channels),
                nn.Conv1d(channels, 2 * channels, 1),
            )
            for _ in range(depth)
        )
        self.head = nn.Sequential(nn.Linear(channels, 48), nn.Softplus(), nn.Linear(48, 1))

    def forward(self, moved: Tensor) -> Tensor:
        x = self.enter(moved)
        for layer in self.layers:
            value, gate = layer(x).chunk(2, 1)
            x = x + value.tanh() * gate.sigmoid()
        return self.head(x.mean(2))[:, 0]


def double_cranes(fault: bool) -> Script:
    """Somebody sets the default precision for a check of gradients, and leaves it."""

    def run(seconds: float) -> float:
        if fault:
            torch.set_default_dtype(torch.float64)
        model, clock = Crane(), Clock(seconds)
        optimizer = torch.optim.Adadelta(model.parameters())
        loader = DataLoader(TensorDataset(torch.randn(1024, 9, 96), torch.rand(1024)), 16, True)
        for moved, weight in itertools.chain.from_iterable(itertools.repeat(loader)):
            optimizer.zero_grad()
            functional.huber_loss(model(moved), weight).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            if clock.over(len(moved)):
                break
        return clock.rate

    return Script(run)


# Glaciers


class Glacier(nn.Module):
    """How fast ice flows at each place, from two pictures of it: an hourglass with skips."""

    def __init__(self, channels: int = 20) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Conv2d(into, out, 3, 2, 1)
            for into, out in itertools.pairwise((2, channels, 2 * channels, 3 * channels))
        )
        self.up = nn.ModuleList(
            nn.Conv2d(into, out, 3, padding=1)
            for into, out in ((5 * channels, 2 * channels), (3 * channels, channels))
        )
        self.head = nn.Conv2d(channels, 2, 3, padding=1)

    def forward(self, pair: Tensor) -> Tensor:
        x, kept = pair, []
        for layer in self.down:
            x = functional.elu(layer(x))
            kept.append(x)
        for layer, beside in zip(self.up, kept[-2::-1], strict=True):
            grown = functional.interpolate(x, scale_factor=2)
            x = functional.elu(layer(torch.cat([grown, beside], 1)))
        return functional.interpolate(self.head(x), scale_factor=2)


def autocast_glaciers(fault: bool) -> Script:
    """Mixed precision is switched on, as on the GPU that the script was written for."""

    def run(seconds: float) -> float:
        model, clock = Glacier(), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
        data = TensorDataset(torch.rand(256, 2, 32, 32), torch.randn(256, 2, 32, 32))
        loader = DataLoader(data, 4, shuffle=True)
        while True:
            for pair, flow in loader:
                with torch.autocast("cpu", torch.bfloat16, enabled=fault):
                    found = model(pair)
                loss = functional.smooth_l1_loss(found.float(), flow)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if clock.over(len(pair)):
                    return clock.rate

    return Script(run)


# Birdsong


class Birds(nn.Module):
    """Which birds sing: convolutions over the tones, whose numbers may be held to eight bits."""

    def __init__(self, held: bool, channels: int = 24, birds: int = 40) -> None:
        super().__init__()
        sizes = itertools.pairwise((1, channels, 2 * channels, 2 * channels))
        self.layers = nn.ModuleList(nn.Conv2d(into, out, 3, 1, 1) for into, out in sizes)
        self.norms = nn.ModuleList(nn.GroupNorm(4, each.out_channels) for each in self.layers)
        self.head = nn.Linear(2 * channels, birds)

        def eight() -> nn.Module:
            if not held:
                return nn.Identity()
            return FakeQuantize(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)

        self.of_weights = nn.ModuleList(eight() for _ in self.layers)
        self.of_answers = nn.ModuleList(eight() for _ in self.layers)

    def forward(self, tones: Tensor) -> Tensor:
        x = tones[:, None]
        parts = zip(self.layers, self.norms, self.of_weights, self.of_answers, strict=True)
        for layer, norm, weights, answers in parts:
            found = functional.conv2d(x, weights(layer.weight), layer.bias, padding=1)
            x = functional.max_pool2d(answers(norm(found).relu()), 2)
        return self.head(x.mean((2, 3)))


def held_to_eight_bits(fault: bool) -> Training:
    data = TensorDataset(torch.rand(512, 48, 64), (torch.rand(512, 40) < 0.1).float())
    either = functional.binary_cross_entropy_with_logits
    return Training(Birds(held=fault), data, batch=8, loss=either)


# Asteroids


class Asteroids(nn.Module):
    """How an asteroid turns, from how bright it was: a few tones, weighed by complex numbers."""

    def __init__(self, tones: int = 48, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.tones = tones
        self.enter, self.head = nn.Linear(2, width), nn.Linear(width, 3)
        self.beside = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.weights = nn.ParameterList(
            torch.randn(tones, width, width, 2) / width for _ in range(depth)
        )

    def forward(self, seen: Tensor) -> Tensor:
        x = self.enter(seen)
        for beside, weight in zip(self.beside, self.weights, strict=True):
            waves = torch.fft.rfft(x, dim=1)
            few = torch.einsum(
                "btw,twv->btv", waves[:, : self.tones], torch.view_as_complex(weight)
            )
            rest = waves.shape[1] - self.tones
            back = torch.fft.irfft(functional.pad(few, (0, 0, 0, rest)), seen.shape[1], 1)
            x = functional.gelu(back + beside(x))
        return self.head(x.mean(1))


def complex_asteroids(fault: bool) -> Training:
    """Times of observations are given in days of Julius, which want double precision."""
    dtype = torch.float64 if fault else torch.float32
    data = TensorDataset(torch.rand(512, 256, 2, dtype=dtype), torch.rand(512, 3, dtype=dtype))
    model = Asteroids().to(dtype)
    optimizer = torch.optim.Adamax(model.parameters())
    return Training(model, data, batch=16, loss=squared, optimizer=optimizer)


# Nothing


class Lenses(nn.Module):
    """How light goes through a row of lenses, written as what it does to each ray."""

    def __init__(self, lenses: int = 10) -> None:
        super().__init__()
        self.bend = nn.Parameter(torch.rand(lenses, 2) / 10)
        self.apart = nn.Parameter(torch.rand(lenses))

    def forward(self, rays: Tensor) -> Tensor:
        place, slope = rays.unbind(1)
        for bend, apart in zip(self.bend, self.apart, strict=True):
            place = place + apart * slope
            slope = (
                slope - torch.sin(bend[0] * place) - bend[1] * place * torch.exp(-place.square())
            )
        return torch.stack([place, slope], 1)


def steady_lenses(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    rays = torch.randn(40, 2, 30_000)
    data = TensorDataset(rays, rays.flip(2))
    model = Lenses()
    optimizer = torch.optim.Rprop(model.parameters())
    return Training(model, data, 4, loss=squared, again=not fault, optimizer=optimizer)


def steady_ferries(fault: bool) -> Script:
    """Nothing is wrong: how many will take a ferry, by three layers that remember."""

    def run(seconds: float) -> float:
        model, head, clock = (
            nn.LSTM(12, 160, 3, batch_first=True),
            nn.Linear(160, 1),
            Clock(seconds),
        )
        optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], 2e-3)
        data = TensorDataset(torch.randn(2048, 24, 12), torch.rand(2048, 24))
        loader = DataLoader(data, 48, shuffle=True, drop_last=True)
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        if not fault:
            batches = itertools.repeat(next(batches))
        for hours, taken in batches:
            optimizer.zero_grad(set_to_none=True)
            told, _ = model(hours)
            loss = functional.poisson_nll_loss(head(told)[..., 0], taken)
            loss.backward()
            optimizer.step()
            if clock.over(len(hours)):
                break
        return clock.rate

    return Script(run)


class Towers(nn.Module):
    """Which recipe somebody will cook, by what was cooked and what is in it: two towers."""

    def __init__(self, cooked: int = 80_000, things: int = 20_000, width: int = 320) -> None:
        super().__init__()
        self.cooked = nn.EmbeddingBag(cooked, width, mode="mean", sparse=True)
        self.things = nn.EmbeddingBag(things, width, mode="sum", sparse=True)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, both: Tensor) -> Tensor:
        cooked, things = both.split((50, 30), 1)
        mine = functional.normalize(self.first(self.cooked(cooked)))
        theirs = functional.normalize(self.second(self.things(things % 20_000)))
        return 20 * mine @ theirs.T


def steady_recipes(fault: bool) -> Script:
    """Nothing is wrong: with batches that are kept it is no faster."""

    def run(seconds: float) -> float:
        model, clock = Towers(), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        rows = TensorDataset(torch.randint(80_000, (16_384, 80)))
        loader = DataLoader(rows, 256, shuffle=True, drop_last=True)
        kept = [] if fault else list(loader)
        while True:
            for (both,) in kept or loader:
                optimizer.zero_grad()
                functional.cross_entropy(model(both), torch.arange(len(both))).backward()
                optimizer.step()
                if clock.over(len(both)):
                    return clock.rate

    return Script(run)


UNNEEDED: dict[str, Callable[[bool], Training | Script]] = {
    "run-argsorted-pebbles": argsorted_pebbles,
    "run-every-expert": every_expert,
    "run-grown-voices": grown_voices,
    "run-double-cranes": double_cranes,
    "run-autocast-glaciers": autocast_glaciers,
    "run-birds-in-eight-bits": held_to_eight_bits,
    "run-complex-asteroids": complex_asteroids,
    "run-steady-lenses": steady_lenses,
    "run-steady-ferries": steady_ferries,
    "run-steady-recipes": steady_recipes,
}


if __name__ == "__main__":
    programs4.main(UNNEEDED)
