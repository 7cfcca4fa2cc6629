"""The third part of the development runs of the sixth round, made as the first.

python programs6dev3.py run-frames-decoded --fault --seconds 3 --record run.record.json

"""

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import programs4
import torch
import torch.distributed as dist
from PIL import Image
from programs import Item, Training, _folder
from programs4 import Clock, Script
from programs6dev import Clicks, offers
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, TensorDataset

# Models


def clips_classifier(channels: int = 24) -> nn.Module:
    """Return convolutions over space, then over time, for sixteen kinds of clips."""
    return nn.Sequential(
        nn.Conv3d(3, channels, (1, 5, 5), stride=(1, 2, 2), padding=(0, 2, 2)),
        nn.ReLU(),
        nn.Conv3d(channels, channels, (3, 1, 1), padding=(1, 0, 0)),
        nn.ReLU(),
        nn.Conv3d(channels, 2 * channels, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
        nn.ReLU(),
        nn.Conv3d(2 * channels, 2 * channels, (3, 1, 1), padding=(1, 0, 0)),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 16),
    )


def boxes_by_cell(channels: int = 24) -> nn.Module:
    """Return a detector that says a box and its kind for each cell of a picture."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * channels, 4 + 8, 1),
        nn.Flatten(2),
    )


class Letters(nn.Module):
    """Reads the letters of a line: convolutions, then what is to the left and right of each."""

    def __init__(self, channels: int = 32, width: int = 96) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.enter = nn.Linear(16 * channels, width)
        self.around = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 40)

    def forward(self, line: Tensor) -> Tensor:
        maps = self.layers(line).flatten(1, 2).transpose(1, 2)
        return self.head(self.around(self.enter(maps))[0]).float().log_softmax(-1)


class Implicit(nn.Module):
    """A picture as a network: the colour of each place, by waves of waves."""

    def __init__(self, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, place: Tensor) -> Tensor:
        x = torch.sin(30 * self.enter(place))
        for layer in self.layers:
            x = torch.sin(layer(x))
        return self.head(x)


class Compressor(nn.Module):
    """A variational autoencoder of vectors."""

    def __init__(self, inputs: int = 784, width: int = 512, code: int = 32) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, 2 * code))
        self.leave = nn.Sequential(nn.Linear(code, width), nn.GELU(), nn.Linear(width, inputs))

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = self.enter(x).chunk(2, 1)
        made = self.leave(mean + torch.randn_like(mean) * (spread / 2).exp())
        apart = (mean.square() + spread.exp() - spread - 1).mean(1)
        return (made - x).square().mean(1) + apart / 100


class Tasks(nn.Module):
    """One trunk, and a head for each of many tasks."""

    def __init__(self, width: int = 512, tasks: int = 12) -> None:
        super().__init__()
        self.enter = nn.Linear(64, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(4)
        )
        self.heads = nn.ModuleList(nn.Linear(width, 4) for _ in range(tasks))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = x + block(x)
        return torch.stack([head(x) for head in self.heads], 2)


# Data


class Clips(Dataset[Item]):
    """Clips of eight frames, each a JPEG picture that is decoded, or was so before."""

    def __init__(self, count: int, prepared: bool) -> None:
        noise = np.random.default_rng(0).integers(0, 255, (36, 48, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(noise).resize((384, 288), Image.Resampling.BICUBIC).save(file, "JPEG")
        self.raw, self.count = file.getvalue(), count
        self.ready = self.decoded() if prepared else None

    def decoded(self) -> Tensor:
        """Return a clip as a model takes it."""
        frames = [Image.open(io.BytesIO(self.raw)).resize((32, 32)) for _ in range(8)]
        seen = np.stack([np.asarray(frame) for frame in frames])
        return torch.from_numpy(seen).permute(3, 0, 1, 2).float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        clip = self.decoded() if self.ready is None else self.ready.clone()
        return clip, torch.tensor(index % 16)


def boxed(count: int = 512, side: int = 64, boxes: int = 6) -> TensorDataset:
    """Return pictures with boxes: left, top, right and bottom, between 0 and 1."""
    corner, size = 0.6 * torch.rand(count, boxes, 2), 0.1 + 0.3 * torch.rand(count, boxes, 2)
    places = torch.cat([corner, corner + size], 2)
    return TensorDataset(torch.randn(count, 3, side, side), places)


def lines(count: int = 1024, length: int = 96) -> TensorDataset:
    """Return pictures of lines with their letters."""
    return TensorDataset(torch.rand(count, 1, 32, length), torch.randint(1, 40, (count, 8)))


def read(letters: Tensor, text: Tensor) -> Tensor:
    """Return the loss of all ways to read a line."""
    lengths = torch.full((len(text),), text.shape[1])
    return nn.functional.ctc_loss(
        letters.transpose(0, 1), text, torch.full_like(lengths, letters.shape[1]), lengths
    )


def digits(count: int = 8192) -> TensorDataset:
    """Return vectors."""
    return TensorDataset(torch.rand(count, 784), torch.zeros(count))


def mean_of(losses: Tensor, _kind: Tensor) -> Tensor:
    """Return the mean of what the model says is the loss."""
    return losses.mean()


def many_labels(count: int = 16384, tasks: int = 12) -> TensorDataset:
    """Return rows with a label for each task."""
    return TensorDataset(torch.randn(count, 64), torch.randint(4, (count, tasks)))


# The third block


def frames_decoded(fault: bool) -> Training:
    return Training(clips_classifier(), Clips(2048, prepared=not fault), batch=4)


def boxes_in_turn(fault: bool) -> Training:
    """The overlap of each box with each cell's, one by one or all at once."""

    def loss(found: Tensor, boxes: Tensor) -> Tensor:
        said = found[:, :4].sigmoid().transpose(1, 2)
        corners = torch.cat([said[..., :2] - said[..., 2:] / 2, said[..., :2] + said[..., 2:]], 2)
        if not fault:
            best = overlap(corners[:, :, None], boxes[:, None]).amax(1)
            return 1 - best.mean()
        best_of_each = [
            overlap(mine, box).amax()
            for mine, theirs in zip(corners, boxes, strict=True)
            for box in theirs
        ]
        return 1 - torch.stack(best_of_each).mean()

    return Training(boxes_by_cell(12), boxed(side=48, boxes=8), batch=16, loss=loss)


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Return the shared area of boxes, of that of both."""
    begin = torch.maximum(one[..., :2], other[..., :2])
    shared = (torch.minimum(one[..., 2:], other[..., 2:]) - begin).relu().prod(-1)
    areas = (one[..., 2:] - one[..., :2]).prod(-1) + (other[..., 2:] - other[..., :2]).prod(-1)
    return shared / (areas - shared + 1e-6)


def clicked(model: nn.Module, optimizer: torch.optim.Optimizer, rows: int, batch: int) -> Script:
    """Learn what is clicked, a batch of rows at a time."""

    def run(seconds: float) -> float:
        clock, data = Clock(seconds), offers(rows=rows, tables=len(model.tables))
        orders = DataLoader(range(len(data)), batch, True, drop_last=True)
        for order in itertools.chain.from_iterable(itertools.repeat(orders)):
            kinds, numbers, yes = data[order]
            optimizer.zero_grad()
            said = model(kinds, numbers)
            nn.functional.binary_cross_entropy_with_logits(said, yes).backward()
            optimizer.step()
            if clock.over(len(yes)):
                break
        return clock.rate

    return Script(run)


def dense_tables(fault: bool) -> Script:
    """Each step moves all rows of the tables, or those that it met."""
    rows = 300_000
    model = Clicks(rows, tables=2, sparse=not fault)
    if fault:
        return clicked(model, torch.optim.Adam(model.parameters()), rows, 256)
    both = [torch.optim.SparseAdam(model.tables.parameters())]
    both.append(torch.optim.Adam(model.layers.parameters()))

    class Both(torch.optim.Optimizer):
        """Steps of two optimizers as one."""

        def __init__(self) -> None:
            super().__init__(model.parameters(), {})

        def step(self, closure: Any = None) -> None:
            for each in both:
                each.step(closure)

    return clicked(model, Both(), rows, 256)


def fresh_mappings(_fault: bool) -> Training:
    """What the allocator is told is put in by the generator."""
    places = TensorDataset(torch.rand(64, 4096, 2), torch.rand(64, 4096, 3))
    return Training(Implicit(), places, 2, loss=nn.functional.mse_loss)


def tensor_by_tensor(fault: bool) -> Training:
    """Each gradient is added up over both ranks by a call of its own."""
    torch.set_num_threads(1)  # a core for each rank

    def before_update(trained: nn.Module) -> None:
        for parameter in trained.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2

    training = Training(Compressor(), digits(), 16, loss=mean_of)
    if fault:
        training.before_update = before_update
    return training


def histograms_each_step(fault: bool) -> Training:
    model, kept = Tasks(256), _folder() / "histograms.jsonl"

    def loss(said: Tensor, kinds: Tensor) -> Tensor:
        return nn.functional.cross_entropy(said, kinds)

    def after(step: int, _loss: Tensor) -> None:
        if not fault and step % 100:
            return
        with kept.open("a") as file:
            for name, each in model.named_parameters():
                for values in (each.detach(), each.grad):
                    counts, edges = np.histogram(values.numpy(), 64)
                    file.write(f"{step} {name} {counts.tolist()} {edges.tolist()}\n")

    return Training(model, many_labels(), 128, loss=loss, after=after)


def half_letters(fault: bool) -> Training:
    """Lines are read in half precision on a processor, or in float32."""
    dtype = torch.float16 if fault else torch.float32
    return Training(Letters(8, 64).to(dtype), lines(), 4, loss=read, prepare=lambda x: x.to(dtype))


def pinned_clicks(_fault: bool) -> Script:
    """The single core is put in by the generator."""
    model = Clicks(sparse=True)
    return clicked(model, torch.optim.SGD(model.parameters(), 0.1), 10_000, 512)


def steady_letters(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Letters(width=192), lines(), 16, loss=read, again=not fault)


def steady_averages(fault: bool) -> Training:
    """Nothing is wrong: the weights are averaged, and without the loader it is no faster."""
    model = Compressor(width=1536)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    return Training(
        model,
        digits(),
        512,
        loss=mean_of,
        after=lambda _step, _loss: average.update_parameters(model),
        again=not fault,
        optimizer=torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9),
    )


THIRD: dict[str, Callable[[bool], Training | Script]] = {
    "run-frames-decoded": frames_decoded,
    "run-boxes-in-turn": boxes_in_turn,
    "run-dense-tables": dense_tables,
    "run-fresh-mappings": fresh_mappings,
    "run-tensor-by-tensor": tensor_by_tensor,
    "run-histograms-each-step": histograms_each_step,
    "run-half-letters": half_letters,
    "run-pinned-clicks": pinned_clicks,
    "run-steady-letters": steady_letters,
    "run-steady-averages": steady_averages,
}


if __name__ == "__main__":
    programs4.main(THIRD)
