"""What fp8 products of linear layers would gain a compiled training step: a what-if, no plan.

torchao's recipe (``torchao.float8``, dynamic scaling): the three products of a linear layer run in
fp8, and their operands are scaled and cast before, each time they are used. Layers whose sizes
are not multiples of 16, and the output head, stay as they are (torchtitan's filter). Memory stays
that of bf16: what backward needs is kept in 16 bits (torchtitan: 77.0 GiB without and 76.8 with
fp8).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import GpuRecord, supports
from trainwright.estimate.time.roofline import CLASSES, classify
from trainwright.profile.profile import Floats, Profile, monomials
from trainwright.workload import FullSettings

if TYPE_CHECKING:
    from trainwright.estimate.time.clock import Clock

REACHED = 0.709 / 0.803
"""Share of the fp8 peak that products reach against that of bf16: H100, the best of stas00's table
of reachable FLOPS."""
CAST_BYTES = 3.0
"""Bytes an operand's element: compiled, one pass for the maximum reads 16 bits, the cast is fused
with what makes the operand and writes 8; assumed."""
KERNELS = 2
"""Kernels more a product: of each operand, the maximum; assumed for compiled code."""
STEP = 16
"""What sizes must be multiples of (``torch._scaled_mm``)."""
SOURCE = "torchao.float8; torchtitan, benchmarks/llama3_h100_202412: 8B, +28 % over torch.compile"

_GEMM = CLASSES.index("gemm")
_NARROW = ("float16", "bfloat16")


def rate_ratio(record: GpuRecord) -> float | None:
    """Return how many times as fast as in 16 bits products run in fp8; None without fp8."""
    fp8, wide = record.flops.get("fp8_fp32"), record.flops.get("bf16_fp32")
    if supports(record, "fp8") is not True or fp8 is None or wide is None:
        return None
    return fp8.value / wide.value * REACHED


def gain(clock: "Clock", profile: Profile, settings: FullSettings, batch: int) -> float | None:
    """Return the speed with fp8 over that of the compiled step without.

    None where the GPU has no fp8, or nothing is multiplied in 16 bits.
    """
    record = clock.situation.gpu.record
    ratio = rate_ratio(record)
    compiled = settings.model_copy(update={"compile": True})
    step = clock.terms(profile, compiled, batch).step
    if ratio is None or settings.precision not in ("bf16", "bf16-mixed", "fp16", "fp16-mixed"):
        return None
    chosen, elements = _linear(profile, batch, clock.situation.sequence)
    if not chosen.any():
        return None
    bandwidth = record.bandwidth_bytes_per_s.value
    casts = elements * CAST_BYTES / bandwidth
    saved = 0.0
    for _, times, counts in clock.stages(profile, compiled, batch):
        before = times.seconds[chosen]
        products = np.maximum(times.compute[chosen] / ratio, 0.75 * times.memory[chosen])
        launches = KERNELS * clock.efficiency.kernel_gap_s.value
        after = products + casts[chosen] + launches
        saved += float((counts[chosen] * (before - after)).sum())
    return step / (step - saved)


def _linear(profile: Profile, batch: int, sequence: int) -> tuple[NDArray[np.bool_], Floats]:
    """Return which rows are products that fp8 takes, and the elements of their operands."""
    table = classify(profile)
    rows, columns, inner = (
        table.dims[place] @ monomials(batch, sequence).astype(np.float64) for place in (1, 2, 3)
    )
    narrow = np.array([name in _NARROW for name in table.dtypes])[table.dtype]
    sizes = np.stack([rows, columns, inner])
    whole = (sizes % STEP == 0).all(axis=0) & (sizes > 0).all(axis=0)
    head = (sizes == profile.model.get("vocabulary", -1)).any(axis=0)
    chosen = (table.group == _GEMM) & narrow & whole & ~head
    return chosen, rows * inner + inner * columns
