"""What is timed and counted: the calls of torch and gc, wrapped while recording."""

import contextlib
import functools
import gc
import importlib
import importlib.util
import sys
import time
from typing import Any

from . import surroundings
from .clock import BatchClock
from .facts import loader_facts
from .notes import SLOT, SLOTS, Notes
from .pass_hooks import hook_passes
from .wrapping import put, put_before

_ALL_GARBAGE = 2
"""The generation that collects the others too (Python's `gc`)."""


def hook(recorder: Notes) -> None:
    """Wrap what is there already, and the rest as soon as it is imported."""
    _count_collections(recorder)
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "optim"):
        _hook_torch(recorder)
    else:
        finder = _WhenTorchComes(recorder)
        sys.meta_path.insert(0, finder)
        recorder.undo.append(finder.leave)


def _count_collections(recorder: Notes) -> None:
    """Count and time what collects all garbage, by itself or asked to, in whichever thread."""
    began = time.perf_counter()

    def noticed(phase: str, facts: dict[str, int]) -> None:
        nonlocal began
        if facts["generation"] < _ALL_GARBAGE:
            return
        if phase == "start":
            began = time.perf_counter()
        else:
            recorder.collected(time.perf_counter() - began)

    gc.callbacks.append(noticed)
    recorder.undo.append(lambda: gc.callbacks.remove(noticed))


class _WhenTorchComes:
    """Finds nothing; notices the first import after torch's own is complete."""

    def __init__(self, recorder: Notes) -> None:
        self._recorder = recorder

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return torch's own place, and hook it as soon as its module is complete."""
        if name != "torch":
            return None
        self.leave()
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        recorder, execute = self._recorder, spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            with contextlib.suppress(Exception):
                _hook_torch(recorder)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _hook_torch(recorder: Notes) -> None:
    torch = sys.modules["torch"]
    recorder.with_torch(torch)
    _hook_loader(recorder)
    optimizer = importlib.import_module("torch.optim.optimizer")
    before = optimizer.register_optimizer_step_pre_hook(
        lambda *_: recorder.optimizing() if recorder.mine() else None
    )
    after = optimizer.register_optimizer_step_post_hook(
        lambda each, *_: recorder.optimized(each) if recorder.mine() else None
    )
    recorder.undo += [before.remove, after.remove]
    for name in ("cuda", "mps", "xpu"):
        module = getattr(torch, name, None)
        for function, what in (("empty_cache", "empty_cache"), ("synchronize", "synchronise")):
            _wrap(recorder, module, function, what)
    for name in ("Stream", "Event"):
        _wrap(recorder, getattr(torch.cuda, name, None), "synchronize", "synchronise")
    _wrap(recorder, torch, "save", "checkpoint")
    _wrap(recorder, torch, "load", "load")
    hook_passes(recorder, torch)
    for name in ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__"):
        _wrap_read(recorder, torch, name)
    profiler = importlib.import_module("torch.autograd.profiler")

    def make_way(*_: Any, **__: Any) -> None:
        if recorder.mine():  # a profiler of the script begins
            recorder.make_way()

    for name in ("_prepare_profiler", "_enable_profiler"):
        put_before(recorder, profiler, name, make_way)
    _note_autocast(recorder, torch)
    _note_parallel(recorder, torch)
    _note_anomaly(recorder)


