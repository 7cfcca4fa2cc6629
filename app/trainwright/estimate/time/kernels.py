"""The kernels behind a profile's operators: their class, their work and their shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.memo import KEPT
from trainwright.profile.profile import (
    SCALE,
    Floats,
    Ints,
    OpTable,
    Profile,
    monomials,
)

CLASSES = (
    "view",
    "gemm",
    "batched-gemm",
    "grouped-gemm",
    "attention",
    "attention-backward",
    "convolution",
    "convolution-input-gradient",
    "convolution-weight-gradient",
    "grouped-convolution",
    "grouped-convolution-input-gradient",
    "grouped-convolution-weight-gradient",
    "wide-grouped-convolution",
    "wide-grouped-convolution-input-gradient",
    "wide-grouped-convolution-weight-gradient",
    "depthwise-convolution",
    "depthwise-convolution-input-gradient",
    "depthwise-convolution-weight-gradient",
    "pointwise",
    "dequantization",
    "cast",
    "copy",
    "concatenate",
    "batch-norm",
    "batch-norm-backward",
    "layer-norm",
    "layer-norm-backward",
    "softmax",
    "reduction",
    "pooling",
    "pooling-backward",
    "index",
    "fused-optimizer",
    "foreach-optimizer",
    "other",
)
"""Rows of the efficiency table; a view moves nothing and takes no time."""

NUMBER = {name: number for number, name in enumerate(CLASSES)}
Numbers = NDArray[np.uint8]


def among(*fragments: str) -> NDArray[np.bool_]:
    """Return for each class whether its name contains one of the fragments."""
    return np.array([any(part in name for part in fragments) for name in CLASSES], dtype=np.bool_)


IS_CONVOLUTION = among("convolution")
IS_DEPTHWISE = among("depthwise")
IS_DENSE = IS_CONVOLUTION & ~among("depthwise", "grouped")
IS_ATTENTION = among("attention")
IS_BATCH_NORM = among("batch-norm")
IS_PRODUCT = among("gemm", "convolution", "attention")
EXPERTS = NUMBER["grouped-gemm"]

SHOWN = np.array([NUMBER[name.removesuffix("-backward")] for name in CLASSES], dtype=np.uint8)
"""The class that a person sees: the stage already says what is backward."""

_EXACT = {
    "view": ("all_reduce", "all_gather"),  # of split layers: the link's time, see ``sharing``
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
    ("dequantize", "dequantization"),
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
_BACKWARD = ("attention", "batch-norm", "layer-norm", "pooling")
_UNUSUAL = ("sort", "unique", "rnn", "lstm", "gru", "fft", "cholesky", "solve", "qr", "svd")


@cache
def class_of(name: str) -> str:
    """Return the class of an operator by its name; a convolution's shape refines it."""
    short = name.removeprefix("aten.").removeprefix("trainwright.").split(".")[0]
    if short in _BY_NAME:
        return _BY_NAME[short]
    for fragment, group in _BY_FRAGMENT:
        if fragment in short:
            return f"{group}-backward" if "backward" in short and group in _BACKWARD else group
    unusual = any(part.startswith(_UNUSUAL) for part in short.split("_"))
    return "other" if unusual else "pointwise"


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """What of a table of operators does not depend on batch, length or GPU; rows align."""

    flops: Floats
    """(rows, 6): coefficients of ``MONOMIALS``, as floats: products of large batches would
    overflow integers."""
    bytes: Floats
    dims: Floats
    """(7, rows, 6)."""
    group: Numbers
    """Index into ``CLASSES``; sizes refine it: ``sized``."""
    dtype: Numbers
    """Index into ``dtypes``."""
    dtypes: tuple[str, ...]
    backward: NDArray[np.bool_]
    """Convolutions' gradients: two kernels, one for the input and one for the weight."""
    attended: Floats
    """FLOPs of fused attention over batch · heads · queries · keys · head size; 0 elsewhere."""


@lru_cache(maxsize=KEPT)
def classify(profile: Profile) -> Classified:
    """Return the profile's operators with their classes."""
    return classified(profile.ops, *profile.points[0])


def classified(ops: OpTable, batch: int, sequence: int) -> Classified:
    """Return operators with their classes; they were traced at the batch and length."""
    group = np.array([NUMBER[class_of(name)] for name in ops.name], dtype=np.uint8)
    moves = ops.flops.any(axis=1) | ops.bytes_read.any(axis=1) | ops.bytes_written.any(axis=1)
    group[~moves] = NUMBER["view"]
    dims = np.ascontiguousarray(ops.dims.transpose(1, 0, 2)) / SCALE
    dtypes = tuple(dict.fromkeys(ops.dtype))
    number = {dtype: index for index, dtype in enumerate(dtypes)}
    moved = (ops.bytes_read + ops.bytes_written) / SCALE
    for row in _softmax_of_half(ops):
        ends_there = "backward" in ops.name[row]
        moved[row] = moved[row] - 8 * dims[0, row] if ends_there else 0
        group[row] = group[row] if ends_there else NUMBER["view"]
    backward = np.array(["convolution_backward" in name for name in ops.name], dtype=np.bool_)
    backward &= group == NUMBER["convolution"]
    return Classified(
        flops=ops.flops / SCALE,
        bytes=moved,
        dims=dims,
        group=group,
        dtype=np.array([number[name] for name in ops.dtype], dtype=np.uint8),
        dtypes=dtypes,
        backward=backward,
        attended=_attended(ops, group, monomials(batch, sequence)),
    )


