"""Models and data of the eleventh round's runs of bells, lace, diffraction and canopies."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Bells


class Bell(nn.Module):
    """Makes a bell's sound anew: how loud each of its tones begins, and how soon each fades."""

    def __init__(self, tones: int = 40, width: int = 96, length: int = 4096) -> None:
        super().__init__()
        self.register_buffer("moments", torch.arange(length) / 8000)
        self.heard = nn.Sequential(
            nn.Conv1d(1, width // 2, 64, stride=16, padding=24),
            nn.SiLU(),
            nn.Conv1d(width // 2, width, 9, stride=4, padding=4),
            nn.SiLU(),
            nn.Conv1d(width, width, 9, stride=4, padding=4),
            nn.SiLU(),
        )
        self.told = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU())
        self.tones = nn.Linear(2 * width, 3 * tones)
        self.lowest = nn.Parameter(torch.linspace(4.0, 8.0, tones))

    def forward(self, sound: Tensor) -> Tensor:
        told = self.tones(self.told(self.heard(sound[:, None]).mean(2)))
        loud, fading, bent = told[..., None].chunk(3, 1)
        tone = (self.lowest[:, None] + 0.05 * bent.tanh()).exp()
        fades = (-20 * functional.softplus(fading) * self.moments).exp()
        return (loud.sigmoid() * fades * (2 * torch.pi * tone * self.moments).sin()).sum(1)


def rings(count: int = 512, length: int = 4096) -> TensorDataset:
    """Return random sounds of bells, twice: what is heard and what is to be made."""
    sounds = torch.randn(count, length) * torch.linspace(1, 0, length)
    return TensorDataset(sounds, sounds)


def spectral(made: Tensor, wanted: Tensor) -> Tensor:
    """Return how far spectra of three lengths are apart, and their logarithms."""
    loss = made.new_zeros(())
    for size in (2048, 512, 128):
        window = torch.hann_window(size)
        one, other = (
            torch.stft(each, size, size // 4, window=window, return_complex=True).abs()
            for each in (made, wanted)
        )
        loss = loss + functional.l1_loss(one, other)
        loss = loss + functional.l1_loss((one + 1e-4).log(), (other + 1e-4).log())
    return loss


# Lace


class Lace(nn.Module):
    """Puts lace together from a book of small pieces, which it learns."""

    def __init__(self, pieces: int = 256, width: int = 32) -> None:
        super().__init__()
        self.into = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        )
        self.book = nn.Parameter(torch.randn(pieces, 2 * width) / pieces)
        self.out = nn.Sequential(
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, lace: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.into(lace).movedim(1, 3)
        nearest = torch.cdist(seen.detach().flatten(0, 2), self.book.detach()).argmin(1)
        piece = self.book[nearest].view_as(seen)
        apart = functional.mse_loss(piece, seen.detach())
        apart = apart + 0.25 * functional.mse_loss(seen, piece.detach())
        passed = seen + (piece - seen).detach()
        return self.out(passed.movedim(3, 1)), apart


def laces(count: int = 1024, side: int = 64) -> Tensor:
    """Return random pictures of lace as bytes, (pictures, side, side)."""
    return torch.randint(256, (count, side, side), dtype=torch.uint8)


# Diffraction patterns


class Waves(nn.Module):
    """Changes the few longest waves of each channel, and each point by itself."""

    def __init__(self, width: int, kept: int) -> None:
        super().__init__()
        self.kept = kept
        self.weight = nn.Parameter(torch.randn(2, kept, kept, width, width, 2) / width**2)
        self.point = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        waves, kept = torch.fft.rfft2(x), self.kept
        weight = torch.view_as_complex(self.weight)
        changed = torch.zeros_like(waves)
        for part, rows in zip(weight, (slice(kept), slice(-kept, None)), strict=True):
            low = waves[:, :, rows, :kept]
            changed[:, :, rows, :kept] = torch.einsum("bihw,hwio->bohw", low, part)
        return functional.gelu(torch.fft.irfft2(changed, s=x.shape[2:]) + self.point(x))


class Diffraction(nn.Module):
    """What stood in the beam, how dense and how thick, from the pattern behind it."""

    def __init__(self, width: int = 20, kept: int = 10, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.layers = nn.Sequential(*(Waves(width, kept) for _ in range(depth)))
        self.dense, self.thick = (
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GELU(), nn.Conv2d(width, 1, 1))
            for _ in range(2)
        )

    def forward(self, pattern: Tensor) -> Tensor:
        x = self.layers(self.enter(pattern.sqrt()))
        return torch.cat([self.dense(x).sigmoid(), torch.pi * self.thick(x).tanh()], 1)


def patterns(count: int = 512, side: int = 64) -> TensorDataset:
    """Return counts of photons behind random samples, and what the samples are."""
    samples = torch.rand(count, 2, side, side)
    field = samples[:, 0] * torch.polar(torch.ones(count, side, side), samples[:, 1])
    strength = torch.fft.fftshift(torch.fft.fft2(field, norm="ortho"), (1, 2)).abs().square()
    return TensorDataset(torch.poisson(strength)[:, None], samples)


# Canopy heights


class Large(nn.Module):
    """Each channel looks far, then all channels of a point are mixed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.far = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.GroupNorm(1, width)
        self.mix = nn.Sequential(
            nn.Conv2d(width, 3 * width, 1), nn.GELU(), nn.Conv2d(3 * width, width, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mix(self.norm(self.far(x)))


class Canopy(nn.Module):
    """How high trees stand, from a satellite's twelve bands: a mean and how sure it is of it."""

    def __init__(self, width: int = 32, bands: int = 12, stages: int = 3) -> None:
        super().__init__()
        wide = [width * 2**at for at in range(stages)]
        self.down = nn.ModuleList(
            nn.Conv2d(into, out, 2, stride=2)
            for into, out in zip([bands, *wide], wide, strict=False)
        )
        self.there = nn.ModuleList(nn.Sequential(Large(each), Large(each)) for each in wide)
        self.joined = nn.ModuleList(nn.Conv2d(each, width, 1) for each in wide)
        self.height = nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, scene: Tensor) -> Tensor:
        x, found = scene, []
        for down, there, joined in zip(self.down, self.there, self.joined, strict=True):
            x = there(down(x))
            found.append(functional.interpolate(joined(x), scene.shape[2:]))
        return self.height(torch.stack(found).sum(0))


def forests(count: int = 512, side: int = 32) -> TensorDataset:
    """Return random scenes, with tens of metres where a laser passed, elsewhere none."""
    heights = 4 * torch.rand(count, side, side)
    heights[torch.rand(count, side, side) > 0.05] = torch.nan
    return TensorDataset(torch.rand(count, 12, side, side), heights)


def where_measured(found: Tensor, height: Tensor) -> Tensor:
    """Return how unlikely the measured heights are."""
    measured = ~height.isnan()
    mean, spread = found[:, 0][measured], found[:, 1][measured].exp()
    return functional.gaussian_nll_loss(mean, height[measured], spread)
