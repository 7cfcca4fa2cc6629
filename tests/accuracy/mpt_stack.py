"""The MPT models of llm-foundry, as its throughput benchmark ran them on one GPU.

Facts from mosaicml/llm-foundry (``scripts/train/yamls/mpt``, ``scripts/train/benchmarking`` at
061f2c7c) and what its published parameter counts confirm:

- Learned positions, pre-norm blocks, biases everywhere, GELU of erf, head tied to the
  embedding, 50,368 words; no dropout.
- FSDP hands bf16 weights to the kernels, whatever dtype the shards have; LayerNorm stays bf16
  (``low_precision_layernorm``). So nothing is cast within a step.
- Causal flash attention; cross-entropy in one kernel each way that reads bf16 scores and writes
  their gradient (``fused_crossentropy``).
"""

from dataclasses import dataclass
from typing import Any

import step
import torch
from subject import Subject
from torch import nn
from torch.nn import functional

VOCABULARY = 50368
EXPANSION = 4


@dataclass(frozen=True)
class Size:
    """Width, depth and heads of one size."""

    width: int
    layers: int
    heads: int


SIZES = {
    "125m": Size(768, 12, 12),
    "350m": Size(1024, 24, 16),
    "760m": Size(1536, 24, 12),
    "1b": Size(2048, 24, 16),
    "3b": Size(2560, 32, 20),
    "7b": Size(4096, 32, 32),
    "13b": Size(5120, 40, 40),
    "30b": Size(7168, 48, 56),
    "70b": Size(8192, 80, 64),
}

_library = torch.library.Library("fused", "DEF")
_library.define("cross_entropy(Tensor scores, Tensor labels) -> (Tensor, Tensor)")
_library.define(
    "cross_entropy_backward(Tensor scores, Tensor labels, Tensor logsumexp, Tensor grads) -> Tensor"
)


@torch.library.register_fake("fused::cross_entropy", lib=_library)
def _losses(scores: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    losses = scores.new_empty(labels.shape, dtype=torch.float32)
    return losses, torch.empty_like(losses)


@torch.library.register_fake("fused::cross_entropy_backward", lib=_library)
def _scores(scores: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(scores)


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        losses, logsumexp = torch.ops.fused.cross_entropy(scores, labels)
        ctx.save_for_backward(scores, labels, logsumexp)
        return losses  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return torch.ops.fused.cross_entropy_backward(*ctx.saved_tensors, grads[0]), None


class Block(nn.Module):
    """Attention and MLP, each after a norm and beside a residual."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = (
            nn.Linear(width, EXPANSION * width),
            nn.Linear(EXPANSION * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output, of the shape of its input."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).chunk(3, dim=2)
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Mpt(nn.Module):
    """A decoder of ``layers`` blocks, the size's own number if None."""

    def __init__(self, size: Size, length: int, layers: int | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, size.width)
        self.positions = nn.Embedding(length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(layers or size.layers))
        self.norm = nn.LayerNorm(size.width)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the scores, (batch, length, words)."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.words(input_ids) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.words.weight)


def build(name: str, length: int, layers: int | None = None) -> Subject:
    """Return the model of a size for sequences of ``length`` tokens."""
    with torch.device("meta"):
        model = Mpt(SIZES[name], length, layers)

    def batch(size: int, _length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        return step.Batch({"input_ids": tokens}, torch.zeros_like(tokens))

    return Subject(model, batch, _loss, {"stack": "llm-foundry", "family": f"mpt-{name}"})


def parameters(name: str, length: int) -> int:
    """Return the parameters of a size: what the source publishes with every row."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in Mpt(SIZES[name], length).parameters())


def _loss(scores: torch.Tensor, labels: torch.Tensor, count: float) -> torch.Tensor:
    shifted = torch.roll(labels, -1, 1)
    losses: torch.Tensor = _FusedCrossEntropy.apply(scores.flatten(0, 1), shifted.flatten())  # type: ignore[no-untyped-call]
    return losses.sum() / count
