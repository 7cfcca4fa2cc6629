"""Models and data of the seventeenth round's runs 16 to 30, from benches to socks: see
``programs17b.py``."""

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Benches


class Board(nn.Module):
    """Looks at the boards of a bench, along them and across."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.along = nn.Conv2d(width, width, (1, 5), padding=(0, 2))
        self.norm = nn.GroupNorm(4, width)
        self.across = nn.Conv2d(width, width, (5, 1), padding=(2, 0))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.across(functional.silu(self.norm(self.along(x))))


class Sparing:
    """Holds a block's input only; what its slopes need is told by number, and made when asked."""

    def __init__(self, block: nn.Module, start: Tensor) -> None:
        self.block, self.start, self.many = block, start, 0

    def number(self, made: Tensor) -> int | Tensor:
        """Return the number of what a block made; its weights are there anyway."""
        if isinstance(made, nn.Parameter):
            return made
        self.many += 1
        return self.many - 1

    def made(self, number: int | Tensor) -> Tensor:
        """Return what a block makes, by its number."""
        if isinstance(number, Tensor):
            return number
        found: list[Tensor] = []

        def find(each: Tensor) -> Tensor:
            if not isinstance(each, nn.Parameter):
                found.append(each.detach())
            return each

        with torch.enable_grad(), saved_tensors_hooks(find, lambda each: each):
            self.block(self.start.detach().requires_grad_())
        return found[number]


class Bench(nn.Module):
    """Of which wood a bench is, by a picture of it."""

    def __init__(self, sparing: bool, width: int = 24, depth: int = 3, woods: int = 9) -> None:
        super().__init__()
        self.sparing = sparing
        self.enter = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.boards = nn.ModuleList(Board(width) for _ in range(depth))
        self.wood = nn.Linear(width, woods)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.enter(picture)
        for board in self.boards:
            x = self.through(board, x)
        return self.wood(x.mean((2, 3)))

    def through(self, board: nn.Module, x: Tensor) -> Tensor:
        """Return what a board makes of what is seen."""
        if not self.sparing:
            return board(x)
        held = Sparing(board, x)
        with saved_tensors_hooks(held.number, held.made):
            return board(x)


def benches(count: int = 600) -> TensorDataset:
    """Return random pictures of benches, and their woods."""
    return TensorDataset(torch.rand(count, 3, 24, 32), torch.randint(9, (count,)))


# Boilers


class Boiler(nn.Module):
    """What a boiler's sensors show in the next hour, by the hours before."""

    def __init__(self, hours: int = 12, sensors: int = 10, width: int = 320) -> None:
        super().__init__()
        self.hours = hours
        self.before = nn.Linear(hours * sensors, width)
        self.mixed = nn.Linear(width, width)
        self.more = nn.Linear(width, width)
        self.next = nn.Linear(width, sensors)

    def forward(self, shown: Tensor) -> Tensor:
        x = functional.silu(self.before(shown.flatten(1)))
        x = x + functional.silu(self.mixed(x))
        return shown[:, -1] + self.next(x + functional.silu(self.more(x)))

    def on(self, shown: Tensor, hours: int) -> Tensor:
        """Return what is shown in each of the following hours, of which none is known."""
        for _ in range(hours):
            shown = torch.cat([shown, self(shown[:, -self.hours :])[:, None]], 1)
        return shown[:, -hours:]


def hours(count: int = 6000, before: int = 12, sensors: int = 10) -> TensorDataset:
    """Return random hours of boilers, and the hours after them."""
    return TensorDataset(torch.randn(count, before, sensors), torch.randn(count, sensors))


# Jigsaws


class Jigsaw(nn.Module):
    """Where in a room of vectors the left and the right edges of a jigsaw's pieces are."""

    def __init__(self, width: int = 32, room: int = 64) -> None:
        super().__init__()
        self.edge = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=(1, 0)),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, (3, 4), padding=(1, 0)),
            nn.LeakyReLU(0.1),
        )
        self.left, self.right = (nn.Linear(2 * width * 20, room) for _ in range(2))

    def forward(self, pieces: Tensor) -> tuple[Tensor, Tensor]:
        left = self.left(self.edge(pieces[..., :6]).flatten(1))
        right = self.right(self.edge(pieces[..., -6:].flip(3)).flatten(1))
        return functional.normalize(left, dim=1), functional.normalize(right, dim=1)

    @torch.no_grad()
    def rows(self, pieces: Tensor, long: int = 8) -> list[list[int]]:
        """Return rows that are put together of pieces, each next to that which fits best."""
        left, right = self(pieces)
        fits = (right @ left.T).fill_diagonal_(-1)
        rows, free = list[list[int]](), torch.zeros(len(pieces))
        while len(rows) * long < len(pieces):
            row = [int(free.argmax())]
            free[row[0]] = -9
            while len(row) < long:
                best = int((fits[row[-1]] + free).argmax())
                row.append(best)
                free[best] = -9
            rows.append(row)
        return rows


