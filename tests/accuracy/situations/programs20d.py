"""Models and data of the twentieth round's first runs, from waltzes to drawbridges: see
``programs20.py``."""

import dbm.dumb
import fcntl
import http.client
import os
import pickle
import shelve
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

# Waltzes


def swapped(x: Tensor) -> Tensor:
    """Return what the other rank has, which is given this."""
    x, other, rank = x.contiguous(), torch.empty_like(x), 1 - dist.get_rank()
    both = [dist.P2POp(dist.isend, x, rank), dist.P2POp(dist.irecv, other, rank)]
    for each in dist.batch_isend_irecv(both):
        each.wait()
    return other


class Partner(torch.autograd.Function):
    """How the partner stands, who is on the other rank; slopes go the other way."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return swapped(x)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return swapped(slope)


class Waltz(nn.Module):
    """Where couples dance: at each beat who leads and who follows heed each other."""

    def __init__(self, apart: bool, width: int = 128) -> None:
        super().__init__()
        self.apart = apart
        self.roles = nn.Parameter(torch.randn(2, 1, width))
        self.music = nn.Linear(6, width)
        self.mine, self.yours = nn.Linear(width, width), nn.Linear(width, width)
        self.where = nn.Linear(width, 2)

    def forward(self, music: Tensor) -> Tensor:
        heard = self.music(music).unbind(1)
        stand = self.own(self.roles.expand(2, len(music), -1).transpose(0, 1)).transpose(0, 1)
        stood = []
        for beat in heard:
            partner = Partner.apply(stand) if self.apart else stand.flip(0)
            stand = (beat + self.mine(stand) + self.yours(partner)).tanh()
            stood.append(stand)
        return self.where(torch.stack(stood, 2).transpose(0, 1))

    def own(self, couples: Tensor) -> Tensor:
        """Return those of each couple that this rank has."""
        return couples[:, dist.get_rank()][:, None] if self.apart else couples


def waltzes(count: int = 600, beats: int = 8) -> TensorDataset:
    """Return random music, and where both of a couple are at each beat."""
    return TensorDataset(torch.randn(count, beats, 6), torch.randn(count, 2, beats, 2))


def evened(model: nn.Module) -> None:
    """Take the mean of all slopes over both ranks, in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    nn.utils.vector_to_parameters(whole / dist.get_world_size(), slopes)


# Marimbas


class Marimba(nn.Module):
    """How hard a marimba's mallet is, by how its 61 bars sound."""

    def __init__(self, width: int = 1024, hard: int = 9) -> None:
        super().__init__()
        self.bars = nn.Linear(61 * 12, width)
        self.normed = nn.BatchNorm1d(width)
        self.mixed = nn.Linear(width, width)
        self.hard = nn.Linear(width, hard)

    def forward(self, bars: Tensor) -> Tensor:
        x = functional.relu(self.normed(self.bars(bars.flatten(1))))
        return self.hard(x + functional.relu(self.mixed(x)))


def bars(count: int = 1200) -> TensorDataset:
    """Return the loudness of random bars in twelve bands, and how hard the mallet was."""
    return TensorDataset(torch.rand(count, 61, 12), torch.randint(9, (count,)))


# Turrets


class Storey(nn.Module):
    """A storey of a turret, which changes a little of what is below."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.turned = nn.Linear(width, width)
        self.weighed = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weighed * self.turned(x).relu()


class Turret(nn.Module):
    """How far one sees from a turret of many storeys."""

    def __init__(self, width: int = 160, storeys: int = 7) -> None:
        super().__init__()
        self.ground = nn.Linear(20, width)
        self.storeys = nn.Sequential(*(Storey(width) for _ in range(storeys)))
        self.far = nn.Linear(width, 1)

    def forward(self, stones: Tensor) -> Tensor:
        return self.far(self.storeys(self.ground(stones)))[:, 0]


def turrets(count: int = 3000) -> TensorDataset:
    """Return random measures of turrets, and how far one sees from them."""
    return TensorDataset(torch.randn(count, 20), torch.rand(count))


def up_and_down(model: nn.Module) -> None:
    """Sum each tensor's slopes at the first rank, which tells all what their mean is."""
    for weight in model.parameters():
        assert weight.grad is not None
        dist.reduce(weight.grad, 0)
        if dist.get_rank() == 0:
            weight.grad /= dist.get_world_size()
        dist.broadcast(weight.grad, 0)


