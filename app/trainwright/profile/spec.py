"""The question put to the tracer, and the key under which its answer is kept."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

TRACER_VERSION = 1
"""Raised whenever the tracer would log something else for the same model."""

Kernel = Literal["eager", "flash", "efficient", "math"]


@dataclass(frozen=True, slots=True)
class TraceSpec:
    """One structure of the training step; batch and sequence are free within it."""

    model: tuple[tuple[str, str], ...]
    """Source as sorted pairs: (("hf", path),), (("timm", name),), (("builtin", name),)."""
    digest: str
    """Hash of the model's definition (config text, source file); part of the key."""
    task: Literal["full", "lora", "qlora", "infer"]
    """``pretrain`` runs the same step as ``full``."""
    precision: str
    kernel: Kernel
    channels_last: bool = False
    checkpointing: str = "none"
    """``none`` serves none, full and every-K, which are derived; ``selective`` is traced."""
    quantization: str = "none"
    lora: tuple[int, tuple[str, ...]] = (16, ())
    image_size: int = 0
    points: tuple[tuple[int, int], ...] = ()
    """(batch, sequence) to trace: those of the fit, then one to check it at."""
    optimizers: tuple[str, ...] = ("adamw", "sgd", "adafactor")

    def key(self, torch_version: str) -> str:
        """Return the cache key: the structure without the points, and the versions."""
        fields = asdict(self)
        del fields["points"], fields["optimizers"]
        fields |= {"torch": torch_version, "tracer": TRACER_VERSION}
        text = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def document(self) -> dict[str, Any]:
        """Return what is sent to the child as JSON."""
        return asdict(self) | {"model": dict(self.model)}
