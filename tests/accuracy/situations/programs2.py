"""The trainings of the second batch: other models and data than ``programs.py`` has.

    python programs2.py run-short-clips --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``.
"""

import io
import os
import re
import socket
import socketserver
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import programs
import torch
from programs import CORES, Item, Training
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

# Models


class Language(nn.Module):
    """A causal transformer over tokens."""

    def __init__(self, width: int = 128, depth: int = 3, vocabulary: int = 512) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(
            tokens.shape[1], dtype=self.head.weight.dtype
        )
        return self.head(self.blocks(self.table(tokens), mask=mask, is_causal=True))


def next_token(scores: Tensor, tokens: Tensor) -> Tensor:
    """Return the cross-entropy of each next token."""
    return nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def sentences(count: int = 2048, length: int = 64, vocabulary: int = 512) -> TensorDataset:
    """Return random tokens, which are their own labels."""
    tokens = torch.randint(vocabulary, (count, length))
    return TensorDataset(tokens, tokens)


class Sentiment(nn.Module):
    """A gated recurrent classifier of token sequences."""

    def __init__(self, width: int = 64, vocabulary: int = 4096) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.reader, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, 16)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.reader(self.table(tokens))[0][:, -1])


def listening(channels: int = 32) -> nn.Module:
    """Return a classifier of sound: convolutions over time."""
    blocks: list[nn.Module] = []
    for inside, outside in ((1, channels), (channels, channels), (channels, 2 * channels)):
        blocks += [nn.Conv1d(inside, outside, 9, padding=4), nn.BatchNorm1d(outside), nn.ReLU()]
        blocks += [nn.MaxPool1d(4)]
    head = [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(2 * channels, 16)]
    return nn.Sequential(*blocks, *head)


def clips(count: int = 512, length: int = 4000) -> TensorDataset:
    """Return random sound with labels, in memory."""
    return TensorDataset(torch.randn(count, 1, length), torch.randint(16, (count,)))


class Recommender(nn.Module):
    """A large table of items below a small network."""

    def __init__(self, items: int = 60_000, width: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.score = nn.Sequential(nn.Linear(8 * width, 128), nn.ReLU(), nn.Linear(128, 16))

    def forward(self, basket: Tensor) -> Tensor:
        return self.score(self.table(basket).flatten(1))


# Data


class Reviews(Dataset[Item]):
    """Texts that are split into tokens each time, or were so before."""

    LENGTH = 48
    WORDS = re.compile(r"\w+|[^\w\s]")

    def __init__(self, count: int, prepared: bool) -> None:
        generator = torch.Generator().manual_seed(0)
        letters = torch.randint(97, 123, (160, 6), generator=generator, dtype=torch.uint8)
        self.text = ", ".join(bytes(word.tolist()).decode() for word in letters)
        self.count = count
        self.ready = self.tokens(0) if prepared else None

    def tokens(self, index: int) -> Tensor:
        """Return the ids of the text's byte pairs, merged as a byte-pair encoder does."""
        ids: list[int] = []
        for word in self.WORDS.findall(self.text[index % 7 :]):
            pieces = list(word)
            while len(pieces) > 1:
                best = min(range(len(pieces) - 1), key=lambda at: hash(pieces[at]) % 97)
                pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]
                ids.append(sum(map(ord, pieces[best])) % 4096)
        return torch.tensor(ids[: self.LENGTH])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        tokens = self.tokens(index) if self.ready is None else self.ready.clone()
        return tokens, torch.tensor(index % 16)


