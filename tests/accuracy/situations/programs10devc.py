"""More development runs of the tenth round: how batches come about, and runs seen from outside."""

import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import numpy as np
import pandas
import programs4
import torch
from PIL import Image, ImageDraw
from programs import Item, Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

squared = functional.mse_loss

# Lifts


class Calls(Dataset[Item]):
    """Who called a lift, hour by hour, as the building's server says it, one day at a time."""

    DAY = 4 * 24 * 10

    def __init__(self, before: bool, count: int = 4096, wait: float = 0.0003) -> None:
        self.count, (self.end, server) = count, socket.socketpair()
        days = np.random.default_rng(0).random((64, self.DAY // 4), np.float32)

        def serve() -> None:
            while asked := server.recv(4):
                time.sleep(wait)
                server.sendall(days[int.from_bytes(asked, "little") % 64].tobytes())

        threading.Thread(target=serve, daemon=True).start()
        self.kept = [self.fetched(number) for number in range(64)] if before else []

    def fetched(self, number: int) -> Tensor:
        """Return a day that the server is asked for."""
        self.end.sendall(number.to_bytes(4, "little"))
        raw = bytearray()
        while len(raw) < self.DAY:
            raw += self.end.recv(self.DAY - len(raw))
        return torch.frombuffer(raw, dtype=torch.float32).view(24, 10)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        day = self.kept[index % 64] if self.kept else self.fetched(index)
        return day[:23], day[23]


class Lifts(nn.Module):
    """How often each floor will call, from the hours before: a decayed look back at each floor."""

    def __init__(self, floors: int = 10, width: int = 96) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(8, 1, 1))
        self.layers = nn.Sequential(
            nn.Linear(8 * floors, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, floors),
        )

    def forward(self, hours: Tensor) -> Tensor:
        back = torch.arange(hours.shape[1] - 1, -1, -1.0)[None, :, None]
        kept = torch.exp(-self.decay * back)
        return self.layers(torch.einsum("kto,btf->bkf", kept, hours).flatten(1))


def calls_one_by_one(fault: bool) -> Training:
    model = Lifts(width=640)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, amsgrad=True)
    data = Calls(before=not fault)
    return Training(model, data, 16, loss=functional.l1_loss, optimizer=optimizer)


# Speeches


class Speeches(Dataset[tuple[np.ndarray, int]]):
    """Recordings of speeches, with pauses in them."""

    def __init__(self, count: int = 2048) -> None:
        draw = np.random.default_rng(0)
        loud = np.repeat(draw.random((64, 40)) > 0.3, 200, 1)
        self.sound = (draw.standard_normal((64, 8000)) * (0.01 + loud)).astype(np.float32)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.sound[index % 64], index % 12


def without_pauses(rows: list[tuple[np.ndarray, int]]) -> Item:
    """Leave the pauses out, frame by frame, make what is left as loud as ever, and cut it."""
    spoken = []
    for sound, _ in rows:
        frames = [sound[at : at + 100] for at in range(0, len(sound), 100)]
        said = [frame for frame in frames if float(np.sqrt(np.mean(frame**2))) > 0.1]
        whole = np.concatenate(said)
        whole = np.sign(whole) * np.log1p(255 * np.abs(whole / np.abs(whole).max())) / np.log(256)
        spoken.append(torch.from_numpy(np.resize(whole, 4000)).float())
    return torch.stack(spoken)[:, None], torch.tensor([speaker for _, speaker in rows])


def as_they_are(rows: list[tuple[np.ndarray, int]]) -> Item:
    """Put sounds together that were cut before."""
    whole = torch.from_numpy(np.stack([sound[:4000] for sound, _ in rows]))
    return whole[:, None], torch.tensor([speaker for _, speaker in rows])


def pauses_left_out(fault: bool) -> Training:
    """Who speaks: learnt filters, then what is mean and how much it varies."""

    class Speaker(nn.Module):
        def __init__(self, channels: int = 112) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(1, channels, 40, 10),
                nn.LeakyReLU(),
                nn.Conv1d(channels, channels, 5, 2),
                nn.LeakyReLU(),
                nn.Conv1d(channels, 2 * channels, 5, 2),
                nn.LeakyReLU(),
            )
            self.head = nn.Linear(4 * channels, 12)

        def forward(self, sound: Tensor) -> Tensor:
            x = self.layers(sound)
            return self.head(torch.cat([x.mean(2), x.std(2)], 1))

    collate = without_pauses if fault else as_they_are
    loader = DataLoader(Speeches(), 16, True, collate_fn=collate, drop_last=True)
    model = Speaker()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, weight_decay=1e-4)
    return Training(model, loader=loader, optimizer=optimizer)


