"""The development runs of the sixth round: models, data and faults that no batch before has.

    python programs6dev.py run-chunks-inflated --fault --seconds 3 --record run.record.json

The clocks are those of ``programs.py`` and ``programs4.py``; further parts are in
``programs6dev2.py`` to ``programs6dev4.py``.
"""

import gc
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import programs
import programs4
import torch
import torch.distributed as dist
from programs import Item, Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

# Models


def painter(channels: int = 64, noise: int = 64) -> nn.Module:
    """Return a network that makes pictures of noise."""
    return nn.Sequential(
        nn.ConvTranspose2d(noise, 2 * channels, 4),
        nn.BatchNorm2d(2 * channels),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.ConvTranspose2d(channels, channels // 2, 4, stride=2, padding=1),
        nn.BatchNorm2d(channels // 2),
        nn.ReLU(),
        nn.ConvTranspose2d(channels // 2, 3, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def critic(channels: int = 64) -> nn.Module:
    """Return a network that tells made pictures from others."""
    return nn.Sequential(
        nn.Conv2d(3, channels // 2, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(channels // 2, channels, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(channels, 2 * channels, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(32 * channels, 1),
    )


class Tree(nn.Module):
    """Sentences as trees: what two parts mean together, part by part or a level at a time."""

    def __init__(self, by_node: bool, width: int = 64, words: int = 2000) -> None:
        super().__init__()
        self.by_node = by_node
        self.words = nn.Embedding(words, width)
        self.joined, self.gate = nn.Linear(2 * width, width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, 16)

    def join(self, parts: Tensor) -> Tensor:
        """Return what a left and a right part mean together."""
        left, right = parts.chunk(2, -1)
        gate = torch.sigmoid(self.gate(parts))
        return torch.tanh(self.joined(parts)) + gate * left + (1 - gate) * right

    def node(self, leaves: Tensor) -> Tensor:
        """Return what the words below a node mean."""
        if len(leaves) == 1:
            return self.words(leaves[0])
        half = len(leaves) // 2
        return self.join(torch.cat([self.node(leaves[:half]), self.node(leaves[half:])]))

    def forward(self, sentence: Tensor) -> Tensor:
        if self.by_node:
            return self.head(torch.stack([self.node(each) for each in sentence]))
        level = self.words(sentence)
        while level.shape[1] > 1:
            level = self.join(level.unflatten(1, (-1, 2)).flatten(2))
        return self.head(level[:, 0])


class Neighbours(nn.Module):
    """Vectors of words by the words around them; the words as numbers, or as columns of zeros."""

    def __init__(self, width: int = 64, words: int = 4000, one_hot: bool = False) -> None:
        super().__init__()
        self.words, self.one_hot = words, one_hot
        self.vectors = nn.Embedding(words, width)
        self.head = nn.Linear(width, words)

    def forward(self, around: Tensor) -> Tensor:
        if self.one_hot:
            columns = nn.functional.one_hot(around, self.words).float()
            return self.head((columns @ self.vectors.weight).mean(1))
        return self.head(self.vectors(around).mean(1))


class Clicks(nn.Module):
    """Whether somebody clicks, by a table for each category and some numbers."""

    def __init__(
        self, rows: int = 10_000, tables: int = 12, width: int = 16, sparse: bool = False
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width, sparse=sparse) for _ in range(tables))
        self.layers = nn.Sequential(
            nn.Linear(tables * width + 8, 1024),
            nn.ReLU(),
            nn.Linear(1024, 512),
            nn.ReLU(),
            nn.Linear(512, 1),
        )

    def forward(self, kinds: Tensor, numbers: Tensor) -> Tensor:
        found = [table(kinds[:, at]) for at, table in enumerate(self.tables)]
        return self.layers(torch.cat([*found, numbers], 1))[:, 0]


class Columns(nn.Module):
    """A classifier of rows that are compressed in chunks."""

    def __init__(self, inputs: int = 128, width: int = 512) -> None:
        super().__init__()
        self.layers = programs.layers(width, inputs=inputs)
        self.norm = nn.LayerNorm(inputs)

    def forward(self, row: Tensor) -> Tensor:
        return self.layers(self.norm(row))


class Likeness(nn.Module):
    """Convolutions whose maps, normed, say how alike two pictures are."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * channels, 2 * channels, 3, padding=1),
        )

    def forward(self, picture: Tensor) -> Tensor:
        return nn.functional.normalize(self.layers(picture), dim=1)


class Restorer(nn.Module):
    """Blocks of convolutions that sharpen a picture, then make it twice as large."""

    def __init__(self, channels: int = 32, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1),
                nn.PReLU(),
                nn.Conv2d(channels, channels, 3, padding=1),
            )
            for _ in range(depth)
        )
        self.leave = nn.Sequential(nn.Conv2d(channels, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, picture: Tensor) -> Tensor:
        x = self.enter(picture)
        for block in self.blocks:
            x = x + block(x)
        return self.leave(x)


def adapted(width: int = 256, depth: int = 4, rank: int = 8) -> nn.Module:
    """Return a Qwen 2 over 4000 words of which adapters of low rank learn."""
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=4000,
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=3 * width,
    )
    lora = LoraConfig(r=rank, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
    return get_peft_model(Qwen2ForCausalLM(config), lora)


def answering(width: int = 128, depth: int = 2) -> nn.Module:
    """Return a T5 over 2000 words."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=2000,
        d_model=width,
        d_kv=32,
        d_ff=4 * width,
        num_layers=depth,
        num_heads=4,
        decoder_start_token_id=0,
        dropout_rate=0.0,
    )
    return T5ForConditionalGeneration(config)


# Data


class Chunks(Dataset[Item]):
    """Rows of a database, 512 of them to a compressed chunk, or each by itself."""

    def __init__(self, folder: Path, count: int, chunk: int, columns: int = 128) -> None:
        self.count, self.chunk, self.columns = count, chunk, columns
        self.path = folder / "rows.sqlite"
        draw = np.random.default_rng(0)
        with sqlite3.connect(self.path) as base:
            base.execute("create table chunks (number integer primary key, rows blob)")
            for number in range(count // chunk):
                rows = draw.integers(0, 50, (chunk, columns)).astype(np.float32)
                base.execute("insert into chunks values (?, ?)", (number, _packed(rows, chunk)))
        self.base = sqlite3.connect(self.path)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        number, at = divmod(index, self.chunk)
        (raw,) = self.base.execute("select rows from chunks where number = ?", (number,)).fetchone()
        raw = zlib.decompress(raw) if self.chunk > 1 else raw
        rows = np.frombuffer(raw, np.float32).reshape(self.chunk, self.columns)
        return torch.from_numpy(rows[at].copy()), torch.tensor(index % 16)


def _packed(rows: np.ndarray, chunk: int) -> bytes:
    return zlib.compress(rows.tobytes(), 6) if chunk > 1 else rows.tobytes()


def sentences(count: int = 4096, length: int = 32, words: int = 2000) -> TensorDataset:
    """Return random words with a class for each sentence."""
    return TensorDataset(torch.randint(words, (count, length)), torch.randint(16, (count,)))


def contexts(count: int = 32768, around: int = 8, words: int = 4000) -> TensorDataset:
    """Return words and those around them."""
    return TensorDataset(torch.randint(words, (count, around)), torch.randint(words, (count,)))


def likes(count: int = 2048, side: int = 48) -> TensorDataset:
    """Return pictures of sixteen kinds."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.randint(16, (count,)))


def sharpened(count: int = 256, side: int = 32) -> TensorDataset:
    """Return small pictures with large ones."""
    small = torch.rand(count, 3, side, side)
    return TensorDataset(small, nn.functional.interpolate(small, scale_factor=2))


def offers(count: int = 65536, rows: int = 10_000, tables: int = 12) -> TensorDataset:
    """Return categories and numbers, with what was clicked."""
    return TensorDataset(
        torch.randint(rows, (count, tables)), torch.randn(count, 8), torch.rand(count).round()
    )


# The first block


def adversaries(again: bool, sample: Callable[[int, nn.Module], None] | None = None) -> Script:
    """Two networks against each other, with an optimizer each."""

    def run(seconds: float) -> float:
        layout = torch.channels_last
        made, told = painter().to(memory_format=layout), critic().to(memory_format=layout)
        makers = torch.optim.Adam(made.parameters(), 2e-4, (0.5, 0.999))
        tellers = torch.optim.Adam(told.parameters(), 2e-4, (0.5, 0.999))
        judge = nn.BCEWithLogitsLoss()
        clock, loader = Clock(seconds), DataLoader(likes(side=32), 32, True, drop_last=True)
        yes, no = torch.ones(32, 1), torch.zeros(32, 1)
        for step, (real, _) in enumerate(_endlessly(loader, again)):
            fake = made(torch.randn(32, 64, 1, 1))
            tellers.zero_grad()
            told_real = told(real.contiguous(memory_format=layout))
            (judge(told_real, yes) + judge(told(fake.detach()), no)).backward()
            tellers.step()
            makers.zero_grad()
            judge(told(fake), yes).backward()
            makers.step()
            if sample:
                sample(step, made)
            if clock.over(32):
                break
        return clock.rate

    return Script(run)


def steady_adversaries(fault: bool) -> Script:
    """Nothing is wrong: without the loader it is no faster."""
    return adversaries(again=not fault)


def chunks_inflated(fault: bool) -> Training:
    chunk = 512 if fault else 1
    return Training(Columns(), Chunks(_folder(), 8192, chunk), batch=32)


def recursive_trees(fault: bool) -> Training:
    return Training(Tree(by_node=fault), sentences(length=16), batch=8)


def one_hot_words(fault: bool) -> Training:
    return Training(Neighbours(one_hot=fault), contexts(), batch=128)


def collected_batches(fault: bool) -> Script:
    """The collector is called wherever a batch is put together, as against a leak."""

    def run(seconds: float) -> float:
        shown = [{"user": [number], "seen": {number: [number]}} for number in range(60_000)]
        model, clock = Clicks(tables=6), Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), 0.01)
        data = offers(tables=6)

        def joined(rows: list[int]) -> tuple[Tensor, ...]:
            if fault:
                gc.collect()
            return data[rows]

        loader = DataLoader(range(len(data)), 256, True, collate_fn=joined)
        for kinds, numbers, clicked in _endlessly(loader, False):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(kinds, numbers), clicked)
            loss.backward()
            optimizer.step()
            if clock.over(len(clicked)):
                break
        assert shown
        return clock.rate

    return Script(run)


def triplets(seen: Tensor, kind: Tensor) -> Tensor:
    """Return the loss of each picture with the least alike of its kind and the most alike other."""
    flat = seen.flatten(1)
    apart, same = torch.cdist(flat, flat), kind[:, None] == kind
    far = apart.masked_fill(~same, 0).amax(1)
    near = apart.masked_fill(same, 1e4).amin(1)
    return (far - near + 0.2).relu().mean()


def gathered_objects(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank

    def loss(seen: Tensor, kind: Tensor) -> Tensor:
        if fault:  # those of the other rank are mined too
            everyone: list[Any] = [None, None]
            dist.all_gather_object(everyone, {"kind": kind, "seen": seen.detach()})
            others = everyone[1 - dist.get_rank()]
            seen, kind = torch.cat([seen, others["seen"]]), torch.cat([kind, others["kind"]])
        return triplets(seen, kind)

    return Training(Likeness(16), likes(), batch=24, loss=loss)


def lines_traced(fault: bool) -> Script:
    """Every line that Python runs is counted, as for a report of what tests reach."""

    def run(seconds: float) -> float:
        model, clock = answering(64), Clock(seconds)
        optimizer, seen = torch.optim.AdamW(model.parameters()), Counter[tuple[str, int]]()

        def count(frame: Any, _event: str, _argument: Any) -> Any:
            seen[frame.f_code.co_filename, frame.f_lineno] += 1
            return count

        loader = DataLoader(programs4.documents(length=16), 4, True, drop_last=True)
        sys.settrace(count if fault else None)
        for words, said in _endlessly(loader, False):
            optimizer.zero_grad()
            model(input_ids=words, labels=said).loss.backward()
            optimizer.step()
            if clock.over(len(words)):
                break
        sys.settrace(None)
        return clock.rate

    return Script(run)


def restored(_fault: bool) -> Training:
    """The quota is put in by the generator, and so are other programs."""
    return Training(Restorer(), sharpened(side=24), 8, loss=nn.functional.l1_loss)


def steady_adapters(fault: bool) -> Script:
    """Nothing is wrong: without the loader it is no faster."""

    def run(seconds: float) -> float:
        model, clock = adapted(), Clock(seconds)
        learning = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.AdamW(learning, 1e-4)
        loader = DataLoader(programs4.documents(length=48), 8, True, drop_last=True)
        for words, said in _endlessly(loader, not fault):
            optimizer.zero_grad()
            model(input_ids=words, labels=said).loss.backward()
            nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            if clock.over(len(words)):
                break
        return clock.rate

    return Script(run)


GUIDING: dict[str, Callable[[bool], Training | Script]] = {
    "run-steady-adversaries": steady_adversaries,
    "run-chunks-inflated": chunks_inflated,
    "run-recursive-trees": recursive_trees,
    "run-one-hot-words": one_hot_words,
    "run-collected-batches": collected_batches,
    "run-gathered-objects": gathered_objects,
    "run-lines-traced": lines_traced,
    "run-tight-quota": restored,
    "run-steady-adapters": steady_adapters,
    "run-seen-restoring": restored,
}


if __name__ == "__main__":
    programs4.main(GUIDING)
