"""The raw log that the tracer writes, one for each traced point.

``worker/programs/trace.py`` writes it as JSON (``format: 1``); this module is its reader's
side and the one place that states the format.

One step of the template is cut into *segments*, traced in this order: ``setup`` (model
built and moved, optimizer made), ``micro`` (the first micro-batch: data, forward, loss,
backward; gradients are born), ``again`` (a second micro-batch: gradients accumulate), one
segment per traced optimizer (``optimizer:adamw``: clipping, step, zero_grad), and for
inference ``prefill`` and ``decode``. A second full step is traced at the main point to
check that it repeats the first without the births of optimizer state.
"""

from dataclasses import dataclass
from typing import Any

FORMAT = 1

ALLOC, FREE, PACK, RELEASE, UNPACK, COPY_DEAD, BEGIN, END = range(8)
"""Codes of the log. With operands (a, b, c):

====== ==================================================================================
ALLOC  a = storage id, b = bytes asked for, c = number of the op that made it (-1: none)
FREE   a = storage id
PACK   autograd saves a tensor: a = holder id, b = storage id (0: a leaf, kept by itself),
       c = block (-1: outside any block)
RELEASE  a = holder id: autograd lets go of it
UNPACK   a = holder id: backward asks for it back
COPY_DEAD a = holder id: the tensor that unpack returned is dead
BEGIN, END  a = block: its forward begins, ends
====== ==================================================================================
"""


@dataclass(frozen=True, slots=True)
class OpRow:
    """One distinct operator call; ops of a segment refer to rows by number."""

    name: str
    """``aten.mm.default``."""
    phase: str
    """forward | loss | backward | clip | optimizer | setup | data."""
    region: int
    """Block number; -1 before and between blocks, -2 after the last (head and loss)."""
    dtype: str
    """Of the first floating-point operand: ``bfloat16``."""
    flops: int
    """Multiply-add counted as 2; attention counted in full even when causal."""
    bytes_read: int
    bytes_written: int
    dims: tuple[int, ...]
    """GEMM: (batch, M, N, K, bytes of weights, of those read and written: all that has the same
    size for every batch). Grouped GEMM: (groups, M, N, K, place of what they share).
    Convolution: (N·OH·OW, Cout, Cin/groups·taps, groups, elements of the input, Cin, gradients
    that are asked for: 1 for the input's, 2 for the weight's, 4 for the bias'). Taps are those
    that an output meets: kh·kw, over the stride where it is transposed.
    Batch norm: (elements, channels, 1 where sums over each channel are formed).
    Attention: (batch, heads, Sq, Sk, head_dim, kv_heads, causal). Else: (elements,)."""


@dataclass(frozen=True, slots=True)
class RawSegment:
    """The log of one segment at one traced point."""

    name: str
    code: list[int]
    a: list[int]
    b: list[int]
    c: list[int]
    ops: list[int]
    """Row number of each op, in order of execution."""
    inputs: dict[int, list[int]]
    """Block -> ids of the storages that its forward takes."""


@dataclass(frozen=True, slots=True)
class RawTrace:
    """Everything that one traced point yields."""

    batch: int
    sequence: int
    """Tokens a sample; 0 where the model has no sequence."""
    segments: dict[str, RawSegment]
    rows: list[OpRow]
    category: dict[int, str]
    """Storage id -> parameter | buffer | gradient | optimizer | input | output, where the
    tracer knows it by identity; others are told by their lives."""


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What a tracer run returns: points of one structure, and what it assumed."""

    traces: tuple[RawTrace, ...]
    model: dict[str, Any]
    """parameters, trainable, frozen_bytes, buffers, blocks, layers, vocabulary, hidden,
    family, heads, kv_heads, head_dim; whatever of them the model has."""
    assumptions: dict[str, int]
    """Answer given to a data-dependent question -> times."""
    kernels: dict[str, int]
    """Attention kernel -> calls."""
    repeats: bool
    """Whether the second step repeats the first without births of optimizer state."""
    versions: dict[str, str]
    seconds: float


def parse(document: dict[str, Any]) -> TraceResult:
    """Return the result in a tracer's JSON document.

    Raises:
        ValueError: another format number.
        KeyError: a field is missing.
    """
    if document["format"] != FORMAT:
        raise ValueError(f"trace format {document['format']}, this program reads {FORMAT}")
    return TraceResult(
        traces=tuple(_point(point) for point in document["traces"]),
        model=document["model"],
        assumptions=document["assumptions"],
        kernels=document["kernels"],
        repeats=document["repeats"],
        versions=document["versions"],
        seconds=document["seconds"],
    )


def _point(point: dict[str, Any]) -> RawTrace:
    segments = {name: _segment(name, fields) for name, fields in point["segments"].items()}
    rows = [_row(fields) for fields in point["rows"]]
    category = {int(key): value for key, value in point["category"].items()}
    return RawTrace(point["batch"], point["sequence"], segments, rows, category)


def _row(fields: list[Any]) -> OpRow:
    name, phase, region, dtype, flops, read, written, dims = fields
    return OpRow(name, phase, region, dtype, flops, read, written, tuple(dims))


def _segment(name: str, fields: dict[str, Any]) -> RawSegment:
    inputs = {int(block): ids for block, ids in fields["inputs"].items()}
    return RawSegment(
        name, fields["code"], fields["a"], fields["b"], fields["c"], fields["ops"], inputs
    )