# Rice


class Paddies(Dataset[Item]):
    """Fields seen by radar on twelve days; the speckles are smoothed when they are asked for."""

    def __init__(self, before: bool, count: int = 2048, side: int = 20) -> None:
        self.seen = np.random.default_rng(0).gamma(4, 0.25, (24, 12, side, side)).astype(np.float32)
        self.before, self.count = before, count
        self.kept = [self.smooth(each) for each in self.seen] if before else []

    @staticmethod
    def smooth(days: np.ndarray) -> Tensor:
        """Return each day by the filter of Lee: what varies much stays as it is."""
        found = []
        for day in days:
            wide = np.lib.stride_tricks.sliding_window_view(np.pad(day, 3, "reflect"), (7, 7))
            mean, spread = wide.mean((2, 3)), wide.var((2, 3))
            found.append(mean + spread / (spread + 0.0625 * mean**2) * (day - mean))
        return torch.from_numpy(np.stack(found)).log()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        at = index % 24
        return self.kept[at] if self.before else self.smooth(self.seen[at]), torch.tensor(at % 5)


def paddies_smoothed(fault: bool) -> Training:
    model = nn.Sequential(
        nn.Unflatten(1, (1, 12)),
        nn.Conv3d(1, 96, 3, (1, 2, 2), 1),
        nn.InstanceNorm3d(96, affine=True),
        nn.ReLU(),
        nn.Conv3d(96, 96, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d((2, 2, 2)),
        nn.Flatten(),
        nn.Linear(768, 5),
    )
    optimizer = torch.optim.RAdam(model.parameters(), 1e-3)
    return Training(model, Paddies(not fault), 4, workers=1, optimizer=optimizer)


# Sheets


class Sheets(Dataset[Item]):
    """Bars of music that are drawn when they are asked for, with lines, notes and ledger lines."""

    def __init__(self, before: bool, count: int = 4096) -> None:
        draw = random.Random(0)
        self.bars = [[draw.randrange(16) for _ in range(10)] for _ in range(48)]
        self.count = count
        self.kept = [self.drawn(bar) for bar in self.bars] if before else []

    @staticmethod
    def drawn(bar: list[int]) -> Tensor:
        """Return the picture of a bar, drawn twice as large and made smaller."""
        sheet = Image.new("L", (512, 128), 255)
        pen = ImageDraw.Draw(sheet)
        for line in range(5):
            pen.line((0, 32 + 16 * line, 512, 32 + 16 * line), 0, 2)
        for place, note in enumerate(bar):
            x, y = 20 + 50 * place, 120 - 7 * note
            pen.ellipse((x, y - 6, x + 18, y + 6), 0)
            pen.line((x + 17, y, x + 17, y - 45), 0, 2)
        sheet = sheet.rotate(random.uniform(-1, 1), Image.Resampling.BICUBIC, fillcolor=255)
        small = sheet.resize((256, 64), Image.Resampling.LANCZOS)
        return torch.from_numpy(np.array(small))[None].float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        at = index % 48
        sheet = self.kept[at] if self.kept else self.drawn(self.bars[at])
        return sheet, 1 + torch.tensor(self.bars[at])


class Sheet(nn.Module):
    """Which notes a bar has, from left to right."""

    def __init__(self, channels: int = 8, width: int = 48) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(1, channels, (8, 9), (8, 8)), nn.ReLU(), nn.Conv2d(channels, width, (8, 3))
        )
        self.reader = nn.RNN(width, width, batch_first=True)
        self.head = nn.Linear(width, 17)

    def forward(self, sheet: Tensor) -> Tensor:
        told, _ = self.reader(self.seen(sheet)[:, :, 0].transpose(1, 2))
        return self.head(told).log_softmax(2).transpose(0, 1)


