"""DETR on ResNet-50: arXiv 2005.12872; its matching, done on the host, is taken as given."""

import math
from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from detection import BOXES, CLASSES
from subject import Subject, package
from torch import nn

WIDTH, HEADS, FEED, LAYERS, QUERIES, DROPOUT = 256, 8, 2048, 6, 100, 0.1
"""Table and appendix A.4 of the paper."""
NO_OBJECT, BOX_WEIGHT, OVERLAP_WEIGHT = 0.1, 5.0, 2.0
"""Weights of the empty class, of the L1 and of the overlap loss; appendix A.4."""


def build(spec: dict[str, Any]) -> Subject:
    """Return the detector and its losses after each layer of the decoder.

    Raises:
        Refusal: torchvision is not installed.
    """
    model = Detr(fused=spec["kernel"] != "eager")
    pixels = spec["image_size"] or 800

    def pictures(size: int, length: int) -> step.Batch:
        labels = {
            "boxes": torch.zeros((size, BOXES, 4)),
            "classes": torch.zeros((size, BOXES), dtype=torch.int64),
        }
        return step.Batch({"images": torch.zeros((size, 3, pixels, pixels))}, labels)

    facts = {"stack": "plain", "family": "detr", "image_size": pixels}
    # The backbone's first layers stay as ImageNet left them: the recipe's lr_backbone.
    kept = (name for name in ("conv1", "layer1"))
    fixed = tuple(p for name in kept for p in model.body[name].parameters())
    assumed = {"profile.assumed.boxes": BOXES, "profile.assumed.matched": BOXES}
    return Subject(model, pictures, set_loss, facts, fixed=fixed, assumed=assumed)


