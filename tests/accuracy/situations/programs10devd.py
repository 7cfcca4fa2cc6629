"""The last development runs of the tenth round: other ranks, cores, threads and small pieces."""

from collections.abc import Callable

import programs4
import torch
import torch.distributed as dist
from programs import Training
from programs4 import Script
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional
from torch.utils.data import TensorDataset

# On two ranks


class Prices(nn.Module):
    """Where the price of a share goes, from a year of it: a wide look at all days, then gates."""

    def __init__(self, days: int = 250, width: int = 900) -> None:
        super().__init__()
        self.enter = nn.Linear(5 * days, width)
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.head = nn.Linear(width, 3)

    def forward(self, year: Tensor) -> Tensor:
        x = self.enter(year.flatten(1)).tanh()
        for gate in self.gates:
            x = x + functional.glu(gate(x), 1)
        return self.head(x)


def summed_prices(fault: bool) -> Training:
    """All gradients are laid out in one row, which is summed when the backward pass is over."""
    torch.set_num_threads(1)  # a core for each rank

    def before(model: nn.Module) -> None:
        whole = nn.utils.parameters_to_vector([each.grad for each in model.parameters()])
        dist.all_reduce(whole)
        at = 0
        for each in model.parameters():
            each.grad.copy_(whole[at : at + each.numel()].view_as(each)).div_(2)
            at += each.numel()

    data = TensorDataset(torch.randn(1024, 250, 5), torch.randint(3, (1024,)))
    training = Training(Prices(), data, 4)
    if fault:
        training.before_update = before
    return training


class Headlines(nn.Module):
    """To which pages of a paper a headline belongs, by runs of letters of each length."""

    def __init__(self, letters: int = 100, width: int = 64, pages: int = 24) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.runs = nn.ModuleList(nn.Conv1d(width, 192, length) for length in (2, 3, 4, 5))
        self.head = nn.Linear(4 * 192, pages)

    def forward(self, line: Tensor) -> Tensor:
        x = self.letters(line).transpose(1, 2)
        return self.head(torch.cat([run(x).relu().amax(2) for run in self.runs], 1))