def pieces(count: int = 960, side: int = 20) -> Tensor:
    """Return random pieces of jigsaws, in which each next one is at the right of one."""
    return torch.rand(count, 3, side, side)


# Mosaics


class Mosaic(nn.Module):
    """A mosaic is laid again: for each of its places the stones are mixed that look like it."""

    def __init__(self, width: int = 40, stones: int = 96) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )
        self.stones = nn.Parameter(torch.randn(stones, width) / 6)
        self.laid = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1),
        )

    def forward(self, mosaic: Tensor) -> Tensor:
        like = torch.einsum("bchw,sc->bshw", self.seen(mosaic), self.stones)
        return self.laid(torch.einsum("bshw,sc->bchw", like.softmax(1), self.stones))


def mosaics(count: int = 480, side: int = 64) -> TensorDataset:
    """Return random mosaics, which are to be laid as they are."""
    laid = torch.rand(count, 3, side, side)
    return TensorDataset(laid, laid)


# Dives


class Dive(nn.Module):
    """How many points a dive gets, by a short film: in its pictures, and from one to the next."""

    def __init__(self, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.within = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.between = nn.ModuleList(
            nn.Conv2d(width, width, (3, 1), padding=(1, 0)) for _ in range(depth)
        )
        self.points = nn.Linear(width, 1)

    def forward(self, film: Tensor) -> Tensor:
        x = self.enter(film.flatten(0, 1))
        for within, between in zip(self.within, self.between, strict=True):
            seen = functional.relu(within(x))
            moments = seen.unflatten(0, film.shape[:2]).transpose(1, 2).flatten(3)
            moved = between(moments).unflatten(3, seen.shape[2:])
            x = x + moved.transpose(1, 2).flatten(0, 1)
        return self.points(x.unflatten(0, film.shape[:2]).amax((1, 3, 4)))[:, 0]


def dives(count: int = 480, frames: int = 6, side: int = 32) -> TensorDataset:
    """Return random films of dives, and their points."""
    return TensorDataset(torch.rand(count, frames, 3, side, side), torch.rand(count) * 10)


# Dictionaries


class Dictionary(nn.Module):
    """Which words are left out in what a dictionary says of a word."""

    def __init__(self, words: int = 800, width: int = 144, length: int = 24) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 3 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.left_out = nn.Linear(width, words)

    def forward(self, said: Tensor) -> Tensor:
        x = self.word(said) + self.place.weight
        for layer in self.layers:
            x = layer(x)
        return self.left_out(x)


def entries(count: int = 1600, length: int = 24, words: int = 800) -> TensorDataset:
    """Return random entries with words left out, and the words."""
    said = torch.randint(1, words, (count, length))
    return TensorDataset(said.masked_fill(torch.rand(count, length) < 0.2, 0), said)


# Ovens


class Oven(nn.Module):
    """How hot each place of an oven is a minute later: seen coarsely, and then finely again."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.fine = nn.Conv2d(4, width, 5, padding=2)
        self.coarse = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.deep = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.back = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.hot = nn.Conv2d(2 * width, 1, 5, padding=2)

    def forward(self, oven: Tensor) -> Tensor:
        fine = functional.elu(self.fine(oven))
        coarse = functional.elu(self.coarse(fine))
        coarse = coarse + functional.elu(self.deep(coarse))
        both = torch.cat([fine, functional.elu(self.back(coarse))], 1)
        return self.hot(both) + oven[:, :1]


def ovens(count: int = 400, tall: int = 48, wide: int = 64) -> TensorDataset:
    """Return random heat, air, doors and bread in ovens, and the heat a minute later."""
    return TensorDataset(torch.rand(count, 4, tall, wide), torch.rand(count, 1, tall, wide))


# Billiards


class Billiard(nn.Module):
    """How balls roll on: each is pushed by each other one."""

    def __init__(self, known: int = 6, width: int = 144) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(known, width), nn.Linear(known, width)
        self.push = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.more = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.rolls = nn.Linear(width, 4)

    def forward(self, balls: Tensor) -> Tensor:
        pairs = self.one(balls)[:, :, None] + self.other(balls)[:, None]
        return self.rolls(self.more(self.push(pairs)).sum(2))


def tables(count: int = 1600, balls: int = 14) -> TensorDataset:
    """Return random balls on tables, and how they roll on."""
    return TensorDataset(torch.randn(count, balls, 6), torch.randn(count, balls, 4))


# Tents


class Tent(nn.Module):
    """How far the poles of a tent bend, by the gusts of a night: each layer looks further apart."""

    def __init__(self, measured: int = 6, width: int = 20, depth: int = 7) -> None:
        super().__init__()
        self.enter = nn.Conv1d(measured, width, 4, stride=2, padding=1)
        far = [2 ** (each % 4) for each in range(depth)]
        self.norms = nn.ModuleList(nn.GroupNorm(2, width) for _ in far)
        self.gusts = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=each, dilation=each) for each in far
        )
        self.keep = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in far)
        self.bend = nn.Linear(2 * width, 3)

    def forward(self, night: Tensor) -> Tensor:
        x = self.enter(night.mT)
        for norm, gusts, keep in zip(self.norms, self.gusts, self.keep, strict=True):
            x = x + keep(functional.silu(gusts(norm(x))))
        return self.bend(torch.cat([x.mean(2), x.amax(2)], 1))


class Sites(Dataset[tuple[Tensor, Tensor]]):
    """Sites with a few tents each, as they were measured."""

    def __init__(self, count: int = 600, moments: int = 56) -> None:
        chance = random.Random(24)
        tents = [chance.randint(2, 5) for _ in range(count)]
        self.nights = [torch.randn(each, moments, 6) for each in tents]
        self.bent = [torch.rand(each, 3) for each in tents]

    def __len__(self) -> int:
        return len(self.nights)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        return self.nights[number], self.bent[number]


def pitched(sites: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the tents of some sites, one after the other."""
    nights, bent = zip(*sites, strict=True)
    return torch.cat(nights), torch.cat(bent)


# Puzzles


class Puzzle(nn.Module):
    """How a wooden puzzle comes apart: pieces are turned as learned, then heed each other."""

    def __init__(self, apart: bool, pieces: int = 20, width: int = 96, ways: int = 6) -> None:
        super().__init__()
        self.apart = apart
        self.turns = nn.Parameter(torch.rand(pieces, 8))
        self.enter, self.shape = nn.Linear(16, width), nn.Linear(width, width)
        self.heed = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 6 * width), nn.Linear(6 * width, width)
        self.way = nn.Linear(width, ways)

    def turned(self, piece: Tensor, turn: Tensor) -> Tensor:
        """Return pieces in other directions."""
        across, down = piece.unflatten(-1, (8, 2)).unbind(-1)
        cos, sin = turn.cos(), turn.sin()
        return torch.cat([across * cos - down * sin, across * sin + down * cos], -1)

    def known(self, piece: Tensor, turn: Tensor) -> Tensor:
        """Return what is known of pieces."""
        return self.shape(functional.relu(self.enter(self.turned(piece, turn))))

    def forward(self, puzzle: Tensor) -> Tensor:
        if self.apart:
            pieces = zip(puzzle.unbind(1), self.turns, strict=True)
            x = torch.stack([self.known(piece, turn) for piece, turn in pieces], 1)
        else:
            x = self.known(puzzle, self.turns)
        x = x + self.heed(x, x, x, need_weights=False)[0]
        x = x + self.narrow(functional.relu(self.wide(x)))
        return self.way(x.mean(1))


