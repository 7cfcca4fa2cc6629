"""Seconds of each traced operator on a GPU: the slower of arithmetic and memory, or a floor."""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import GpuRecord
from trainwright.estimate.efficiency import Efficiency
from trainwright.estimate.power import board_share, limit_share
from trainwright.profile.profile import SCALE, Floats, Profile, monomials

CLASSES = (
    "view",
    "gemm",
    "batched-gemm",
    "grouped-gemm",
    "attention",
    "convolution",
    "grouped-convolution",
    "depthwise-convolution",
    "pointwise",
    "cast",
    "copy",
    "concatenate",
    "batch-norm",
    "layer-norm",
    "softmax",
    "reduction",
    "pooling",
    "index",
    "fused-optimizer",
    "foreach-optimizer",
    "other",
)
"""Rows of the efficiency table; a view moves nothing and takes no time."""

_NUMBER = {name: number for number, name in enumerate(CLASSES)}
_CONVOLUTIONS = tuple(number for name, number in _NUMBER.items() if name.endswith("convolution"))
_MATRIX = (_NUMBER["gemm"], _NUMBER["batched-gemm"])
_EXPERTS = _NUMBER["grouped-gemm"]
_PRODUCTS = (*_MATRIX, _EXPERTS, *_CONVOLUTIONS, _NUMBER["attention"])

_EXACT = {
    "gemm": ("mm", "addmm", "linear", "matmul", "mv", "addmv", "_scaled_mm", "_int_mm"),
    "batched-gemm": ("bmm", "baddbmm"),
    "grouped-gemm": ("_grouped_mm",),
    "cast": ("_to_copy",),
    "copy": ("clone", "copy_", "copy", "contiguous", "pixel_shuffle", "pixel_unshuffle"),
    "concatenate": (
        *("cat", "stack", "roll", "constant_pad_nd", "pad", "flip", "repeat", "im2col", "col2im"),
        *("slice_backward", "select_backward", "unfold_backward", "split_with_sizes_backward"),
    ),
    "reduction": (
        *("sum", "mean", "amax", "amin", "max", "min", "std", "var", "var_mean", "std_mean"),
        *("norm", "linalg_vector_norm", "argmax", "cumsum", "topk", "prod", "any", "all"),
    ),
}
_BY_NAME = {name: group for group, names in _EXACT.items() for name in names}
_BY_FRAGMENT = (
    ("_fused_adam", "fused-optimizer"),
    ("_fused_sgd", "fused-optimizer"),
    ("_fused_adagrad", "fused-optimizer"),
    ("_foreach_", "foreach-optimizer"),
    ("attention", "attention"),
    ("convolution", "convolution"),
    ("batch_norm", "batch-norm"),
    ("layer_norm", "layer-norm"),
    ("group_norm", "layer-norm"),
    ("rms_norm", "layer-norm"),
    ("softmax", "softmax"),
    ("nll_loss", "reduction"),
    ("pool", "pooling"),
    ("upsample", "pooling"),
    ("interpolate", "pooling"),
    ("index", "index"),
    ("gather", "index"),
    ("embedding", "index"),
    ("scatter", "index"),
)
_UNUSUAL = ("sort", "unique", "rnn", "lstm", "gru", "fft", "cholesky", "solve", "qr", "svd")


