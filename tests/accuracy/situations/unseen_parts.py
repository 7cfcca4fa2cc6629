"""Models, data and the clock of the programs in ``unseen.py``."""

import io
import itertools
import json
import os
import re
import time
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from PIL import Image, ImageDraw
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

Item = tuple[Tensor, Tensor]
WARM_UP = 6
"""Steps before a program's own clock starts."""


class Clock:
    """Counts samples after the warm-up, and says when the time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.steps, self.done = seconds, 0, 0
        self.started = time.perf_counter()

    def over(self, samples: int) -> bool:
        """Return whether the training ends, after a step over so many samples."""
        self.steps, self.done = self.steps + 1, self.done + samples
        if self.steps == WARM_UP:
            self.done, self.started = 0, time.perf_counter()
        mine = self.steps > WARM_UP and time.perf_counter() - self.started > self.seconds
        if not dist.is_initialized():
            return mine
        first = torch.tensor(float(mine))
        dist.broadcast(first, 0)  # the ranks stop together
        return bool(first)

    def epochs(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches again and again until the time is over."""
        while True:
            for batch in batches:
                yield batch
                if self.over(len(batch[0])):
                    return

    def report(self) -> None:
        """Print the samples a second."""
        rate = self.done / (time.perf_counter() - self.started)
        print(json.dumps({"samples_a_second": rate}), flush=True)


def mlp(inputs: int, width: int, depth: int, classes: int = 16) -> nn.Sequential:
    sizes = [inputs, *[width] * depth]
    hidden: list[nn.Module] = []
    for into, out in itertools.pairwise(sizes):
        hidden += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(width, classes))


def convnet(channels: int, inputs: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 16),
    )


def table(count: int, size: int) -> TensorDataset:
    return TensorDataset(torch.randn(count, size), torch.randint(16, (count,)))


def drawing(number: int, side: int) -> Image.Image:
    """Return a picture with some shapes in it."""
    picture = Image.new("RGB", (side, side), (number * 37 % 255, 90, 160))
    pen, random = ImageDraw.Draw(picture), np.random.default_rng(number)
    for left, top in random.integers(0, side - 20, (30, 2)).tolist():
        pen.ellipse((left, top, left + side // 5, top + side // 7), fill=(left % 255, top % 255, 9))
    return picture


class Reviews(Dataset[Item]):
    """Long texts, split into words and numbered when they are asked for, or once."""

    def __init__(self, count: int, once: bool) -> None:
        random = np.random.default_rng(0)
        words = ["".join(map(chr, random.integers(97, 123, 7))) for _ in range(8000)]
        self.texts = [" ".join(random.choice(words, 3000)) + "!" for _ in range(count)]
        self.numbers = {word: number for number, word in enumerate(words, 1)}
        self.ready = [self.tokens(text) for text in self.texts] if once else None

    def tokens(self, text: str) -> Tensor:
        words = re.findall(r"[a-z]+|[^\w\s]", text.lower())
        stems = [re.sub(r"(ing|ed|s)$", "", word) or word for word in words]
        return torch.tensor([self.numbers.get(stem, 0) for stem in stems][:256])

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Item:
        tokens = self.ready[index] if self.ready else self.tokens(self.texts[index])
        return tokens, torch.tensor(index % 16)


class Archives(Dataset[Item]):
    """Pictures in compressed archives of numpy, opened for each picture or once."""

    def __init__(self, folder: Path, once: bool) -> None:
        self.paths = [folder / f"shard{number}.npz" for number in range(4)]
        for number, path in enumerate(self.paths):
            images = np.stack([np.asarray(drawing(number * 128 + k, 64)) for k in range(128)])
            np.savez_compressed(path, images=images, labels=np.arange(128) % 16)
        self.ready = [dict(np.load(path)) for path in self.paths] if once else None

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> Item:
        shard, row = divmod(index, 128)
        data = self.ready[shard] if self.ready else np.load(self.paths[shard])
        image = torch.from_numpy(data["images"][row]).permute(2, 0, 1).float() / 255
        return image, torch.tensor(data["labels"][row])


class Store(BaseHTTPRequestHandler):
    """Answers with a picture after the delay of a distant store."""

    DELAY = 0.025

    def do_GET(self) -> None:
        time.sleep(self.DELAY)
        file = io.BytesIO()
        np.save(file, np.asarray(drawing(int(self.path[1:]), 64)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(file.getvalue())

    def log_message(self, *_: Any) -> None:
        pass


def serve(port: Any, parent: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.timeout = 1.0
    port.put(server.server_port)
    while os.getppid() == parent:  # not longer than the training
        server.handle_request()


class Remote(Dataset[Item]):
    """Pictures of a store, fetched when they are asked for, or all before."""

    def __init__(self, count: int, before: bool) -> None:
        context = mp.get_context("spawn")
        port = context.Queue()
        context.Process(target=serve, args=(port, os.getpid()), daemon=True).start()
        self.count, self.url = count, f"http://127.0.0.1:{port.get()}"
        with ThreadPoolExecutor(16) as pool:
            self.ready = list(pool.map(self.fetched, range(count))) if before else None

    def fetched(self, index: int) -> Tensor:
        with urllib.request.urlopen(f"{self.url}/{index}") as answer:
            picture = np.load(io.BytesIO(answer.read()))
        return torch.from_numpy(picture).permute(2, 0, 1).float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        image = self.ready[index] if self.ready else self.fetched(index)
        return image, torch.tensor(index % 16)


class Sentences(Dataset[Item]):
    """Sentences of these lengths."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Item:
        return torch.randint(1, 4000, (self.lengths[index],)), torch.tensor(index % 16)


class Encoder(nn.Module):
    """A small transformer that classifies."""

    def __init__(self, width: int = 128, depth: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(4000, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 16)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.layers(self.tokens(tokens), src_key_padding_mask=tokens == 0)
        return self.head(hidden[:, 0])


def padded(items: list[Item], length: int | None) -> Item:
    """Return the sentences as one batch, as long as asked for or as the longest."""
    longest = length or max(len(tokens) for tokens, _ in items)
    rows = [F.pad(tokens, (0, longest - len(tokens))) for tokens, _ in items]
    return torch.stack(rows), torch.stack([label for _, label in items])


class OneHot(nn.Module):
    """An embedding that multiplies one-hot rows, or looks up."""

    def __init__(self, multiplied: bool, words: int = 6000) -> None:
        super().__init__()
        self.multiplied, self.words = multiplied, words
        self.weight = nn.Parameter(torch.randn(words, 96) / 10)
        self.recurrent, self.head = nn.GRU(96, 96, batch_first=True), nn.Linear(96, 16)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.multiplied:
            hidden = F.one_hot(tokens, self.words).float() @ self.weight
        else:
            hidden = F.embedding(tokens, self.weight)
        return self.head(self.recurrent(hidden)[0][:, -1])


class Checkpointed(nn.Module):
    """Blocks that compute their activations again, alone and once more as a whole."""

    def __init__(self, fault: bool) -> None:
        super().__init__()
        self.fault = fault
        self.blocks = nn.ModuleList(mlp(768, 768, 2, classes=768) for _ in range(4))
        self.head = nn.Linear(768, 16)

    def body(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.fault else block(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        x = checkpoint(self.body, x, use_reentrant=False) if self.fault else self.body(x)
        return self.head(x)


class Decoded(Dataset[Item]):
    """JPEG files, decoded when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / f"{number}.jpg" for number in range(256)]
        for number, path in enumerate(self.paths):
            drawing(number, 64).save(path)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        with Image.open(self.paths[index]) as picture:
            image = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
        return image, torch.tensor(index % 16)
