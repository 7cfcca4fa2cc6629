"""What one operator call costs: FLOPs, bytes and dimensions, from its arguments."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from autocast import tensors
from questions import asks
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
    aten.mm.out: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
    aten._int_mm.default: (0, 1),
    aten.addmm.out: (1, 2),
    aten.addmm.dtype_out: (1, 2),
}
"""Matrix product -> places of its two factors."""

GROUPED = aten._grouped_mm.default
"""Products of an expert each: the rows, or the terms of the sums, are split between them."""

REPEATS = frozenset({aten.repeat.default, aten.repeat_interleave.self_int})
"""They may make a row for each sample from a weight alone."""

Lasts = Callable[[torch.Tensor], bool]
"""Whether a tensor has the same size for every batch: a weight, a buffer, or made from these."""


@dataclass(frozen=True)
class Facts:
    """What is the same in all calls of one operator."""

    op: Any
    name: str
    passes: bool
    """Only makes another view of a storage, or answers about one."""
    allocates: bool
    """Only takes memory, with no work on the device."""
    asks: bool
    """May depend on data that a fake tensor does not have."""
    written: tuple[tuple[int, str], ...]
    """Arguments that it writes in place: place and name."""
    returns: bool
    """Whether it returns memory of its own."""
    flops: Any
    """torch's formula, or None."""
    places: dict[str, int]
    """Argument -> its place."""


