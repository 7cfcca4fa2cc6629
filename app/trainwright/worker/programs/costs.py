"""What one operator call costs: FLOPs, bytes and dimensions, from its arguments."""

from collections.abc import Iterable
from math import prod
from typing import Any

import torch
from autocast import tensors
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten

GATHERS = frozenset(
    {
        aten.embedding.default,
        aten.index.Tensor,
        aten._unsafe_index.Tensor,
        aten.index_select.default,
        aten.gather.default,
    }
)
"""They read the rows that they return, not the whole table."""

OVERWRITES = frozenset(
    {
        aten.copy_.default,
        aten.fill_.Scalar,
        aten.fill_.Tensor,
        aten.zero_.default,
        aten.normal_.default,
        aten.uniform_.default,
    }
)
"""They do not read what they write."""

MULTIPLIES = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
}
"""Matrix product -> places of its two factors."""

CONVOLUTIONS = {
    aten.convolution.default: ("in", 0, 1, 8),
    aten.convolution_backward.default: ("grad", 0, 2, 9),
}
"""Convolution -> what its first operand is, places of it, the weight and the groups."""


def is_view(op: Any) -> bool:
    """Whether the call only makes another view of a storage, with no work on the device."""
    if op in (aten._unsafe_view.default, aten._reshape_alias.default):
        return True
    infos = [returned.alias_info for returned in op._schema.returns]
    return bool(infos) and all(info is not None and not info.is_write for info in infos)


def is_allocation(op: Any) -> bool:
    """Whether the call only takes memory, with no work on the device."""
    name: str = op._schema.name
    return name.startswith(("aten::empty", "aten::new_empty"))


def written_places(op: Any) -> tuple[tuple[int, str], ...]:
    """Return the arguments that the call writes in place."""
    return tuple(
        (place, argument.name)
        for place, argument in enumerate(op._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def makes_output(op: Any) -> bool:
    """Whether the call returns memory of its own."""
    return any(returned.alias_info is None for returned in op._schema.returns)


def flops(op: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Return floating-point operations by torch's own formulas, 0 where it has none."""
    formula = flop_registry.get(op._overloadpacket)
    if formula is None:
        return 0
    return int(formula(*args, **kwargs, out_val=out))


def traffic(op: Any, args: Any, kwargs: Any, out: Any, written: Any) -> tuple[int, int]:
    """Return (bytes read, bytes written), each operand counted once."""
    outputs = _bytes(tensors(out)) if makes_output(op) else 0
    in_place = sum(
        _bytes(tensors(args[place] if place < len(args) else kwargs.get(name)))
        for place, name in written
    )
    if op in GATHERS:
        indices = [t for t in tensors((args, kwargs)) if not t.is_floating_point()]
        return outputs + _bytes(indices), outputs
    read = _bytes(tensors((args, kwargs)))
    return read - in_place if op in OVERWRITES else read, outputs + in_place


def dims(op: Any, args: Any, kwargs: Any, out: Any) -> tuple[int, ...]:
    """Return the dimensions that the profile's ``OpRow.dims`` names."""
    if op in MULTIPLIES:
        left, right = (args[place] for place in MULTIPLIES[op])
        batch = left.shape[0] if left.dim() == 3 else 1
        return batch, left.shape[-2], right.shape[-1], left.shape[-1]
    if op in CONVOLUTIONS:
        return _convolution(op, args, out)
    if op._schema.name.startswith("aten::_scaled_dot_product"):
        return _attention(op, args, kwargs)
    largest = max((t.numel() for t in tensors((out, args))), default=0)
    if op._schema.name.startswith(("aten::_foreach", "aten::_fused", "aten::_amp")):
        first = args[0] if args else ()
        return (sum(t.numel() for t in tensors(first)),)
    return (largest,)


def dtype(args: Any, out: Any) -> str:
    """Return the dtype of the first floating-point operand, or of the first operand."""
    names = ""
    for tensor in tensors((args, out)):
        name = str(tensor.dtype).removeprefix("torch.")
        if tensor.is_floating_point():
            return name
        names = names or name
    return names


def _bytes(operands: Iterable[torch.Tensor]) -> int:
    return sum(
        prod(size for size, stride in zip(t.shape, t.stride(), strict=True) if stride)
        * t.element_size()
        for t in operands
    )


def _convolution(op: Any, args: Any, out: Any) -> tuple[int, ...]:
    kind, first, weight, groups = CONVOLUTIONS[op]
    kernel = args[weight].shape
    pixels = args[first] if kind == "grad" else out
    rows = pixels.numel() // max(1, pixels.shape[1])
    transposed = args[6] if kind == "in" else args[7]
    if transposed:
        return rows, kernel[1] * args[groups], kernel[0] // args[groups], args[groups]
    return rows, kernel[0], prod(kernel[1:]), args[groups]


def _attention(op: Any, args: Any, kwargs: Any) -> tuple[int, ...]:
    backward = "backward" in op._schema.name
    query, key = (args[1], args[2]) if backward else (args[0], args[1])
    names = [argument.name for argument in op._schema.arguments]
    place = names.index("is_causal") if "is_causal" in names else len(args)
    causal = args[place] if place < len(args) else kwargs.get("is_causal", False)
    batch, heads, length, size = query.shape
    return batch, heads, length, key.shape[2], size, key.shape[1], int(bool(causal))
