"""One served model over several GPUs: whole layers on each, or a part of every layer.

llama.cpp gives each GPU layers of its own. They work one after another, so that a token takes as
long as on one of them, and the time to hand it over. vLLM, SGLang and TensorRT-LLM split every
matrix (tensor parallelism, arXiv 1909.08053): all GPUs work at once, and add up what attention and
MLP give, twice a layer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainwright.estimate.parallel.communication import Link, ring
from trainwright.estimate.serving.kv import CacheShape, Layer
from trainwright.estimate.serving.weights import (
    Inventory,
    Matrix,
    Scheme,
    Weights,
    quantized,
    whole,
)

SOURCE = "llama.cpp: src/llama-model.cpp, load_tensors: split points by free memory"
HOP_S = 0.22e-3
"""Seconds in which a token goes from one GPU to the next. Fitted on Llama 3 8B Q4_K_M: two and
four RTX 3090 generate 111.67 and 108.66 tokens a second where one generates 115.42, RTX 4090
124.65 and 120.32 where one generates 130.58. Source: XiongjieDai, GPU-Benchmarks-on-LLM-Inference,
README, May 2024."""
SUM_S = 3.2e-5
"""Seconds of a small sum over NVLink, in an engine's own kernel. Fitted: what is left of a pass of
Qwen2.5 32B and 72B in vLLM 0.6 on two and four A100 SXM (QwenLM/Qwen2.5, speed benchmark).
Assumed of Infinity Fabric. TurboMind and TensorRT-LLM are kept out
(``tests/accuracy/rows/serving.md``)."""


@dataclass(frozen=True, slots=True)
class Split:
    """What the fullest of several GPUs holds."""

    gpus: int
    layers: int
    """Of the model, that it holds; all of them where each is split."""
    weights: Weights
    shape: CacheShape
    model: Inventory
    """The matrices that it multiplies with, where each is split; else the whole model's."""
    link: Link | None = None
    """Over which parts of each layer are added up; None where each layer is on one GPU."""

    @property
    def handed_s(self) -> float:
        """Seconds in which a token goes from GPU to GPU, of layers that are on one each."""
        return (self.gpus - 1) * HOP_S if self.link is None else 0.0

    def sums_s(self, tokens: float, width: int) -> float:
        """Return the seconds of a pass in which the GPUs add up their parts of its tokens.

        ``width`` is the bytes of an activation. Of the embedding, attention and the MLP of each
        layer: Megatron-LM, arXiv 1909.08053, section 3; vLLM: ``VocabParallelEmbedding``,
        ``RowParallelLinear``.
        """
        if self.link is None:
            return 0.0
        hidden = next(one.columns for one in self.model.matrices if one.role == "embedding")
        nbytes, passed = tokens * hidden * width, ring(self.gpus, self.link)
        large = passed.share * nbytes / passed.rate
        # Elsewhere engines call NCCL.
        each = SUM_S + large if self.link.of_gpus else passed.seconds(nbytes)
        return (2 * self.layers + 1) * each


# Layers of their own


def split_over(
    gpus: int, model: Inventory, shape: CacheShape, format: str, scheme: Scheme | None
) -> Split:
    """Return what the fullest of so many equal GPUs holds of a packed model at most.

    The GPU with the output may have the most weights, and another one the most layers: each counts.
    """
    used = {_home(layer, gpus, model) for layer in range(model.layers + 1)}
    every = [held(gpu, gpus, model, shape, format, scheme) for gpu in used]
    largest = max((one.weights for one in every), key=lambda one: one.nbytes)
    return replace(max(every, key=lambda one: one.layers), weights=largest)


def held(
    gpu: int, gpus: int, model: Inventory, shape: CacheShape, format: str, scheme: Scheme | None
) -> Split:
    """Return what one GPU holds; the embedding of tokens stays in system memory."""

    def there(layer: int) -> bool:
        return _home(layer, gpus, model) == gpu

    def mine(matrix: Matrix) -> bool:
        output = "embedding" if model.tied else "head"
        return there(matrix.layer if matrix.layer >= 0 else model.layers) and (
            matrix.layer >= 0 or matrix.role == output
        )

    layers = [layer for layer in range(model.layers) if there(layer)]
    part = replace(
        model,
        matrices=tuple(filter(mine, model.matrices)),
        vectors=model.vectors * len(layers) // model.layers,
    )
    own = tuple(shape.layers[layer] for layer in layers)
    weights = whole(part, 2) if format == "none" else quantized(part, format, scheme)
    return Split(gpus, len(layers), weights, replace(shape, layers=own), model)


def _home(layer: int, gpus: int, model: Inventory) -> int:
    """Return the GPU in whose part layer / (n + 1) lies; the output counts as layer n."""
    return layer * gpus // (model.layers + 1)


# A part of each layer


def degrees(gpus: int, model: Inventory, shape: CacheShape) -> Iterator[int]:
    """Yield over how many of so many GPUs each layer can be split, the fewest first.

    Query heads are divided evenly, and heads of keys either divided or copied (vLLM:
    ``ModelConfig.verify_with_parallel_config``, ``QKVParallelLinear``).
    """
    heads = {layer.heads for layer in shape.layers if layer.heads and not layer.latent}
    for degree in range(2, gpus + 1):
        copied = all(one % degree == 0 or degree % one == 0 for one in heads)
        if gpus % degree == 0 and shape.query_heads % degree == 0 and copied:
            yield degree


def tensor_split(
    degree: int,
    model: Inventory,
    shape: CacheShape,
    format: str,
    scheme: Scheme | None,
    *,
    width: int,
    link: Link,
) -> Split:
    """Return what each of so many GPUs holds where every layer is split over them.

    ``width`` is the bytes of a weight that is not quantised. Norms, routers and what compresses
    queries, keys and values are on each GPU.
    """
    rows = tuple(_part(one, degree, shape) for one in model.matrices)
    part = replace(model, matrices=rows)
    weights = whole(part, width) if format == "none" else quantized(part, format, scheme)
    layers = tuple(_heads(layer, degree) for layer in shape.layers)
    held_shape = replace(shape, layers=layers, query_heads=shape.query_heads // degree)
    return Split(degree, model.layers, weights, held_shape, part, link)


_ON_EACH = ("router", "other", "positions")


def _part(matrix: Matrix, degree: int, shape: CacheShape) -> Matrix:
    if matrix.role in _ON_EACH:
        return matrix
    if matrix.role in ("output", "down"):  # split along the inputs
        return replace(matrix, columns=-(-matrix.columns // degree))
    layer = shape.layers[matrix.layer] if matrix.layer >= 0 else None
    copied = layer is not None and matrix.role in ("key", "value") and not layer.latent
    parts = min(degree, layer.heads) if copied and layer is not None else degree
    return replace(matrix, rows=-(-matrix.rows // parts))


def _heads(layer: Layer, degree: int) -> Layer:
    """Return what a GPU keeps of a layer; a latent serves all heads, so that each GPU has it."""
    return layer if layer.latent else replace(layer, heads=-(-layer.heads // degree))
