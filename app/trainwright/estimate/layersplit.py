"""Layers of one model over several GPUs, as llama.cpp spreads them: each holds its own.

The GPUs work one after another, so that a token takes as long as on one of them, and the time to
hand it over.
"""

from dataclasses import dataclass, replace

from trainwright.estimate.kv import CacheShape
from trainwright.estimate.weights import Inventory, Matrix, Scheme, Weights, quantized

SOURCE = "llama.cpp: src/llama-model.cpp, load_tensors: split points by free memory"
HOP_S = 0.22e-3
"""Seconds in which a token goes from one GPU to the next. Fitted on Llama 3 8B Q4_K_M: two and
four RTX 3090 generate 111.67 and 108.66 tokens a second where one generates 115.42, RTX 4090
124.65 and 120.32 where one generates 130.58. Source: XiongjieDai, GPU-Benchmarks-on-LLM-Inference,
README, May 2024."""


@dataclass(frozen=True, slots=True)
class Split:
    """What the fullest of several GPUs holds."""

    gpus: int
    layers: int
    """Of the model, that it holds."""
    weights: Weights
    shape: CacheShape

    @property
    def hops(self) -> float:
        """Seconds in which a token goes from GPU to GPU."""
        return (self.gpus - 1) * HOP_S


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
    weights = quantized(part, format, scheme)
    return Split(gpus, len(layers), weights, replace(shape, layers=own))


def _home(layer: int, gpus: int, model: Inventory) -> int:
    """Return the GPU in whose part layer / (n + 1) lies; the output counts as layer n."""
    return layer * gpus // (model.layers + 1)