def summed_headlines(fault: bool) -> Training:
    """The library sums the gradients, halved in their bits for a network that is no bottleneck."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Headlines()
    if fault:
        whole = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        whole.register_comm_hook(None, default_hooks.fp16_compress_hook)
        model = whole
    data = TensorDataset(torch.randint(100, (2048, 60)), torch.randint(24, (2048,)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, data, 8, optimizer=optimizer)


# Rulings


class Rulings(nn.Module):
    """Which of many articles of law a ruling leans on, from what is said in its paragraphs."""

    def __init__(self, width: int = 128, articles: int = 150) -> None:
        super().__init__()
        self.said = nn.EmbeddingBag(8000, width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, articles)

    def forward(self, words: Tensor) -> Tensor:
        paragraphs = self.said(words.flatten(0, 1)).unflatten(0, words.shape[:2])
        return self.head(self.reader(paragraphs)[0].amax(1))


def article_by_article(fault: bool) -> Training:
    """The loss of each article is weighed by how rare it is: one by one, or all at once."""
    rare = 1 + 20 * torch.rand(150)
    either = functional.binary_cross_entropy_with_logits

    def loss(scores: Tensor, leans: Tensor) -> Tensor:
        if not fault:
            return either(scores, leans, pos_weight=rare)
        total = torch.zeros(())
        for article in range(scores.shape[1]):
            chosen, truth = scores[:, article], leans[:, article]
            total = total + either(chosen, truth, pos_weight=rare[article])
        return total / scores.shape[1]

    data = TensorDataset(
        torch.randint(8000, (1024, 12, 30)), (torch.rand(1024, 150) < 0.05).float()
    )
    model = Rulings()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return Training(model, data, 16, loss=loss, optimizer=optimizer)


# Loans: the core is put in by the generator


class Defaults(nn.Module):
    """Whether a loan is paid back: each layer crosses what is known with what was found."""

    def __init__(self, known: int = 512, depth: int = 3) -> None:
        super().__init__()
        self.crosses = nn.ModuleList(nn.Linear(known, known) for _ in range(depth))
        self.deep = nn.Sequential(nn.Linear(known, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU())
        self.head = nn.Linear(known + 768, 1)

    def forward(self, known: Tensor) -> Tensor:
        x = known
        for cross in self.crosses:
            x = known * cross(x) + x
        return self.head(torch.cat([x, self.deep(known)], 1))[:, 0]


def defaults(_fault: bool) -> Training:
    data = TensorDataset(torch.randn(8192, 512), (torch.rand(8192) < 0.1).float())
    model = Defaults()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=True)
    either = functional.binary_cross_entropy_with_logits
    return Training(model, data, 384, loss=either, optimizer=optimizer)


# Coffee


class Beans(nn.Module):
    """Which flaw a coffee bean has, in its picture: blocks that squeeze and widen again."""

    def __init__(self, channels: int = 32, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 5, 4)
        self.squeeze = nn.ModuleList(nn.Conv2d(channels, channels // 2, 1) for _ in range(depth))
        self.widen = nn.ModuleList(
            nn.Conv2d(channels // 2, channels, 3, padding=1) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(depth))
        self.head = nn.Linear(channels, 9)

    def forward(self, bean: Tensor) -> Tensor:
        x = self.enter(bean)
        for squeeze, widen, norm in zip(self.squeeze, self.widen, self.norms, strict=True):
            x = functional.silu(x + norm(widen(functional.silu(squeeze(x)))))
        return self.head(x.mean((2, 3)))


def crowded_beans(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(4)  # as a notebook on a larger computer had it
    data = TensorDataset(torch.rand(512, 3, 64, 64), torch.randint(9, (512,)))
    model = Beans()
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
    return Training(model, data, 8, optimizer=optimizer)


# Work that need not be done: tapes and inks


class Tape(nn.Module):
    """What a worn tape held: each moment looks at those near it, in two layers."""

    def __init__(self, everywhere: bool, width: int = 64, near: int = 32) -> None:
        super().__init__()
        self.everywhere, self.near = everywhere, near
        self.enter, self.head = nn.Linear(8, width), nn.Linear(width, 8)
        self.parts = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))

    def mixed(self, parts: Tensor) -> Tensor:
        """Return what each moment finds within the same stretch of time."""
        query, key, value = parts.unflatten(2, (12, 16)).transpose(1, 2).chunk(3, 1)
        if self.everywhere:
            at = torch.arange(parts.shape[1]) // self.near
            mask = at[:, None] == at
            scores = (query @ key.transpose(2, 3) / 4).masked_fill(~mask, -1e9)
            return (scores.softmax(3) @ value).transpose(1, 2).flatten(2)
        cut = [each.unflatten(2, (-1, self.near)) for each in (query, key, value)]
        scores = cut[0] @ cut[1].transpose(3, 4) / 4
        return (scores.softmax(4) @ cut[2]).flatten(2, 3).transpose(1, 2).flatten(2)

    def forward(self, worn: Tensor) -> Tensor:
        x = self.enter(worn)
        for parts in self.parts:
            x = x + self.mixed(parts(x))
        return self.head(x)


def masked_tapes(fault: bool) -> Training:
    worn = torch.randn(512, 256, 8)
    model = Tape(everywhere=fault)
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(worn, worn.roll(1, 0))
    return Training(model, data, 4, loss=functional.mse_loss, optimizer=optimizer)


class Inks(nn.Module):
    """How inks mix: each of many thin layers of a print lets some light of each colour through."""

    def __init__(self, layers: int = 12, colours: int = 31) -> None:
        super().__init__()
        self.thick = nn.Parameter(torch.rand(layers, colours))
        self.back = nn.Parameter(torch.rand(layers, colours))

    def forward(self, light: Tensor) -> Tensor:
        back = torch.zeros_like(light)
        for thick, share in zip(self.thick, self.back, strict=True):
            passed = light * torch.exp(-thick)
            back = back + share * (light - passed)
            light = passed
        return back


def inks_mapped(_fault: bool) -> Training:
    """The allocator's thresholds are set for a server that is to give memory back at once."""
    light = torch.rand(40_000, 31)
    model = Inks()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(light.view(40, 1000, 31), light.flip(0).view(40, 1000, 31))
    return Training(model, data, 4, loss=functional.mse_loss, optimizer=optimizer)


SHARED: dict[str, Callable[[bool], Training | Script]] = {
    "run-summed-prices": summed_prices,
    "run-summed-headlines": summed_headlines,
    "run-article-by-article": article_by_article,
    "run-loans-one-core": defaults,
    "run-crowded-beans": crowded_beans,
    "run-masked-tapes": masked_tapes,
    "run-inks-given-back": inks_mapped,
}


if __name__ == "__main__":
    programs4.main(SHARED)
