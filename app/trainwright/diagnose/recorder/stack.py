"""Which functions of the script the training thread spends its time in.

A thread of its own has Python write down that thread's stack some 25 times a second. A stack of 30
functions takes 120 µs: three thousandths of the time. What a function calls counts for it too, so
shares do not add up.

The interpreter writes the stack itself, and no frame is asked for: a frame that somebody holds
keeps its tensors alive for longer than the run does, and torch refuses some work on tensors of two
owners.
"""

import ast
import contextlib
import faulthandler
import linecache
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .redact import SHADOW, Private, here

EVERY_S = 0.04
"""Mean time between two looks; assumed."""
GOLDEN = 0.618034
"""Steps of the golden ratio spread the looks evenly over whatever repeats itself."""
LEAST_LOOKS = 20
"""Below which shares say nothing; assumed."""
LEAST_BESIDE = 5
"""Looks into evaluation below which it is not told from other work; assumed."""
LEAST_SHARE = 0.03
WHOLE = 0.98
"""Share above which a function holds the whole loop, and tells nothing."""
MOST_ROWS = 24
MOST_BYTES = 1 << 16
"""Of all stacks together: what a pipe holds on Linux."""
_HERE = Path(__file__).parent
_THREAD = re.compile(r"^(?:Current t|T)hread 0x([0-9a-f]+) .*$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
Call = tuple[str, str, int]
"""File and function, and the line that calls what is not Python; 0: the function as a whole."""


class StackSample:
    """Looks at one thread's stack, from ``start`` to ``stop``."""

    def __init__(self, thread: int, evaluates: Callable[[], bool] = lambda: False) -> None:
        self._of, self._evaluates = thread, evaluates
        self._beside = self._in_modules = 0
        """Looks into what may be evaluation, and those of them that saw a module at work."""
        self._over = threading.Event()
        self._watching: threading.Thread | None = None
        self._seen: Counter[Call] = Counter()
        self._lines: dict[tuple[str, str], int] = {}
        self._looks = 0

    def start(self) -> None:
        """Look from now on; what was seen before is forgotten."""
        self._seen, self._looks = Counter(), 0
        self._beside = self._in_modules = 0
        if self._watching is None and hasattr(os, "set_blocking"):  # on Windows from 3.12 on
            self._watching = threading.Thread(target=self._watch, daemon=True)
            self._watching.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._watching is not None and self._watching.is_alive():
            self._watching.join(1.0)

    def _watch(self) -> None:
        part = 0.0
        with _pipe() as (source, sink):
            while not self._over.wait(EVERY_S * (0.5 + part)):
                part = (part + GOLDEN) % 1.0
                beside = self._evaluates()
                faulthandler.dump_traceback(sink)
                with contextlib.suppress(BlockingIOError):
                    text = os.read(source, MOST_BYTES).decode(errors="replace")
                    stack = stack_in(text, self._of)
                    self._note(stack)
                    if beside and stack:
                        self._beside += 1
                        self._in_modules += any(map(_is_pass, stack))

    def _note(self, stack: list[Call]) -> None:
        if not stack:
            return
        self._looks += 1
        self._lines |= {(file, function): line for file, function, line in stack}
        whole = {(file, function, 0) for file, function, _ in stack}
        self._seen.update(whole | {stack[0]})

    def passes(self) -> float | None:
        """Return the share of looks into what may be evaluation that saw a module at work.

        None where there were too few.
        """
        return self._in_modules / self._beside if self._beside >= LEAST_BESIDE else None

    def rows(self) -> list[dict[str, Any]]:
        """Return the functions by their share of the looks, as a record's ``host_top``."""
        looks, seen = self._looks, self._seen.copy()
        if looks < LEAST_LOOKS:
            return []
        shares: Counter[str] = Counter()
        known = here()
        for call, times in seen.items():
            if times >= LEAST_SHARE * looks and (name := self._name(call, known)) is not None:
                shares[name] += times
        named = ((name, times / looks) for name, times in shares.most_common())
        told = [(name, share) for name, share in named if LEAST_SHARE <= share < WHOLE]
        return [{"name": name, "share": share} for name, share in told[:MOST_ROWS]]

    def _name(self, call: Call, known: Private) -> str | None:
        """Return ``folder/file.py:function``, or what it calls; None: of no interest.

        Of folders that are a person's own it says ``~``.

        Modules' forward passes and what hands calls on are the model itself; operators of torch
        have a table of their own.
        """
        file, function, line = call
        path = Path(file)
        if path.parent == _HERE:
            return None
        if line:
            return _called(file, line)
        hands_on = function in _PASSES or function.startswith("<")
        if hands_on or any(part in path.as_posix() for part in _DISPATCH):
            return None
        whole = _qualified(file, function, self._lines[file, function])
        folder = known.path(path.as_posix()).split("/")[-2:-1]
        named = "~" if folder == [SHADOW] else "".join(folder)
        return f"{named}/{path.name}:{whole}"[:200]


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Yield a pipe that nobody waits for: what it does not hold is dropped."""
    ends = os.pipe()
    try:
        for end in ends:
            os.set_blocking(end, False)
        yield ends
    finally:
        for end in ends:
            os.close(end)


def stack_in(text: str, thread: int) -> list[Call]:
    """Return a thread's functions, innermost first, from what ``faulthandler`` writes of all."""
    heads = list(_THREAD.finditer(text))
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        if int(head[1], 16) == thread:
            own = text[head.end() : after.start() if after else len(text)]
            return [(file, name, int(line)) for file, line, name in _FRAME.findall(own)]
    return []


def _is_pass(call: Call) -> bool:
    return call[1] == "_call_impl" and call[0].endswith(os.path.join("nn", "modules", "module.py"))


_PASSES = ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "wrapper", "inner")
_DISPATCH = tuple(
    f"/torch/{part}"
    for part in ("nn/", "autograd/", "optim/", "_dynamo/", "_compile", "_tensor.py", "_ops.py")
)
"""Where torch hands on what its operators and the record's own times tell."""


