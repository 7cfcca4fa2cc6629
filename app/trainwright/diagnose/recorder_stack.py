"""Which functions of the script the training thread spends its time in.

A thread of its own looks at that thread's stack some forty times a second: a look takes some 20 µs,
below a thousandth of the time. What a function calls counts for it too, so shares do not add up.
"""

import contextlib
import linecache
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

EVERY_S = 0.025
"""Mean time between two looks; assumed."""
GOLDEN = 0.618034
"""Steps of the golden ratio spread the looks evenly over whatever repeats itself."""
LEAST_LOOKS = 20
"""Below which shares say nothing; assumed."""
LEAST_SHARE = 0.03
WHOLE = 0.98
"""Share above which a function holds the whole loop, and tells nothing."""
MOST_ROWS = 24
_HERE = Path(__file__).parent
Call = tuple[CodeType, int]
"""A function, and the place in it that calls what is no Python; -1: the function as a whole."""


class StackSample:
    """Looks at one thread's stack, from ``start`` to ``stop``."""

    def __init__(self, thread: int) -> None:
        self._of = thread
        self._over = threading.Event()
        self._watching: threading.Thread | None = None
        self._seen: Counter[Call] = Counter()
        self._looks = 0

    def start(self) -> None:
        """Look from now on; what was seen before is forgotten."""
        self._seen, self._looks = Counter(), 0
        if self._watching is None:
            self._watching = threading.Thread(target=self._watch, daemon=True)
            self._watching.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._watching is not None and self._watching.is_alive():
            self._watching.join(1.0)

    def _watch(self) -> None:
        part = 0.0
        while not self._over.wait(EVERY_S * (0.5 + part)):
            part = (part + GOLDEN) % 1.0
            frame = sys._current_frames().get(self._of)
            if frame is not None:
                self._looks += 1
                self._seen.update(calls_of(frame))

    def rows(self) -> list[dict[str, Any]]:
        """Return the functions by their share of the looks, as a record's ``host_top``."""
        looks, seen = self._looks, self._seen.copy()
        if looks < LEAST_LOOKS:
            return []
        shares: Counter[str] = Counter()
        for call, times in seen.items():
            if (name := name_of(call)) is not None:
                shares[name] += times
        named = ((name, times / looks) for name, times in shares.most_common())
        told = [(name, share) for name, share in named if LEAST_SHARE <= share < WHOLE]
        return [{"name": name, "share": share} for name, share in told[:MOST_ROWS]]


def calls_of(frame: FrameType | None) -> set[Call]:
    """Return the functions that are at work, and the call of the innermost one."""
    found = {(frame.f_code, frame.f_lasti)} if frame is not None else set()
    while frame is not None:
        found.add((frame.f_code, -1))
        frame = frame.f_back
    return found


def name_of(call: Call) -> str | None:
    """Return ``folder/file.py:function``, or what it calls; None: of no interest.

    Modules' forward passes and what hands calls on are the model itself; operators of torch have a
    table of their own.
    """
    code, at = call
    path = Path(code.co_filename)
    if path.parent == _HERE:
        return None
    if at >= 0:
        return _called(code, at)
    hands_on = code.co_name in _PASSES or code.co_name.startswith("<")
    if hands_on or any(part in path.as_posix() for part in _DISPATCH):
        return None
    return f"{path.parent.name}/{path.name}:{getattr(code, 'co_qualname', code.co_name)}"[:200]


_PASSES = ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "wrapper", "inner")
_DISPATCH = tuple(
    f"/torch/{part}"
    for part in ("nn/", "autograd/", "optim/", "_dynamo/", "_compile", "_tensor.py", "_ops.py")
)
"""Where torch hands on what its operators and the record's own times tell."""


def _called(code: CodeType, at: int) -> str | None:
    """Return the name of what a function calls there, as its source has it: ``file.read``."""
    with contextlib.suppress(Exception):
        *_, (line, last, start, end) = list(code.co_positions())[at // 2 : at // 2 + 1]
        if line is None or line != last:
            return None
        text = linecache.getline(code.co_filename, line).encode()[start:end].decode()
        name, called, _ = text.partition("(")
        if called and not _of_torch(name.rpartition(".")[2]):
            return f"{name.strip()[-100:]}()"
    return None


def _of_torch(attribute: str) -> bool:
    """Return whether torch has an operator of the name, or whether it is no name at all."""
    torch = sys.modules.get("torch")
    places = (torch, getattr(torch, "Tensor", None), sys.modules.get("torch.nn.functional"))
    return not attribute.isidentifier() or any(hasattr(each, attribute) for each in places if each)