class Attention(nn.Module):
    """Multi-head attention; queries and keys carry places, values do not."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        """Return (N, L, WIDTH) for queries (N, L, WIDTH) over keys (N, M, WIDTH)."""
        q, k, v = (
            made.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for made in (self.query(query), self.key(key), self.value(value))
        )
        dropout = DROPOUT if self.training else 0.0
        if self.fused:
            found = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        else:
            weights = F.softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2), dim=-1)
            found = F.dropout(weights, dropout) @ v
        return self.out(found.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer of the encoder, or with ``crosses`` of the decoder; norms come last."""

    def __init__(self, fused: bool, crosses: bool) -> None:
        super().__init__()
        self.own = Attention(fused)
        self.cross = Attention(fused) if crosses else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if crosses else 2))
        self.widen, self.narrow = nn.Linear(WIDTH, FEED), nn.Linear(FEED, WIDTH)

    def forward(
        self,
        x: torch.Tensor,
        place: torch.Tensor,
        memory: torch.Tensor | None = None,
        key: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return (N, L, WIDTH); ``memory`` with its places added is ``key``."""
        norms = iter(self.norms)

        def added(x: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
            return next(norms)(x + F.dropout(more, DROPOUT, self.training))  # type: ignore[no-any-return]

        x = added(x, self.own(x + place, x + place, x))
        if self.cross is not None:
            x = added(x, self.cross(x + place, key, memory))
        wide = F.dropout(F.relu(self.widen(x)), DROPOUT, self.training)
        return added(x, self.narrow(wide))


class Detr(nn.Module):
    """The detector; ``fused`` runs attention as one kernel."""

    def __init__(self, fused: bool = True) -> None:
        super().__init__()
        package("torchvision", "torchvision")
        from torchvision.models import resnet50
        from torchvision.models._utils import IntermediateLayerGetter
        from torchvision.ops import FrozenBatchNorm2d

        backbone = resnet50(weights=None, norm_layer=FrozenBatchNorm2d)
        self.body = IntermediateLayerGetter(backbone, {"layer4": "last"})
        self.project = nn.Conv2d(2048, WIDTH, 1)
        self.encoder = nn.ModuleList(Layer(fused, crosses=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(fused, crosses=True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.queries = nn.Embedding(QUERIES, WIDTH)
        self.classify = nn.Linear(WIDTH, CLASSES + 1)
        self.locate = nn.Sequential(
            *(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()),
            nn.Linear(WIDTH, 4),
        )

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return class scores (LAYERS, N, QUERIES, CLASSES + 1) and boxes (..., 4)."""
        features = self.project(self.body(images)["last"])
        place = waves(features)
        x = features.flatten(2).transpose(1, 2)
        for layer in self.encoder:
            x = layer(x, place)
        memory, key = x, x + place
        query = self.queries.weight.expand(len(images), -1, -1)
        found, after = torch.zeros_like(query), []
        for layer in self.decoder:
            found = layer(found, query, memory, key)
            after.append(self.norm(found))
        outputs = torch.stack(after)
        return self.classify(outputs), self.locate(outputs).sigmoid()


def waves(features: torch.Tensor) -> torch.Tensor:
    """Return sines of the places, (N, H * W, WIDTH), normalised to 2 pi a side."""
    batch, _, height, width = features.shape
    device, half = features.device, WIDTH // 2
    periods = 10_000 ** (torch.arange(half, device=device) // 2 * 2 / half)
    found = []
    for side in (height, width):
        place = torch.arange(1, side + 1, device=device) / side * (2 * math.pi)
        phase = place[:, None] / periods
        found.append(torch.stack((phase[:, 0::2].sin(), phase[:, 1::2].cos()), dim=2).flatten(1))
    rows = found[0][:, None].expand(height, width, half)
    columns = found[1][None].expand(height, width, half)
    both = torch.cat((rows, columns), dim=-1).flatten(0, 1)
    return both.to(features.dtype).repeat(batch, 1, 1)


def set_loss(
    output: tuple[torch.Tensor, torch.Tensor], labels: dict[str, torch.Tensor], count: float
) -> torch.Tensor:
    """Return the losses after every layer, for the queries that the matching gives each box."""
    weight = torch.ones(CLASSES + 1, device=output[0].device)
    weight[-1] = NO_OBJECT
    total = sum(
        _layer_loss(scores, boxes, labels, weight)
        for scores, boxes in zip(output[0].unbind(), output[1].unbind(), strict=True)
    )
    return total * (len(labels["boxes"]) / count)  # type: ignore[return-value]


def _layer_loss(
    scores: torch.Tensor, boxes: torch.Tensor, labels: dict[str, torch.Tensor], weight: Any
) -> torch.Tensor:
    wanted = labels["boxes"].flatten(0, 1)
    rows = torch.arange(len(boxes), device=boxes.device)[:, None]
    matched = torch.arange(BOXES, device=boxes.device)[None]
    classes = torch.full(scores.shape[:2], CLASSES, dtype=torch.int64, device=scores.device)
    classes[rows, matched] = labels["classes"]
    named = F.cross_entropy(scores.transpose(1, 2), classes, weight)
    found = boxes[rows, matched].flatten(0, 1)
    distance = F.l1_loss(found, wanted, reduction="none").sum() / len(wanted)
    apart = (1 - overlap(corners(found), corners(wanted))).sum() / len(wanted)
    return named + BOX_WEIGHT * distance + OVERLAP_WEIGHT * apart


def corners(boxes: torch.Tensor) -> torch.Tensor:
    """Return (x0, y0, x1, y1) of boxes (center x, center y, width, height)."""
    center, size = boxes[:, :2], boxes[:, 2:]
    return torch.cat((center - size / 2, center + size / 2), dim=1)


def overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the generalised overlap of each box with its other (arXiv 1902.09630)."""
    first, last = torch.max(boxes[:, :2], others[:, :2]), torch.min(boxes[:, 2:], others[:, 2:])
    shared = (last - first).clamp(min=0).prod(1)
    union = sum((each[:, 2:] - each[:, :2]).prod(1) for each in (boxes, others)) - shared
    outer = torch.max(boxes[:, 2:], others[:, 2:]) - torch.min(boxes[:, :2], others[:, :2])
    hull = outer.clamp(min=0).prod(1)
    return shared / union - (hull - union) / hull  # type: ignore[no-any-return]