def _called(file: str, line: int) -> str | None:
    """Return the name of what a line calls, as the source has it: ``file.read``.

    None where it calls nothing, several things, or an operator of torch.
    """
    names = re.findall(r"(?<![\w.])\.?([A-Za-z_][\w.]*+)\(", linecache.getline(file, line))
    if len(names) != 1 or _of_torch(names[0].rpartition(".")[2]):
        return None
    return f"{names[0][-100:]}()"


def _of_torch(attribute: str) -> bool:
    """Return whether torch has an operator of the name, or whether it is not a name at all."""
    torch = sys.modules.get("torch")
    places = (torch, getattr(torch, "Tensor", None), sys.modules.get("torch.nn.functional"))
    return not attribute.isidentifier() or any(hasattr(each, attribute) for each in places if each)


def _qualified(file: str, function: str, line: int) -> str:
    """Return the function with the classes and functions that it is in, as its source has it."""
    for first, last, name in _functions(file):
        if first <= line <= last and name.rpartition(".")[2] == function:
            return name
    return function


@lru_cache(maxsize=64)
def _functions(file: str) -> tuple[tuple[int, int, str], ...]:
    """Return (first line, last line, name) of a file's functions, those within others first."""
    with contextlib.suppress(Exception):
        return tuple(_within(ast.parse("".join(linecache.getlines(file))), ""))
    return ()


def _within(node: ast.AST, outer: str) -> list[tuple[int, int, str]]:
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{outer}{child.name}"
            found += _within(child, f"{name}.")
            if not isinstance(child, ast.ClassDef):
                found.append((child.lineno, child.end_lineno or child.lineno, name))
        else:
            found += _within(child, outer)
    return found
