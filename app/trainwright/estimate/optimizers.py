"""Optimizers that are not traced: what their library keeps for a parameter, by its own rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainwright.profile.profile import Profile

BITSANDBYTES_SOURCE = "bitsandbytes 0.50: optim/optimizer.py, init_state"
TORCHAO_SOURCE = "torchao 0.18: optim/adam.py, _new_buffer; subclass_8bit.py, subclass_4bit.py"

_SMALLEST = 4096
"""Elements below which both libraries do not quantise: ``min_8bit_size``, ``_new_buffer``."""
_BLOCK_8BIT, _BLOCK_4BIT = 256, 128
"""Elements that share one fp32 scale."""
_TABLE_8BIT, _TABLE_4BIT = 4 * 256, 4 * 16
"""Bytes of the fp32 values that codes stand for."""
_SMALLEST_PAGED = 100_000
"""Elements below which bitsandbytes does not page: ``get_state_buffer``."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One tensor of optimizer state."""

    name: str
    """``state-8bit``, ``state-scales`` ...: what the breakdown calls it."""
    nbytes: int
    paged: bool = False
    """Whether the driver holds it, outside torch's allocator, and may move it to the host."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a library keeps where torch's AdamW was traced."""

    library: str
    source: str
    state: Callable[[int, int], tuple[Kept, ...]]
    """(elements of a parameter, bytes of one) -> its state, in the order of its making."""
    tables: tuple[Kept, ...] = ()
    """Made once, for the first parameter that is quantised."""


def _eight_bit(elements: int, paged: bool = False) -> tuple[Kept, ...]:
    """Two moments of a byte an element and their scales; small ones are fp32 in any case."""
    paged = paged and elements >= _SMALLEST_PAGED
    if elements < _SMALLEST:
        return (Kept("state-32bit", 4 * elements),) * 2
    codes = Kept("state-8bit", elements, paged)
    return (codes,) * 2 + (Kept("state-scales", 4 * -(-elements // _BLOCK_8BIT)),) * 2


def _torchao(elements: int, itemsize: int, block: int, table: int) -> tuple[Kept, ...]:
    """Two moments, each of codes, scales and a table of its own.

    What is small or no multiple of the block is kept as the parameter is.
    """
    if elements < _SMALLEST or elements % block:
        return (Kept("state-as-weights", itemsize * elements),) * 2
    bits = 8 if block == _BLOCK_8BIT else 4
    codes = Kept(f"state-{bits}bit", elements * bits // 8)
    return (codes, Kept("state-scales", 4 * elements // block), Kept("state-table", table)) * 2


RULES: Mapping[str, Rule] = {
    "adamw-8bit": Rule(
        "bitsandbytes",
        BITSANDBYTES_SOURCE,
        lambda elements, _: _eight_bit(elements),
        tables=(Kept("state-table", _TABLE_8BIT),) * 2,
    ),
    "paged-adamw-8bit": Rule(
        "bitsandbytes",
        BITSANDBYTES_SOURCE,
        lambda elements, _: _eight_bit(elements, paged=True),
        tables=(Kept("state-table", _TABLE_8BIT),) * 2,
    ),
    "paged-adamw": Rule(
        "bitsandbytes",
        BITSANDBYTES_SOURCE,
        lambda elements, _: (Kept("state-32bit", 4 * elements, elements >= _SMALLEST_PAGED),) * 2,
    ),
    "adamw-8bit-torchao": Rule(
        "torchao",
        TORCHAO_SOURCE,
        lambda elements, size: _torchao(elements, size, _BLOCK_8BIT, _TABLE_8BIT),
    ),
    "adamw-4bit": Rule(
        "torchao",
        TORCHAO_SOURCE,
        lambda elements, size: _torchao(elements, size, _BLOCK_4BIT, _TABLE_4BIT),
    ),
    # One moment, fp32 whatever the parameter's type (arXiv 2302.06675; optim/lion.py).
    "lion": Rule(
        "bitsandbytes",
        BITSANDBYTES_SOURCE,
        lambda elements, _: (Kept("state-32bit", 4 * elements),),
    ),
}
"""Optimizers whose steps take no memory beyond their state, or too little to be seen: kernels
of bitsandbytes work in place, torchao compiles its step, parameter by parameter."""


def traced_as(optimizer: str) -> str:
    """Return the optimizer that has to be traced for the one asked for."""
    return "adamw" if optimizer in RULES else optimizer


def traced_name(profile: Profile, optimizer: str) -> str:
    """Return the optimizer whose trace stands for the one asked for."""
    if f"optimizer:{optimizer}" in profile.segments:
        return optimizer
    return traced_as(optimizer)