def _wrap(recorder: Notes, holder: Any, name: str, what: str) -> None:
    """Count and time the calls of ``holder.name`` until recording ends."""
    original = getattr(holder, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            recorder.counted(what, time.perf_counter() - started)

    put(recorder, holder, name, call)


def _wrap_read(recorder: Notes, torch: Any, name: str) -> None:
    """Count reads of tensors' values; compiled code goes past it."""
    original = getattr(torch.Tensor, name)
    compiling = torch.compiler.is_compiling
    nested = [False]

    @functools.wraps(original)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if compiling() or nested[0]:
            return original(self, *arguments, **named)
        nested[0] = True
        started = time.perf_counter()
        try:
            return original(self, *arguments, **named)
        finally:
            nested[0] = False
            kind = "host_reads" if self.device.type == "cpu" else "device_reads"
            recorder.counted(kind, time.perf_counter() - started)

    put(recorder, torch.Tensor, name, call)


def _hook_loader(recorder: Notes) -> None:
    """Time ``next`` of DataLoader's iterators, and the making of batches in workers."""
    module = importlib.import_module("torch.utils.data.dataloader")
    iterators = module._BaseDataLoaderIter
    original = iterators.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        if not recorder.mine():
            return original(self)
        timed = vars(self).setdefault("_trainwright", BatchClock())
        recorder.asked(timed)
        try:
            batch = original(self)
        except StopIteration:
            recorder.ended(timed)
            raise
        recorder.looked_at(batch)
        recorder.given(timed, timed.facts or loader_facts(self))
        return batch

    put(recorder, iterators, "__next__", following)
    fetching = importlib.import_module("torch.utils.data._utils.fetch")
    worker = importlib.import_module("torch.utils.data._utils.worker")
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _time_fetching(recorder, getattr(fetching, name), worker)


def _time_fetching(recorder: Notes, fetcher: Any, worker: Any) -> None:
    original, slots = fetcher.fetch, recorder.workers
    if slots is None:
        return

    @functools.wraps(original)
    def fetch(self: Any, *arguments: Any) -> Any:
        started, on_core, waited = time.perf_counter(), time.thread_time(), surroundings.own_delay()
        result = original(self, *arguments)
        with contextlib.suppress(Exception):
            info = worker.get_worker_info()
            at = (0 if info is None else info.id + 1) % SLOTS * SLOT.size
            done = SLOT.unpack_from(slots, at)
            spent = (
                1.0,
                time.perf_counter() - started,
                time.thread_time() - on_core,
                surroundings.own_delay() - waited,
            )
            SLOT.pack_into(slots, at, *map(sum, zip(done, spent, strict=True)))
        return result

    put(recorder, fetcher, "fetch", fetch)


def _note_autocast(recorder: Notes, torch: Any) -> None:
    def note(context: Any) -> None:
        if getattr(context, "_enabled", False) and not torch.compiler.is_compiling():
            recorder.learnt(precision=_MIXED.get(str(getattr(context, "fast_dtype", ""))))

    put_before(recorder, torch.autocast, "__enter__", note)


_MIXED = {"torch.float16": "fp16-mixed", "torch.bfloat16": "bf16-mixed"}


def _note_anomaly(recorder: Notes) -> None:
    """Note anomaly detection also where it is on during backward alone."""
    module = importlib.import_module("torch.autograd.anomaly_mode")
    for name in ("detect_anomaly", "set_detect_anomaly"):
        holder = getattr(module, name)
        original = holder.__init__

        def begin(self: Any, *arguments: Any, _original: Any = original, **named: Any) -> None:
            _original(self, *arguments, **named)
            by_name = type(self).__name__ == "detect_anomaly"  # on once it is entered
            if by_name or sys.modules["torch"].is_anomaly_enabled():
                recorder.learnt(anomaly_detection=True)

        put(recorder, holder, "__init__", functools.wraps(original)(begin))


def _note_parallel(recorder: Notes, torch: Any) -> None:
    def note(module: Any, *_: Any, **named: Any) -> None:
        parallel = torch.nn.parallel
        facts: dict[str, Any] = {
            "strategy": "dp" if isinstance(module, parallel.DataParallel) else "ddp"
        }
        if "find_unused_parameters" in named:
            facts["find_unused_parameters"] = bool(named["find_unused_parameters"])
        recorder.learnt(**facts)

    for holder in (torch.nn.parallel.DataParallel, torch.nn.parallel.DistributedDataParallel):
        put_before(recorder, holder, "__init__", note)
