"""What the hooks of a recorder note, and the record that is made of it."""

import contextlib
import functools
import json
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import surroundings
from .batch import batch_facts
from .clock import BatchClock, Times, UpdateClock, idle, on_core
from .facts import (
    allocator_facts,
    observed,
    optimizer_facts,
    profiling,
    settled,
    torch_facts,
    world_facts,
)
from .passes import Passes
from .redact import cleaned, here
from .replacing import replaced
from .sample import LOOKS, Sample, empty_call_seconds, matrix_rate
from .stack import StackSample

RECORD = 1
"""Version of the record file."""
WARM_UP = 5
"""Batches at the start that are not timed: caches fill, kernels are chosen; assumed."""
MOST_KEPT = 256
"""Batches before a loader's first update that count as the update's; assumed."""
ALL_STEPS = 0.8
"""Share of the steps from which a profiler was not on for a few of them only; assumed."""
WRITE_EVERY_S = 5.0
"""Seconds between two writes of the record while the run goes on; assumed."""
SLOTS = 256
"""Loader workers that can report."""
SLOT = struct.Struct("4d")
"""Batches, seconds, seconds on a core, seconds waited for a core."""


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that ends the recording, and nothing else, where it fails."""

    @functools.wraps(function)
    def call(self: "Notes", *arguments: Any, **named: Any) -> Any:
        if self.broken:
            return None
        try:
            return function(self, *arguments, **named)
        except Exception as error:
            self.broken = f"{type(error).__name__}: {error}"
            return None

    return call


# Long: what all hooks note is one record.
class Notes:
    """The notes of one run; ``path`` is where the record goes."""

    def __init__(
        self, path: str | os.PathLike[str] = "run.record.json", *, sample: bool = True
    ) -> None:
        self.path = Path(path)
        self.broken = ""
        """Why recording ended; empty while it works."""
        self.with_torch: Callable[[Any], None] = lambda _: None
        """Called once torch is there, before anything is wrapped."""
        self.undo: list[Callable[[], None]] = []
        self.workers: mmap.mmap | None = None
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._current: BatchClock | None = None
        self._updates: UpdateClock | None = UpdateClock()
        self._passes = Passes()
        self._forget()
        self._optimizing = False
        self._optimizing_since = 0.0
        self._setup: dict[str, Any] = {}
        self._failure: dict[str, str] | None = None
        self._batches = self._begun = self._micro_batches = self._optimizer_steps = 0
        self._base: dict[str, Any] = {}
        self._written = self._last = 0.0
        self._profiled = 0
        self._sample = Sample() if sample else None
        self._stack = StackSample(self._thread, self._evaluates) if sample else None
        self._profile: dict[str, Any] = {}

    def mine(self) -> bool:
        """Whether the caller is the training thread, not a worker or a second thread."""
        return threading.get_ident() == self._thread and os.getpid() == self._pid

    @guarded
    def asked(self, timed: "BatchClock") -> None:
        """Note that the loop asks for a batch: the one before it is over."""
        self._asked(timed)

    def _asked(self, timed: "BatchClock") -> None:
        now = time.perf_counter()
        self._passes.asked()
        if self._updates is not None:
            self._updates = None
            if self._batches:  # another loop's, which nobody saw ask for them
                self._batches = self._micro_batches = self._optimizer_steps = 0
                self._begin()
        if self._current is not None and self._current is not timed:
            self.make_way()
            self._over(self._current, now)  # validation takes over, say
            self._current.asked_at = None
        self._over(timed, now)
        if timed.trains:
            self._watch()
        self._current, timed.asked_at = timed, time.perf_counter()
        self._own_seconds += timed.asked_at - now  # what recording takes is not a wait for a batch

    def _over(self, timed: "BatchClock", now: float) -> None:
        asked, given, optimized = timed.asked_at, timed.given_at, timed.optimized_at
        timed.given_at = timed.optimized_at = None
        self._passes.over(timed)
        if asked is None or given is None:
            return
        batch = now - asked, given - asked, now - (optimized or now), timed.idle
        if timed.trains:
            self._last = now
            self._micro_batches += 1 + len(timed.kept)
            self._take(timed.kept)
            self._times.add(*batch)
            self._stepped(now)
        elif len(timed.kept) < MOST_KEPT:  # an update may follow: gradients are summed up
            timed.kept.append(batch)

    def _take(self, kept: list[tuple[float, float, float, float]]) -> None:
        """Count the batches before a loader's first update, which is theirs too."""
        if self._batches >= WARM_UP:
            self._batches += len(kept)
            for each in kept:
                self._times.add(*each)
        kept.clear()

    @guarded
    def given(self, timed: "BatchClock", facts: dict[str, Any] | None = None) -> None:
        """Note that a batch is there."""
        timed.given_at, timed.core_at, timed.idle = time.perf_counter(), on_core(), 0.0
        if facts is not None:
            timed.facts = facts

    @guarded
    def looked_at(self, batch: Any) -> None:
        """Look at what a batch holds, once."""
        if self._batches == WARM_UP - LOOKS - 1 and self.mine():  # before a step is watched
            self._setup |= batch_facts(batch)

    @guarded
    def ended(self, timed: "BatchClock") -> None:
        """Note that a loader has no more batches."""
        timed.asked_at = None
        self.make_way()
        if self._current is timed:
            self._current = None

    @guarded
    def optimizing(self) -> None:
        """Note that an optimizer's step begins."""
        self._optimizing = True
        self._optimizing_since = time.perf_counter()

    @guarded
    def optimized(self, optimizer: Any) -> None:
        """Note that an optimizer's step has ended."""
        self._optimizing = False
        now = time.perf_counter()
        if self._current is not None:
            self._current.optimized_at = now
            self._current.idle = idle(self._current, now)
            self._current.trains = True
            self._setup |= self._current.facts
        elif self._updates is None:
            return
        self._optimizer_seconds += now - self._optimizing_since
        self._optimizer_steps += 1
        self._profiled += profiling()
        if self._optimizer_steps == 1:
            self._setup = optimizer_facts(optimizer) | world_facts() | self._setup
        if self._updates is not None:
            self._updated(self._updates, optimizer, now)

    def _updated(self, updates: UpdateClock, optimizer: Any, now: float) -> None:
        """Take the step that ends with an update, in a loop whose batches nobody sees."""
        seconds = updates.step(optimizer, now)
        if seconds is None:
            return
        self._last = now
        self._micro_batches += 1
        self._times.add(seconds, 0.0, 0.0)
        self._stepped(now)
        self._watch()

    @guarded
    def counted(self, what: str, seconds: float) -> None:
        """Note a call that costs; those that optimizers make themselves do not count."""
        if self.mine() and not (self._optimizing and what in OPTIMIZERS_OWN):
            self._note(what, seconds)
            if what in ("checkpoint", "load") and self._in_step():
                self._mid_step_seconds += seconds

    @guarded
    def collected(self, seconds: float) -> None:
        """Note a collection of garbage: all threads wait for it, whichever began it."""
        if os.getpid() == self._pid:
            self._note("garbage", seconds)

    def _note(self, what: str, seconds: float) -> None:
        self._counts[what] += 1
        self._seconds[what] += seconds

    def _in_step(self) -> bool:
        """Whether a batch is in work, and no optimizer has stepped since it came."""
        current = self._current
        return current is not None and current.given_at is not None and not current.optimized_at

    @guarded
    def ungraded(self, block: object) -> None:
        """Note that a block without gradients begins; optimizers have some of their own."""
        if not self._optimizing and self.mine():
            self._passes.began(block, self._current)

    @guarded
    def graded(self, block: object) -> None:
        """Note that a block without gradients ends."""
        if self.mine():
            self._passes.ended(block, self._current)

    def _evaluates(self) -> bool:
        return self._passes.beside(self._current)

    @guarded
    def recomputes(self, block: object) -> None:
        """Note that backward computes activations again; on a GPU it has a thread of its own."""
        self._passes.again(block)

    @guarded
    def recomputed(self, block: object | None = None) -> None:
        """Note that those activations are there."""
        self._passes.again_over(block)

    @guarded
    def learnt(self, **facts: Any) -> None:
        """Note facts of the set-up."""
        self._setup |= facts

    # The record

    def _watch(self) -> None:
        """Look at the step that begins now, where it is one of the last before timing."""
        if self._sample is not None and WARM_UP - LOOKS <= self._batches < WARM_UP:
            self._sample.start()

    def _stepped(self, now: float) -> None:
        self._batches += 1
        if self._sample is not None:
            self._sample.stop()
        if self._batches in (1, WARM_UP):  # the first too: some runs are over before warm-up is
            self._look()
            self._begin()
        elif now - self._written > WRITE_EVERY_S:
            self._write()
            self._written = now

    def _look(self) -> None:
        """Keep what the looks at single steps say."""
        found = self._sample.told() if self._sample is not None else {}
        if not found:
            return
        self._setup = found.pop("_setup", {}) | self._setup
        if settled(torch_facts() | self._setup).get("device") == "cpu":
            found |= {"matrix_flops_s": matrix_rate(), "empty_call_seconds": empty_call_seconds()}
        else:  # operators' own times are their launches' there
            found = {key: found[key] for key in ("kernels_a_step", "flops_a_step") if key in found}
        self._profile = found

    @guarded
    def make_way(self) -> None:
        """End the look at one step without a word: there may be one profiler only."""
        if self._sample is not None:
            self._sample.drop()

    def _forget(self) -> None:
        self._own_seconds = self._optimizer_seconds = self._mid_step_seconds = 0.0
        self._times = Times()
        self._passes.reset()
        self._counts = dict.fromkeys(COUNTED, 0)
        self._seconds = dict.fromkeys(COUNTED, 0.0)
        self._parts = dict.fromkeys(PARTS, 0.0)

    def _begin(self) -> None:
        """Count and time from here on."""
        self._base, self._begun = observed(), self._batches
        self._written = time.perf_counter()
        self._forget()
        if self._stack is not None and self._batches == WARM_UP:
            self._stack.start()
        if self.workers is not None:
            self.workers[:] = bytes(len(self.workers))

    def _failed(self, previous: Callable[..., Any], kind: Any, error: Any, trace: Any) -> None:
        with contextlib.suppress(Exception):
            if issubclass(kind, Exception):  # Ctrl-C is not a failure
                self._failure = {"kind": kind.__name__[:200], "text": str(error)[:20_000]}
        previous(kind, error, trace)

    @guarded
    def _write(self) -> None:
        document = self.document()
        if document is not None:
            replaced(self.path, json.dumps(cleaned(document, here()), indent=1) + "\n")

    def document(self) -> dict[str, Any] | None:
        """Return the record as plain data; None where there is nothing to say."""
        if not self._times.count and self._failure is None:
            return None
        document: dict[str, Any] = {"trainwright_record": RECORD, "made_by": "callback"}
        setup = settled(torch_facts() | self._setup)
        if self._times.count:
            now = observed()
            if self._optimizer_steps:
                setup["profiler_on"] = self._profiled > ALL_STEPS * self._optimizer_steps
                setup["accumulation"] = max(1, round(self._micro_batches / self._optimizer_steps))
            document["steps"] = self._times.summary(self._parts, batches=self._updates is None)
            if setup.get("device") == "cpu":  # elsewhere these are the times to queue the work
                document["steps"] |= self._of_compute(document["steps"].get("compute"))
            document["loading"] = self._loading(setup.get("num_workers", 0))
            document["counters"] = self._counters(now, setup.get("device", "cpu") != "cpu")
            document["host"] = surroundings.host_between(self._base["around"], now["around"])
            watched = self._last - self._base["time"] - self._own_seconds
            document["watched_seconds"] = max(watched, self._times.total)
            rows = self._stack.rows() if self._stack is not None else []
            document["profile"] = self._profile | ({"host_top": rows} if rows else {})
            if now["compiled"]:
                again = now["compiled"] - self._base["compiled"]
                document["profile"]["recompilations"] = again / self._times.count
        document["setup"] = setup
        document["failure"] = self._failure
        return {key: part for key, part in document.items() if part not in ({}, None)}

    def _of_compute(self, compute: float | None) -> dict[str, float]:
        """Return the parts of computing, a batch."""
        count = self._times.count
        found = {"optimizer": self._optimizer_seconds / count}
        if self._counts["backward"]:
            found["backward"] = self._seconds["backward"] / count
        if compute is not None:
            found["blocked"] = min(compute, self._times.blocked / count)
            if self._counts["backward"]:
                found["forward"] = compute - found["backward"] - found["optimizer"]
        return {name: max(0.0, spent) for name, spent in found.items()}

    def _loading(self, workers: int) -> dict[str, Any]:
        batches = wall = core = starved = 0.0
        for slot in SLOT.iter_unpack(self.workers[:] if self.workers is not None else b""):
            batches, wall = batches + slot[0], wall + slot[1]
            core, starved = core + slot[2], starved + slot[3]
        if not batches:
            return {}
        working = max(wall - starved, 1e-9)
        found = {"cpu_share": min(1.0, core / working), "batch_seconds": wall / batches}
        if workers:
            found["workers_cpu"] = min(1.0, core / self._times.total / workers)
        return found

    def _counters(self, now: dict[str, Any], on_device: bool) -> dict[str, Any]:
        counts, seconds = self._counts, self._seconds
        reads = "device_reads" if on_device else "host_reads"
        found: dict[str, Any] = {
            "steps": max(1, self._batches - self._begun),
            "synchronisations": counts["synchronise"],
            "item_reads": counts[reads],
            "synchronisation_seconds": seconds["synchronise"] + seconds[reads],
        }
        for what, key in _COUNTERS.items():
            found |= {key: counts[what], f"{what}_seconds": seconds[what]}
        if self._updates is None:  # else nobody knows when a batch's own work begins
            found["mid_step_seconds"] = self._mid_step_seconds
        found |= self._passes.counted(self._stack.passes() if self._stack is not None else None)
        return found | allocator_facts(self._base.get("memory"), now.get("memory"))


COUNTED = (
    *("empty_cache", "garbage", "synchronise", "device_reads", "host_reads"),
    *("checkpoint", "load", "backward"),
)
_COUNTERS = {"empty_cache": "empty_cache", "garbage": "garbage_collections",
             "checkpoint": "checkpoints", "load": "loads"}  # fmt: skip
"""What is counted -> a record's name for how often."""
OPTIMIZERS_OWN = ("synchronise", "device_reads", "host_reads")
"""What optimizers do themselves; the rest is done by what a script hooks onto them."""
PARTS = ("transfer", "communication")
