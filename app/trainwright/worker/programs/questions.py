"""Answers to what a tensor without data cannot answer; each answer is counted and shown."""

from typing import Any

import torch
from experts import Routed
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten

FLOAT, INTEGER, FRACTION = 0.5, 1, 0.5
"""Assumed: a float read from the device (0 and 1 divide by zero in optimizers), an integer,
and the share of a mask that is true."""

INDEXING = (
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
)

ASKING = (
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten._unique2.default,
    aten._grouped_mm.default,
    aten.is_pinned.default,
)


def asks(op: Any) -> bool:
    """Whether the operator may need an answer."""
    return op in ASKING or op in INDEXING


class Answers:
    """Answers by rule, and counts what it answered."""

    def __init__(self) -> None:
        self.given: dict[str, int] = {}
        self.routed: Routed | None = None
        """Of the experts that run now."""

    def _count(self, what: str, stage: str) -> None:
        if stage != "optimizer":  # the optimizer reads its own step counter
            self.given[what] = self.given.get(what, 0) + 1

    def remember(self, func: Any, out: Any) -> None:
        """Note on a scalar which operator made it."""
        out._made_by = func._schema.name.split("::")[-1]

    def indices(self, func: Any, args: tuple[Any, ...], recorder: Any) -> tuple[Any, ...]:
        """Return the arguments with masks as indices: as a GPU does, by ``nonzero``."""
        if func not in INDEXING:
            return args
        masks = (torch.bool, torch.uint8)
        if not any(index is not None and index.dtype in masks for index in args[1]):
            return args
        indices: list[Any] = []
        for index in args[1]:
            if index is None or index.dtype not in masks:
                indices.append(index)
            else:
                rows = recorder.__torch_dispatch__(aten.nonzero.default, (), (index,))
                indices += rows.unbind(1)
        return (args[0], indices, *args[2:])

    def result(self, func: Any, args: Any, kwargs: Any, stage: str) -> tuple[bool, Any]:
        """Return (True, result) of an operator whose result depends on data."""
        first = args[0] if args and isinstance(args[0], FakeTensor) else None
        if first is None:
            return False, None
        if func is aten.is_pinned.default:
            return True, False
        if func is aten._local_scalar_dense.default:
            return True, self._scalar(first, stage)
        if func is aten.nonzero.default:
            rows = self._true(first, stage)
            return True, first.new_empty((rows, first.dim()), dtype=torch.int64)
        if func is aten._unique2.default:
            self._count(f"unique = {first.numel()}", stage)
            inverse = first.new_empty(first.shape, dtype=torch.int64)
            counts = inverse.new_empty((first.numel(),))
            return True, (first.new_empty((first.numel(),)), inverse, counts)
        if func is aten._grouped_mm.default:
            return True, _grouped(first, args, kwargs)
        return False, None

    def _true(self, tensor: FakeTensor, stage: str) -> int:
        """Return how many are true: by the routing, where the experts ask who has tokens."""
        if self.routed is not None:
            return self.routed.busy if tensor.dim() == 1 else self.routed.rows
        rows = max(1, int(tensor.numel() * FRACTION))
        self._count(f"nonzero of {tensor.numel()} = {rows}", stage)
        return rows

    def _scalar(self, tensor: FakeTensor, stage: str) -> float | int | bool:
        if tensor.constant is not None:
            return tensor.constant.item()  # type: ignore[no-any-return]
        maker = getattr(tensor, "_made_by", "")
        value: float | int | bool
        if tensor.dtype == torch.bool:
            value = "all" in maker
        else:
            value = FLOAT if tensor.dtype.is_floating_point else INTEGER
        if self.routed is None:
            self._count(f"{maker or 'item'} = {value}", stage)
        return value


def _grouped(left: Any, args: Any, kwargs: Any) -> Any:
    """Shape of a grouped product, its rows padded to 16 bytes as CUDA does.

    Source: ``create_grouped_gemm_output_tensor`` (``aten/src/ATen/native/GroupedMMUtils.h``);
    torch's own shape function takes bf16 alone, and pads in builds for CUDA alone.
    """
    right = args[1]
    offsets = args[2] if len(args) > 2 else kwargs.get("offs")
    columns = right.size(-1)
    multiple = 16 // left.element_size()
    padded = -(-columns // multiple) * multiple
    lead: tuple[int, ...]
    if left.dim() == 3 and right.dim() == 3:
        lead = (left.size(0), left.size(1))
    elif left.dim() == 2 and right.dim() == 2:
        lead = (offsets.size(0), left.size(0))
    else:
        lead = (left.size(0),) if left.dim() == 2 else (left.size(1),)
    stride = (padded, 1) if len(lead) == 1 else (lead[1] * padded, padded, 1)
    return left.new_empty_strided((*lead, columns), stride)