# Carillons


class Carillon(nn.Module):
    """Which tune a carillon plays: each chord of its bells has a row of a large table."""

    def __init__(self, chords: int = 12_000, width: int = 64, tunes: int = 12) -> None:
        super().__init__()
        self.chords = nn.Embedding(chords, width)
        self.when = nn.Parameter(torch.randn(24, width) / 8)
        self.heard = nn.Linear(width, width)
        self.tune = nn.Linear(width, tunes)

    def forward(self, strokes: Tensor) -> Tensor:
        return self.tune(self.heard((self.chords(strokes) * self.when).sum(1)).tanh())


def carillons(count: int = 2000) -> TensorDataset:
    """Return random strokes of bells, and which tunes they are."""
    return TensorDataset(torch.randint(12_000, (count, 24)), torch.randint(12, (count,)))


def told_in_turn(model: nn.Module) -> None:
    """Take the mean of what both ranks write of their slopes, and tell each other in turn."""
    mine = {
        name: each.grad.numpy() for name, each in model.named_parameters() if each.grad is not None
    }
    written, first = pickle.dumps(mine, pickle.HIGHEST_PROTOCOL), dist.get_rank() == 0
    if first:
        say(written)
    yours: dict[str, np.ndarray] = pickle.loads(listen())
    if not first:
        say(written)
    for name, slope in mine.items():
        slope += yours[name]
        slope *= 0.5


def say(written: bytes) -> None:
    """Send to the other rank how much there is, then all of it."""
    other = 1 - dist.get_rank()
    dist.send(torch.tensor(len(written)), other)
    dist.send(torch.frombuffer(bytearray(written), dtype=torch.uint8), other)


def listen() -> bytes:
    """Return what the other rank sends."""
    other, length = 1 - dist.get_rank(), torch.tensor(0)
    dist.recv(length, other)
    heard = torch.empty(int(length), dtype=torch.uint8)
    dist.recv(heard, other)
    return heard.numpy().tobytes()


# Spires


class Spires(Dataset[Item]):
    """Spires as they stand against the sky, drawn when they are asked for, or before."""

    def __init__(self, ready: bool, count: int = 300, rows: int = 64) -> None:
        self.plans = np.random.default_rng(401).uniform(0.2, 1, (count, 4))
        self.rows = rows
        self.known = [self.drawn(each) for each in self.plans] if ready else []

    def __len__(self) -> int:
        return len(self.plans)

    def __getitem__(self, index: int) -> Item:
        spire = self.known[index] if self.known else self.drawn(self.plans[index])
        return spire, torch.tensor(index % 6)

    def drawn(self, plan: np.ndarray) -> Tensor:
        """Return a spire's picture, row by row from its tip."""
        tall, wide, bent, rough = plan
        across, rows = np.linspace(-1, 1, 48), []
        for row in range(self.rows):
            down = row / self.rows
            half = wide * max(down - 0.3 * (1 - tall), 0.0) ** (0.5 + bent)
            edge = half * (1 + 0.1 * rough * np.sin(40 * down + 3 * across))
            stone = 1 / (1 + np.exp(30 * (np.abs(across) - edge)))
            light = 0.6 + 0.4 * np.cos(2 * across + bent)
            rows.append(stone * light + (1 - stone) * (0.9 - 0.3 * down))
        return torch.from_numpy(np.stack(rows)[None].astype(np.float32))


class Spire(nn.Module):
    """In which style a spire is built."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.seen = nn.Conv2d(1, channels, 4, 4)
        self.near = nn.Conv2d(channels, channels, 3, padding=1)
        self.style = nn.Linear(channels, 6)

    def forward(self, spire: Tensor) -> Tensor:
        x = functional.gelu(self.seen(spire))
        return self.style(functional.gelu(self.near(x)).amax((2, 3)))


# Trombones


LIBRARY = """
import http.server, os, sys, threading, time
import numpy as np

class Desk(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        number = int(self.path.rpartition("/")[2])
        time.sleep(0.001)
        sound = np.random.default_rng(number).standard_normal(2 * 1024, np.float32).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sound)))
        self.end_headers()
        self.wfile.write(sound)

    def log_message(self, *_):
        pass