def _attended(ops: OpTable, group: Numbers, point: Ints) -> Floats:
    """Return ``Classified.attended``.

    Sizes with flash attention are linear in the length, so that two lengths are traced, which
    cannot tell the square in its FLOPs.
    """
    sizes = (ops.dims[:, :5] @ point / SCALE).prod(axis=1)
    fused = IS_ATTENTION[group] & (sizes > 0)
    result: Floats = np.divide(
        ops.flops @ point / SCALE, sizes, out=np.zeros(len(group)), where=fused
    )
    return result


def _softmax_of_half(ops: OpTable) -> Iterator[int]:
    """Yield rows of softmax in fp32 whose operand was cast from fp16.

    On CUDA the kernel reads fp16 and writes fp32 itself, and backward the reverse (``softmax``
    in aten/src/ATen/native/SoftMax.cpp, for Half alone); the traced device casts before. The
    cast's row moves what the kernel does forward; backward it writes 2 bytes an element, and
    the cast after it 6 that are none.
    """
    casts = {
        dims.tobytes()
        for name, dtype, dims in zip(ops.name, ops.dtype, ops.dims, strict=True)
        if name.startswith("aten._to_copy") and dtype == "float16"
    }
    if not casts:
        return
    for row, (name, dtype) in enumerate(zip(ops.name, ops.dtype, strict=True)):
        if dtype == "float32" and "_softmax" in name and ops.dims[row].tobytes() in casts:
            yield row


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The kernels of a table at a point, arrays aligned; the first ones are the rows' own.

    A convolution's gradients are two kernels: that of the input takes the row's place, that
    of the weight follows after all rows.
    """

    row: NDArray[np.int64]
    """In the table of operators."""
    group: Numbers
    dtype: Numbers
    flops: Floats
    bytes: Floats
    shape: Floats
    """(3, kernels): M, N and K of products as one matrix product (a group's, where there are
    several); N is the channels of a batch normalisation; 0 elsewhere."""
    activations: Floats
    """Bytes of what a product reads and writes beside its weights; 0 elsewhere."""


@lru_cache(maxsize=256)  # fp32 and TF32 share them, for up to a hundred micro-batches each
def kernels(table: Classified, batch: int, sequence: int) -> Kernels:
    """Return the kernels of one run of each operator at a point: the same on every GPU."""
    point = monomials(batch, sequence).astype(np.float64)
    # Polynomials of lengths far below the traced ones may fall below nothing.
    flops = np.maximum(table.flops @ point, 0)
    moved = np.maximum(table.bytes @ point, 0)
    dims, group = sized(table, batch, sequence)
    fused = table.attended > 0
    flops[fused] = table.attended[fused] * dims[:5, fused].prod(axis=0)
    shape = _shapes(group, dims)
    beside = np.maximum(moved - dims[WEIGHTS], 0)
    activations = np.where(group == NUMBER["gemm"], beside, 0.0)
    rows = np.arange(len(flops))
    convolutions = np.flatnonzero(IS_CONVOLUTION[group])
    if not len(convolutions):
        return Kernels(rows, group, table.dtype, flops, moved, shape, activations)
    sizes = _Convolutions.of(table, dims, convolutions)
    activations[convolutions] = sizes.activations
    back = table.backward[convolutions]
    first, second = _gradients(table, group, sizes, convolutions, back)
    group = group.copy()
    group[first.row], flops[first.row] = first.group, first.flops
    moved[first.row], shape[:, first.row] = first.bytes, first.shape
    return Kernels(
        np.concatenate([rows, second.row]),
        np.concatenate([group, second.group]),
        np.concatenate([table.dtype, second.dtype]),
        np.concatenate([flops, second.flops]),
        np.concatenate([moved, second.bytes]),
        np.concatenate([shape, second.shape], axis=1),
        np.concatenate([activations, second.activations]),
    )


WEIGHTS = 4
"""Where a product's bytes of weights stand in ``OpRow.dims``."""

WIDE = 48
"""Channels of a group from which cuDNN takes other kernels; between the 32 and 64 of ResNeXts,
whose measured times part there (step-time rows of timm on an RTX 3090)."""


