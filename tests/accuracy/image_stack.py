"""torchvision's classifiers, as the benchmarks of whole networks ran them."""

import step
import torch
from subject import Subject
from torch import nn
from torch.nn import functional

PIXELS = 224
CLASSES = 1000


class Cleared(nn.Module):
    """A network whose gradients are set to zero before each forward pass, one after the other.

    ``zero_grad`` did so until torch 2.0, and ryujaehun/pytorch-gpu-benchmark times it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the network's scores."""
        for weight in self.network.parameters():
            if weight.grad is not None:
                weight.grad.zero_()
        return self.network(x)  # type: ignore[no-any-return]


def build(name: str, task: str, half: bool) -> Subject:
    """Return the network; ``half``: weights and images are fp16."""
    from torchvision import models

    options = {"aux_logits": False} if "inception" in name else {}
    dtype = torch.float16 if half else torch.float32
    with torch.device("meta"):
        model = getattr(models, name.removeprefix("torchvision-"))(weights=None, **options)
        model.to(dtype)
        if task == "gradient":
            model = Cleared(model)

    def batch(size: int, _length: int) -> step.Batch:
        images = torch.zeros((size, 3, PIXELS, PIXELS), dtype=dtype)
        return step.Batch({"x": images}, torch.zeros((size,), dtype=torch.int64))

    return Subject(model, batch, _loss, {"stack": "torchvision", "family": name})


def _loss(scores: torch.Tensor, labels: torch.Tensor, _count: float) -> torch.Tensor:
    return functional.cross_entropy(scores, labels)
