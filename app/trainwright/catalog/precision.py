"""What a precision means on a GPU: whether it runs there and at which dense rate.

Sources: NVIDIA CUDA programming guide (arithmetic by compute capability), Transformer
Engine's support matrix (fp8 from 8.9), AMD's CDNA and RDNA instruction set guides,
Intel's Xe2 and XMX data sheets, PyTorch's MPS backend.
"""

from typing import Literal

from trainwright.catalog.records import Fact, FlopKey, GpuRecord
from trainwright.messages import Message

Precision = Literal["fp32", "tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16", "fp8"]

_RATE: dict[Precision, tuple[FlopKey, ...]] = {
    "fp32": ("fp32_matrix", "fp32"),
    "tf32": ("tf32_fp32",),
    # Training accumulates in fp32: the fp16-accumulate rate of GeForce is never reached.
    # Without a matrix unit products are computed in fp32.
    "fp16-mixed": ("fp16_fp32", "fp32"),
    "bf16-mixed": ("bf16_fp32", "fp32"),
    "bf16": ("bf16_fp32", "fp32"),
    "fp16": ("fp16_fp32", "fp32"),
    "fp8": ("fp8_fp32",),
}
_CAPABILITY: dict[Precision, tuple[int, int]] = {
    "fp32": (0, 0),
    "tf32": (8, 0),
    "fp16-mixed": (7, 0),
    "bf16-mixed": (8, 0),
    "bf16": (8, 0),
    "fp16": (7, 0),
    "fp8": (8, 9),
}
_FP16 = ("fp16-mixed", "fp16")
"""Older cards compute these in fp32 where they have no matrix units."""
_HALF: frozenset[Precision] = frozenset({"fp32", "fp16-mixed", "fp16"})
_BRAIN: frozenset[Precision] = _HALF | {"bf16-mixed", "bf16"}
_BY_ARCHITECTURE: dict[str, frozenset[Precision]] = {
    "RDNA 2": _HALF,
    "RDNA 3": _BRAIN,
    "RDNA 3.5": _BRAIN,
    "RDNA 4": _BRAIN | {"fp8"},
    "CDNA": _BRAIN,
    "CDNA 2": _BRAIN,
    "CDNA 3": _BRAIN | {"tf32", "fp8"},
    # CDNA 4 has no tf32 matrix instructions any more.
    "CDNA 4": _BRAIN | {"fp8"},
    # https://docs.habana.ai: Gaudi's matrix units take bf16 and fp8, not fp16.
    "Gaudi": frozenset({"fp32", "bf16", "bf16-mixed", "fp8"}),
    "Xe": _BRAIN,
    "Xe2": _BRAIN,
    "Apple M1": _HALF,
    # Metal computes bf16 in software up to M2 (transformers #40458).
    "Apple M2": _HALF,
    "Apple M3": _BRAIN,
    "Apple M4": _BRAIN,
    "Apple M5": _BRAIN,
}


def peak_flops(record: GpuRecord, precision: Precision) -> Fact | None:
    """Return the dense peak, FLOP/s with fp32 accumulation, that matrix products can reach.

    None where the GPU does not run the precision or nobody published the figure.
    """
    if supports(record, precision) is not True and precision not in _FP16:
        return None
    return next((record.flops[key] for key in _RATE[precision] if key in record.flops), None)


def multiplies_faster(record: GpuRecord, precision: str) -> bool:
    """Return whether matrix units are known that take factors of the precision."""
    keys = next((keys for name, keys in _RATE.items() if name == precision), ())
    return any(key in record.flops for key in keys if not key.startswith("fp32"))


def supports(record: GpuRecord, precision: Precision) -> Literal[True] | Message:
    """Return True, or the reason why training in the precision makes no sense there.

    A card may still emulate it: bf16 on compute capability 7.5 runs, slower than fp32.
    """
    if record.compute_capability is not None:
        return _on_nvidia(record, precision)
    known = _BY_ARCHITECTURE.get(record.architecture, _HALF)
    if precision in known:
        return True
    return Message.of(
        "catalog.precision-architecture",
        precision=precision,
        gpu=record.name,
        architecture=record.architecture,
    )


def _on_nvidia(record: GpuRecord, precision: Precision) -> Literal[True] | Message:
    has, needs = record.compute_capability or (0, 0), _CAPABILITY[precision]
    if has >= needs:
        return True
    if precision in _FP16:
        return Message.of("catalog.precision-no-tensor-cores", gpu=record.name, has=_dotted(has))
    return Message.of(
        "catalog.precision-capability",
        precision=precision,
        gpu=record.name,
        needs=_dotted(needs),
        has=_dotted(has),
    )


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"
