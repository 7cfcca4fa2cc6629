"""YOLOX-s: arXiv 2107.08430; its assignment of boxes to places is taken as given."""

from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from subject import Subject
from torch import nn

CLASSES = 80
"""Of COCO."""
STRIDES = (8, 16, 32)
BOXES, PLACES = 32, 10
"""Assumed: four images make a mosaic, each with COCO's 7.7 boxes on average, and each box gets
as many places as the assignment may give (the ``top-k`` of section 2.3 of the paper's SimOTA)."""
LABELS = 120
"""Rows of the label table of an image; boxes fill the first (``max_labels`` of the recipe)."""
BOX_WEIGHT = 5.0
"""``reg_weight`` of the recipe."""


def build(spec: dict[str, Any]) -> Subject:
    """Return the detector and its loss."""
    pixels = spec["image_size"] or 640

    def pictures(size: int, length: int) -> step.Batch:
        labels = {"boxes": torch.zeros((size, LABELS, 5))}
        return step.Batch({"x": torch.zeros((size, 3, pixels, pixels))}, labels)

    facts = {"stack": "plain", "family": "yolox", "image_size": pixels}
    assumed = {"profile.assumed.boxes": BOXES, "profile.assumed.places": BOXES * PLACES}
    return Subject(Yolox(), pictures, assigned_loss, facts, assumed=assumed)


class Convolution(nn.Sequential):
    """Convolution, batch norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.03),
            nn.SiLU(inplace=True),
        )


class Residual(nn.Module):
    """A 1x1 and a 3x3 convolution, around which ``adds`` leads a short cut."""

    def __init__(self, width: int, adds: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(Convolution(width, width), Convolution(width, width, 3))
        self.adds = adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the shape that came in."""
        y = self.layers(x)
        return y + x if self.adds else y  # type: ignore[no-any-return]


