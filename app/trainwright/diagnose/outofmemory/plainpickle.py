"""Pickles of plain data, read without running any of their code.

``pickle.load`` may call whatever a file names. This reader knows only the instructions that make
numbers, texts, lists, tuples and dictionaries, and refuses a file with any other.
"""

from collections.abc import Callable
from pickletools import genops
from typing import Any

_VALUES = frozenset(
    {
        *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    }
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_SILENT = ("PROTO", "FRAME", "STOP")


def plain_data(data: bytes) -> Any:
    """Return what a pickle of protocol 2 to 5 holds.

    Raises:
        ValueError: it is damaged, or holds anything but plain data.
    """
    try:
        stack = _run(data)
    except (TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError("damaged pickle") from error
    if len(stack) != 1:
        raise ValueError("damaged pickle")
    return stack[0]


def _run(data: bytes) -> list[Any]:
    stack: list[Any] = []
    below: list[list[Any]] = []  # the stacks under each mark
    memo: dict[Any, Any] = {}
    for opcode, value, _ in genops(data):
        name = opcode.name
        if name in _VALUES:
            stack.append(value)
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
        elif name == "MARK":
            below.append(stack)
            stack = []
        elif name in ("APPENDS", "SETITEMS", "TUPLE"):
            items, stack = stack, below.pop()
            _take(name, items, stack)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            items = [stack.pop() for _ in range(_TUPLES[name])]
            stack.append(tuple(reversed(items)))
        elif name == "APPEND":
            _take("APPENDS", [stack.pop()], stack)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            _take("SETITEMS", [key, value], stack)
        elif name not in _SILENT:
            raise ValueError(f"{name} makes no plain data")
    return stack


def _take(name: str, items: list[Any], stack: list[Any]) -> None:
    """Put items, up to the mark, into what lies below it."""
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "APPENDS":
        stack[-1].extend(items)
    else:
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
