"""One thing changed in a run, to see what a step takes without it; the script stays as it is.

It needs the standard library only: it is copied into the run next to the recorder.
"""

import contextlib
import ctypes
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
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Options of glibc's mallopt (malloc.h)."""
NEVER = 2**31 - 1
"""Free bytes from which glibc gives memory back: the largest that it takes."""


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


def _channels_last(torch: Any) -> None:
    """Lay out the weights of convolutions; what they compute follows them."""

    def lay_out(module: Any, _inputs: Any) -> None:
        if isinstance(module, torch.nn.Conv2d):
            module.weight.data = module.weight.data.to(memory_format=torch.channels_last)

    torch.nn.modules.module.register_module_forward_pre_hook(lay_out)


def _all_threads(torch: Any) -> None:
    """Compute with a thread for each core that the run may use, whatever the script says."""
    with contextlib.suppress(AttributeError):  # of Linux alone
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        torch.set_num_threads = lambda _: None


def _keep_freed(_torch: Any) -> None:
    """Have glibc keep memory that was freed, so that no page is taken again."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another library of C
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)


_CHANGES: dict[str, Callable[[Any], None]] = {
    "synthetic-data": _same_batch,
    "empty-cache": _no_emptying,
    "garbage-collection": _no_collecting,
    "channels-last": _channels_last,
    "threads": _all_threads,
    "allocator": _keep_freed,
}
RUNNABLE = tuple(_CHANGES)
"""Trials that need no change of the script."""
