"""A profile as a file: layers become repeated tokens, so that the compressor finds them.

Layout: ``TWPROF`` and a version byte, then an xz stream of a JSON header (its length in
four bytes, little-endian) and the arrays one after another as the header lists them.
"""

import json
import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.messages import UserError
from trainwright.profile.profile import OpTable, Profile, Segment
from trainwright.profile.trace import ALLOC, PACK

_MAGIC = b"TWPROF\x01"
_LIMIT = 1 << 28
"""Bytes that a stored profile may unpack to; assumed, far above the largest model's."""


def encode(profile: Profile) -> bytes:
    """Return the profile as the bytes of a file."""
    arrays: dict[str, NDArray[Any]] = {"sizes": profile.sizes}
    for name, segment in profile.segments.items():
        for field, values in _tokens(segment).items():
            arrays[f"{name}/{field}"] = values
    ops = profile.ops
    for field in ("flops", "bytes_read", "bytes_written", "dims"):
        arrays[f"ops/{field}"] = getattr(ops, field)
    arrays["ops/region"] = np.array(ops.region, dtype=np.int8)
    columns = {field: _dictionary(getattr(ops, field)) for field in ("name", "phase", "dtype")}
    category_ids = np.array(sorted(profile.category), dtype=np.int32)
    names, numbers = _dictionary([profile.category[i] for i in category_ids.tolist()])
    arrays["category/ids"] = np.diff(category_ids, prepend=0).astype(np.int32)
    arrays["category/kind"] = np.array(numbers, dtype=np.uint8)
    header = {
        "arrays": [(name, a.dtype.str, a.shape) for name, a in arrays.items()],
        "columns": columns,
        "categories": names,
        "segments": {
            name: [[block, list(ids)] for block, ids in segment.inputs]
            for name, segment in profile.segments.items()
        },
        "model": profile.model,
        "assumptions": profile.assumptions,
        "kernels": profile.kernels,
        "versions": profile.versions,
        "exact": profile.exact,
        "points": profile.points,
        "covers_single": profile.covers_single,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return _MAGIC + lzma.compress(len(text).to_bytes(4, "little") + text + body, preset=6)


def decode(data: bytes, name: str = "profile") -> Profile:
    """Return the profile in a file's bytes.

    Raises:
        UserError: the bytes are not a profile of this version, or are damaged.
    """
    if not data.startswith(_MAGIC):
        raise UserError.of("profile.not-a-profile", file=name)
    try:
        return _decoded(_unpacked(data[len(_MAGIC) :]))
    except (
        lzma.LZMAError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
        MemoryError, RecursionError,
    ) as error:  # fmt: skip
        raise UserError.of("profile.damaged", file=name) from error


def _unpacked(data: bytes) -> bytes:
    decompressor = lzma.LZMADecompressor(memlimit=1 << 28)
    raw = decompressor.decompress(data, max_length=_LIMIT)
    if not decompressor.eof:
        raise ValueError("larger than any profile, or cut short")
    return raw


def _decoded(raw: bytes) -> Profile:
    length = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + length])
    arrays = _arrays(raw, 4 + length, header["arrays"])
    columns = {
        field: tuple(values[n] for n in numbers)
        for field, (values, numbers) in header["columns"].items()
    }
    segments = {name: _segment(arrays, name, inputs) for name, inputs in header["segments"].items()}
    ids = np.cumsum(arrays["category/ids"]).tolist()
    kinds = [header["categories"][n] for n in arrays["category/kind"].tolist()]
    return Profile(
        sizes=arrays["sizes"],
        segments=segments,
        ops=OpTable(
            name=columns["name"],
            phase=columns["phase"],
            region=tuple(arrays["ops/region"].tolist()),
            dtype=columns["dtype"],
            flops=arrays["ops/flops"],
            bytes_read=arrays["ops/bytes_read"],
            bytes_written=arrays["ops/bytes_written"],
            dims=arrays["ops/dims"],
        ),
        category=dict(zip(ids, kinds, strict=True)),
        model=header["model"],
        assumptions=header["assumptions"],
        kernels=header["kernels"],
        versions=header["versions"],
        exact=header["exact"],
        points=tuple((batch, length) for batch, length in header["points"]),
        covers_single=header["covers_single"],
    )


def _arrays(raw: bytes, offset: int, entries: list[Any]) -> dict[str, NDArray[Any]]:
    arrays = {}
    for name, kind, shape in entries:
        dtype = np.dtype(kind)
        if dtype.kind not in "iu":
            raise ValueError(f"{name}: {kind}")
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(raw, dtype, count, offset).reshape(shape)
        offset += count * dtype.itemsize
    return arrays


def _dictionary(values: list[str] | tuple[str, ...]) -> tuple[list[str], list[int]]:
    """Return the distinct values and each entry's number among them."""
    numbers: dict[str, int] = {}
    coded = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), coded


def _tokens(segment: Segment) -> dict[str, NDArray[Any]]:
    """Return the segment's columns, ids as steps from the last id under the same code."""
    saves = (segment.code == PACK) & (segment.b > 0)
    # A save names a recent storage: its distance from the newest repeats from layer to layer.
    # Zero stays free for leaves.
    distance = _newest(segment.code, segment.a) - segment.b
    operand = np.where(saves, distance + (distance >= 0), segment.b)
    return {
        "code": segment.code,
        "a": _stepped(segment.code, segment.a),
        "b": operand.astype(np.int32),
        "c": _stepped(segment.code, segment.c),
        "ops": segment.ops.astype(np.int32),
    }


def _newest(code: NDArray[np.uint8], a: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the newest storage's id after each event."""
    newest: NDArray[np.int32] = np.maximum.accumulate(np.where(code == ALLOC, a, 0))
    return newest


def _segment(arrays: dict[str, NDArray[Any]], name: str, inputs: list[Any]) -> Segment:
    code = arrays[f"{name}/code"]
    a = _summed(code, arrays[f"{name}/a"])
    b = arrays[f"{name}/b"]
    saves = (code == PACK) & (b != 0)
    b = np.where(saves, _newest(code, a) - (b - (b > 0)), b).astype(np.int32)
    return Segment(
        code=code,
        a=a,
        b=b,
        c=_summed(code, arrays[f"{name}/c"]),
        ops=arrays[f"{name}/ops"],
        inputs=tuple((block, tuple(ids)) for block, ids in inputs),
    )


def _stepped(code: NDArray[np.uint8], values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return differences from the value before under the same code."""
    steps = np.zeros_like(values)
    for kind in np.unique(code):
        mine = code == kind
        steps[mine] = np.diff(values[mine], prepend=0)
    return steps


def _summed(code: NDArray[np.uint8], steps: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the values that ``_stepped`` took apart."""
    values = np.zeros_like(steps)
    for kind in np.unique(code):
        mine = code == kind
        values[mine] = np.cumsum(steps[mine])
    return values
