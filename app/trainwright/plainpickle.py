"""Pickles of plain data, read without running any of their code.

``pickle.load`` may call whatever a file names. This reader knows only the instructions that make
numbers, texts, lists, tuples and dictionaries, and refuses a file with any other.
"""

from pickletools import genops
from typing import Any

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def plain_data(data: bytes) -> Any:
    """Return what a pickle of protocol 2 to 5 holds.

    Raises:
        ValueError: it is damaged, or holds anything but plain data.
    """
    try:
        [value] = _run(data)
    except (TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError("damaged pickle") from error
    return value


def _run(data: bytes) -> list[Any]:
    stack: list[Any] = []
    below: list[list[Any]] = []  # the stacks under each mark
    memo: dict[Any, Any] = {}
    for opcode, value, _ in genops(data):
        match opcode.name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case (
                "BININT" | "BININT1" | "BININT2" | "LONG1" | "LONG4" | "BINFLOAT"
                | "SHORT_BINUNICODE" | "BINUNICODE" | "BINUNICODE8"
            ):  # fmt: skip
                stack.append(value)
            case "NONE" | "NEWTRUE" | "NEWFALSE" as name:
                stack.append(_CONSTANTS[name])
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_TUPLE":
                stack.append(())
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINPUT" | "LONG_BINPUT":
                memo[value] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[value])
            case "MARK":
                below.append(stack)
                stack = []
            case "APPENDS" | "SETITEMS" | "TUPLE" as name:
                items, stack = stack, below.pop()
                _take(name, items, stack)
            case "TUPLE1" | "TUPLE2" | "TUPLE3" as name:
                items = [stack.pop() for _ in range(_TUPLES[name])]
                stack.append(tuple(reversed(items)))
            case "APPEND":
                item = stack.pop()
                stack[-1].append(item)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                stack[-1][key] = value
            case name:
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
