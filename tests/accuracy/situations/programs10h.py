"""Models and data of the tenth round's runs of locks, maps, pumps, parking and knees."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Locks


class Locks(nn.Module):
    """Which door is opened next, and whether by whom it should be: a memory of what was before."""

    def __init__(self, width: int = 96, doors: int = 60, people: int = 200) -> None:
        super().__init__()
        self.doors, self.people = nn.Embedding(doors, 48), nn.Embedding(people, 48)
        self.norm = nn.LayerNorm(96)
        self.memory = nn.GRU(96, width, batch_first=True)
        self.next = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, doors)
        )

    def forward(self, opened: Tensor) -> Tensor:
        found = torch.cat([self.doors(opened[..., 0]), self.people(opened[..., 1])], 2)
        heard, _ = self.memory(self.norm(found))
        return self.next(heard)


def openings(count: int = 4096, length: int = 20) -> TensorDataset:
    """Return random openings, of doors and by people, with the door that is opened next."""
    doors = torch.randint(60, (count, length + 1))
    people = torch.randint(200, (count, length))
    return TensorDataset(torch.stack([doors[:, :-1], people], 2), doors[:, 1:])


def next_door(scores: Tensor, doors: Tensor) -> Tensor:
    """Return the cross-entropy of every next door."""
    return functional.cross_entropy(scores.flatten(0, 1), doors.flatten())


# Old maps


class Legend(nn.Module):
    """What each piece of an old map shows: attention over a piece's neighbours, then all."""

    def __init__(self, width: int = 48, depth: int = 2, piece: int = 8, kinds: int = 9) -> None:
        super().__init__()
        self.piece = piece
        self.enter = nn.Linear(3 * piece * piece, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.asked = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.mixed = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.wider = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, kinds * piece * piece)

    def forward(self, sheet: Tensor) -> Tensor:
        side = sheet.shape[2] // self.piece
        pieces = functional.pixel_unshuffle(sheet, self.piece).flatten(2).mT
        x = self.enter(pieces)
        for asked, mixed, wider, before, between in zip(
            self.asked, self.mixed, self.wider, self.norms[::2], self.norms[1::2], strict=True
        ):
            parts = asked(before(x)).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            heard = functional.scaled_dot_product_attention(*parts.unbind(0))
            x = x + mixed(heard.transpose(1, 2).flatten(2))
            x = x + wider(between(x))
        return functional.pixel_shuffle(self.head(x).mT.unflatten(2, (side, side)), self.piece)


def sheets(count: int = 256, side: int = 96) -> TensorDataset:
    """Return random pieces of maps, with what each point of them shows."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(9, (count, side, side)))


# Heat pumps


class Pump(nn.Module):
    """What a heat pump will measure: a state that one matrix moves on, and how it is seen."""

    def __init__(self, width: int = 128, state: int = 64, ahead: int = 12) -> None:
        super().__init__()
        self.ahead = ahead
        self.enter = nn.Sequential(
            nn.Linear(24 * 9, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.state = nn.Linear(width, state)
        self.moved, self.driven = nn.Linear(state, state, bias=False), nn.Linear(3, state)
        self.seen = nn.Sequential(nn.Linear(state, width), nn.Tanh(), nn.Linear(width, 6))

    def forward(self, hours: Tensor) -> Tensor:
        state = self.state(self.enter(hours[:, :24].flatten(1)))
        states = []
        for driven in self.driven(hours[:, 24:, :3]).unbind(1):
            state = self.moved(state) + driven
            states.append(state)
        return self.seen(torch.stack(states, 1))


def hours(count: int = 8192, ahead: int = 12) -> TensorDataset:
    """Return random hours of heat pumps, with what they measured in the hours that follow."""
    return TensorDataset(torch.randn(count, 24 + ahead, 9), torch.randn(count, ahead, 6))


# Parking spaces


class Parking(nn.Module):
    """Which spaces are free: one small network for every space that a camera sees."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.space = nn.Sequential(
            nn.Conv2d(3, channels, 5, 2, 2),
            nn.CELU(),
            nn.Conv2d(channels, 2 * channels, 3, 2, 1),
            nn.CELU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * channels, 64),
        )
        self.beside = nn.Conv1d(64, 32, 3, padding=1)
        self.head = nn.Conv1d(32, 1, 1)

    def forward(self, spaces: Tensor) -> Tensor:
        seen = self.space(spaces.flatten(0, 1)).unflatten(0, spaces.shape[:2])
        return self.head(functional.celu(self.beside(seen.mT)))[:, 0]


def spaces(count: int = 512, seen: int = 20, side: int = 32) -> TensorDataset:
    """Return random spaces in a row, with those that are free."""
    return TensorDataset(
        torch.rand(count, seen, 3, side, side), (torch.rand(count, seen) < 0.4).float()
    )


# Knees


class Knee(nn.Module):
    """What a knee's scan shows: each slice by itself, and the most of what any of them has."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.slices = nn.Sequential(
            nn.Conv2d(1, channels, 7, 2, 3),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(channels, 2 * channels, 5, 1, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(2 * channels, 3 * channels, 3, 1, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(3 * channels, 3)

    def forward(self, scan: Tensor) -> Tensor:
        seen = self.slices(scan.flatten(0, 1)[:, None]).unflatten(0, scan.shape[:2])
        return self.head(functional.dropout(seen.amax(1), 0.5, self.training))


def scans(count: int = 96, slices: int = 16, side: int = 64) -> TensorDataset:
    """Return random scans of knees, with the findings of each."""
    return TensorDataset(
        torch.rand(count, slices, side, side), (torch.rand(count, 3) < 0.3).float()
    )