class Remote(Dataset[Item]):
    """Sound that a server sends when it is asked, each item by itself."""

    LENGTH = 2000

    def __init__(self, count: int, delay: float) -> None:
        self.count = count
        command = [sys.executable, __file__, "serve", str(delay)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout
        self.port = int(server.stdout.readline())
        self.asked: dict[int, socket.socket] = {}  # a connection for each process

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        mine = os.getpid()
        if mine not in self.asked:
            self.asked[mine] = socket.create_connection(("127.0.0.1", self.port))
        self.asked[mine].sendall(b"?")
        raw = bytearray()
        while len(raw) < 4 * self.LENGTH:
            raw += self.asked[mine].recv(1 << 16)
        return torch.frombuffer(raw, dtype=torch.float32).view(1, -1), torch.tensor(index % 16)


def serve(delay: float) -> None:
    """Answer each byte with one item, after a while; ends with the program that started it."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            item = bytes(4 * Remote.LENGTH)
            while self.request.recv(1):
                time.sleep(delay)
                self.request.sendall(item)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def service_actions(self) -> None:
            if os.getppid() != parent:
                os._exit(0)

    parent = os.getppid()
    with Server(("127.0.0.1", 0), Answer) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


# The situations


def tokenise_in_loop(fault: bool) -> Training:
    return Training(Sentiment(), Reviews(4096, prepared=not fault), batch=16)


def remote_shards(fault: bool) -> Training:
    return Training(listening(8), Remote(4096, 0.006 if fault else 0.0), batch=16, workers=2)


def short_clips(fault: bool) -> Training:
    return Training(listening(8), clips(16384, 256), batch=2 if fault else 128)


def double_transformer(fault: bool) -> Training:
    model = Language().to(torch.float64 if fault else torch.float32)
    return Training(model, sentences(), batch=16, loss=next_token)


def activations_on_disk(fault: bool) -> Training:
    folder = programs._folder()
    numbers = iter(range(1 << 60))

    def out(values: Tensor) -> Any:
        if isinstance(values, nn.Parameter) or values.numel() < 1000:
            return values
        path = folder / f"{next(numbers)}.pt"
        torch.save(values, path)
        return path

    def back(kept: Any) -> Tensor:
        if isinstance(kept, Tensor):
            return kept
        values: Tensor = torch.load(io.BytesIO(kept.read_bytes()))
        kept.unlink(missing_ok=True)
        return values

    training = Training(listening(16), clips(512, 2000), batch=16)
    if fault:
        training.around = torch.autograd.graph.saved_tensors_hooks(out, back)
    return training


def embedding_gradients(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Recommender()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    baskets = TensorDataset(torch.randint(60_000, (8192, 8)), torch.randint(16, (8192,)))
    return Training(model, baskets, batch=64)


def sound(_fault: bool) -> Training:
    """The quota is put in by the generator."""
    return Training(listening(), clips(), batch=16)


def thread_crowd(fault: bool) -> Training:
    torch.set_num_threads(24 if fault else CORES)
    return Training(Language(64), sentences(length=32), batch=8, loss=next_token)


def language(_fault: bool) -> Training:
    """Other programs are put in by the generator."""
    return Training(Language(), sentences(), batch=16, loss=next_token)


def layer_hooks(fault: bool) -> Training:
    model, seen = Language(64), list[list[float]]()

    def look(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        values = output.detach().float()
        found = torch.histc(values, 32).tolist()
        seen.append([*found, values.mean().item(), values.std().item(), values.abs().max().item()])
        if len(seen) > 1000:
            seen.clear()

    if fault:
        for module in model.modules():
            if isinstance(module, nn.Linear | nn.LayerNorm | nn.Embedding | nn.Dropout):
                module.register_forward_hook(look)
    return Training(model, sentences(length=32), batch=16, loss=next_token)


def steady_language(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Language(192), sentences(), batch=32, loss=next_token, again=not fault)


def steady_audio(fault: bool) -> Training:
    """Nothing is wrong: the worker is always ahead."""
    return Training(listening(64), clips(), batch=32, workers=1, again=not fault)


SECOND: dict[str, Callable[[bool], Training]] = {
    "run-tokenise-in-loop": tokenise_in_loop,
    "run-remote-shards": remote_shards,
    "run-short-clips": short_clips,
    "run-double-transformer": double_transformer,
    "run-activations-on-disk": activations_on_disk,
    "run-embedding-gradients": embedding_gradients,
    "run-narrow-quota": sound,
    "run-thread-crowd": thread_crowd,
    "run-neighbour-jobs": language,
    "run-layer-hooks": layer_hooks,
    "run-steady-language": steady_language,
    "run-steady-audio": steady_audio,
    "run-glimpsed": language,
}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(float(sys.argv[2]))
    else:
        programs.SITUATIONS.update(SECOND)
        programs.main()