def describe(op: Any) -> Facts:
    """Return the facts of an operator, from its schema."""
    schema = op._schema
    infos = [returned.alias_info for returned in schema.returns]
    view = bool(infos) and all(info is not None and not info.is_write for info in infos)
    views = (aten._unsafe_view.default, aten._reshape_alias.default, torch.ops.prim.device.default)
    written = tuple(
        (place, argument.name)
        for place, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    return Facts(
        op,
        str(op),
        passes=view or op in views,
        allocates=schema.name.startswith(("aten::empty", "aten::new_empty")),
        asks=asks(op),
        written=written,
        returns=any(info is None for info in infos),
        flops=flop_registry.get(op._overloadpacket),
        places={argument.name: place for place, argument in enumerate(schema.arguments)},
    )


def flops(facts: Facts, args: Any, kwargs: Any, out: Any) -> int:
    """Return the FLOPs of a call, by torch's formulas, and of grouped products by our own.

    torch (to 2.13) takes the gradient of a convolution's weight for that of a dense one,
    ``groups`` times too much; so the two gradients are counted apart.
    """
    if facts.op is GROUPED:
        groups, *sizes, shared = _grouped(args, kwargs)
        return 2 * prod(sizes) * (1 if shared else groups)
    if facts.flops is None:
        return 0
    if facts.op is aten.addmm.dtype_out:  # torch's formula does not know the type
        return int(facts.flops(*args[:3], out_val=out))
    if facts.op is not aten.convolution_backward.default or args[9] == 1:
        return int(facts.flops(*args, **kwargs, out_val=out))
    before, groups, (of_input, of_weight, _) = args[:9], args[9], args[10]
    inputs = facts.flops(*before, groups, (of_input, False, False), out_val=out)
    weights = facts.flops(*before, groups, (False, of_weight, False), out_val=out)
    return int(inputs + weights // groups)


def traffic(facts: Facts, args: Any, kwargs: Any, given: Any, made: Any) -> tuple[int, int]:
    """Return (bytes read, bytes written), each operand counted once.

    Args:
        facts: of the operator.
        args: of the call.
        kwargs: of the call.
        given: the tensors among the arguments.
        made: the tensors returned.
    """
    outputs = _bytes(made) if facts.returns else 0
    in_place = sum(
        _bytes(tensors(args[place] if place < len(args) else kwargs.get(name)))
        for place, name in facts.written
    )
    if facts.op in GATHERS:
        indices = [tensor for tensor in given if not tensor.is_floating_point()]
        return outputs + _bytes(indices), outputs
    read = _bytes(given)
    return read - in_place if facts.op in OVERWRITES else read, outputs + in_place


def dims(
    facts: Facts, args: Any, kwargs: Any, out: Any, given: Any, made: Any, lasts: Lasts
) -> tuple[int, ...]:
    """Return the dimensions that the profile's ``OpRow.dims`` names."""
    op = facts.op
    if op in MULTIPLIES:
        left, right = (args[place] for place in MULTIPLIES[op])
        batch = left.shape[0] if left.dim() == 3 else 1
        weights = _bytes(tensor for tensor in (*given, *made) if lasts(tensor))
        return batch, left.shape[-2], right.shape[-1], left.shape[-1], weights
    if op is aten.convolution.default:
        inputs, kernel, _, stride = args[:4]
        return _convolution(out, inputs, kernel, stride, args[6], args[8], ())
    if op is aten.convolution_backward.default:
        pixels, inputs, kernel, _, stride = args[:5]
        return _convolution(pixels, inputs, kernel, stride, args[7], args[9], args[10])
    if op is GROUPED:
        return _grouped(args, kwargs)
    if facts.name.startswith("aten._scaled_dot_product"):
        return _attention(op, args, kwargs)
    if facts.name.startswith(("aten._foreach", "aten._fused_adam", "aten._fused_sgd", "aten._amp")):
        return (sum(tensor.numel() for tensor in tensors(args[0])),)
    elements = max(tensor.numel() for tensor in (*made, *given))
    if "batch_norm" in facts.name:
        return elements, *_batch_norm(facts, args)
    return (elements,)


def dtype(given: Any, made: Any) -> str:
    """Return the dtype of the first floating-point operand, or of the first operand."""
    operands = (*given, *made)
    found = next((t for t in operands if t.is_floating_point()), operands[0])
    return str(found.dtype).removeprefix("torch.")


def _bytes(operands: Iterable[torch.Tensor]) -> int:
    return sum(map(_size, operands))


def _size(tensor: torch.Tensor) -> int:
    """Bytes of a tensor in memory: repeated rows of an expanded one count once."""
    if 0 not in tensor.stride():
        return tensor.nbytes
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return prod(size for size, stride in pairs if stride) * tensor.element_size()


def _convolution(
    pixels: torch.Tensor,
    inputs: torch.Tensor,
    kernel: torch.Tensor,
    stride: list[int],
    transposed: bool,
    groups: int,
    mask: Iterable[bool],
) -> tuple[int, ...]:
    """Return the dimensions of a convolution; ``pixels`` has the shape of its output."""
    rows = pixels.numel() // max(1, pixels.shape[1])
    channels = inputs.shape[1]
    terms = channels // groups * prod(kernel.shape[2:])
    if transposed:  # each output meets only some of the taps
        terms //= prod(stride) if len(stride) > 1 else stride[0] ** (kernel.dim() - 2)
    asked = sum(wanted << place for place, wanted in enumerate(mask))
    return rows, pixels.shape[1], terms, groups, inputs.numel(), channels, asked


def _batch_norm(facts: Facts, args: Any) -> tuple[int, int]:
    """Return (channels, whether sums over each channel are formed: 1 or 0)."""
    places = facts.places
    channels = args[places["input"]].shape[1]
    flag = next((name for name in ("training", "train", "update") if name in places), None)
    sums = "no_update" not in facts.name if flag is None else bool(args[places[flag]])
    if "output_mask" in places:
        sums = sums or any(args[places["output_mask"]][1:])
    return channels, int(sums)


def _grouped(args: Any, kwargs: Any) -> tuple[int, ...]:
    """Return (groups, M, N, K, place of what the groups share: 1 or 3; 0 for none)."""
    left, right = args[0], args[1]
    offsets = args[2] if len(args) > 2 else kwargs.get("offs")
    groups = left.shape[0] if offsets is None else offsets.shape[0]
    shared = {(2, 3): 1, (2, 2): 3, (3, 2): 2}.get((left.dim(), right.dim()), 0)
    return groups, left.shape[-2], right.shape[-1], left.shape[-1], shared


def _attention(op: Any, args: Any, kwargs: Any) -> tuple[int, ...]:
    backward = "backward" in op._schema.name
    query, key = (args[1], args[2]) if backward else (args[0], args[1])
    names = [argument.name for argument in op._schema.arguments]
    place = names.index("is_causal") if "is_causal" in names else len(args)
    causal = args[place] if place < len(args) else kwargs.get("is_causal", False)
    batch, heads, length, size = query.shape
    return batch, heads, length, key.shape[2], size, key.shape[1], int(bool(causal))