@cache
def _class_of_name(name: str) -> str:
    short = name.removeprefix("aten.").split(".")[0]
    if short in _BY_NAME:
        return _BY_NAME[short]
    for fragment, group in _BY_FRAGMENT:
        if fragment in short:
            return group
    return "other" if any(word in short for word in _UNUSUAL) else "pointwise"


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
    grouped: frozenset[str] = frozenset()
    """Dtypes in which the products of all experts are one kernel, not one each."""

    def product_rate(self, dtype: str) -> float:
        """Return FLOP/s for a dtype; infinite where nothing is known: the bytes decide."""
        return self.flops.get(dtype, float("inf"))


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

    A rate that the catalog lacks is replaced by the vector rate in float32, which is
    never faster; where that is unknown too, only the bandwidth bounds the time.
    """
    factor = efficiency.ceiling(record).value * limit_share(record, power_limit_w)
    board = {"float16": board_share(record), "bfloat16": board_share(record)}
    vector = record.flops["fp32"].value if "fp32" in record.flops else None
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
        if vector is not None:
            flops[dtype] = vector * factor
    bandwidth = record.bandwidth_bytes_per_s.value
    return Rates(flops, vector, bandwidth, frozenset(missing), frozenset(grouped_dtypes(record)))


def grouped_dtypes(record: GpuRecord) -> tuple[str, ...]:
    """Return the dtypes that torch multiplies for all experts in one kernel.

    bf16 on compute capability 9.x and 10.x; elsewhere torch runs one product an expert.
    Source: ``_grouped_mm_cuda`` (``aten/src/ATen/native/cuda/GroupedBlas.cpp``).
    """
    capability = record.compute_capability
    return ("bfloat16",) if capability is not None and capability[0] in (9, 10) else ()


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """What of a profile's operators does not depend on batch, length or GPU; rows align."""

    flops: Floats
    """(rows, 6): coefficients of ``MONOMIALS``, as floats: products of large batches would
    overflow integers."""
    bytes: Floats
    dims: Floats
    """(7, rows, 6)."""
    group: NDArray[np.uint8]
    """Index into ``CLASSES``."""
    dtype: NDArray[np.uint8]
    """Index into ``dtypes``."""
    dtypes: tuple[str, ...]


@lru_cache(maxsize=64)
def classify(profile: Profile) -> Classified:
    """Return the profile's operators with their classes."""
    ops = profile.ops
    group = np.array([_NUMBER[_class_of_name(name)] for name in ops.name], dtype=np.uint8)
    moves = ops.flops.any(axis=1) | ops.bytes_read.any(axis=1) | ops.bytes_written.any(axis=1)
    group[~moves] = _NUMBER["view"]
    dims = np.ascontiguousarray(ops.dims.transpose(1, 0, 2)) / SCALE
    convolution = group == _NUMBER["convolution"]
    channels, groups = dims[1, :, 0], dims[3, :, 0]
    group[convolution & (groups > 1)] = _NUMBER["grouped-convolution"]
    group[convolution & (groups > 1) & (groups >= channels)] = _NUMBER["depthwise-convolution"]
    dtypes = tuple(dict.fromkeys(ops.dtype))
    number = {dtype: index for index, dtype in enumerate(dtypes)}
    dtype = np.array([number[name] for name in ops.dtype], dtype=np.uint8)
    moved = (ops.bytes_read + ops.bytes_written) / SCALE
    return Classified(ops.flops / SCALE, moved, dims, group, dtype, dtypes)