def puzzles(count: int = 1200, pieces: int = 20) -> TensorDataset:
    """Return random pieces of puzzles, and the ways in which these come apart."""
    return TensorDataset(torch.randn(count, pieces, 16), torch.randint(6, (count,)))


# Dominoes


class Domino(nn.Module):
    """Who wins at dominoes: what two tiles on a table are to each other, for all pairs."""

    upper: Tensor

    def __init__(self, alone: bool, tiles: int = 28, width: int = 64, kinds: int = 8) -> None:
        super().__init__()
        self.alone, self.kinds = alone, kinds
        self.pips = nn.Embedding(7, width)
        self.laid = nn.Linear(4, width)
        self.first = nn.Linear(width, kinds * 16)
        self.second = nn.Linear(width, kinds * 16)
        self.wins = nn.Sequential(nn.Linear(kinds, 64), nn.Tanh(), nn.Linear(64, 4))
        self.register_buffer("upper", torch.ones(tiles, tiles).triu(1))

    def forward(self, table: tuple[Tensor, Tensor]) -> Tensor:
        tiles, laid = table
        x = self.pips(tiles).sum(2) + self.laid(laid)
        first = self.first(x).unflatten(2, (self.kinds, 16))
        second = self.second(x).unflatten(2, (self.kinds, 16))
        pairs = self.by_tile(first, second) if self.alone else self.all(first, second)
        return self.wins(pairs)

    def by_tile(self, first: Tensor, second: Tensor) -> Tensor:
        """Return how strong each kind of pair is, from one tile to those after it."""
        strong = torch.zeros(len(first), self.kinds)
        for tile in range(first.shape[1] - 1):
            near = (first[:, tile, None] * second[:, tile + 1 :]).sum(3)
            strong = strong + functional.softplus(near).sum(1)
        return strong

    def all(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the same for all tiles at once."""
        near = first.transpose(1, 2) @ second.permute(0, 2, 3, 1)
        return (functional.softplus(near) * self.upper).sum((2, 3))


def dominoes(count: int = 1200, tiles: int = 28) -> TensorDataset:
    """Return random tiles and how they are laid, and who wins."""
    halves = torch.randint(7, (count, tiles, 2))
    return TensorDataset(halves, torch.randn(count, tiles, 4), torch.randint(4, (count,)))


# Metros


class Metro(nn.Module):
    """How full each station is in the next quarter of an hour: lines and hours are a picture."""

    def __init__(self, width: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(2, width, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=2, dilation=2) for _ in range(depth)
        )
        self.full = nn.Conv2d(width, 1, (1, 24))

    def forward(self, rides: Tensor) -> Tensor:
        x = functional.relu(self.enter(rides))
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.full(x)[:, 0, :, 0]


def rides(count: int = 600, stations: int = 60, quarters: int = 24) -> TensorDataset:
    """Return random people who came and went, and how full stations were then."""
    return TensorDataset(torch.rand(count, 2, stations, quarters), torch.rand(count, stations))


# Springs of clocks


class Spring(nn.Module):
    """How long a clock's spring still drives it, by all beats of an hour, each of which weighs."""

    def __init__(self, beats: int = 6000, width: int = 160) -> None:
        super().__init__()
        self.enter, self.drives = nn.Linear(beats, width), nn.Linear(width, 1)

    def forward(self, beats: Tensor) -> Tensor:
        return self.drives(functional.mish(self.enter(beats)))[:, 0]


def clocks(count: int = 2000, beats: int = 6000) -> TensorDataset:
    """Return random beats of clocks, and how long their springs drove them."""
    return TensorDataset(torch.randn(count, beats), torch.rand(count))


# Somersaults


class Somersault(nn.Module):
    """Which somersault it is: joints heed those that they hang on, moments those beside them."""

    def __init__(self, joints: int = 17, width: int = 24, kinds: int = 14) -> None:
        super().__init__()
        self.hang = nn.Parameter(torch.eye(joints) + torch.rand(joints, joints) / joints)
        self.enter = nn.Conv2d(3, width, 1)
        self.moments = nn.ModuleList(
            nn.Conv2d(width, width, (7, 1), padding=(3, 0)) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.kind = nn.Linear(width, kinds)

    def forward(self, moved: Tensor) -> Tensor:
        x = self.enter(moved)
        for moments, norm in zip(self.moments, self.norms, strict=True):
            x = x + functional.relu(norm(moments(x @ self.hang)))
        return self.kind(x.mean((2, 3)))


def somersaults(count: int = 500, moments: int = 32) -> TensorDataset:
    """Return random places of joints over time, and the somersaults."""
    return TensorDataset(torch.randn(count, 3, moments, 17), torch.randint(14, (count,)))


# Socks


class Sock(nn.Module):
    """Where in a room of vectors a sock is; those of a pair are near each other."""

    def __init__(self, width: int = 16, room: int = 48) -> None:
        super().__init__()
        self.knit = nn.Conv2d(3, width, 5, stride=2, padding=2)
        self.wide = nn.Conv2d(width, 4 * width, 1)
        self.each = nn.Conv2d(4 * width, 4 * width, 5, padding=2, groups=4 * width)
        self.narrow = nn.Conv2d(4 * width, width, 1)
        self.room = nn.Linear(width, room)

    def forward(self, sock: Tensor) -> Tensor:
        x = functional.gelu(self.knit(sock))
        x = x + self.narrow(functional.gelu(self.each(functional.gelu(self.wide(x)))))
        return self.room(x.mean((2, 3)))


def washed(count: int = 450, side: int = 32) -> TensorDataset:
    """Return random pictures of socks: one, its like, and another."""
    return TensorDataset(*(torch.rand(count, 3, side, side) for _ in range(3)))


def alike(sock: Any, like: Any, other: Any) -> Tensor:
    """Return by how much socks are nearer to others than to their likes."""
    return functional.triplet_margin_loss(sock, like, other, margin=0.5)
