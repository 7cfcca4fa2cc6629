"""Data of ``programs8dev.py``, and what its runs do beside their steps."""

import json
import os
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

# Data


def jets(count: int = 8192, particles: int = 48) -> TensorDataset:
    return TensorDataset(torch.randn(count, particles, 4), torch.randint(5, (count,)))


class Listed(Dataset[tuple[list[list[float]], int]]):
    """Jets as lists of numbers, as a file of JSON gives them."""

    def __init__(self, count: int = 2048) -> None:
        rows = torch.randn(count, 40, 4).tolist()
        self.jets = [row[: 10 + number % 31] for number, row in enumerate(rows)]

    def __len__(self) -> int:
        return len(self.jets)

    def __getitem__(self, index: int) -> tuple[list[list[float]], int]:
        return self.jets[index], index % 5


def by_hand(rows: list[tuple[list[list[float]], int]]) -> Item:
    """Put a batch together number by number."""
    most = max(len(jet) for jet, _ in rows)
    whole = torch.zeros(len(rows), most, 4)
    for row, (jet, _) in enumerate(rows):
        for place, particle in enumerate(jet):
            for axis, value in enumerate(particle):
                whole[row, place, axis] = value
    return whole, torch.tensor([kind for _, kind in rows])


def at_once(rows: list[tuple[list[list[float]], int]]) -> Item:
    """Put a batch together jet by jet, of arrays."""
    parts = [torch.from_numpy(np.array(jet, np.float32)) for jet, _ in rows]
    whole = nn.utils.rnn.pad_sequence(parts, batch_first=True)
    return whole, torch.tensor([kind for _, kind in rows])


class Scanned(Dataset[Item]):
    """A file for each recording; the folder is looked through for each of them, or once."""

    def __init__(self, folder: Path, count: int, *, each_time: bool) -> None:
        self.folder, self.each_time = folder, each_time
        for number in range(count):
            np.save(folder / f"{number:05d}.npy", np.random.randn(12, 250).astype(np.float32))
        self.names = self.listed()

    def listed(self) -> list[Path]:
        return sorted(each for each in self.folder.iterdir() if each.suffix == ".npy")

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Item:
        names = self.listed() if self.each_time else self.names
        return torch.from_numpy(np.load(names[index])), torch.tensor(index % 7)


class Faraway(Dataset[Item]):
    """Recordings that lie far away for one of the ranks."""

    def __init__(self, wait: float, count: int = 2048) -> None:
        self.leads, self.wait = torch.randn(count, 12, 500), wait

    def __len__(self) -> int:
        return len(self.leads)

    def __getitem__(self, index: int) -> Item:
        if dist.is_initialized() and dist.get_rank() > 0:
            time.sleep(self.wait)
        return self.leads[index], torch.tensor(index % 7)


class Filtered(Dataset[Item]):
    """Recordings whose slow drift and hum are taken away when they are asked for."""

    def __init__(self, count: int = 2048, times: int = 6) -> None:
        self.leads = np.random.randn(count, 12, 500).astype(np.float32)
        self.times = times

    def __len__(self) -> int:
        return len(self.leads)

    def __getitem__(self, index: int) -> Item:
        found = self.leads[index]
        for _ in range(self.times):
            waves = np.fft.rfft(found, axis=1)
            waves[:, :3] = 0
            found = np.fft.irfft(waves, 500, axis=1).astype(np.float32)
        return torch.from_numpy(found), torch.tensor(index % 7)


def beats(count: int = 2048, length: int = 500) -> TensorDataset:
    return TensorDataset(torch.randn(count, 12, length), torch.randint(7, (count,)))


def signatures(count: int = 2048) -> TensorDataset:
    return TensorDataset(torch.randn(count, 2, 32, 48), torch.zeros(count, dtype=torch.long))


def plates(count: int = 512, side: int = 48) -> TensorDataset:
    field = torch.randn(count, 1, side, side)
    return TensorDataset(field, field.roll(1, 2))


def paths(count: int = 1024, length: int = 64) -> TensorDataset:
    return TensorDataset(torch.randn(count, length, 18), torch.randn(count, length, 6))


def queries(*, sorted_by_length: bool, batch: int = 16, count: int = 512) -> DataLoader[Item]:
    """Return a loader of queries, each batch as long as its longest."""
    draw = np.random.default_rng(0)
    lengths = np.clip(draw.lognormal(3, 1, count), 4, 300).astype(int)
    words = [torch.randint(1, 1000, (length,)) for length in lengths]
    order = np.argsort(lengths) if sorted_by_length else draw.permutation(count)
    batches = [list(map(int, part)) for part in np.split(order, count // batch)]
    draw.shuffle(batches)

    def padded(rows: list[tuple[Tensor, int]]) -> Item:
        texts = nn.utils.rnn.pad_sequence([text for text, _ in rows], batch_first=True)
        return texts, torch.tensor([time for _, time in rows])

    rows = [(text, len(text) % 4) for text in words]
    return DataLoader(rows, batch_sampler=batches, collate_fn=padded)


# What is beside a step


class Server:
    """A server of metrics on this computer that takes its time to answer."""

    def __init__(self, wait: float) -> None:
        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(wait)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{server.server_address[1]}/"

    def told(self, **values: float) -> None:
        """Send one line of the log."""
        asked = urllib.request.Request(self.address, json.dumps(values).encode())
        urllib.request.urlopen(asked).close()


def synced(path: Path, line: str) -> None:
    """Add a line to a log that no crash may lose."""
    with path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def spinning(pending: list[Path]) -> None:
    """Start a thread that moves away what is saved, and asks for it without a pause."""

    def run() -> None:
        while True:
            if pending:
                pending.pop().unlink()

    threading.Thread(target=run, daemon=True).start()


def clipped_by_unit(model: nn.Module, *, in_turn: bool) -> None:
    """Hold the gradient of each unit below a share of its weights."""
    for each in model.parameters():
        weights = each.detach().view(len(each), -1)
        slopes = each.grad.view_as(weights)
        if in_turn:
            clip_in_turn(weights, slopes)
            continue
        most = 0.01 * weights.norm(dim=1, keepdim=True).clamp(min=1e-3)
        slopes.mul_((most / slopes.norm(dim=1, keepdim=True).clamp(min=1e-6)).clamp(max=1))


def clip_in_turn(weights: Tensor, slopes: Tensor) -> None:
    """Read how long each unit's gradient is, and shorten it where that is too much."""
    for unit, slope in zip(weights, slopes, strict=True):
        most = 0.01 * max(unit.norm().item(), 1e-3)
        size = slope.norm().item()
        if size > most:
            slope.mul_(most / size)
