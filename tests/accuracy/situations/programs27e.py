"""Models and data of the twenty-seventh round's runs 16 to 30, from pencils to corsets: see
``programs27b.py``."""

import copy
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

# Pencils


class Pencil(nn.Module):
    """Which of 30 hands drew a line, by how the pencil was pressed; gated layers."""

    def __init__(self, width: int = 448) -> None:
        super().__init__()
        self.pressed = nn.Linear(180, width)
        self.lines = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.hand = nn.Linear(width, 30)

    def forward(self, pressed: Tensor) -> Tensor:
        x = torch.tanh(self.pressed(pressed))
        for layer in self.lines:
            x = x + functional.glu(layer(x), 1)
        return self.hand(x)


def pencils(count: int = 8000) -> TensorDataset:
    """Return how random pencils were pressed, and whose each was."""
    return TensorDataset(torch.randn(count, 180), torch.randint(30, (count,)))


class Curved(torch.optim.Optimizer):
    """Steps by slopes over how curved the loss is at each weight, which is told now and then.

    Mean slopes, curvature and how it was told the last five times stay in memory, or lie in a file
    between the updates.
    """

    def __init__(self, weights: Iterable[nn.Parameter], folder: Path | None) -> None:
        super().__init__(weights, {"lr": 0.002})
        self.weights, self.updates = self.param_groups[0]["params"], 0
        self.path = folder and folder / "curvature.pt"
        self.kept: dict[str, list[Tensor]] | None = None
        self.put_away(
            {
                "means": [torch.zeros_like(weight) for weight in self.weights],
                "curved": [torch.ones_like(weight) for weight in self.weights],
                "told": [weight.new_ones(5, *weight.shape) for weight in self.weights],
            }
        )

    def put_away(self, state: dict[str, list[Tensor]]) -> None:
        """Keep what an update left, or write it to the file."""
        if self.path is None:
            self.kept = state
        else:
            torch.save(state, self.path)

    def slopes(self, loss: Tensor) -> list[Tensor] | None:
        """Find the slopes; return how curved the loss is at each twentieth update."""
        told = self.updates % 20 == 0
        self.updates += 1
        slopes = torch.autograd.grad(loss, self.weights, create_graph=told)
        for weight, slope in zip(self.weights, slopes, strict=True):
            weight.grad = slope.detach()
        if not told:
            return None
        ways = [torch.randint_like(weight, 2) * 2 - 1 for weight in self.weights]
        along = torch.autograd.grad(slopes, self.weights, ways)
        return [(way * one).abs() for way, one in zip(ways, along, strict=True)]

    @torch.no_grad()
    def step(self, curved: list[Tensor] | None = None) -> None:  # type: ignore[override]
        """Change the weights once."""
        state = self.kept or torch.load(self.path)
        if curved:
            for kept, mean, new in zip(state["told"], state["curved"], curved, strict=True):
                kept[self.updates // 20 % 5] = new
                mean.copy_(kept.mean(0))
        torch._foreach_lerp_(state["means"], [weight.grad for weight in self.weights], 0.1)
        changes = torch._foreach_div(state["means"], torch._foreach_add(state["curved"], 1e-3))
        torch._foreach_clamp_max_(changes, 1.0)
        torch._foreach_add_(self.weights, changes, alpha=-self.param_groups[0]["lr"])
        self.put_away(state)


# Manacles


class Manacle(nn.Module):
    """How strong a pair of manacles is, by the sizes of its links."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.links = nn.Linear(140, width)
        self.iron, self.lock = nn.Linear(width, width), nn.Linear(width, width)
        self.strong = nn.Linear(width, 1)

    def forward(self, links: Tensor) -> Tensor:
        x = functional.hardswish(self.links(links))
        x = functional.hardswish(self.iron(x)) + x
        return self.strong(functional.hardswish(self.lock(x)))[:, 0]


def manacles(count: int = 8000) -> TensorDataset:
    """Return links of random manacles, and how strong each pair is."""
    return TensorDataset(torch.rand(count, 140), torch.rand(count))


class Members:
    """Five models that learn in turn; those that wait stay in memory, or lie in files."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.models = [Manacle() for _ in range(5)]
        self.optimizers = [
            torch.optim.Adam(model.parameters(), 1e-3, amsgrad=True) for model in self.models
        ]
        for number in range(5):
            self.rest(number)

    def rest(self, number: int) -> None:
        """Let a member wait: write its weights and their moments, and let go of them."""
        if self.folder is None:
            return
        values = {}
        for place, weight in enumerate(self.models[number].parameters()):
            values[f"{place}.weight"] = weight.detach().numpy()
            weight.grad, weight.data = None, torch.empty(0)
            state = self.optimizers[number].state.get(weight, {})
            for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"):
                if name in state:
                    values[f"{place}.{name}"] = state.pop(name).numpy()
        np.savez(self.folder / f"{number}.npz", **values)

    def wake(self, number: int) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Return a member whose turn it is."""
        model, optimizer = self.models[number], self.optimizers[number]
        if self.folder is not None:
            weights = list(model.parameters())
            with np.load(self.folder / f"{number}.npz") as file:
                for key in file.files:
                    place, name = key.split(".")
                    values, weight = torch.from_numpy(file[key]), weights[int(place)]
                    if name == "weight":
                        weight.data = values
                    else:
                        optimizer.state[weight][name] = values
        return model, optimizer


# Hampers


@dataclass
class Packed:
    """A hamper as its packer wrote it down."""

    name: str
    goods: dict[str, int]
    weights: list[float]
    likes: int


class Hampers(Dataset[tuple[Tensor, Tensor]]):
    """Hampers, and which of eight families likes each."""

    def __init__(self, count: int = 11_000) -> None:
        chance = np.random.default_rng(27)
        self.packed = [
            Packed(
                f"hamper {number}",
                {f"good {good}": int(good) % 5 + 1 for good in chance.integers(90, size=5)},
                chance.random(24).tolist(),
                int(chance.integers(8)),
            )
            for number in range(count)
        ]

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        hamper = self.packed[index]
        return torch.tensor(hamper.weights), torch.tensor(hamper.likes)


class Hamper(nn.Module):
    """Which family likes a hamper, by the weights of what is in it, each met with each."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.good = nn.Linear(1, width)
        self.place = nn.Parameter(torch.randn(24, width) * 0.1)
        self.met = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.family = nn.Linear(width, 8)

    def forward(self, weights: Tensor) -> Tensor:
        return self.family(self.met(self.good(weights[..., None]) + self.place).mean(1))


class Saved:
    """Writes the whole training: the model, its optimizer, what is left to do and the data."""

    def __init__(self, **parts: Any) -> None:
        self.parts = parts

    def to(self, path: Path) -> None:
        """Write a file in place of the one before."""
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            pickle.dump(self.parts, file)
        fresh.replace(path)


# Crayons


class Crayon(nn.Module):
    """Which colour a child takes next, by the twelve before; a vector for each colour."""

    def __init__(self, colours: int = 1600, width: int = 64) -> None:
        super().__init__()
        self.colours = nn.Embedding(colours, width)
        self.before = nn.Conv1d(width, 128, 3)
        self.taken = nn.Linear(128, width)

    def forward(self, taken: Tensor) -> Tensor:
        x = functional.gelu(self.before(self.colours(taken).transpose(1, 2))).amax(2)
        return self.taken(x) @ self.colours.weight.T


def crayons(count: int = 12_000) -> TensorDataset:
    """Return colours that random children took, and the one after."""
    return TensorDataset(torch.randint(1600, (count, 12)), torch.randint(1600, (count,)))


def written(colours: Tensor, path: Path) -> None:
    """Write a line of text for each colour: its name and its numbers."""
    with path.open("w") as file:
        file.write(f"{len(colours)} {colours.shape[1]}\n")
        for number, row in enumerate(colours.numpy()):
            file.write(f"colour-{number} " + " ".join(f"{value:.6f}" for value in row) + "\n")


# Planters


class Planter(nn.Module):
    """How much a plant in a planter will grow, by its soil over 40 days."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.soil = nn.Conv1d(6, width, 5, padding=2)
        self.roots = nn.Conv1d(width, width, 5, padding=2)
        self.leaves = nn.Conv1d(width, width, 5, 2)
        self.grown = nn.Linear(width, 1)

    def forward(self, soil: Tensor) -> Tensor:
        x = functional.silu(self.roots(functional.silu(self.soil(soil))))
        return self.grown(functional.silu(self.leaves(x)).mean(2))[:, 0]


def planters(count: int = 4000) -> TensorDataset:
    """Return soils of random planters, and how much grew."""
    return TensorDataset(torch.randn(count, 6, 40), torch.rand(count))


def pruned_and_told(model: nn.Module, others: TensorDataset) -> list[float]:
    """Return how badly other planters are told with ever more of the weights left out."""
    missed = []
    for share in (0.2, 0.4, 0.6, 0.8):
        thin = copy.deepcopy(model)
        wrong = 0.0
        with torch.no_grad():
            for weight in thin.parameters():
                if weight.ndim > 1:
                    least = weight.abs().flatten().kthvalue(int(share * weight.numel())).values
                    weight *= weight.abs() > least
            for soil, grown in DataLoader(others, 64):
                wrong += float(functional.l1_loss(thin(soil), grown))
        missed.append(wrong)
    return missed


# Flippers


class Flipper(nn.Module):
    """How fast a diver is with flippers of 16 measures; layers that see all before them."""

    def __init__(self, width: int = 160) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16 + number * width, width) for number in range(4))
        self.fast = nn.Linear(16 + 4 * width, 1)

    def forward(self, measures: Tensor) -> Tensor:
        seen = measures
        for layer in self.layers:
            seen = torch.cat([seen, functional.mish(layer(seen))], 1)
        return self.fast(seen)[:, 0]


def flippers(count: int = 8000) -> TensorDataset:
    """Return measures of random flippers, and how fast their divers were."""
    return TensorDataset(torch.rand(count, 16), torch.rand(count))


@torch.no_grad()
def swept(model: nn.Module, others: Tensor, values: int) -> list[list[float]]:
    """Return how fast others would be on the whole, with each measure set to each value."""
    curves = []
    for measure in range(others.shape[1]):
        changed, curve = others.clone(), []
        for value in torch.linspace(0, 1, values):
            changed[:, measure] = value
            curve.append(model(changed).mean())
        curves.append(torch.stack(curve).tolist())
    return curves


# Hooks


class Hook(nn.Module):
    """Which of 12 fish a hook is for, by its outline; circular convolutions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        around = {"padding": 2, "padding_mode": "circular"}
        self.outline = nn.Conv1d(2, width, 5, **around)
        self.bend = nn.Conv1d(width, width, 5, 2, **around)
        self.barb = nn.Conv1d(width, width, 5, 2, **around)
        self.fish = nn.Linear(width, 12)

    def forward(self, outline: Tensor) -> Tensor:
        x = functional.relu(self.bend(functional.relu(self.outline(outline))))
        return self.fish(functional.relu(self.barb(x)).amax(2))


def hooks(count: int = 6000) -> TensorDataset:
    """Return outlines of random hooks, what each is for, and its number."""
    kinds = torch.randint(12, (count,))
    return TensorDataset(torch.randn(count, 2, 64), kinds, torch.arange(count))


class Noted:
    """How each hook was told of late, by its number."""

    def __init__(self) -> None:
        self.losses: dict[int, float] = {}
        self.ahead: dict[int, float] = {}
        self.right: dict[int, int] = {}

    def note(self, number: int, loss: float, ahead: float, right: bool) -> None:
        """Note one hook."""
        self.losses[number] = 0.8 * self.losses.get(number, loss) + 0.2 * loss
        self.ahead[number] = ahead
        self.right[number] = self.right.get(number, 0) + right

    def one_by_one(self, numbers: Tensor, losses: Tensor, told: Tensor, kinds: Tensor) -> None:
        """Note the hooks of a batch, each of which is asked."""
        for place in range(len(numbers)):
            first, second = told[place].topk(2).values
            right = bool(told[place].argmax() == kinds[place])
            self.note(int(numbers[place]), float(losses[place]), float(first - second), right)

    def at_once(self, numbers: Tensor, losses: Tensor, told: Tensor, kinds: Tensor) -> None:
        """Note the hooks of a batch, which are asked together."""
        right = (told.argmax(1) == kinds).tolist()
        best = told.topk(2, 1).values
        ahead = (best[:, 0] - best[:, 1]).tolist()
        for one in zip(numbers.tolist(), losses.tolist(), ahead, right, strict=True):
            self.note(*one)


# Lunchboxes


class Lunchbox(nn.Module):
    """Which of 32 foods a lunchbox holds, by a small picture of it."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.looks = nn.Conv2d(3, width, 4, 4)
        self.nearby = nn.Conv2d(width, width, 3, padding=1, groups=4)
        self.mixed = nn.Conv2d(width, 2 * width, 1)
        self.foods = nn.Linear(2 * width, 32)

    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.relu(self.looks(pictures))
        x = functional.relu(self.mixed(x + self.nearby(x)))
        return self.foods(x.mean((2, 3)))


def lunchboxes(count: int = 3000) -> TensorDataset:
    """Return pictures of random lunchboxes, and what is in each."""
    return TensorDataset(torch.rand(count, 3, 32, 32), (torch.rand(count, 32) < 0.1).float())


class Counted:
    """How often each food was found, missed and made up."""

    def __init__(self) -> None:
        self.counts = [[0, 0, 0] for _ in range(32)]

    def food_by_food(self, told: Tensor, there: Tensor) -> None:
        """Count the foods of a batch, each of which is asked."""
        for box in range(len(told)):
            for food, counts in enumerate(self.counts):
                said, known = told[box, food].item() > 0, there[box, food].item() > 0.5
                counts[0] += said and known
                counts[1] += known and not said
                counts[2] += said and not known

    def at_once(self, told: Tensor, there: Tensor) -> None:
        """Count the foods of a batch together."""
        said, known = told > 0, there > 0.5
        new = torch.stack([said & known, known & ~said, said & ~known], 2).sum(0)
        for counts, more in zip(self.counts, new.tolist(), strict=True):
            counts[:] = [one + other for one, other in zip(counts, more, strict=True)]


# Hoods


class Hood(nn.Module):
    """From which of 20 guilds a hood comes, by 64 patches, mixed over places and in each."""

    def __init__(self, width: int = 224, depth: int = 3) -> None:
        super().__init__()
        self.patches = nn.Linear(48, width)
        self.over = nn.ModuleList(self.two(64, 160) for _ in range(depth))
        self.inside = nn.ModuleList(self.two(width, 2 * width) for _ in range(depth))
        self.guild = nn.Linear(width, 20)

    @staticmethod
    def two(width: int, inner: int) -> nn.Module:
        """Return two layers."""
        return nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, patches: Tensor) -> Tensor:
        x = self.patches(patches)
        for over, inside in zip(self.over, self.inside, strict=True):
            x = x + over(x.transpose(1, 2)).transpose(1, 2)
            x = x + inside(x)
        return self.guild(x.mean(1))


def hoods(count: int = 1500) -> TensorDataset:
    """Return patches of random hoods, and whose they are."""
    return TensorDataset(torch.randn(count, 64, 48), torch.randint(20, (count,)))


# Notepads


class Notepad(nn.Module):
    """The next of 200 strokes on a notepad, by those before; causal attention, fused."""

    def __init__(self, width: int = 256, depth: int = 2) -> None:
        super().__init__()
        self.strokes = nn.Embedding(200, width)
        self.places = nn.Parameter(torch.randn(96, width) * 0.02)
        self.into = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.next = nn.Linear(width, 200)

    def forward(self, strokes: Tensor) -> Tensor:
        x = self.strokes(strokes) + self.places
        layers = zip(self.into, self.out, self.wide, self.narrow, strict=True)
        for into, out, wide, narrow in layers:
            parts = into(x).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + out(mixed.transpose(1, 2).flatten(2))
            x = x + narrow(functional.relu(wide(x)))
        return self.next(x).transpose(1, 2)


def notepads(count: int = 1200) -> TensorDataset:
    """Return strokes on random notepads, and the next ones."""
    strokes = torch.randint(200, (count, 97))
    return TensorDataset(strokes[:, :-1].contiguous(), strokes[:, 1:].contiguous())


# Gantries


class Gantry(nn.Module):
    """How worn a gantry's rail is, by pictures of it; strided convolutions with skips."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.rail = nn.Conv2d(1, width, 4, 2, 1)
        self.worn = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.how = nn.Linear(width, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.relu(self.rail(pictures))
        for layer in self.worn:
            x = x + functional.relu(layer(x))
        return self.how(x.mean((2, 3)))[:, 0]


def gantries(count: int = 1000) -> TensorDataset:
    """Return pictures of random rails, and how worn each is."""
    return TensorDataset(torch.rand(count, 1, 40, 40), torch.rand(count))


# Lassos


class Lasso(nn.Module):
    """Whether a lasso will hold, by forces between all pairs of 64 points of its rope."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.points = nn.Linear(9, width)
        self.near = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.hold = nn.Linear(width, 2)

    def forward(self, points: Tensor) -> Tensor:
        pulls = torch.softmax(-torch.cdist(points[..., :3], points[..., :3]), 2)
        x = self.points(points)
        for near, own in zip(self.near, self.own, strict=True):
            x = functional.relu(torch.bmm(pulls, near(x)) + own(x))
        return self.hold(x.mean(1))


def lassos(count: int = 1500) -> TensorDataset:
    """Return points of random lassos, and which held."""
    return TensorDataset(torch.randn(count, 64, 9), torch.randint(2, (count,)))


# Cribs


class Crib(nn.Module):
    """Whether a child in a crib is awake, by how the crib moved; ten narrow layers."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.moved = nn.Conv1d(3, width, 7, 2)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(8))
        self.awake = nn.Linear(width, 1)

    def forward(self, moved: Tensor) -> Tensor:
        x = self.moved(moved)
        for layer in self.layers:
            x = x + functional.elu(layer(x))
        return self.awake(x.mean(2))[:, 0]


def cribs(count: int = 6000) -> TensorDataset:
    """Return how random cribs moved, and in which the child is awake."""
    return TensorDataset(torch.randn(count, 3, 120), torch.randint(2, (count,)).float())


# Gavels


class Gavel(nn.Module):
    """At which of 16 prices the gavel falls, by the bids of an auction in their order."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.bid = nn.Linear(10, width)
        self.order = nn.GRU(width, width, batch_first=True)
        self.falls = nn.Linear(width, 16)

    def forward(self, bids: Tensor) -> Tensor:
        return self.falls(self.order(functional.relu(self.bid(bids)))[1][0])


def gavels(count: int = 5000) -> TensorDataset:
    """Return bids of random auctions, and the price of each."""
    return TensorDataset(torch.randn(count, 48, 10), torch.randint(16, (count,)))


# Corsets


class Corset(nn.Module):
    """How tight a corset is at 18 places, by 18 threads that pass each other; blocks in turn."""

    def __init__(self, width: int = 48, depth: int = 6) -> None:
        super().__init__()
        self.threads = nn.Linear(5, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.passed = nn.ModuleList(nn.Linear(18, 18) for _ in range(depth))
        self.pulled = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.tight = nn.Linear(width, 1)

    def forward(self, threads: Tensor) -> Tensor:
        x = self.threads(threads)
        for norm, passed, pulled in zip(self.norms, self.passed, self.pulled, strict=True):
            y = passed(norm(x).transpose(1, 2)).transpose(1, 2)
            x = x + torch.tanh(pulled(y))
        return self.tight(x)[..., 0]


def corsets(count: int = 6000) -> TensorDataset:
    """Return threads of random corsets, and how tight each is."""
    return TensorDataset(torch.randn(count, 18, 5), torch.rand(count, 18))
