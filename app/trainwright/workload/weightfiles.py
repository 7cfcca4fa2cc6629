"""Headers of ``.safetensors`` files: what weights a folder holds, without reading one of them.

The format is eight bytes with the length of a header, the header in JSON, and the tensors one
after another (``safetensors/README.md`` of Hugging Face). Everything that a header says is
checked against the file; one that lies is refused whole.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from trainwright import reading
from trainwright.messages import UserError

KEY = "model.hf"
HEADER_BYTES = 32 << 20
"""Longest header that is read; assumed, a hundred times that of the largest models. The format
allows 100 MB."""
INDEX_BYTES = 32 << 20
"""Longest index that is read; assumed."""
FILES = 2000
"""Most files of one model; assumed."""
INDEX = ".safetensors.index.json"
SUFFIX = ".safetensors"

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of each type (``Dtype`` in ``safetensors/src/tensor.rs``)."""
WHOLE = frozenset({"F64", "F32", "F16", "BF16"})
"""Types of weights that are not quantised."""
BUFFERS = (
    "running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids",
    "masked_bias", "relative_position_index",
)  # fmt: skip
"""Last names of tensors that transformers and torch store and that are not parameters."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor as a header states it."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def count(self) -> int:
        """Its numbers."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """What the files of a model hold."""

    parameters: int
    """Numbers in tensors that are not buffers; packed ones count as they are stored."""
    bytes: int
    """Of all tensors."""
    by_type: tuple[tuple[str, int], ...]
    """(type, bytes of parameters in it), largest first."""
    files: int

    @property
    def quantised(self) -> bool:
        """Whether a tenth or more of the bytes are of a packed or shortened type."""
        packed = sum(size for dtype, size in self.by_type if dtype not in WHOLE)
        return 10 * packed >= self.bytes > 0


def config_of(path: Path) -> Path:
    """Return the ``config.json`` of a model that is named by it, its folder or its weights."""
    if path.name.endswith((SUFFIX, INDEX)):
        return path.parent / "config.json"
    return path / "config.json" if os.path.isdir(path) else path


def names_weights(path: Path) -> bool:
    """Whether a path names weights themselves, and not what lies beside them."""
    return path.name.endswith((SUFFIX, INDEX))


def weights(path: Path) -> Weights | None:
    """Return the weights that a path names, or that lie beside a ``config.json``.

    Returns None where there are none, or several files without an index.

    Raises:
        UserError: a file cannot be read, its header is false, or the index does not agree.
    """
    if path.name.endswith(INDEX):
        return _indexed(path)
    if path.name.endswith(SUFFIX):
        return _summed({path.name: _header(path)})
    folder = config_of(path).parent
    if indices := sorted(folder.glob(f"*{INDEX}")):
        return _indexed(indices[0])
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if len(files) > 1:
        files = [file for file in files if file.name == f"model{SUFFIX}"]
    return _summed({files[0].name: _header(files[0])}) if files else None


def _summed(headers: Mapping[str, Mapping[str, Stored]]) -> Weights:
    sizes: dict[str, int] = {}
    parameters = total = 0
    for header in headers.values():
        for name, tensor in header.items():
            total += tensor.bytes
            if name.rpartition(".")[2] in BUFFERS or tensor.dtype in ("I64", "U64", "BOOL"):
                continue
            parameters += tensor.count
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.bytes
    by_type = sorted(sizes.items(), key=lambda item: -item[1])
    return Weights(parameters, total, tuple(by_type), len(headers))


def _indexed(index: Path) -> Weights:
    """Return the weights of all files that an index names.

    Raises:
        UserError: files are missing, or a tensor is not where the index has it.
    """
    text = reading.content(index, INDEX_BYTES, f"{KEY}: {index}")
    places = _parsed(text, index, "weights.index-broken").get("weight_map")
    if not isinstance(places, dict) or not places:
        _refuse("weights.index-broken", index)
    names = set(places.values()) if all(isinstance(v, str) for v in places.values()) else set()
    plain = all(name.endswith(SUFFIX) and name == os.path.basename(name) for name in names)
    if not names or not plain or len(names) > FILES or any("\\" in name for name in names):
        _refuse("weights.index-broken", index)
    absent = sorted(name for name in names if not os.path.isfile(index.parent / name))
    if absent:
        _refuse("weights.files-missing", index, count=len(absent), first=absent[0], of=len(names))
    headers = {name: _header(index.parent / name) for name in sorted(names)}
    for tensor, name in places.items():
        if tensor not in headers[name]:
            _refuse("weights.tensor-missing", index.parent / name, tensor=_short(tensor))
    stored = sum(len(header) for header in headers.values())
    if stored != len(places):
        _refuse("weights.tensors-extra", index, count=stored - len(places))
    return _summed(headers)


def _header(path: Path) -> Mapping[str, Stored]:
    """Return the tensors of a file by name; an unchanged file is read once."""
    with reading.opened(path, f"{KEY}: {path}") as file:
        status = os.fstat(file.fileno())
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=FILES)
def _read(path: Path, _changed: int, size: int) -> Mapping[str, Stored]:
    with reading.opened(path, f"{KEY}: {path}") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or size < 8 + length:
            _refuse("weights.cut-short", path, length=8 + length, size=size)
        if length > HEADER_BYTES:
            _refuse("weights.header-long", path, length=length)
        text = file.read(length)
    if not text.startswith(b"{"):
        _refuse("weights.header-broken", path)
    fields = _parsed(text, path, "weights.header-broken")
    metadata = fields.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _refuse("weights.header-broken", path)
    places = {name: _place(name, field, path) for name, field in fields.items()}
    _check_places(places, 8 + length, size, path)
    return {name: stored for name, (_, stored) in places.items()}


def _parsed(text: bytes, path: Path, id: str) -> dict[str, Any]:
    """Return a JSON object without doubled keys and without numbers that JSON has not."""
    try:
        found = reading.json_object(text.decode("utf-8"))
    except UnicodeDecodeError:
        found = None
    return found if found is not None else _refuse(id, path)


def _place(name: str, field: Any, path: Path) -> tuple[int, Stored]:
    """Return where a tensor begins, and the tensor, once its size fits its type and shape."""
    fields: dict[str, Any] = field if isinstance(field, dict) else {}
    dtype = fields.get("dtype")
    shape: Any = fields.get("shape")
    offsets: Any = fields.get("data_offsets")
    bits = BITS.get(dtype) if isinstance(dtype, str) and len(fields) == 3 else None
    if bits is None or not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        _refuse("weights.tensor-broken", path, tensor=_short(name))
    begin, end = offsets
    if 8 * (end - begin) != prod(shape) * bits:
        _refuse("weights.tensor-broken", path, tensor=_short(name))
    return begin, Stored(str(dtype), tuple(shape), end - begin)


def _sizes(value: Any) -> bool:
    """Whether a value is a short list of numbers that a file can hold."""
    return (
        isinstance(value, list)
        and len(value) <= 64
        and all(type(each) is int and 0 <= each < 1 << 63 for each in value)
    )


def _check_places(
    places: Mapping[str, tuple[int, Stored]], head: int, size: int, path: Path
) -> None:
    """Refuse tensors that overlap, leave gaps, or end elsewhere than the file does."""
    end = 0
    for begin, length, name in sorted(
        (b, stored.bytes, name) for name, (b, stored) in places.items()
    ):
        if begin != end:
            _refuse("weights.tensor-place", path, tensor=_short(name))
        end += length
    if head + end != size:
        _refuse("weights.cut-short", path, length=head + end, size=size)


def _short(name: str) -> str:
    """Return a name fit for a line."""
    return "".join(c if c.isprintable() else "?" for c in name[:80])


def _refuse(id: str, path: Path, **values: Any) -> NoReturn:
    raise UserError.of(id, key=KEY, file=str(path), **values)
