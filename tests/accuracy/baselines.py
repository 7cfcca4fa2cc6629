"""The usual estimators, from their published formulas, on the same rows; in bytes.

Each is given what it asks for and nothing more. None where it has no figure for the task.
fitcheck-llm is called itself, where it is installed: ``fitchecked.py``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rows import Row

BITS_16 = ("bf16", "fp16", "bf16-mixed", "fp16-mixed")


@dataclass(frozen=True, slots=True)
class Stated:
    """What estimators ask of a plan."""

    params: int
    task: str
    precision: str
    quantization: str
    batch: int
    length: int
    generates: int
    attention: str
    checkpointing: str

    @property
    def infers(self) -> bool:
        return self.task == "infer"


Facts = Mapping[str, Any]
"""Of the model: layers, hidden, heads, kv_heads, vocabulary, trainable."""


def accelerate(row: Row | Stated, facts: Facts) -> float | None:
    """Return what ``accelerate estimate-memory`` prints: weights, or "training with Adam".

    Source: accelerate 1.15, ``commands/estimate.py``, ``estimate_training_usage``: in fp32
    four times the weights; in 16 bits the larger of gradients (6 bytes a parameter) and
    optimizer (8). It knows no adapters, no optimizer but Adam, and no activations.
    """
    width = 2 if row.precision in BITS_16 else 4
    if row.infers:
        return row.params * (0.5 if row.quantization != "none" else width)
    return row.params * (8 if width == 2 else 16)


def zero2(row: Row | Stated, facts: Facts) -> float | None:
    """Return ``estimate_zero2_model_states_mem_needs`` for one GPU without offload.

    Source: DeepSpeed, ``runtime/zero/stage_1_and_2.py``: 4 bytes a parameter, and 16 over the
    number of GPUs. Model states only; nothing for inference.
    """
    return None if row.infers else 20.0 * row.params


def zero3(row: Row | Stated, facts: Facts) -> float | None:
    """Return ``estimate_zero3_model_states_mem_needs`` for one GPU without offload.

    Source: DeepSpeed, ``runtime/zero/stage3.py``: 18 bytes a parameter over the number of GPUs,
    and 4 of each parameter of the largest layer, here the embedding.
    """
    if row.infers:
        return None
    return 18.0 * row.params + 4.0 * facts.get("vocabulary", 0) * facts.get("hidden", 0)


def formula(row: Row | Stated, facts: Facts) -> float | None:
    """Return the closed formula for transformers: states, and activations a layer.

    Source: Korthikanti et al., arXiv 2205.05198: ``sbh(34 + 5as/h)`` bytes a layer in 16 bits,
    ``34sbh`` without the scores where a kernel does not keep them, ``2sbh`` with full
    recomputation and one layer's working set, ``4sbh(1 + v/h)`` for the output; and of the
    ZeRO paper, arXiv 1910.02054: 16 bytes a trained parameter in mixed precision (8 in pure
    bf16). Adapters and NF4 as in the QLoRA paper, arXiv 2305.14314. Inference: weights and
    the keys and values of every token.
    """
    if not {"layers", "hidden", "heads"} <= facts.keys():
        return None
    layers, h, a = facts["layers"], facts["hidden"], facts["heads"]
    weights = row.params * _width(row.quantization, row.precision)
    if row.infers:
        tokens = row.length + row.generates
        return weights + 4.0 * layers * tokens * facts.get("kv_heads", a) * (h // a)
    if row.task == "full":
        states = row.params * (8.0 if row.precision == "bf16" else 16.0)
    else:
        states = weights + 16.0 * int(facts["trainable"])
    s, b, v = row.length, row.batch, facts.get("vocabulary", 0)
    layer = s * b * h * (34.0 + (5.0 * a * s / h if row.attention == "eager" else 0.0))
    kept = 2.0 * s * b * h * layers + layer if row.checkpointing == "full" else layer * layers
    wide = 2.0 if row.precision == "fp32" else 1.0
    return states + wide * kept + 4.0 * s * b * h * (1 + v / h)


def _width(quantization: str, precision: str) -> float:
    return {"nf4": 4.5 / 8, "nf4-dq": 4.127 / 8}.get(quantization) or (
        2.0 if precision in BITS_16 else 4.0
    )


Estimator = Callable[[Row | Stated, Facts], float | None]

ALL: Mapping[str, Estimator] = {
    "accelerate": accelerate,
    "DeepSpeed ZeRO-2": zero2,
    "DeepSpeed ZeRO-3": zero3,
    "closed formula": formula,
}