class Split(nn.Module):
    """Cross-stage partial block: half of the channels pass the residuals, half go around."""

    def __init__(self, inputs: int, outputs: int, depth: int = 1, adds: bool = True) -> None:
        super().__init__()
        half = outputs // 2
        self.through, self.around = Convolution(inputs, half), Convolution(inputs, half)
        self.join = Convolution(2 * half, outputs)
        self.residuals = nn.Sequential(*(Residual(half, adds) for _ in range(depth)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, outputs, H, W)."""
        through = self.residuals(self.through(x))
        return self.join(torch.cat((through, self.around(x)), dim=1))  # type: ignore[no-any-return]


class Pools(nn.Module):
    """Spatial pyramid pooling."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow, self.join = Convolution(width, width // 2), Convolution(width * 2, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the shape that came in."""
        x = self.narrow(x)
        pooled = [F.max_pool2d(x, size, 1, size // 2) for size in (5, 9, 13)]
        return self.join(torch.cat((x, *pooled), dim=1))  # type: ignore[no-any-return]


class Head(nn.Module):
    """Decoupled head of one level."""

    def __init__(self, inputs: int, width: int = 128) -> None:
        super().__init__()
        self.stem = Convolution(inputs, width)
        self.naming, self.placing = (
            nn.Sequential(Convolution(width, width, 3), Convolution(width, width, 3))
            for _ in range(2)
        )
        self.classes = nn.Conv2d(width, CLASSES, 1)
        self.box, self.object = nn.Conv2d(width, 4, 1), nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, H * W, 5 + CLASSES): box, object, classes."""
        x = self.stem(x)
        named, placed = self.classes(self.naming(x)), self.placing(x)
        found = torch.cat((self.box(placed), self.object(placed), named), dim=1)
        return found.flatten(2).transpose(1, 2)


class Yolox(nn.Module):
    """The small network: a third of the full depth and half of the full width."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(12, 32, 3)
        self.dark2 = nn.Sequential(Convolution(32, 64, 3, 2), Split(64, 64))
        self.dark3 = nn.Sequential(Convolution(64, 128, 3, 2), Split(128, 128, 3))
        self.dark4 = nn.Sequential(Convolution(128, 256, 3, 2), Split(256, 256, 3))
        self.dark5 = nn.Sequential(
            Convolution(256, 512, 3, 2), Pools(512), Split(512, 512, adds=False)
        )
        self.lateral5, self.up4 = Convolution(512, 256), Split(512, 256, adds=False)
        self.lateral4, self.up3 = Convolution(256, 128), Split(256, 128, adds=False)
        self.down3, self.out4 = Convolution(128, 128, 3, 2), Split(256, 256, adds=False)
        self.down4, self.out5 = Convolution(256, 256, 3, 2), Split(512, 512, adds=False)
        self.heads = nn.ModuleList(Head(width) for width in (128, 256, 512))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, places, 5 + CLASSES), boxes as centers and sizes in pixels."""
        corners = (x[..., i::2, j::2] for j in (0, 1) for i in (0, 1))
        dark3 = self.dark3(self.dark2(self.stem(torch.cat(list(corners), dim=1))))
        dark4 = self.dark4(dark3)
        top = self.lateral5(self.dark5(dark4))
        middle = self.lateral4(self.up4(torch.cat((F.interpolate(top, scale_factor=2), dark4), 1)))
        out3 = self.up3(torch.cat((F.interpolate(middle, scale_factor=2), dark3), 1))
        out4 = self.out4(torch.cat((self.down3(out3), middle), 1))
        out5 = self.out5(torch.cat((self.down4(out4), top), 1))
        levels = zip(self.heads, (out3, out4, out5), STRIDES, strict=True)
        return torch.cat([_placed(head(x), x, stride) for head, x, stride in levels], dim=1)


def _placed(raw: torch.Tensor, x: torch.Tensor, stride: int) -> torch.Tensor:
    """Return the predictions of a level with their boxes in pixels."""
    rows, columns = (torch.arange(side, device=x.device) for side in x.shape[-2:])
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    grid = torch.stack((x, y), dim=2).view(1, -1, 2).to(raw.dtype)
    center, size, rest = raw[..., :2], raw[..., 2:4], raw[..., 4:]
    return torch.cat(((center + grid) * stride, size.exp() * stride, rest), dim=2)


def assigned_loss(
    output: torch.Tensor, labels: dict[str, torch.Tensor], count: float
) -> torch.Tensor:
    """Return the overlap, object and class losses, a mean over the assigned places."""
    images, _, width = output.shape
    boxes, objects, classes = output.split((4, 1, width - 5), dim=2)
    assigned = torch.arange(images * BOXES * PLACES, device=output.device) % boxes[..., 0].numel()
    wanted = labels["boxes"][:, :BOXES, 1:].repeat(1, PLACES, 1).view(-1, 4)
    kinds = labels["boxes"][:, :BOXES, 0].long().repeat(1, PLACES).flatten()
    found = overlap(boxes.reshape(-1, 4)[assigned], wanted)
    here = torch.zeros((objects.numel(), 1), dtype=output.dtype, device=output.device)
    here[assigned] = 1.0
    sure = F.one_hot(kinds, CLASSES) * found.detach().unsqueeze(1)
    parts = (
        BOX_WEIGHT * (1 - found.square()).sum(),
        F.binary_cross_entropy_with_logits(objects.reshape(-1, 1), here, reduction="sum"),
        F.binary_cross_entropy_with_logits(
            classes.reshape(-1, CLASSES)[assigned], sure.to(classes.dtype), reduction="sum"
        ),
    )
    return sum(parts) / len(assigned) * (images / count)  # type: ignore[return-value]


def overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the overlap of each box with its other; both as centers and sizes."""
    first = torch.max(*(each[:, :2] - each[:, 2:] / 2 for each in (boxes, others)))
    last = torch.min(*(each[:, :2] + each[:, 2:] / 2 for each in (boxes, others)))
    shared = (last - first).clamp(min=0).prod(1)
    union = boxes[:, 2:].prod(1) + others[:, 2:].prod(1) - shared
    return shared / (union + 1e-16)
