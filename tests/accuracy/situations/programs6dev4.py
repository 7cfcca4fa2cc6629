"""The last part of the development runs of the sixth round, made as the first.

python programs6dev4.py run-few-points --fault --seconds 3 --record run.record.json

"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import programs4
import torch
from programs import Item, Training, _endlessly, _folder
from programs4 import Clock, Script
from programs6dev import Restorer, sharpened
from programs6dev3 import Tasks, many_labels
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, TensorDataset

# Models


class Solver(nn.Module):
    """Points that a learnt field moves, by the method of Runge and Kutta."""

    def __init__(self, width: int = 64, steps: int = 8) -> None:
        super().__init__()
        self.steps = steps
        self.field = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 3))

    def forward(self, place: Tensor) -> Tensor:
        size = 1 / self.steps
        for _ in range(self.steps):
            first = self.field(place)
            second = self.field(place + size / 2 * first)
            third = self.field(place + size / 2 * second)
            fourth = self.field(place + size * third)
            place = place + size / 6 * (first + 2 * second + 2 * third + fourth)
        return place


class Denoiser(nn.Module):
    """Convolutions over sound that keep the voice."""

    def __init__(self, channels: int = 48, depth: int = 5) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 16, stride=8, padding=4)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 3, padding=2**each, dilation=2**each)
            for each in range(depth)
        )
        self.leave = nn.ConvTranspose1d(channels, 1, 16, stride=8, padding=4)

    def forward(self, sound: Tensor) -> Tensor:
        x = self.enter(sound)
        for layer in self.layers:
            x = x + nn.functional.glu(layer(x), 1)
        return self.leave(x)


class Mixture(nn.Module):
    """How likely a value is, as a mixture of Gaussians that depends on what is known."""

    def __init__(self, inputs: int = 32, width: int = 768, parts: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.head = nn.Linear(width, 3 * parts)

    def forward(self, known: Tensor, value: Tensor) -> Tensor:
        weight, mean, spread = self.head(self.layers(known)).chunk(3, 1)
        near = -((value[:, None] - mean) * (-spread).exp()).square() / 2 - spread
        return -(weight.log_softmax(1) + near).logsumexp(1).mean()


# Data


class Groups(Dataset[Item]):
    """Noisy sounds with what was said, a row of a table's file that the memory does not keep."""

    SIZE, LENGTH = 512 << 10, 1024

    def __init__(self, folder: Path, count: int) -> None:
        path, self.count = folder / "sounds.bin", count
        noise = np.random.default_rng(0).standard_normal(self.SIZE // 4).astype(np.float32)
        with path.open("wb") as file:
            for _ in range(count):
                file.write(noise.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.file = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)  # the file outgrows the memory
        raw = os.pread(self.file, self.SIZE, index * self.SIZE)
        sound = torch.frombuffer(bytearray(raw), dtype=torch.float32)[: 2 * self.LENGTH]
        return sound[None, : self.LENGTH], sound[None, self.LENGTH :]


def moved(count: int = 16384) -> TensorDataset:
    """Return points, and where they go."""
    place = torch.randn(count, 3)
    return TensorDataset(place, place.roll(1, 1).sin())


# The fourth block


def few_points(fault: bool) -> Training:
    size = 4 if fault else 512
    return Training(Solver(), moved(), batch=size, loss=nn.functional.mse_loss)


def field_anomalies(fault: bool) -> Training:
    watch = torch.autograd.set_detect_anomaly(fault)
    return Training(Solver(), moved(), batch=64, loss=nn.functional.mse_loss, around=watch)


def throttled_groups(_fault: bool) -> Training:
    """The limit on the drive is set by the generator."""
    return Training(
        Denoiser(), Groups(_folder(), 256), batch=4, workers=1, loss=nn.functional.l1_loss
    )


def averages_saved(fault: bool) -> Training:
    model, path = Restorer(48, 6), _folder() / "average.pt"
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    optimizer = torch.optim.Adam(model.parameters())

    def after(step: int, _loss: Tensor) -> None:
        average.update_parameters(model)
        if fault or step % 500 == 499:
            torch.save({"average": average.state_dict(), "optimizer": optimizer.state_dict()}, path)

    data = sharpened(side=12)
    return Training(model, data, 2, loss=nn.functional.l1_loss, after=after, optimizer=optimizer)


def crowded_denoiser(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(12)
    sounds = TensorDataset(torch.randn(1024, 1, 4096), torch.randn(1024, 1, 4096))
    return Training(Denoiser(), sounds, 8, loss=nn.functional.l1_loss)


def usual_habits(fault: bool) -> Script:
    """Nothing is wrong: the loss is read, gradients are clipped, and now and then it evaluates."""

    def run(seconds: float) -> float:
        model, clock, kept = Tasks(768), Clock(seconds), _folder()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
        held, smooth = many_labels(512).tensors, 0.0
        loader = DataLoader(many_labels(), 256, True, drop_last=True)
        for step, (x, y) in enumerate(_endlessly(loader, not fault), 1):
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            smooth = 0.9 * smooth + 0.1 * loss.item()
            if fault and step % 50 == 0:
                with torch.no_grad():
                    right = (model(held[0]).argmax(1) == held[1]).float().mean()
                (kept / "log.txt").open("a").write(f"{step} {smooth:.4f} {float(right):.3f}\n")
            if clock.over(len(x)):
                break
        return clock.rate

    return Script(run)


def whole_steps(fault: bool) -> Script:
    """Nothing is wrong: each step of the method is many evaluations of a large batch."""

    def run(seconds: float) -> float:
        model, clock = Mixture(width=512), Clock(seconds)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
        data = TensorDataset(torch.randn(8192, 32), torch.randn(8192))
        for known, value in _endlessly(DataLoader(data, 256, True), not fault):

            def evaluated(known: Tensor = known, value: Tensor = value) -> Tensor:
                optimizer.zero_grad()
                loss = model(known, value)
                loss.backward()
                return loss

            optimizer.step(evaluated)
            if clock.over(len(known)):
                break
        return clock.rate

    return Script(run)


LAST: dict[str, Callable[[bool], Training | Script]] = {
    "run-few-points": few_points,
    "run-field-anomalies": field_anomalies,
    "run-throttled-groups": throttled_groups,
    "run-averages-saved": averages_saved,
    "run-crowded-denoiser": crowded_denoiser,
    "run-usual-habits": usual_habits,
    "run-whole-steps": whole_steps,
}


if __name__ == "__main__":
    programs4.main(LAST)
