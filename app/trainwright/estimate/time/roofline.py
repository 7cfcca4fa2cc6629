"""Seconds of each traced operator on a GPU: arithmetic and memory traffic, and a gap."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import GpuRecord
from trainwright.estimate.power import board_share, limit_share
from trainwright.estimate.time.efficiency import Curves, Efficiency
from trainwright.estimate.time.kernels import (
    CLASSES,
    EXPERTS,
    IS_ATTENTION,
    IS_BATCH_NORM,
    IS_DENSE,
    IS_DEPTHWISE,
    IS_PRODUCT,
    NUMBER,
    SHOWN,
    WIDTH,
    Classified,
    Kernels,
    Numbers,
    classify,
    kernels,
    sized,
)
from trainwright.profile.profile import Floats
from trainwright.workload.settings import Framework

__all__ = ["CLASSES", "Classified", "OpTimes", "Rates", "classify", "op_times", "rates"]


@dataclass(frozen=True, slots=True)
class Rates:
    """What a GPU offers for one precision, after ceilings and power limits."""

    flops: dict[str, float]
    """Dtype of the operands -> FLOP/s of matrix products."""
    vector: float | None
    """FLOP/s of the vector units."""
    bandwidth: float
    """Bytes/s of DRAM."""
    missing: frozenset[str]
    """Dtypes whose rate the catalog lacks, so that another or none stands in."""
    attention: float = 1.0
    """Further factor on fused attention."""
    cache: float = 0.0
    """Bytes of the last level."""
    grouped: frozenset[str] = frozenset()
    """Dtypes in which the products of all experts are one kernel, not one each."""

    def product_rate(self, dtype: str) -> float:
        """Return FLOP/s for a dtype; infinite where nothing is known: the bytes decide."""
        return self.flops.get(dtype, float("inf"))


LEAST_FLOP_A_BYTE = 9.5
"""Float32 FLOP/s over bytes/s, the least of any GPU in the catalog: the A100 with 80 GB has 19.5
TFLOP/s and 2.04 TB/s. With it a GPU of unknown rate never beats one whose rate is known."""
_PEAK_KEYS = {
    "float16": "fp16_fp32",
    "bfloat16": "bf16_fp32",
    "float32": "fp32",
    "int8": "int8_int32",
}


def rates(
    record: GpuRecord, efficiency: Efficiency, *, tf32: bool, power_limit_w: float | None = None
) -> Rates:
    """Return the reachable peaks of a GPU.

    A rate that the catalog lacks is replaced by the vector rate in float32, which is never faster;
    where that is unknown too, by the least that a GPU of its bandwidth has.
    """
    factor = efficiency.ceiling(record).value * limit_share(record, power_limit_w)
    board = {"float16": board_share(record), "bfloat16": board_share(record)}
    vector = record.flops["fp32"].value if "fp32" in record.flops else None
    bandwidth = record.bandwidth_bytes_per_s.value
    flops: dict[str, float] = {}
    missing: set[str] = set()
    in_float32 = ("tf32_fp32", "fp32_matrix") if tf32 else ("fp32_matrix",)
    for dtype, key in _PEAK_KEYS.items():
        better = in_float32 if dtype == "float32" else ()
        wanted = next((name for name in better if name in record.flops), key)
        if wanted in record.flops:
            flops[dtype] = record.flops[wanted].value * factor * board.get(dtype, 1.0)
            continue
        missing.add(dtype)
        least = LEAST_FLOP_A_BYTE * bandwidth
        flops[dtype] = (vector if vector is not None else least) * factor
    attention = efficiency.attention_ceiling(record)
    grouped = frozenset(grouped_dtypes(record))
    cache = record.l2_bytes.value if record.l2_bytes is not None else 0.0
    return Rates(flops, vector, bandwidth, frozenset(missing), attention, cache, grouped)


def grouped_dtypes(record: GpuRecord) -> tuple[str, ...]:
    """Return the dtypes that torch multiplies for all experts in one kernel.

    bf16 on compute capability 9.x and 10.x; elsewhere torch runs one product an expert.
    Source: ``_grouped_mm_cuda`` (``aten/src/ATen/native/cuda/GroupedBlas.cpp``).
    """
    capability = record.compute_capability
    return ("bfloat16",) if capability is not None and capability[0] in (9, 10) else ()


@dataclass(frozen=True, slots=True, eq=False)
class OpTimes:
    """Seconds of one run of each operator row, and what it is made of; rows align."""

    seconds: Floats
    compute: Floats
    """Of which the arithmetic alone would take."""
    memory: Floats
    """Of which the traffic alone would take."""
    flops: Floats
    bytes: Floats
    group: Numbers
    """Index into ``CLASSES``."""
    launches: Floats
    """Kernels of a run: 0 for views, of grouped products one an expert where none does all."""


def op_times(
    table: Classified,
    rates: Rates,
    efficiency: Efficiency,
    *,
    batch: int,
    sequence: int,
    channels_last: bool = False,
    compiled: bool = False,
    framework: Framework = "torch-2.4",
) -> OpTimes:
    """Return the seconds of each operator row: the sum over its kernels.

    Form and constants: ``resources/calibration/steptime.json``; see ``kernel_seconds``.
    """
    dims, group = sized(table, batch, sequence)
    experts = _Experts.of(table, dims)
    known = kernels(table, batch, sequence)
    found = replace(known, flops=known.flops.copy(), bytes=known.bytes.copy())
    found.bytes[experts.rows] -= np.minimum(experts.unread, found.bytes[experts.rows])
    causal = IS_ATTENTION[table.group] & (dims[6] == 1)
    found.flops[: len(causal)][causal] *= efficiency.causal_share.value
    if compiled:
        fused = ~IS_PRODUCT[found.group]
        found.bytes[fused] *= efficiency.compile_memory.value
    launches = (found.group != NUMBER["view"]).astype(np.float64)
    launches[experts.rows] = experts.launches(rates)
    curves = efficiency.curves(channels_last=channels_last, framework=framework)
    times = kernel_seconds(found, launches, rates, curves, table.dtypes)

    def by_row(values: Floats) -> Floats:
        result: Floats = np.bincount(found.row, weights=values, minlength=len(table.group)).astype(
            np.float64
        )
        return result

    return OpTimes(
        seconds=by_row(times.seconds),
        compute=by_row(times.compute),
        memory=by_row(times.memory),
        flops=by_row(found.flops),
        bytes=by_row(found.bytes),
        group=SHOWN[group],
        launches=by_row(launches),
    )


@dataclass(frozen=True, slots=True, eq=False)
class KernelTimes:
    """Seconds of each kernel, and of its arithmetic and its traffic alone."""

    seconds: Floats
    compute: Floats
    memory: Floats


def kernel_seconds(
    found: Kernels, launches: Floats, rates: Rates, curves: Curves, dtypes: tuple[str, ...]
) -> KernelTimes:
    """Return (compute^p + memory^p)^(1/p) + transposes + gap of each kernel.

    compute = FLOPs / (peak · e) · (1 + b·m0/M)(1 + b·n0/N)(1 + b·k0/K): small products fill
    neither the tiles nor the multiprocessors, and the less so the more arithmetic a GPU has for
    its bandwidth: b is its balance over that of the RTX 3090, on which m0, n0, k0 were fitted
    (those of A40, A100 and H100, fitted alone on vidur's tables, are 2.7, 2.4 and 5.4 times as
    large; b is 2.8, 2.0 and 3.9). memory = (bytes + r · activations beyond the cache) /
    (bandwidth · m), r for what is read again for other tiles. p says how well the two
    overlap. Dense convolutions in 16 bits pay for transposes, a share of their activations'
    traffic by layout. In depthwise ones arithmetic, on the vector units, and memory add up. A
    batch normalisation works on each channel apart: few of them leave multiprocessors idle,
    (1 + n0/channels) on its memory time.
    """
    group = found.group
    peak = np.array([rates.product_rate(dtype) for dtype in dtypes])[found.dtype]
    depthwise = IS_DEPTHWISE[group]
    if rates.vector is not None:
        peak[depthwise] = rates.vector
    peak[IS_ATTENTION[group]] *= rates.attention
    compute = found.flops / (peak * curves.compute[group]) * _small(found, peak, rates, curves)
    beyond = np.maximum(found.activations - rates.cache, 0)
    moved = found.bytes + curves.again[group] * beyond
    memory = moved / (rates.bandwidth * curves.memory[group])
    norms = np.flatnonzero(IS_BATCH_NORM[group])
    channels = np.maximum(found.shape[1, norms], 1)
    memory[norms] *= 1 + curves.half[1, group[norms]] / channels
    slower = _smooth_maximum(compute, memory, curves.smoothing)
    slower[depthwise] = compute[depthwise] + memory[depthwise]
    dense = np.flatnonzero(IS_DENSE[group])
    slower[dense] += curves.transposes * found.activations[dense] / rates.bandwidth
    seconds = slower * (launches > 0) + curves.gap * launches
    return KernelTimes(seconds, compute, memory)


BALANCE = 71.2e12 / 936e9
"""FLOP a byte of the RTX 3090, 16 bits with fp32 accumulate (NVIDIA's GA102 white paper)."""


def _small(found: Kernels, peak: Floats, rates: Rates, curves: Curves) -> Floats:
    """Return what small and misaligned shapes multiply the time of arithmetic by."""
    result = np.ones(len(found.group))
    chosen = np.flatnonzero(found.shape[0] > 0)
    group, shape = found.group[chosen], found.shape[:, chosen]
    balance = np.where(np.isfinite(peak[chosen]), peak[chosen] / rates.bandwidth / BALANCE, 1.0)
    factor = np.ones(len(chosen))
    for half, size in zip(curves.half[:, group], shape, strict=True):
        factor *= 1 + balance * half / size
    odd = (shape[1] % 8 != 0) | (shape[2] % 8 != 0)
    factor[odd] /= curves.odd[group[odd]]
    result[chosen] = factor
    return result


def _smooth_maximum(a: Floats, b: Floats, power: float) -> Floats:
    """Return (a^p + b^p)^(1/p), computed from the larger so that nothing overflows."""
    larger, smaller = np.maximum(a, b), np.minimum(a, b)
    share = np.divide(smaller, larger, out=np.zeros_like(larger), where=larger > 0)
    result: Floats = larger * (1 + share**power) ** (1 / power)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Experts:
    """The grouped products of a table at a point."""

    rows: NDArray[np.int64]
    """Their numbers in the table."""
    busy: Floats
    """Experts that have a token: with few tokens, each is another expert's."""
    unread: Floats
    """Bytes of weights that a product leaves alone, since their experts have no tokens."""
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, table: Classified, dims: Floats) -> "_Experts":
        rows = np.flatnonzero(table.group == EXPERTS)
        dims = dims[:, rows]
        groups, by_rows = dims[0], dims[4] == 1
        busy = np.where(by_rows, np.clip(dims[1], 1, groups), groups)
        dtypes = tuple(table.dtypes[number] for number in table.dtype[rows])
        width = np.array([WIDTH.get(dtype, 4) for dtype in dtypes])
        return cls(rows, busy, (groups - busy) * dims[2] * dims[3] * width, dtypes)

    def launches(self, rates: Rates) -> Floats:
        """Return the kernels of each product."""
        whole = np.array([dtype in rates.grouped for dtype in self.dtypes], dtype=bool)
        result: Floats = np.where(whole, 1.0, self.busy)
        return result
