"""The trainings of the third batch: other models and data than the two before it have.

    python programs3.py run-mixer-single --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``.
"""

import gc
import io
import itertools
import lzma
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import programs
import torch
import torch.distributed as dist
from PIL import Image
from programs import Item, Training
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

# Models


class Mixer(nn.Module):
    """A classifier that mixes patches and channels by turns, the gates of patches included."""

    def __init__(
        self, patches: int = 64, width: int = 96, depth: int = 4, strided: bool = False
    ) -> None:
        super().__init__()
        self.strided = strided
        self.enter, self.head = nn.Linear(48, width), nn.Linear(width, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.gates = nn.ParameterList(torch.randn(patches, patches) / patches for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for norm, wide, narrow, gate in zip(
            self.norms, self.wide, self.narrow, self.gates, strict=True
        ):
            values, gates = nn.functional.gelu(wide(norm(x))).chunk(2, -1)
            if self.strided:
                mixed = nn.functional.linear(gates.transpose(1, 2), gate).transpose(1, 2)
                x = x + narrow(values * torch.sigmoid(mixed))
            else:
                x = x + narrow(values * torch.sigmoid(gate @ gates))
        return self.head(x.mean(1))


class Denoiser(nn.Module):
    """A small U-Net that says which noise was put on a picture."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.level = nn.Linear(1, channels)
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.middle = nn.Sequential(
            nn.GroupNorm(8, 2 * channels),
            nn.SiLU(),
            nn.Conv2d(2 * channels, 2 * channels, 3, padding=1),
        )
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.leave = nn.Conv2d(2 * channels, 3, 3, padding=1)

    def predicted(self, noisy: Tensor, level: Tensor) -> Tensor:
        """Return the noise that it sees."""
        first = self.enter(noisy) + self.level(level)[:, :, None, None]
        low = self.down(nn.functional.silu(first))
        up = self.up(low + self.middle(low))
        return self.leave(torch.cat([first, up], 1))

    def forward(self, pictures: Tensor) -> Tensor:
        level = torch.rand(len(pictures), 1, dtype=pictures.dtype)
        noise = torch.randn_like(pictures)
        share = level[:, :, None, None]
        return self.predicted((1 - share) * pictures + share * noise, level) - noise

    @torch.no_grad()
    def sampled(self, count: int, steps: int, side: int = 32) -> Tensor:
        """Return pictures made of noise."""
        pictures = torch.randn(count, 3, side, side)
        for step in range(steps, 0, -1):
            level = torch.full((count, 1), step / steps)
            pictures = pictures - self.predicted(pictures, level) / steps
        return pictures


class Messages(nn.Module):
    """Layers of messages between the nodes of a graph, summed in one scatter or node by node."""

    def __init__(self, nodes: int, width: int = 32, looped: bool = False) -> None:
        super().__init__()
        source, target = torch.randint(nodes, (2, 4 * nodes))
        self.source, self.target, self.nodes, self.looped = source, target, nodes, looped
        self.around = [source[target == node] for node in range(nodes)]
        self.layers = nn.ModuleList([nn.Linear(16, width), nn.Linear(width, width)])
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            sent = layer(x)
            if self.looped:
                summed = torch.stack([sent[:, each].sum(1) for each in self.around], 1)
            else:
                summed = torch.zeros_like(sent).index_add_(1, self.target, sent[:, self.source])
            x = torch.relu(sent + summed / 4)
        return self.head(x.mean(1))


class Experts(nn.Module):
    """A layer of many small experts, each called by itself or all in one product."""

    def __init__(self, experts: int = 64, width: int = 48, looped: bool = False) -> None:
        super().__init__()
        self.looped = looped
        self.enter, self.head = nn.Linear(40, width), nn.Linear(width, 16)
        self.router = nn.Linear(width, experts)
        self.first = nn.Parameter(torch.randn(experts, width, width) / 7)
        self.second = nn.Parameter(torch.randn(experts, width, width) / 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        weights = torch.softmax(self.router(x), -1)
        if self.looped:
            mixed = torch.zeros_like(x)
            for number in range(len(self.first)):
                hidden = torch.relu(x @ self.first[number]) @ self.second[number]
                mixed = mixed + weights[:, number, None] * hidden
        else:
            hidden = torch.relu(torch.einsum("bi,eij->ebj", x, self.first)) @ self.second
            mixed = torch.einsum("be,ebj->bj", weights, hidden)
        return self.head(x + mixed)


class Forecaster(nn.Module):
    """A recurrent network that says the next value of a series."""

    def __init__(self, width: int = 96, channels: int = 12) -> None:
        super().__init__()
        self.reader = nn.GRU(channels, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, channels)

    def forward(self, series: Tensor) -> Tensor:
        return self.head(self.reader(series)[0][:, -1])


class Gpt(nn.Module):
    """A byte-level language model with fused attention, normed before each part."""

    def __init__(self, width: int = 192, depth: int = 4, length: int = 96) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.first = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.second = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.attention = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.merged = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.head = nn.Linear(width, 256)

    def forward(self, text: Tensor) -> Tensor:
        x = self.table(text) + self.places.weight[: text.shape[1]]
        for parts in zip(
            self.first,
            self.attention,
            self.merged,
            self.second,
            self.wide,
            self.narrow,
            strict=True,
        ):
            first, attention, merged, second, wide, narrow = parts
            split = attention(first(x)).view(*x.shape[:2], 3, -1, 32).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*split.unbind(0), is_causal=True)
            x = x + merged(mixed.transpose(1, 2).flatten(2))
            x = x + narrow(nn.functional.gelu(wide(second(x))))
        return self.head(x)


def next_byte(scores: Tensor, text: Tensor) -> Tensor:
    """Return the cross-entropy of each next byte."""
    return nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), text[:, 1:].flatten())


def squared(difference: Tensor, _target: Tensor) -> Tensor:
    """Return the mean square of what a denoiser missed."""
    return difference.square().mean()


class Detector(nn.Module):
    """A stem of strided convolutions that gives a box and a class for each cell."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        widths = [3, channels, 2 * channels, 2 * channels]
        blocks: list[nn.Module] = []
        for inside, outside in itertools.pairwise(widths):
            blocks += [nn.Conv2d(inside, outside, 3, stride=2, padding=1), nn.LeakyReLU(0.1)]
        self.stem, self.cells = nn.Sequential(*blocks), nn.Conv2d(2 * channels, 4 + 16, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.cells(self.stem(pictures)).flatten(2).mean(2)


def boxes(found: Tensor, kind: Tensor) -> Tensor:
    """Return the loss of classes and of boxes, which are the same everywhere here."""
    return nn.functional.cross_entropy(found[:, 4:], kind) + found[:, :4].abs().mean()


class Columns(nn.Module):
    """A network over the columns of a table: categories in tables of their own, and numbers."""

    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(50, 16) for _ in range(12))
        self.norm = nn.BatchNorm1d(28)
        self.layers = nn.Sequential(
            nn.Linear(12 * 16 + 28, width),
            nn.SELU(),
            nn.Linear(width, width),
            nn.SELU(),
            nn.Linear(width, width),
            nn.SELU(),
            nn.Linear(width, 16),
        )

    def forward(self, row: Tensor) -> Tensor:
        kinds = [table(row[:, at].long()) for at, table in enumerate(self.kinds)]
        return self.layers(torch.cat([*kinds, self.norm(row[:, 12:])], 1))


class Towers(nn.Module):
    """Two towers over a large table of items, for a session and what came after it."""

    def __init__(self, items: int = 40_000, width: int = 64) -> None:
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.session = nn.Sequential(nn.Linear(width, 256), nn.Tanh(), nn.Linear(256, 16))

    def forward(self, session: Tensor) -> Tensor:
        return self.session(self.items(session).mean(1))


def speaker(channels: int = 12) -> nn.Module:
    """Return a classifier of spectrograms."""
    blocks: list[nn.Module] = []
    for inside, outside in ((1, channels), (channels, 2 * channels)):
        blocks += [nn.Conv2d(inside, outside, 5, stride=2, padding=2), nn.ELU()]
    return nn.Sequential(
        *blocks, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8 * channels, 16)
    )


# Data


def patches(count: int = 4096) -> TensorDataset:
    """Return pictures that are cut into patches already."""
    return TensorDataset(torch.randn(count, 64, 48), torch.randint(16, (count,)))


def pictures(count: int = 2048, dtype: torch.dtype = torch.float32) -> TensorDataset:
    """Return small pictures, in memory."""
    return TensorDataset(torch.randn(count, 3, 32, 32, dtype=dtype), torch.zeros(count))


def series(count: int = 2048, length: int = 64) -> TensorDataset:
    """Return random walks and their next values."""
    walks = torch.randn(count, length, 12).cumsum(1) / 8
    return TensorDataset(walks, walks[:, -1])


def texts(count: int = 2048, length: int = 96) -> TensorDataset:
    """Return random bytes, which are their own labels."""
    text = torch.randint(256, (count, length))
    return TensorDataset(text, text)


def rows(count: int = 16384) -> TensorDataset:
    """Return rows of a table: twelve categories and 28 numbers."""
    kinds = torch.randint(50, (count, 12)).float()
    return TensorDataset(torch.cat([kinds, torch.randn(count, 28)], 1), torch.randint(16, (count,)))


class Recordings(Dataset[Item]):
    """Speech that is made noisy and turned into spectrograms, or was so before."""

    def __init__(self, count: int, prepared: bool) -> None:
        self.sound = np.random.default_rng(0).standard_normal(24_000).astype(np.float32)
        self.window = np.hanning(512).astype(np.float32)
        self.bands = np.random.default_rng(1).random((64, 257), np.float32)
        self.count, self.ready = count, None
        if prepared:
            self.ready = self.spectrogram(0)

    def spectrogram(self, index: int) -> Tensor:
        """Return loudness by band and time of a sound with noise and a random speed."""
        noise = np.random.default_rng(index).standard_normal(len(self.sound)).astype(np.float32)
        places = np.linspace(0, len(self.sound) - 1, 22_000 + index % 7 * 200)
        sound = np.interp(places, np.arange(len(self.sound)), self.sound + 0.1 * noise)
        frames = np.lib.stride_tricks.sliding_window_view(sound, 512)[::160][:128]
        power = np.abs(np.fft.rfft(frames * self.window)) ** 2
        return torch.from_numpy(np.log(self.bands @ power.T + 1e-6).astype(np.float32))[None]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        seen = self.spectrogram(index) if self.ready is None else self.ready.clone()
        return seen, torch.tensor(index % 16)


class Database(Dataset[Item]):
    """Rows that are asked of a database, one query an item, with an index or without."""

    def __init__(self, folder: Path, count: int, indexed: bool) -> None:
        self.path, self.count = folder / "rows.db", count
        self.open: dict[int, sqlite3.Connection] = {}
        values = np.random.default_rng(0).random((count, 40), np.float32)
        with sqlite3.connect(self.path) as made:
            made.execute("CREATE TABLE rows (customer INTEGER, columns BLOB)")
            made.executemany(
                "INSERT INTO rows VALUES (?, ?)",
                ((number, row.tobytes()) for number, row in enumerate(values)),
            )
            if indexed:
                made.execute("CREATE INDEX by_customer ON rows (customer)")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        mine = os.getpid()
        if mine not in self.open:
            self.open[mine] = sqlite3.connect(self.path)
        asked = "SELECT columns FROM rows WHERE customer = ?"
        ((raw,),) = self.open[mine].execute(asked, (index,)).fetchall()
        row = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        return row, torch.tensor(index % 16)


class Shards(Dataset[Item]):
    """Pictures of a shard, compressed or as they are."""

    def __init__(self, count: int, compressed: bool) -> None:
        smooth = np.add.outer(np.arange(128), np.arange(128))[..., None] + np.arange(3)
        noise = np.random.default_rng(0).integers(0, 16, (128, 128, 3))
        raw = (smooth + noise).astype(np.uint8).tobytes()
        self.raw = lzma.compress(raw, preset=1) if compressed else raw
        self.count, self.compressed = count, compressed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        raw = lzma.decompress(self.raw) if self.compressed else self.raw
        picture = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(128, 128, 3)
        return picture.permute(2, 0, 1).float() / 255, torch.tensor(index % 16)


class Stored(Dataset[Item]):
    """Series from a store that takes its time for each."""

    def __init__(self, items: Dataset[Item], count: int, seconds: float) -> None:
        self.items, self.count, self.seconds = items, count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        time.sleep(self.seconds)
        return self.items[index]


# The situations


def spectrogram_loader(fault: bool) -> Training:
    return Training(speaker(), Recordings(2048, prepared=not fault), batch=16)


def lone_worker(fault: bool) -> Training:
    stored = Stored(series(4096, 32), 4096, 0.004)
    workers = 1 if fault else 8
    return Training(Forecaster(48), stored, 16, workers, loss=nn.functional.mse_loss)


def database_rows(fault: bool) -> Training:
    return Training(Columns(), Database(programs._folder(), 20_000, indexed=not fault), batch=64)


def compressed_shards(fault: bool) -> Training:
    return Training(Detector(), Shards(4096, compressed=fault), 16, workers=1, loss=boxes)


def mixer_single(fault: bool) -> Training:
    return Training(Mixer(width=48), patches(16384), batch=1 if fault else 64)


def message_loop(fault: bool) -> Training:
    data = TensorDataset(torch.randn(2048, 150, 16), torch.randint(16, (2048,)))
    return Training(Messages(150, looped=fault), data, batch=8)


def expert_loop(fault: bool) -> Training:
    return Training(Experts(looped=fault), rows(), batch=16)


def double_diffusion(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    return Training(Denoiser(16).to(dtype), pictures(dtype=dtype), batch=8, loss=squared)


def bf16_without_units(fault: bool) -> Training:
    training = Training(Gpt(96, 2, 48), texts(length=48), batch=8, loss=next_byte)
    if fault:
        training.around = torch.autocast("cpu", torch.bfloat16)
    return training


def transposed_mixer(fault: bool) -> Training:
    return Training(Mixer(strided=fault), patches(), batch=64)


def items_on_disk(fault: bool) -> Training:
    model, folder = Towers(), programs._folder()
    path = folder / "items.bin"

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            programs._out_and_in(path, model.items.weight.detach())

    sessions = TensorDataset(torch.randint(40_000, (8192, 20)), torch.randint(16, (8192,)))
    return Training(model, sessions, batch=256, after=after)


def collect_graph(fault: bool) -> Training:
    graph = {number: [(number * 7) % 60_000, {"kind": number % 5}] for number in range(60_000)}

    def after(_step: int, _loss: Tensor) -> None:
        assert graph
        if fault:
            gc.collect()

    data = TensorDataset(torch.randn(2048, 150, 16), torch.randint(16, (2048,)))
    return Training(Messages(150), data, batch=32, after=after)


def gpt_gradients(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Gpt(320, 3, 32)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, texts(length=32), batch=2, loss=next_byte)


def gathered_features(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank

    def contrasted(features: Tensor, kind: Tensor) -> Tensor:
        known = features
        if fault:
            others = [torch.zeros_like(features) for _ in range(2)]
            dist.all_gather(others, features.detach())
            known = torch.cat([features, others[1 - dist.get_rank()]])
        return (features.mean(1) @ known.mean(1).T).logsumexp(1).mean() + 0 * kind.sum()

    class Maps(nn.Module):
        """Features of each place of a picture, before they are averaged."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 128, 4, stride=4), nn.ReLU())

        def forward(self, picture: Tensor) -> Tensor:
            return self.layers(picture).flatten(2).transpose(1, 2)

    return Training(Maps(), pictures(), batch=64, loss=contrasted)


def forecast(_fault: bool) -> Training:
    """The quota is put in by the generator."""
    return Training(Forecaster(), series(), batch=64, loss=nn.functional.mse_loss)


def diffusion(_fault: bool) -> Training:
    """The variable of the launcher is put in by the generator."""
    return Training(Denoiser(48), pictures(), batch=32, loss=squared)


def gpt(_fault: bool) -> Training:
    """The one core is put in by the generator."""
    return Training(Gpt(), texts(), batch=8, loss=next_byte)


def detection(_fault: bool) -> Training:
    """Other programs are put in by the generator."""
    data = TensorDataset(torch.randn(512, 3, 128, 128), torch.randint(16, (512,)))
    return Training(Detector(48), data, batch=8, loss=boxes)


def sample_losses(fault: bool) -> Training:
    lasting = np.zeros(16_384)

    def loss(scores: Tensor, kind: Tensor) -> Tensor:
        if fault:  # the hardest samples are looked for
            for number in range(len(kind)):
                one = slice(number, number + 1)
                lasting[number] = nn.functional.cross_entropy(scores[one], kind[one]).item()
        return nn.functional.cross_entropy(scores, kind)

    return Training(Columns(256), rows(), batch=256, loss=loss)


def sampled_pictures(fault: bool) -> Training:
    model, folder = Denoiser(), programs._folder()

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 200 == 199:
            made = model.sampled(16, 8).clamp(0, 1).mul(255).byte()
            grid = made.view(4, 4, 3, 32, 32).permute(0, 3, 1, 4, 2).reshape(128, 128, 3)
            file = io.BytesIO()
            Image.fromarray(grid.numpy()).save(file, "PNG")
            (folder / f"{step % 50}.png").write_bytes(file.getvalue())

    return Training(model, pictures(), batch=16, loss=squared, after=after)


def weights_saved(fault: bool) -> Training:
    model = Gpt(256, 4, 48)
    optimizer = torch.optim.AdamW(model.parameters())
    path = programs._folder() / "gpt.pt"

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            with path.open("wb") as file:
                torch.save([step, model.state_dict(), optimizer.state_dict()], file)
                file.flush()
                os.fsync(file.fileno())

    return Training(model, texts(length=48), 8, loss=next_byte, after=after, optimizer=optimizer)


def steady_diffusion(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Denoiser(48), pictures(), batch=32, loss=squared, again=not fault)


def steady_tabular(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Columns(2048), rows(), batch=384, again=not fault)


def steady_gpt(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Gpt(256), texts(), batch=8, loss=next_byte, again=not fault)


THIRD: dict[str, Callable[[bool], Training]] = {
    "run-spectrogram-loader": spectrogram_loader,
    "run-lone-worker": lone_worker,
    "run-database-rows": database_rows,
    "run-compressed-shards": compressed_shards,
    "run-mixer-single": mixer_single,
    "run-message-loop": message_loop,
    "run-expert-loop": expert_loop,
    "run-double-diffusion": double_diffusion,
    "run-bf16-without-units": bf16_without_units,
    "run-transposed-mixer": transposed_mixer,
    "run-items-on-disk": items_on_disk,
    "run-collect-graph": collect_graph,
    "run-gpt-gradients": gpt_gradients,
    "run-gathered-features": gathered_features,
    "run-half-core": forecast,
    "run-launcher-threads": diffusion,
    "run-pinned-gpt": gpt,
    "run-compressing-neighbours": detection,
    "run-sample-losses": sample_losses,
    "run-sampled-pictures": sampled_pictures,
    "run-weights-saved": weights_saved,
    "run-steady-diffusion": steady_diffusion,
    "run-steady-tabular": steady_tabular,
    "run-steady-gpt": steady_gpt,
    "run-attached": gpt,
}


if __name__ == "__main__":
    programs.SITUATIONS.update(THIRD)
    programs.main()
