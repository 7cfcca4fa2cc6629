"""DeepLabV3+ on an atrous ResNet-50, with separable convolutions: arXiv 1802.02611."""

from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from subject import Subject, package
from torch import nn

CLASSES = 21
"""Of PASCAL VOC with the background."""
RATES = (12, 24, 36)
"""Dilations of the pyramid, doubled from those of stride 16 as common code has them
(segmentation_models_pytorch ``decoder_atrous_rates``)."""
HIGH, LOW, WIDTH, NARROW = 2048, 256, 256, 48
"""Channels of the deep and of the shallow features, of the decoder and of its short cut."""


def build(spec: dict[str, Any]) -> Subject:
    """Return the network and its loss a pixel.

    Raises:
        Refusal: torchvision is not installed.
    """
    pixels = spec["image_size"] or 512

    def pictures(size: int, length: int) -> step.Batch:
        masks = torch.zeros((size, pixels, pixels), dtype=torch.int64)
        return step.Batch({"x": torch.zeros((size, 3, pixels, pixels))}, masks)

    facts = {"stack": "plain", "family": "deeplabv3plus", "image_size": pixels}
    return Subject(DeepLabV3Plus(), pictures, pixel_loss, facts)


def pixel_loss(scores: torch.Tensor, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy a pixel from scores (N, classes, H, W); ignored labels do not count."""
    summed = F.cross_entropy(scores, labels, ignore_index=step.IGNORED, reduction="sum")
    return summed / count


class DeepLabV3Plus(nn.Module):
    """Encoder with a pyramid of dilations at stride 16, decoder at stride 4; scores a pixel."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__()
        package("torchvision", "torchvision")
        from torchvision.models import resnet50
        from torchvision.models._utils import IntermediateLayerGetter

        backbone = resnet50(weights=None, replace_stride_with_dilation=[False, False, True])
        self.body = IntermediateLayerGetter(backbone, {"layer1": "low", "layer4": "high"})
        self.pyramid = nn.ModuleList(
            [Convolution(HIGH, WIDTH), *(Separable(HIGH, WIDTH, rate) for rate in RATES)]
        )
        self.whole = Convolution(HIGH, WIDTH)
        self.project = nn.Sequential(Convolution(WIDTH * 5, WIDTH), nn.Dropout(0.5))
        self.refine = Separable(WIDTH, WIDTH)
        self.shortcut = Convolution(LOW, NARROW)
        self.fuse = Separable(WIDTH + NARROW, WIDTH)
        self.head = nn.Conv2d(WIDTH, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores (N, classes, H, W)."""
        features = self.body(x)
        low, high = features["low"], features["high"]
        whole = _resized(self.whole(F.adaptive_avg_pool2d(high, 1)), high)
        context = torch.cat([*(branch(high) for branch in self.pyramid), whole], dim=1)
        deep = _resized(self.refine(self.project(context)), low)
        fused = self.fuse(torch.cat([deep, self.shortcut(low)], dim=1))
        return _resized(self.head(fused), x)


class Convolution(nn.Sequential):
    """A 1x1 convolution with batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )


class Separable(nn.Sequential):
    """A dilated 3x3 convolution of each channel, a 1x1 of all, batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int, rate: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, inputs, 3, padding=rate, dilation=rate, groups=inputs, bias=False),
            nn.Conv2d(inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


def _resized(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, like.shape[-2:], mode="bilinear", align_corners=True)