def drawn_sheets(fault: bool) -> Training:
    def read(notes: Tensor, truth: Tensor) -> Tensor:
        count, batch, _ = notes.shape
        long, short = torch.full((batch,), count), torch.full((batch,), truth.shape[1])
        return functional.ctc_loss(notes, truth, long, short)

    model = Sheet()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, Sheets(not fault), 8, loss=read, optimizer=optimizer)


# Bridge


class Deals(IterableDataset[Item]):
    """Batches of deals, from lines of a file for bridge programs."""

    RANKS, SUITS = "AKQJT98765432", 4

    def __init__(self, before: bool, size: int = 64) -> None:
        draw = random.Random(0)
        self.lines = [self.dealt(draw) for _ in range(256)]
        self.size = size
        self.kept = [self.parsed(line) for line in self.lines] if before else []

    @classmethod
    def dealt(cls, draw: random.Random) -> str:
        """Return a deal: four hands of four suits."""
        cards = [(suit, rank) for suit in range(4) for rank in cls.RANKS]
        draw.shuffle(cards)
        hands = []
        for start in range(0, 52, 13):
            mine = sorted(cards[start : start + 13], key=lambda card: cls.RANKS.index(card[1]))
            hands.append(".".join("".join(r for s, r in mine if s == suit) for suit in range(4)))
        return "N:" + " ".join(hands)

    def parsed(self, line: str) -> Tensor:
        """Return where each card is, with the points and the lengths of each hand."""
        cards, told = np.zeros((4, 4, 13), np.float32), []
        for player, hand in enumerate(line.split(":")[1].split(" ")):
            points = 0
            for suit, ranks in enumerate(hand.split(".")):
                for rank in ranks:
                    cards[player, suit, self.RANKS.index(rank)] = 1
                    points += {"A": 4, "K": 3, "Q": 2, "J": 1}.get(rank, 0)
                told.append(len(ranks) / 13)
            told.append(points / 40)
        return torch.from_numpy(np.concatenate([cards.ravel(), np.float32(told)]))

    def __iter__(self) -> Iterator[Item]:
        while True:
            chosen = random.choices(range(256), k=self.size)
            if self.kept:
                rows = [self.kept[number] for number in chosen]
            else:
                rows = [self.parsed(self.lines[number]) for number in chosen]
            yield torch.stack(rows), torch.randint(14, (self.size, 20))


def deals_parsed(fault: bool) -> Script:
    """How many tricks each side takes in each suit, for each who plays: residual layers."""

    def run(seconds: float) -> float:
        sizes, clock = (228, 448, 448, 448), Clock(seconds)
        layers = [
            nn.Sequential(nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU())
            for into, out in itertools.pairwise(sizes)
        ]
        model = nn.Sequential(*layers, nn.Linear(448, 280), nn.Unflatten(1, (14, 20)))
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for deal, tricks in DataLoader(Deals(not fault), batch_size=None):
            optimizer.zero_grad()
            functional.cross_entropy(model(deal), tricks).backward()
            optimizer.step()
            if clock.over(len(deal)):
                break
        return clock.rate

    return Script(run)


# Libraries


class Loans(Dataset[Item]):
    """What a reader borrowed, looked for in the table of all loans, or by reader."""

    def __init__(self, before: bool, readers: int = 500, rows: int = 20_000) -> None:
        draw = np.random.default_rng(0)
        self.table = pandas.DataFrame(
            {
                "reader": draw.integers(0, readers, rows),
                "book": draw.integers(1, 5000, rows),
                "day": draw.integers(0, 3000, rows),
            }
        )
        self.readers = readers
        self.kept = [self.borrowed(number) for number in range(readers)] if before else []

    def borrowed(self, reader: int) -> Tensor:
        """Return the last twenty books of a reader, with a 0 where there are fewer."""
        mine = self.table[self.table["reader"] == reader].sort_values("day").tail(20)
        books = np.zeros(20, np.int64)
        books[: len(mine)] = mine["book"]
        return torch.from_numpy(books)

    def __len__(self) -> int:
        return 8 * self.readers

    def __getitem__(self, index: int) -> Item:
        reader = index % self.readers
        books = self.kept[reader] if self.kept else self.borrowed(reader)
        return books[:-1], books[1:]


