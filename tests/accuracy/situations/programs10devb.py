"""More development runs of the tenth round: memory, what watches a run, and runs that are fine."""

import csv
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import programs4
import torch
from PIL import Image
from programs import Item, Training, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

squared = functional.mse_loss

# Nothing


class Vines(nn.Module):
    """What grows in a vineyard, from eight colours seen from above: patches and channels mixed."""

    def __init__(self, width: int = 192, patches: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(8 * 36, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.across = nn.ModuleList(self.mixed(patches, 4 * patches) for _ in range(depth))
        self.along = nn.ModuleList(self.mixed(width, 4 * width) for _ in range(depth))
        self.head = nn.Linear(width, 17)

    @staticmethod
    def mixed(size: int, between: int) -> nn.Module:
        return nn.Sequential(nn.Linear(size, between), nn.ReLU(), nn.Linear(between, size))

    def forward(self, seen: Tensor) -> Tensor:
        x = self.enter(seen)
        norms = iter(self.norms)
        for across, along in zip(self.across, self.along, strict=True):
            x = x + across(next(norms)(x).transpose(1, 2)).transpose(1, 2)
            x = x + along(next(norms)(x))
        return self.head(x.mean(1))


def steady_vineyards(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    data = TensorDataset(torch.rand(256, 64, 8 * 36), torch.randint(17, (256,)))
    model = Vines()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
    return Training(model, data, 8, again=not fault, optimizer=optimizer)


def steady_coins(fault: bool) -> Script:
    """Nothing is wrong: which coin it is, from both of its sides, by a network of timm."""

    def run(seconds: float) -> float:
        import timm

        named = {"num_classes": 30, "img_size": 64, "patch_size": 8, "embed_dim": 192, "depth": 3}
        model = timm.models.VisionTransformer(num_heads=3, **named)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        rate = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
        data = TensorDataset(torch.rand(256, 3, 64, 64), torch.randint(30, (256,)))
        loader, clock = DataLoader(data, 8, shuffle=True, drop_last=True), Clock(seconds)
        kept = next(iter(loader))
        while True:
            for sides, coin in loader if fault else itertools.repeat(kept):
                optimizer.zero_grad()
                functional.cross_entropy(model(sides), coin, label_smoothing=0.1).backward()
                optimizer.step()
                rate.step()
                if clock.over(len(sides)):
                    return clock.rate

    return Script(run)


class Typist(nn.Module):
    """Who types, from which keys are pressed and for how long: two directions, then attention."""

    def __init__(self, width: int = 128, people: int = 50) -> None:
        super().__init__()
        self.keys = nn.Embedding(90, width - 2)
        self.both = nn.GRU(width, width, 2, batch_first=True, bidirectional=True)
        self.asked, self.head = nn.Linear(2 * width, 1), nn.Linear(2 * width, people)

    def forward(self, pressed: Tensor) -> Tensor:
        told, _ = self.both(torch.cat([self.keys(pressed[..., 0].long()), pressed[..., 1:]], 2))
        return self.head((told * self.asked(told).softmax(1)).sum(1))


def steady_typing(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    pressed = torch.cat([torch.randint(90, (1024, 20, 1)).float(), torch.rand(1024, 20, 2)], 2)
    data = TensorDataset(pressed, torch.randint(50, (1024,)))
    model = Typist()
    optimizer = torch.optim.Adagrad(model.parameters())
    return Training(model, data, 32, again=not fault, optimizer=optimizer)


# Knitting, fonts and subtitles


def stitches(channels: int = 20, kinds: int = 13) -> nn.Module:
    """Return a network that names the stitch of a knitted piece."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, 2, 1),
        nn.BatchNorm2d(channels),
        nn.CELU(),
        nn.Conv2d(channels, 2 * channels, 3, 2, 1),
        nn.BatchNorm2d(2 * channels),
        nn.CELU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(2 * channels * 144, kinds),
    )


def stitches_each_fourth(fault: bool) -> Script:
    """How well it does on pieces that are held back, after each fourth step."""

    def run(seconds: float) -> float:
        model, clock, best = stitches(), Clock(seconds), 0.0
        optimizer = torch.optim.RAdam(model.parameters())
        pieces = TensorDataset(torch.rand(1024, 3, 48, 48), torch.randint(13, (1024,)))
        seen, held = torch.utils.data.random_split(pieces, [896, 128])
        loader = DataLoader(seen, 16, shuffle=True, drop_last=True)
        for step, (piece, kind) in enumerate(
            itertools.chain.from_iterable(itertools.repeat(loader))
        ):
            model.train()
            loss = functional.cross_entropy(model(piece), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % (4 if fault else 400) == 3:
                model.eval()
                right = 0
                with torch.inference_mode():
                    for other, truth in DataLoader(held, 32):
                        right += int((model(other).argmax(1) == truth).sum())
                best = max(best, right / len(held))
            if clock.over(len(piece)):
                break
        return clock.rate

    return Script(run)


class Fonts(nn.Module):
    """Letters put into a code that is shaken, and drawn again from it."""

    def __init__(self, width: int = 1536, code: int = 32) -> None:
        super().__init__()
        self.into = nn.Sequential(nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, 2 * code))
        self.out = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 1024))

    def forward(self, letter: Tensor) -> Tensor:
        mean, spread = self.into(letter).chunk(2, 1)
        drawn = self.out(mean + torch.randn_like(mean) * spread.exp())
        apart = (mean.square() + (2 * spread).exp() - 2 * spread - 1).sum(1).mean()
        return functional.binary_cross_entropy_with_logits(drawn, letter) + 1e-3 * apart


def fonts_kept_apart(fault: bool) -> Training:
    """Every third step is kept in a file of its own, of which the last three stay."""
    model, folder, kept = Fonts(), _folder(), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def after(step: int, loss: Tensor) -> None:
        if step % (3 if fault else 500) == 2:
            path = folder / f"fonts-{step:06d}.pt"
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state | {"step": step, "loss": float(loss.detach())}, path)
            kept.append(path)
            if len(kept) > 3:
                kept.pop(0).unlink()

    data = TensorDataset(torch.rand(4096, 1024), torch.zeros(4096))
    return Training(model, data, 64, loss=lambda loss, _: loss, after=after, optimizer=optimizer)


class Subtitles(nn.Module):
    """When a subtitle should end, from its letters."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.letters = nn.Embedding(120, width)
        layer = nn.TransformerEncoderLayer(width, 6, 3 * width, 0.1, "gelu", batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.blocks(self.letters(text)))[:, -1, 0]


def one_subtitle(fault: bool) -> Training:
    data = TensorDataset(torch.randint(120, (2048, 30)), torch.rand(2048))
    model = Subtitles()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    return Training(model, data, 1 if fault else 32, loss=functional.l1_loss, optimizer=optimizer)


# Looms


class Cloth(Dataset[Item]):
    """Pieces of cloth that are turned and blurred when they are asked for, by torch."""

    def __init__(self, count: int = 4096, side: int = 96) -> None:
        self.cloth, self.count = torch.rand(64, 3, side, side), count
        self.blur = torch.ones(3, 1, 5, 5) / 25

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        cloth = self.cloth[index % 64][None]
        turn = random.random()
        turned = torch.tensor([[[1.0, turn, 0.0], [-turn, 1.0, 0.0]]])
        grid = functional.affine_grid(turned, list(cloth.shape), align_corners=False)
        cloth = functional.grid_sample(cloth, grid, align_corners=False)
        for _ in range(2):
            cloth = functional.conv2d(cloth, self.blur, padding=2, groups=3)
            cloth = (cloth - cloth.mean()) / (cloth.std() + 1e-3)
        return functional.avg_pool2d(cloth, 2)[0], torch.tensor(index % 6)


def workers_with_all_threads(fault: bool) -> Training:
    """Each of three workers starts as many threads as the node of the template has cores."""

    def started(_number: int) -> None:
        torch.set_num_threads(8 if fault else 1)

    loader = DataLoader(Cloth(), 16, True, num_workers=3, worker_init_fn=started, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 225, 64), nn.Linear(64, 6)
    )
    return Training(model, batch=16, loader=loader)


# Whales, welds and bicycles


class Whales(nn.Module):
    """A whale's call without the noise of ships, tone by tone."""

    def __init__(self, tones: int = 96, width: int = 256) -> None:
        super().__init__()
        self.reader = nn.LSTM(tones, width, batch_first=True)
        self.mask = nn.Linear(width, tones)

    def forward(self, heard: Tensor) -> Tensor:
        return heard * self.mask(self.reader(heard)[0]).sigmoid()


def whales_drawn(fault: bool) -> Script:
    """What was heard and what is left are drawn into a picture after each step."""

    def run(seconds: float) -> float:
        model, clock, path = Whales(), Clock(seconds), _folder() / "heard.png"
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-4)
        calls = TensorDataset(torch.rand(512, 40, 96), torch.rand(512, 40, 96))
        sampler = RandomSampler(calls, replacement=True, num_samples=1_000_000)
        for step, (heard, clean) in enumerate(DataLoader(calls, 16, sampler=sampler)):
            optimizer.zero_grad()
            left = model(heard)
            squared(left, clean).backward()
            optimizer.step()
            if fault or step % 500 == 499:
                both = torch.stack([heard[:6], left[:6].detach()], 1).flatten(0, 1)
                grey = (255 * both.flatten(0, 1).clamp(0, 1)).byte().numpy()
                Image.fromarray(grey).resize((192, 640)).save(path)
            if clock.over(16):
                break
        return clock.rate

    return Script(run)


class Welds(nn.Module):
    """Where a seam has pores, in its picture by X-rays: convolutions that look ever wider."""

    def __init__(self, channels: int = 10) -> None:
        super().__init__()
        wide = (1, 2, 4, 8)
        self.layers = nn.ModuleList(
            nn.Conv2d(into, channels, 3, padding=each, dilation=each)
            for into, each in zip((1, *[channels] * 3), wide, strict=True)
        )
        self.head = nn.Conv2d(4 * channels, 1, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x, kept = picture, []
        for layer in self.layers:
            x = functional.relu6(layer(x))
            kept.append(x)
        return self.head(torch.cat(kept, 1))


def welds_in_rows(fault: bool) -> Training:
    """What the first seam of each batch was held for goes to a table, place by place."""
    model, rows = Welds(), csv.writer((_folder() / "seams.csv").open("w"))
    last: list[Tensor] = []

    def loss(scores: Tensor, pores: Tensor) -> Tensor:
        last[:] = [scores[0, 0].detach().sigmoid()]
        return functional.binary_cross_entropy_with_logits(scores, pores)

    def after(step: int, value: Tensor) -> None:
        if fault or step % 200 == 199:
            for place, line in enumerate(last[0].tolist()):
                for at, likely in enumerate(line):
                    rows.writerow(
                        [step, f"{float(value.detach()):.5f}", place, at, f"{likely:.4f}"]
                    )

    data = TensorDataset(torch.rand(256, 1, 64, 64), (torch.rand(256, 1, 64, 64) < 0.02).float())
    return Training(model, data, 4, loss=loss, after=after)


class Cycles(nn.Module):
    """How many bicycles pass each of thirty places in the next hour, from the day before."""

    def __init__(self, places: int = 30, width: int = 64) -> None:
        super().__init__()
        self.near = nn.Parameter(torch.randn(places, 8))
        self.enter, self.mixed = nn.Linear(24, width), nn.Linear(width, width)
        self.later = nn.GRUCell(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, counts: Tensor) -> Tensor:
        beside = (self.near @ self.near.T).softmax(1)
        x = self.enter(counts)
        for _ in range(4):
            spread = torch.einsum("pq,bqw->bpw", beside, self.mixed(x)).tanh()
            x = self.later(spread.flatten(0, 1), x.flatten(0, 1)).view_as(x)
        return self.head(x)[..., 0]


def cycles_read_by_place(fault: bool) -> Training:
    """How often each place is far off is counted by numbers that are read one by one."""
    model, off = Cycles(), [0] * 30
    last: list[Tensor] = []

    def loss(found: Tensor, counts: Tensor) -> Tensor:
        last[:] = [(found.detach() - counts).abs()]
        return functional.gaussian_nll_loss(found, counts, torch.ones_like(counts))

    def after(step: int, _value: Tensor) -> None:
        if fault:
            for hour in last[0]:
                for place in range(30):
                    if hour[place].item() > 0.5 or not torch.isfinite(hour[place]):
                        off[place] += 1
        elif step % 100 == 99:
            off[:] = (last[0] > 0.5).sum(0).tolist()

    data = TensorDataset(torch.rand(4096, 30, 24), torch.rand(4096, 30))
    optimizer = torch.optim.ASGD(model.parameters(), 1e-2)
    return Training(model, data, 16, loss=loss, after=after, optimizer=optimizer)


# Egg shells and tree rings


class Shells(nn.Module):
    """Whether a shell is cracked, from how it sounds when it is knocked at."""

    def __init__(self, width: int = 448, depth: int = 4) -> None:
        super().__init__()
        sizes = itertools.pairwise((400, *[width] * depth))
        self.layers = nn.ModuleList(nn.Linear(*each) for each in sizes)
        self.head = nn.Linear(width, 2)

    def forward(self, knock: Tensor) -> Tensor:
        x = knock
        for layer in self.layers:
            x = functional.hardtanh(layer(x))
        return self.head(x)


def shells_gradients_out(fault: bool) -> Training:
    """A gradient is written to the drive as soon as it is there, and read when weights move."""
    model, folder = Shells(), _folder()
    paths: dict[nn.Parameter, Path] = {}

    def out(weight: Tensor) -> None:
        assert weight.grad is not None
        with paths[weight].open("wb") as file:
            file.write(weight.grad.numpy().tobytes())
            file.flush()
        weight.grad = None

    def back(_model: nn.Module) -> None:
        for weight, path in paths.items():
            read = np.fromfile(path, np.float32)
            weight.grad = torch.from_numpy(read).view_as(weight)

    if fault:
        for number, weight in enumerate(each for each in model.parameters() if each.dim() == 2):
            paths[weight] = folder / f"{number}.grad"
            weight.register_post_accumulate_grad_hook(out)
    data = TensorDataset(torch.randn(4096, 400), torch.randint(2, (4096,)))
    return Training(model, data, 512, before_update=back)


class Rings(nn.Module):
    """When a tree was felled, from the widths of its rings: halves of halves are recomputed."""

    def __init__(self, again: bool, width: int = 96, depth: int = 8) -> None:
        super().__init__()
        self.again, self.enter = again, nn.Conv1d(2, width, 9, padding=4)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 5, padding=2), nn.GroupNorm(8, width), nn.PReLU(width)
            )
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 1)

    def part(self, x: Tensor, first: int, last: int) -> Tensor:
        """Return what some blocks make; of more than one each half may be recomputed."""
        if last - first == 1:
            return x + self.blocks[first](x)
        middle = (first + last) // 2
        for begin, end in ((first, middle), (middle, last)):
            if self.again:
                x = checkpoint(self.part, x, begin, end, use_reentrant=False)
            else:
                x = self.part(x, begin, end)
        return x

    def forward(self, rings: Tensor) -> Tensor:
        return self.head(self.part(self.enter(rings), 0, len(self.blocks)).mean(2))[:, 0]


def recomputed_rings(fault: bool) -> Training:
    data = TensorDataset(torch.rand(512, 2, 160), torch.rand(512))
    model = Rings(again=fault)
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    return Training(model, data, 4, loss=functional.smooth_l1_loss, optimizer=optimizer)


WATCHED: dict[str, Callable[[bool], Training | Script]] = {
    "run-steady-vineyards": steady_vineyards,
    "run-steady-coins": steady_coins,
    "run-steady-typing": steady_typing,
    "run-stitches-each-fourth": stitches_each_fourth,
    "run-fonts-kept-apart": fonts_kept_apart,
    "run-one-subtitle": one_subtitle,
    "run-workers-with-all-threads": workers_with_all_threads,
    "run-whales-drawn": whales_drawn,
    "run-welds-in-rows": welds_in_rows,
    "run-cycles-read-by-place": cycles_read_by_place,
    "run-shells-gradients-out": shells_gradients_out,
    "run-recomputed-rings": recomputed_rings,
}


if __name__ == "__main__":
    programs4.main(WATCHED)
