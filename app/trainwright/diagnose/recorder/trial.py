"""One thing changed in a run, to see what a step takes without it; the script stays as it is."""

import functools
import gc
import importlib
import os
from collections.abc import Callable
from typing import Any

VARIABLE = "TRAINWRIGHT_TRIAL"
"""Names the change in the environment of a run."""
FRESH = 3
"""Batches that are made before the last of them is given again and again; assumed: first steps
allocate and tune."""


def change(torch: Any) -> None:
    """Make the change that the environment names; without one nothing is changed."""
    make = _CHANGES.get(os.environ.get(VARIABLE, ""))
    if make is not None:
        make(torch)


def _same_batch(_torch: Any) -> None:
    """Give one batch again and again, as often as the loader has batches."""
    iterators = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
    original = iterators.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        state = vars(self).setdefault("_trainwright_trial", {"given": 0, "batch": None})
        if state["given"] < FRESH:
            state["batch"] = original(self)
        elif _is_over(self, state["given"]):
            raise StopIteration
        state["given"] += 1
        return state["batch"]

    iterators.__next__ = following


def _is_over(iterator: Any, given: int) -> bool:
    try:
        return given >= len(iterator)
    except TypeError:  # of unknown length: it goes on until the run is ended
        return False


def _no_emptying(torch: Any) -> None:
    torch.cuda.empty_cache = lambda: None


def _no_collecting(_torch: Any) -> None:
    gc.collect = lambda generation=2: 0


_CHANGES: dict[str, Callable[[Any], None]] = {
    "synthetic-data": _same_batch,
    "empty-cache": _no_emptying,
    "garbage-collection": _no_collecting,
}
RUNNABLE = tuple(_CHANGES)
"""Trials that need no change of the script."""
