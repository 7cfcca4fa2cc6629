"""A recorder for training loops: three lines in a script, and a record to diagnose.

    from trainwright.diagnose.callback import Recorder
    recorder = Recorder("run.record.json")
    recorder.start()

It needs the standard library only, times what it sees, and never stops a run: a fault of its own
ends the recording. Where Trainwright is not installed, copy this folder next to the script and
import ``recorder.callback``: the imports between its modules are relative for that reason.

Loops that do without torch's DataLoader say ``for batch in recorder.batches(source):``; else their
steps last from one update to the next, and what they wait for is not known.
``recorder.for_transformers()`` and ``recorder.for_lightning()`` give a callback for those
trainers' lists.
"""

import atexit
import contextlib
import functools
import importlib
import importlib.util
import mmap
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from .clock import BatchClock
from .facts import loader_facts
from .hooks import hook
from .notes import SLOT, SLOTS, Notes, guarded


class Recorder(Notes):
    """Times the batches of a run and writes what it saw to ``path``, replaced in one step.

    ``sample=False`` leaves the one step out that torch's profiler watches before timing begins, and
    the looks at the training thread's stack.
    """

    @guarded
    def start(self) -> None:
        """Time torch's DataLoader and optimizers, and count what costs, from now on."""
        if self.undo:
            return
        with contextlib.suppress(OSError, ValueError):
            self.workers = mmap.mmap(-1, SLOTS * SLOT.size)
        hook(self)
        previous = sys.excepthook
        sys.excepthook = functools.partial(self._failed, previous)
        self.undo.append(lambda: setattr(sys, "excepthook", previous))
        atexit.register(self.stop)

    @guarded
    def stop(self) -> None:
        """Write the record and take every hook away."""
        if os.getpid() != self._pid:
            return
        while self.undo:
            self.undo.pop()()
        atexit.unregister(self.stop)
        self.make_way()
        if self._stack is not None:
            self._stack.stop()
        if self._current is not None:  # what comes after the last update is not a step's
            self._over(self._current, self._current.optimized_at or time.perf_counter())
        self._write()

    def batches(self, source: Iterable[Any]) -> Iterator[Any]:
        """Yield what the source gives, timing the wait for it."""
        facts = loader_facts(source)
        iterator, timed = iter(source), BatchClock()
        while True:
            self.asked(timed)
            try:
                batch = next(iterator)
            except StopIteration:
                self.ended(timed)
                return
            self.looked_at(batch)
            self.given(timed, facts)
            yield batch

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part of the step: ``transfer`` or ``communication``.

        On a GPU the script has to wait for the device inside it.
        """
        started = time.perf_counter()
        try:
            yield
        finally:
            self._parts[name] = self._parts.get(name, 0.0) + time.perf_counter() - started

    def for_transformers(self) -> Any:
        """Return a callback for the ``callbacks`` of transformers' Trainer."""
        base = importlib.import_module("transformers").TrainerCallback
        return _adapter(self, base, "on_train_begin", "on_train_end")

    def for_lightning(self) -> Any:
        """Return a callback for the ``callbacks`` of Lightning's Trainer."""
        there = importlib.util.find_spec("lightning") is not None
        base = importlib.import_module("lightning.pytorch" if there else "pytorch_lightning")
        return _adapter(self, base.Callback, "on_train_start", "on_train_end")


def _adapter(recorder: Recorder, base: Any, begin: str, end: str) -> Any:
    """Return a trainer's callback that starts and stops the recorder."""
    calls = {begin: lambda *_, **__: recorder.start(), end: lambda *_, **__: recorder.stop()}
    return type("TrainwrightCallback", (base,), calls)()