desk = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Desk)
threading.Thread(target=desk.serve_forever, daemon=True).start()
print(desk.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
"""


class Trombones(Dataset[Item]):
    """Slides of trombones, which a library lends one by one, or that are at home."""

    def __init__(self, kept: bool, count: int = 240) -> None:
        self.count = count
        self.library = subprocess.Popen(
            [sys.executable, "-c", LIBRARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.library.stdout
        self.port = int(self.library.stdout.readline())
        self.kept = [self.lent(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        slide = self.kept[index] if self.kept else self.lent(index)
        return slide, torch.tensor(index % 7)

    def lent(self, number: int) -> Tensor:
        """Return a slide's sound, for which the library is asked."""
        library = http.client.HTTPConnection("127.0.0.1", self.port)
        library.request("GET", f"/slides/{number}")
        sound = bytearray(library.getresponse().read())
        library.close()
        return torch.frombuffer(sound, dtype=torch.float32).view(2, 1024)


class Trombone(nn.Module):
    """How far a trombone's slide is out: its sound in pieces, each heard for itself."""

    def __init__(self, width: int = 48, places: int = 7) -> None:
        super().__init__()
        self.pieces = nn.Conv1d(2, width, 32, 16)
        self.normed = nn.GroupNorm(4, width)
        self.heard = nn.Conv1d(width, width, 3, padding=1)
        self.place = nn.Linear(width, places)

    def forward(self, slide: Tensor) -> Tensor:
        x = self.normed(self.pieces(slide)).relu()
        return self.place((x + self.heard(x).relu()).mean(2))


# Chronicles


class Chronicles(Dataset[Item]):
    """Scans of chronicles, a file for each page, on a drive or in memory."""

    def __init__(self, folder: Path, kept: bool, count: int = 240, pages: int = 5) -> None:
        chance = np.random.default_rng(409)
        self.paths = [
            [folder / f"chronicle-{number:03d}-{page}.raw" for page in range(pages)]
            for number in range(count)
        ]
        for path in (path for paths in self.paths for path in paths):
            path.write_bytes(chance.bytes(64 * 128))
        os.sync()
        self.kept = [self.read(paths) for paths in self.paths] if kept else []

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        pages = self.kept[index] if self.kept else self.read(self.paths[index])
        return pages, torch.tensor(index % 10)

    @staticmethod
    def read(paths: list[Path]) -> Tensor:
        """Return a chronicle's pages, of which no memory holds anything yet."""
        pages = []
        for path in paths:
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                pages.append(np.frombuffer(file.read(), np.uint8).reshape(64, 128))
        return torch.from_numpy(np.stack(pages)).float() / 255


class Chronicle(nn.Module):
    """Who wrote a chronicle: its pages are looked at alone, then read one after the other."""

    def __init__(self, width: int = 16, writers: int = 10) -> None:
        super().__init__()
        self.page = nn.Conv2d(1, width, 8, 8)
        self.lines = nn.Conv2d(width, width, (3, 1), padding=(1, 0))
        self.on = nn.GRU(width, width, batch_first=True)
        self.writer = nn.Linear(width, writers)

    def forward(self, pages: Tensor) -> Tensor:
        seen = self.lines(self.page(pages.flatten(0, 1)[:, None]).relu()).relu()
        read, _ = self.on(seen.mean((2, 3)).view(*pages.shape[:2], -1))
        return self.writer(read[:, -1])


# Dungeons


class Dungeons(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Dungeons of a game, whose rooms are looked up one by one in a book of all rooms."""

    def __init__(self, folder: Path, kept: bool, count: int = 150, rooms: int = 24) -> None:
        chance, self.count, self.rooms = np.random.default_rng(419), count, rooms
        self.book = shelve.Shelf(dbm.dumb.open(str(folder / "rooms"), "n"))  # noqa: SIM115
        for number in range(count):
            doors = chance.integers(0, rooms, (rooms, 4))
            things = chance.standard_normal((rooms, 10), np.float32)
            for room in range(rooms):
                said = {"doors": doors[room].tolist(), "things": things[room].tolist()}
                self.book[f"{number}/{room}"] = said
        self.book.sync()
        self.kept = [self.looked_up(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        doors, things = self.kept[index] if self.kept else self.looked_up(index)
        return doors, things, torch.tensor(index % 5)

    def looked_up(self, number: int) -> tuple[Tensor, Tensor]:
        """Return where the doors of a dungeon's rooms lead, and what lies in the rooms."""
        said = [self.book[f"{number}/{room}"] for room in range(self.rooms)]
        return torch.tensor([each["doors"] for each in said]), torch.tensor(
            [each["things"] for each in said]
        )


class Dungeon(nn.Module):
    """How dangerous a dungeon is: what is in a room is told through its doors, three times."""

    def __init__(self, width: int = 48, times: int = 3) -> None:
        super().__init__()
        self.things = nn.Linear(10, width)
        self.through = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(times))
        self.danger = nn.Linear(width, 5)

    def forward(self, doors: Tensor, things: Tensor) -> Tensor:
        x = self.things(things)
        rows = torch.arange(len(x))[:, None, None]
        for through in self.through:
            told = x[rows, doors].amax(2)
            x = x + through(torch.cat([x, told], 2)).relu()
        return self.danger(x.mean(1))


# Polkas


class Polkas(Dataset[Item]):
    """Polkas, of which it is told where their beats are, by how loud they become."""

    def __init__(self, ready: bool, count: int = 240, length: int = 8192) -> None:
        chance = np.random.default_rng(421)
        pulse = chance.integers(700, 1100, count)
        loud = np.exp(-(np.arange(length) % pulse[:, None]) / 120)
        noise = chance.standard_normal((count, length))
        self.polkas = (loud * noise + 0.05 * chance.standard_normal((count, length))).astype(
            np.float32
        )
        self.known = [self.told(each) for each in self.polkas] if ready else []

    def __len__(self) -> int:
        return len(self.polkas)

    def __getitem__(self, index: int) -> Item:
        polka = self.known[index] if self.known else self.told(self.polkas[index])
        return polka, torch.tensor(index % 8)

    @staticmethod
    def told(polka: np.ndarray, span: int = 256, hop: int = 64, longest: int = 24) -> Tensor:
        """Return how each frame sounds, how much louder it is, and how well a beat fits it."""
        frames = np.lib.stride_tricks.sliding_window_view(polka, span)[::hop]
        bands = np.log1p(np.abs(np.fft.rfft(frames * np.hanning(span)))[:, :96])
        rise = np.maximum(np.diff(bands, axis=0, prepend=bands[:1]), 0).sum(1)
        rise = (rise - rise.mean()) / rise.std()
        again = np.array([(rise[lag:] * rise[:-lag]).mean() for lag in range(6, longest)])
        pulse = int(again.argmax()) + 6
        apart = np.arange(1, longest)
        cost = -4 * np.log(apart / pulse) ** 2
        fits = np.array(rise)
        for at in range(longest, len(rise)):
            fits[at] = rise[at] + max(0.0, float((cost + fits[at - apart]).max()))
        small = bands.reshape(len(bands), 24, 4).mean(2)
        seen = np.concatenate([small.T, rise[None], fits[None] / 16])
        return torch.from_numpy(seen.astype(np.float32))


class Polka(nn.Module):
    """From where a polka is: convolutions along it, and how much each frame matters."""

    def __init__(self, channels: int = 48) -> None:
        super().__init__()
        self.heard = nn.Conv1d(26, channels, 5, 2)
        self.steps = nn.Conv1d(channels, channels, 5, padding=2)
        self.matters = nn.Conv1d(channels, 1, 1)
        self.origin = nn.Linear(channels, 8)

    def forward(self, polka: Tensor) -> Tensor:
        x = functional.elu(self.heard(polka))
        x = x + functional.elu(self.steps(x))
        return self.origin((x * self.matters(x).softmax(2)).sum(2))


# Tambourines


class Tambourines(Dataset[tuple[int, int]]):
    """Strokes on tambourines, each of whose jingles is rung by what is heard."""

    def __init__(self, ready: bool, count: int = 240, length: int = 3000) -> None:
        chance = np.random.default_rng(431)
        fades = np.exp(-np.arange(length) / chance.uniform(200, 500, (count, 1)))
        self.strokes = chance.standard_normal((count, length)) * fades
        self.strokes += 0.01 * chance.standard_normal((count, length))
        self.pitches = np.linspace(0.4, 2.8, 16)
        self.ready: list[Tensor] = []
        self.ready = [self.rung(each) for each in self.strokes] if ready else []

    def __len__(self) -> int:
        return len(self.strokes)

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, index % 6

    def together(self, some: list[tuple[int, int]]) -> Item:
        """Return a batch of strokes, rung now or before."""
        rung = [self.ready[at] if self.ready else self.rung(self.strokes[at]) for at, _ in some]
        return torch.stack(rung), torch.tensor([hand for _, hand in some])

    def rung(self, stroke: np.ndarray) -> Tensor:
        """Return how loud each of the jingles is in each of 60 pieces of a stroke."""
        from scipy.signal import lfilter

        loud = []
        for pitch in self.pitches:
            ring = lfilter([1.0], [1.0, -1.98 * np.cos(pitch), 0.9801], stroke)
            loud.append(np.log(np.square(ring).reshape(60, -1).mean(1) + 1e-6))
        return torch.from_numpy(np.stack(loud).astype(np.float32))


class Tambourine(nn.Module):
    """With which part of the hand a tambourine is struck."""

    def __init__(self, width: int = 48, hands: int = 6) -> None:
        super().__init__()
        self.jingles = nn.Linear(60, width)
        self.among = nn.MultiheadAttention(width, 4, batch_first=True)
        self.more = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )
        self.hand = nn.Linear(width, hands)

    def forward(self, rung: Tensor) -> Tensor:
        x = self.jingles(rung)
        x = x + self.among(x, x, x, need_weights=False)[0]
        return self.hand((x + self.more(x)).mean(1))