@dataclass(frozen=True, slots=True, eq=False)
class OpTimes:
    """Seconds of one run of each operator row, and what it is made of; rows align."""

    seconds: Floats
    compute: Floats
    memory: Floats
    flops: Floats
    bytes: Floats
    group: NDArray[np.uint8]
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
) -> OpTimes:
    """Return max(FLOPs / (peak · e · shape), bytes / (bandwidth · m), floor) for each row.

    Dense convolutions pay for transposes on top: a share of their traffic by layout. In
    depthwise ones arithmetic and memory add up, as their constants were fitted.

    ``shape`` is 1 / ((1 + m0/M)(1 + n0/N)(1 + k0/K)) for products: small ones fill neither
    the tiles nor the multiprocessors. Form and constants: ``resources/calibration``.
    """
    point = monomials(batch, sequence).astype(np.float64)
    group = table.group
    flops, moved = table.flops @ point, table.bytes @ point
    experts = _Experts.of(table, point)
    moved[experts.rows] -= experts.unread
    causal = (group == _NUMBER["attention"]) & (table.dims[6, :, 0] == 1)
    flops = np.where(causal, flops * efficiency.causal_share.value, flops)

    shares = _shares(efficiency, channels_last)
    depthwise = group == _NUMBER["depthwise-convolution"]
    peak = np.array([rates.product_rate(dtype) for dtype in table.dtypes])[table.dtype]
    if rates.vector is not None:
        peak[depthwise] = rates.vector
    compute = flops / (peak * shares.compute[group]) * _half_shapes(shares, table, point)
    memory = moved / (rates.bandwidth * shares.memory[group])
    if compiled:
        fused = ~np.isin(group, _PRODUCTS)
        memory[fused] *= efficiency.compile_memory.value
    launches = (group != _NUMBER["view"]).astype(np.float64)
    launches[experts.rows] = experts.launches(rates)
    slower = np.where(depthwise, compute + memory, np.maximum(compute, memory))
    seconds = np.maximum(slower * (launches > 0), efficiency.kernel_floor_s.value * launches)
    layout = efficiency.layout_traffic["channels_last" if channels_last else "channels_first"]
    dense = group == _NUMBER["convolution"]
    seconds[dense] += layout.value * moved[dense] / rates.bandwidth
    return OpTimes(seconds, compute, memory, flops, moved, group, launches)


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
    def of(cls, table: Classified, point: Floats) -> "_Experts":
        rows = np.flatnonzero(table.group == _EXPERTS)
        dims = table.dims[:, rows] @ point
        groups, by_rows = dims[0], table.dims[4, rows, 0] == 1
        busy = np.where(by_rows, np.clip(dims[1], 1, groups), groups)
        dtypes = tuple(table.dtypes[number] for number in table.dtype[rows])
        width = np.array([_WIDTH.get(dtype, 4) for dtype in dtypes])
        return cls(rows, busy, (groups - busy) * dims[2] * dims[3] * width, dtypes)

    def launches(self, rates: Rates) -> Floats:
        """Return the kernels of each product."""
        whole = np.array([dtype in rates.grouped for dtype in self.dtypes], dtype=bool)
        result: Floats = np.where(whole, 1.0, self.busy)
        return result


_WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes an element."""


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """The efficiency table as arrays over ``CLASSES``."""

    compute: Floats
    memory: Floats
    half: Floats
    """(3, classes): m0, n0, k0."""


def _shares(efficiency: Efficiency, channels_last: bool) -> _Shares:
    known = efficiency.classes | (efficiency.channels_last if channels_last else {})
    entries = [known.get(name, known["other"]) for name in CLASSES]
    return _Shares(
        np.array([entry.compute for entry in entries]),
        np.array([entry.memory for entry in entries]),
        np.array([[entry.half_m, entry.half_n, entry.half_k] for entry in entries]).T,
    )


_PLACES = (
    ((*_MATRIX, _EXPERTS), (1, 2, 3)),
    (_CONVOLUTIONS, (0, 1, 2)),
    ((_NUMBER["attention"],), (2, 3, 4)),
)
"""Where M, N and K stand in ``OpRow.dims`` of each kind."""


def _half_shapes(shares: _Shares, table: Classified, point: Floats) -> Floats:
    """Return (1 + m0/M)(1 + n0/N)(1 + k0/K) of each product; 1 elsewhere."""
    result = np.ones(len(table.group))
    for groups, columns in _PLACES:
        chosen = np.flatnonzero(np.isin(table.group, groups))
        for column, half in zip(columns, shares.half, strict=True):
            shared = (table.group[chosen] == _EXPERTS) & (table.dims[4, chosen, 0] == column)
            among = np.where(shared, table.dims[0, chosen, 0], 1)
            size = np.maximum(table.dims[column, chosen] @ point / among, 1)
            result[chosen] *= 1 + half[table.group[chosen]] / size
    return result