class Borrower(nn.Module):
    """Which book somebody borrows next, by attention to those before."""

    def __init__(self, books: int = 5000, width: int = 64) -> None:
        super().__init__()
        self.books, self.norm = nn.Embedding(books, width, padding_idx=0), nn.RMSNorm(width)
        self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, books: Tensor) -> Tensor:
        x = self.books(books)
        query, key, value = self.parts(self.norm(x)).chunk(3, 2)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return (x + self.out(mixed)) @ self.books.weight.T


def loans_looked_for(fault: bool) -> Training:
    def each_book(scores: Tensor, books: Tensor) -> Tensor:
        return functional.cross_entropy(scores.flatten(0, 1), books.flatten(), ignore_index=0)

    model = Borrower()
    optimizer = torch.optim.Adagrad(model.parameters(), 0.05)
    return Training(model, Loans(not fault), 16, loss=each_book, optimizer=optimizer)


# Taxes


class Forms(Dataset[Item]):
    """Tax forms as they are handed in: a file of XML each, with amounts as people write them."""

    def __init__(self, before: bool, count: int = 4096, lines: int = 60) -> None:
        draw = random.Random(0)
        self.forms = [
            "<form>"
            + "".join(
                f'<line no="{line}" kind="{draw.randrange(9)}"><amount>'
                f"{draw.uniform(-9999, 99999):,.2f} EUR</amount></line>"
                for line in range(lines)
            )
            + "</form>"
            for _ in range(64)
        ]
        self.count = count
        self.kept = [self.parsed(form) for form in self.forms] if before else []

    @staticmethod
    def parsed(form: str) -> Tensor:
        """Return the kind and the amount of each line."""
        rows = []
        for line in ElementTree.fromstring(form).iter("line"):
            amount = line.find("amount")
            assert amount is not None
            text = (amount.text or "0").replace(",", "").removesuffix(" EUR")
            rows.append([float(line.get("kind", 0)), float(text) / 1e5])
        return torch.tensor(rows)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        form = self.kept[index % 64] if self.kept else self.parsed(self.forms[index % 64])
        return form, torch.tensor(float(index % 17 == 0))


class Audit(nn.Module):
    """Whether a form is worth a second look: lines are pooled by their kind."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.kinds, self.amount = nn.Embedding(9, width), nn.Linear(1, width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, form: Tensor) -> Tensor:
        lines = self.amount(form[..., 1:]).tanh() * self.kinds(form[..., 0].long())
        return self.head(lines.sum(1))[:, 0]


def forms_parsed(fault: bool) -> Training:
    model = Audit()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    either = functional.binary_cross_entropy_with_logits
    return Training(model, Forms(not fault), 32, loss=either, optimizer=optimizer)


# Seen from outside


def shelves(_fault: bool) -> Training:
    """Which goods are missing on a shelf."""
    model = nn.Sequential(
        nn.Conv2d(3, 24, 7, 4),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, 2),
        nn.ReLU(),
        nn.Conv2d(48, 12, 1),
        nn.Flatten(),
    )
    data = TensorDataset(torch.rand(256, 3, 96, 64), torch.rand(256, 12 * 11 * 7))
    return Training(model, data, 8, loss=squared)


def mail(_fault: bool) -> Training:
    """Whether somebody wanted a message."""
    model = nn.Sequential(
        nn.EmbeddingBag(30_000, 96), nn.Linear(96, 256), nn.GELU(), nn.Linear(256, 2)
    )
    data = TensorDataset(torch.randint(30_000, (8192, 120)), torch.randint(2, (8192,)))
    return Training(model, data, 256)


FED: dict[str, Callable[[bool], Training | Script]] = {
    "run-calls-one-by-one": calls_one_by_one,
    "run-pauses-left-out": pauses_left_out,
    "run-paddies-smoothed": paddies_smoothed,
    "run-drawn-sheets": drawn_sheets,
    "run-deals-parsed": deals_parsed,
    "run-loans-looked-for": loans_looked_for,
    "run-forms-parsed": forms_parsed,
    "run-seen-shelves": shelves,
    "run-seen-mail": mail,
}


if __name__ == "__main__":
    programs4.main(FED)