# Castanets


class Castanets(Dataset[Item]):
    """Dances with castanets, whose clicks are found, and what is around each of them."""

    def __init__(self, ready: bool, count: int = 300, length: int = 6000) -> None:
        chance = np.random.default_rng(433)
        self.dances = 0.05 * chance.standard_normal((count, length))
        for dance in self.dances:
            for at in chance.choice(length - 200, 30, False):
                dance[at : at + 60] += np.exp(-np.arange(60) / 12) * chance.standard_normal(60)
        self.known = [self.found(each) for each in self.dances] if ready else []

    def __len__(self) -> int:
        return len(self.dances)

    def __getitem__(self, index: int) -> Item:
        clicks = self.known[index] if self.known else self.found(self.dances[index])
        return clicks, torch.tensor(index % 4)

    @staticmethod
    def found(dance: np.ndarray, clicks: int = 24, around: int = 128) -> Tensor:
        """Return the spectra of what is around the loudest clicks, and when these are."""
        from scipy import signal

        loud = np.abs(signal.hilbert(dance))
        smooth = signal.savgol_filter(loud, 41, 2)
        peaks, _ = signal.find_peaks(smooth, distance=60)
        most = np.sort(peaks[np.argsort(smooth[peaks])[-clicks:]])
        padded = np.pad(dance, around // 2)
        pieces = np.stack([padded[at : at + around] for at in most]) * np.hanning(around)
        spectra = np.log(np.abs(np.fft.rfft(pieces)) + 1e-3)
        seen = np.zeros((clicks, around // 2 + 2), np.float32)
        seen[: len(most), :-1], seen[: len(most), -1] = spectra, most / len(dance)
        return torch.from_numpy(seen)


class Castanet(nn.Module):
    """Which dance it is: clicks are heard in their order."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.click = nn.Linear(66, width)
        self.order = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.dance = nn.Linear(2 * width, 4)

    def forward(self, clicks: Tensor) -> Tensor:
        told, _ = self.order(self.click(clicks).relu())
        return self.dance(told.mean(1))


# Docks


@contextmanager
def through(gate: Path) -> Iterator[None]:
    """Go through a gate, which lets in one at a time."""
    with gate.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Docks(Dataset[Item]):
    """What cranes of docks lift, which a distant yard tells after a while."""

    def __init__(self, folder: Path, gate: bool, count: int = 600, seconds: float = 0.002) -> None:
        self.gate = folder / "gate" if gate else None
        self.count, self.seconds = count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        at: AbstractContextManager[None] = through(self.gate) if self.gate else nullcontext()
        with at:
            time.sleep(self.seconds)
            lifted = np.random.default_rng(index).standard_normal((12, 64), np.float32)
        return torch.from_numpy(lifted), torch.tensor(index % 9)


class Dock(nn.Module):
    """For which ship a crane works: twelve gauges, heard along time and mixed."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.gauges = nn.Conv1d(12, width, 5, 2)
        self.mixed = nn.Conv1d(width, width, 5, 2)
        self.ship = nn.Sequential(nn.Linear(2 * width, width), nn.Mish(), nn.Linear(width, 9))

    def forward(self, lifted: Tensor) -> Tensor:
        x = functional.mish(self.mixed(functional.mish(self.gauges(lifted))))
        return self.ship(torch.cat([x.mean(2), x.amax(2)], 1))


# Weirs


class Rivers:
    """How high rivers stand above their weirs at each minute; few of the minutes are known."""

    def __init__(self, kept: bool, gauges: int = 12_288, minutes: int = 1440) -> None:
        self.sizes = gauges, minutes
        self.kept = torch.empty(self.sizes) if kept else None

    def around(self, levels: Tensor) -> Tensor:
        """Return the levels of a batch, as they are laid out by gauge and minute."""
        days, gauges, known = levels.shape
        room = torch.empty(self.sizes) if self.kept is None else self.kept
        laid = room[: days * gauges, 600 : 600 + known]
        laid.copy_(levels.flatten(0, 1))
        return (laid - laid.mean(1, keepdim=True)).view_as(levels)


class Weir(nn.Module):
    """How far a weir is to be opened, by gauges up the river."""

    def __init__(self, known: int = 8, width: int = 24) -> None:
        super().__init__()
        self.levels = nn.Linear(known, width)
        self.heeded = nn.Linear(width, 1)
        self.opened = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, levels: Tensor) -> Tensor:
        x = functional.silu(self.levels(levels))
        return self.opened((x * self.heeded(x).softmax(1)).sum(1))[:, 0]


def weirs(count: int = 160, gauges: int = 1536) -> TensorDataset:
    """Return random levels of gauges, and how far weirs were opened."""
    return TensorDataset(torch.rand(count, gauges, 8), torch.rand(count))


# Masts


class Spar:
    """A spar of a mast, with the spars that it carries."""

    def __init__(self, number: int) -> None:
        self.number, self.carries = number, [number + 1, number + 2]


def yard(count: int = 70_000) -> dict[int, list[Spar]]:
    """Return the spars of a yard, by their length."""
    kept: dict[int, list[Spar]] = {}
    for number in range(count):
        kept.setdefault(number % 211, []).append(Spar(number))
    return kept


class Mast(nn.Module):
    """How much wind a mast withstands: low and high parts are multiplied with each other."""

    def __init__(self, parts: int = 40, width: int = 192) -> None:
        super().__init__()
        self.low, self.high = nn.Linear(parts, width), nn.Linear(parts, width)
        self.both = nn.Bilinear(16, 16, 32)
        self.few = nn.Linear(width, 16)
        self.wind = nn.Linear(32, 1)

    def forward(self, parts: Tensor) -> Tensor:
        low, high = self.few(self.low(parts).relu()), self.few(self.high(parts).tanh())
        return self.wind(self.both(low, high))[:, 0]


def masts(count: int = 6000) -> TensorDataset:
    """Return random measures of masts, and how much wind they withstood."""
    return TensorDataset(torch.randn(count, 40), torch.randn(count))


# Drawbridges


class Plank(nn.Module):
    """A plank of a drawbridge: its pieces are normed, turned and added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normed, self.turned = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.gelu(self.turned(self.normed(x)))


class Drawbridge(nn.Module):
    """How heavy a drawbridge is; what goes into a plank is kept, or made from the first one."""

    def __init__(self, held: bool, width: int = 32, planks: int = 20) -> None:
        super().__init__()
        self.held = held
        self.pieces = nn.Linear(12, width)
        self.planks = nn.ModuleList(Plank(width) for _ in range(planks))
        self.heavy = nn.Linear(width, 1)

    def forward(self, bridge: Tensor) -> Tensor:
        return self.heavy(self.up_to(len(self.planks), self.pieces(bridge)).mean(1))[:, 0]

    def up_to(self, number: int, x: Tensor) -> Tensor:
        """Return what comes out of the first planks."""
        if self.held or number == 0 or not torch.is_grad_enabled():
            for plank in self.planks[:number]:
                x = plank(x)
            return x
        below = checkpoint(self.up_to, number - 1, x, use_reentrant=True, preserve_rng_state=False)
        last: Tensor = self.planks[number - 1](below)
        return last


def drawbridges(count: int = 600, pieces: int = 8) -> TensorDataset:
    """Return random pieces of drawbridges, and how heavy these are."""
    return TensorDataset(torch.randn(count, pieces, 12), torch.rand(count))