@lru_cache(maxsize=256)
def sized(table: Classified, batch: int, sequence: int) -> tuple[Floats, Numbers]:
    """Return the dimensions of a table's rows at a point, and the classes that they refine.

    A batch normalisation without sums is a product and a sum for each element.
    """
    dims: Floats = table.dims @ monomials(batch, sequence).astype(np.float64)
    group = table.group.copy()
    norms = np.flatnonzero(IS_BATCH_NORM[group])
    group[norms[dims[2, norms] == 0]] = NUMBER["pointwise"]
    convolutions = np.flatnonzero(group == NUMBER["convolution"])
    _, outputs, _, groups, _, channels, _ = dims[:, convolutions]
    kinds = {
        "convolution": groups <= 1,
        "depthwise-convolution": groups >= outputs,
        "wide-grouped-convolution": channels >= WIDE * groups,
    }
    numbers = [np.uint8(NUMBER[name]) for name in kinds]
    rest = np.uint8(NUMBER["grouped-convolution"])
    group[convolutions] = np.select(list(kinds.values()), numbers, rest)
    return dims, group


@dataclass(frozen=True, slots=True, eq=False)
class _Convolutions:
    """Sizes of the convolutions of a table at a point, in elements; arrays align."""

    inputs: Floats
    outputs: Floats
    weights: Floats
    element: Floats
    """Bytes."""
    rows: Floats
    """N · OH · OW."""
    out_channels: Floats
    terms: Floats
    """Channels of a group times taps."""
    groups: Floats
    channels: Floats
    asked: NDArray[np.int64]
    """Gradients: 1 for that of the input, 2 for that of the weight."""

    @property
    def activations(self) -> Floats:
        """Bytes of input and output."""
        result: Floats = (self.inputs + self.outputs) * self.element
        return result

    @classmethod
    def of(cls, table: Classified, dims: Floats, chosen: NDArray[np.int64]) -> "_Convolutions":
        rows, out_channels, terms, groups, inputs, channels, asked = dims[:, chosen]
        element = np.array([WIDTH.get(name, 4) for name in table.dtypes])[table.dtype[chosen]]
        # Patches that neither overlap nor leave gaps are the rows of a plain product.
        whole = inputs == rows * terms * groups
        channels = np.where(whole, terms * groups, channels)
        return cls(
            *(inputs, rows * out_channels, out_channels * terms, element.astype(np.float64)),
            *(rows, out_channels, terms, groups, channels, asked.astype(np.int64)),
        )


def _gradients(
    table: Classified,
    group: Numbers,
    sizes: _Convolutions,
    rows: NDArray[np.int64],
    back: NDArray[np.bool_],
) -> tuple[Kernels, Kernels]:
    """Return the kernels of input and weight of the convolutions that are gradients.

    Where only one is asked for, the other has no work.
    """
    once = 2 * sizes.outputs * sizes.terms
    moved = sizes.activations + sizes.weights * sizes.element
    # 2 · M · N · K of a group are its FLOPs: an element of the input meets so many products.
    met = sizes.outputs * sizes.terms / sizes.inputs
    shapes = (
        (sizes.inputs / sizes.channels, sizes.channels / sizes.groups, met),
        (sizes.out_channels / sizes.groups, sizes.terms, sizes.rows),
    )
    first, second = (
        _gradient(
            *(table, group, rows, back, once, moved, sizes.activations),
            of=of,
            asked=asked,
            shape=shape,
        )
        for of, asked, shape in (
            ("input", (sizes.asked & 1) > 0, shapes[0]),
            ("weight", (sizes.asked & 2) > 0, shapes[1]),
        )
    )
    return first, second


def _gradient(
    table: Classified,
    base: Numbers,
    rows: NDArray[np.int64],
    back: NDArray[np.bool_],
    flops: Floats,
    moved: Floats,
    activations: Floats,
    *,
    of: str,
    asked: NDArray[np.bool_],
    shape: tuple[Floats, Floats, Floats],
) -> Kernels:
    chosen = rows[back]
    kind = {NUMBER[name]: NUMBER.get(f"{name}-{of}-gradient", 0) for name in CLASSES}
    group = np.array([kind[number] for number in base[chosen].tolist()], dtype=np.uint8)
    group[~asked[back]] = NUMBER["view"]
    work = asked[back].astype(np.float64)
    return Kernels(
        *(chosen, group, table.dtype[chosen], flops[back] * work, moved[back] * work),
        np.stack(shape)[:, back],
        activations[back],
    )


WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes an element."""

_PLACES = (
    (among("gemm"), (1, 2, 3)),
    (IS_CONVOLUTION, (0, 1, 2)),
    (IS_ATTENTION, (2, 3, 4)),
)
"""Where M, N and K stand in ``OpRow.dims`` of each kind."""


def _shapes(group: Numbers, dims: Floats) -> Floats:
    """Return (3, rows) of M, N, K; of batch normalisations N alone, 0 where there is no product."""
    shape = np.zeros((3, len(group)))
    for kind, columns in _PLACES:
        chosen = np.flatnonzero(kind[group])
        groups = np.maximum(dims[3, chosen], 1)
        for place, column in enumerate(columns):
            size = dims[column, chosen]
            if kind is IS_CONVOLUTION and column == 1:
                size = size / groups
            shared = (group[chosen] == EXPERTS) & (dims[4, chosen] == column)
            size = np.where(shared, size / np.maximum(dims[0, chosen], 1), size)
            shape[place, chosen] = np.maximum(size, 1)
    norms = IS_BATCH_NORM[group]
    shape[1, norms] = dims[1, norms]
    return shape
