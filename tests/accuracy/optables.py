"""Reduced op tables of the measured rows: what a step runs, each quantity linear in the batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import MONOMIALS, SCALE, Ints, OpTable

ROWS = Path(__file__).parent / "rows"
DIMS = 7
"""Columns of ``OpTable.dims``."""

_WORDS = ("name", "phase", "dtype")
_NUMBERS = ("flops", "bytes_read", "bytes_written", "dims", "count")
_FACTS = ("parameters", "tensors", "buffers")


@dataclass(frozen=True, slots=True, eq=False)
class OpRows:
    """The distinct operator calls of one step; rows align.

    A quantity is a pair (a, c): a + c · batch.
    """

    key: str
    """MODEL@PIXELS/TASK/PRECISION/ATTENTION, the model as timm names it today."""
    name: tuple[str, ...]
    phase: tuple[str, ...]
    """forward | loss | backward."""
    dtype: tuple[str, ...]
    flops: Ints
    """(rows, 2)."""
    bytes_read: Ints
    bytes_written: Ints
    dims: Ints
    """(rows, 7, 2)."""
    count: Ints
    """(rows,): how often each is called."""
    parameters: int
    tensors: int
    """Of the parameters: what an optimizer loops over."""
    buffers: int
    """Tensors that are not parameters."""

    def total(self, quantity: str, batch: int) -> int:
        """Return the sum of ``flops``, ``bytes_read`` or ``bytes_written`` over all calls."""
        values = getattr(self, quantity) @ np.array([1, batch], dtype=np.int64)
        return int(values @ self.count)


def as_ops(rows: OpRows) -> OpTable:
    """Return the rows as a profile has them; ``rows.count`` says how often each is called."""
    return OpTable(
        name=rows.name,
        phase=rows.phase,
        region=(-1,) * len(rows.name),
        dtype=rows.dtype,
        flops=_polynomials(rows.flops),
        bytes_read=_polynomials(rows.bytes_read),
        bytes_written=_polynomials(rows.bytes_written),
        dims=_polynomials(rows.dims),
    )


def _polynomials(pairs: Ints) -> Ints:
    """Return (..., 6) coefficients of ``MONOMIALS`` from (..., 2) of 1 and the batch."""
    result = np.zeros((*pairs.shape[:-1], len(MONOMIALS)), dtype=np.int64)
    result[..., MONOMIALS.index("1")] = pairs[..., 0] * SCALE
    result[..., MONOMIALS.index("B")] = pairs[..., 1] * SCALE
    return result


@cache
def tables(file: str) -> dict[str, OpRows]:
    """Return the tables of a file in ``rows``, by key."""
    return read(ROWS / file)


def read(path: Path) -> dict[str, OpRows]:
    """Return the tables of a file, by key."""
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    ends = np.cumsum(columns["rows"])
    return {
        str(key): _table(str(key), columns, slice(end - rows, end), place)
        for place, (key, rows, end) in enumerate(
            zip(columns["key"], columns["rows"], ends, strict=True)
        )
    }


def _table(key: str, columns: Mapping[str, NDArray[Any]], part: slice, place: int) -> OpRows:
    values: dict[str, Any] = {
        name: tuple(columns[f"{name}s"][columns[name][part]].tolist()) for name in _WORDS
    }
    for name in _NUMBERS:  # stored as columns, which compress better than rows
        values[name] = columns[name][..., part].T.astype(np.int64)
    values["dims"] = values["dims"].swapaxes(1, 2)
    for name in _FACTS:
        values[name] = int(columns[name][place])
    return OpRows(key, **values)


def write(file: Path, found: Mapping[str, OpRows]) -> None:
    """Write tables, in the order of their keys; the same tables give the same bytes."""
    chosen = [found[key] for key in sorted(found)]
    columns: dict[str, NDArray[Any]] = {
        "key": np.array([one.key for one in chosen]),
        "rows": np.array([len(one.name) for one in chosen], dtype=np.int32),
    }
    for name in _FACTS:
        columns[name] = np.array([getattr(one, name) for one in chosen], dtype=np.int64)
    for name in _WORDS:
        words = [word for one in chosen for word in getattr(one, name)]
        vocabulary, numbers = np.unique(np.array(words), return_inverse=True)
        columns[f"{name}s"], columns[name] = vocabulary, numbers.astype(np.uint16)
    for name in _NUMBERS:
        stacked = np.concatenate([getattr(one, name) for one in chosen])
        if name == "dims":
            stacked = stacked.swapaxes(1, 2)
        columns[name] = np.ascontiguousarray(stacked.T)
    np.savez_compressed(file, **columns)  # type: ignore[arg-type]
