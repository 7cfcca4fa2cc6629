"""A recorder for training loops: three lines in a script, and a record to diagnose.

    from trainwright.diagnose.callback import Recorder   # or copy this file beside the script
    recorder = Recorder("run.record.json")
    recorder.start()

It needs the standard library only, times what it sees, and never stops a run: a fault of its own
ends the recording. Loops that do without torch's DataLoader say ``for batch in
recorder.batches(source):``. ``recorder.for_transformers()`` and ``recorder.for_lightning()`` give a
callback for those trainers' lists.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import mmap
import os
import struct
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

try:
    from trainwright.diagnose import surroundings
except ImportError:  # copied beside a script, perhaps with surroundings.py
    try:
        import surroundings  # type: ignore[import-not-found, no-redef]
    except ImportError:
        surroundings = None  # type: ignore[assignment]

RECORD = 1
"""Version of the record file."""
WARM_UP = 5
"""Batches at the start that are not timed: caches fill, kernels are chosen; assumed."""
ALL_STEPS = 0.8
"""Share of the steps from which a profiler was not on for a few of them only; assumed."""
WRITE_EVERY_S = 5.0
"""Seconds between two writes of the record while the run goes on; assumed."""
MOST_TIMES = 4096
"""Latest steps that percentiles are taken of; assumed."""
_SLOTS = 256
"""Loader workers that can report."""
_SLOT = struct.Struct("4d")
"""Batches, seconds, seconds on a core, seconds waited for a core."""


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that ends the recording, and nothing else, where it fails."""

    @functools.wraps(function)
    def call(self: "Recorder", *arguments: Any, **named: Any) -> Any:
        if self.broken:
            return None
        try:
            return function(self, *arguments, **named)
        except Exception as error:
            self.broken = f"{type(error).__name__}: {error}"
            return None

    return call


class Recorder:
    """Times the batches of a run and writes what it saw to ``path``, replaced in one step."""

    def __init__(self, path: str | os.PathLike[str] = "run.record.json") -> None:
        self.path = Path(path)
        self.broken = ""
        """Why recording ended; empty while it works."""
        self.undo: list[Callable[[], None]] = []
        self.workers: mmap.mmap | None = None
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._times = _Times()
        self._current: _Batches | None = None
        self._counts = dict.fromkeys(COUNTED, 0)
        self._seconds = dict.fromkeys(COUNTED, 0.0)
        self._parts = dict.fromkeys(PARTS, 0.0)
        self._optimizing = False
        self._setup: dict[str, Any] = {}
        self._failure: dict[str, str] | None = None
        self._batches = self._begun = self._micro_batches = self._optimizer_steps = 0
        self._base: dict[str, Any] = {}
        self._written = self._last = 0.0
        self._profiled = 0

    # What a script calls

    @guarded
    def start(self) -> None:
        """Time torch's DataLoader and optimizers, and count what costs, from now on."""
        if self.undo:
            return
        with contextlib.suppress(OSError, ValueError):
            self.workers = mmap.mmap(-1, _SLOTS * _SLOT.size)
        _hook(self)
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
        if self._current is not None:
            self._asked(self._current)
        self._write()

    def batches(self, source: Iterable[Any]) -> Iterator[Any]:
        """Yield what the source gives, timing the wait for it."""
        facts = _loader_facts(source)
        iterator, timed = iter(source), _Batches()
        while True:
            self.asked(timed)
            try:
                batch = next(iterator)
            except StopIteration:
                self.ended(timed)
                return
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

    # What the hooks call

    def mine(self) -> bool:
        """Whether the caller is the training thread, not a worker or a second thread."""
        return threading.get_ident() == self._thread and os.getpid() == self._pid

    @guarded
    def asked(self, timed: "_Batches") -> None:
        """Note that the loop asks for a batch: the one before it is over."""
        self._asked(timed)

    def _asked(self, timed: "_Batches") -> None:
        now = time.perf_counter()
        if self._current is not None and self._current is not timed:
            self._over(self._current, now)  # validation takes over, say
            self._current.asked_at = None
        self._over(timed, now)
        self._current, timed.asked_at = timed, now

    def _over(self, timed: "_Batches", now: float) -> None:
        asked, given, optimized = timed.asked_at, timed.given_at, timed.optimized_at
        timed.given_at = timed.optimized_at = None
        if asked is None or given is None:
            return
        self._micro_batches += timed.trains
        if timed.trains:
            self._last = now
            self._times.add(now - asked, given - asked, now - (optimized or now))
            self._stepped(now)

    @guarded
    def given(self, timed: "_Batches", facts: dict[str, Any] | None = None) -> None:
        """Note that a batch is there."""
        timed.given_at = time.perf_counter()
        if facts is not None:
            timed.facts = facts

    @guarded
    def ended(self, timed: "_Batches") -> None:
        """Note that a loader has no more batches."""
        timed.asked_at = None
        if self._current is timed:
            self._current = None

    @guarded
    def optimizing(self) -> None:
        """Note that an optimizer's step begins."""
        self._optimizing = True

    @guarded
    def optimized(self, optimizer: Any) -> None:
        """Note that an optimizer's step has ended."""
        self._optimizing = False
        if self._current is None:
            return
        self._current.optimized_at = time.perf_counter()
        self._current.trains = True
        self._optimizer_steps += 1
        self._profiled += _profiling()
        if self._optimizer_steps == 1:
            self._setup = _optimizer_facts(optimizer) | self._setup
        if self._current.facts:
            self._setup |= self._current.facts

    @guarded
    def counted(self, what: str, seconds: float) -> None:
        """Note a call that costs; those that optimizers make themselves do not count."""
        if not self._optimizing and self.mine():
            self._counts[what] += 1
            self._seconds[what] += seconds

    @guarded
    def learnt(self, **facts: Any) -> None:
        """Note facts of the set-up."""
        self._setup |= facts

    # The record

    def _stepped(self, now: float) -> None:
        self._batches += 1
        if self._batches in (1, WARM_UP):  # the first too: some runs are over before warm-up is
            self._begin()
        elif now - self._written > WRITE_EVERY_S:
            self._write()
            self._written = now

    def _begin(self) -> None:
        """Count and time from here on."""
        self._base, self._begun = _observed(), self._batches
        self._written = time.perf_counter()
        self._times = _Times()
        self._counts = dict.fromkeys(COUNTED, 0)
        self._seconds = dict.fromkeys(COUNTED, 0.0)
        self._parts = dict.fromkeys(PARTS, 0.0)
        if self.workers is not None:
            self.workers[:] = bytes(len(self.workers))

    def _failed(self, previous: Callable[..., Any], kind: Any, error: Any, trace: Any) -> None:
        with contextlib.suppress(Exception):
            if issubclass(kind, Exception):  # Ctrl-C is no failure
                self._failure = {"kind": kind.__name__[:200], "text": str(error)[:20_000]}
        previous(kind, error, trace)

    @guarded
    def _write(self) -> None:
        document = self.document()
        if document is not None:
            _replace(self.path, json.dumps(document, indent=1) + "\n")

    def document(self) -> dict[str, Any] | None:
        """Return the record as plain data; None where there is nothing to say."""
        if not self._times.count and self._failure is None:
            return None
        document: dict[str, Any] = {"trainwright_record": RECORD, "made_by": "callback"}
        setup = _settled(_torch_facts() | self._setup)
        if self._times.count:
            now = _observed()
            if self._optimizer_steps:
                setup["profiler_on"] = self._profiled > ALL_STEPS * self._optimizer_steps
                setup["accumulation"] = max(1, round(self._micro_batches / self._optimizer_steps))
            document["steps"] = self._times.summary(self._parts)
            document["loading"] = self._loading(setup.get("num_workers", 0))
            document["counters"] = self._counters(now, setup.get("device", "cpu") != "cpu")
            document["host"] = _host_between(self._base, now)
            document["watched_seconds"] = max(self._last - self._base["time"], 1e-9)
        document["setup"] = setup
        document["failure"] = self._failure
        return {key: part for key, part in document.items() if part not in ({}, None)}

    def _loading(self, workers: int) -> dict[str, Any]:
        batches = wall = core = starved = 0.0
        for slot in _SLOT.iter_unpack(self.workers[:] if self.workers is not None else b""):
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
            "empty_cache": counts["empty_cache"],
            "empty_cache_seconds": seconds["empty_cache"],
            "garbage_collections": counts["garbage"],
            "garbage_seconds": seconds["garbage"],
            "synchronisations": counts["synchronise"],
            "item_reads": counts[reads],
            "synchronisation_seconds": seconds["synchronise"] + seconds[reads],
            "checkpoints": counts["checkpoint"],
            "checkpoint_seconds": seconds["checkpoint"],
        }
        before, after = self._base.get("memory"), now.get("memory")
        if before and after:
            rise = {key: after.get(key, 0) - before.get(key, 0) for key in after}
            found |= {
                "alloc_retries": rise.get("num_alloc_retries", 0),
                "out_of_memory": rise.get("num_ooms", 0),
                "device_allocations": rise.get("num_device_alloc", 0)
                + rise.get("num_device_free", 0),
                "allocated_bytes": after.get("allocated_bytes.all.peak", 0),
                "reserved_bytes": after.get("reserved_bytes.all.peak", 0),
                "inactive_split_bytes": after.get("inactive_split_bytes.all.peak", 0),
            }
        return found


COUNTED = ("empty_cache", "garbage", "synchronise", "device_reads", "host_reads", "checkpoint")
PARTS = ("transfer", "communication")


class _Batches:
    """The batch in work of one loader."""

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.given_at: float | None = None
        self.optimized_at: float | None = None
        self.trains = False
        """Whether an optimizer stepped while its batches were in work: validation has none."""
        self.facts: dict[str, Any] = {}


class _Times:
    """Sums of the timed batches, and the latest of them one by one."""

    def __init__(self) -> None:
        self.count = 0
        self.total = self.wait = self.other = 0.0
        self._latest: deque[float] = deque(maxlen=MOST_TIMES)
        self._latest_waits: deque[float] = deque(maxlen=MOST_TIMES)

    def add(self, seconds: float, wait: float, other: float) -> None:
        self.count += 1
        self.total += seconds
        self.wait += wait
        self.other += other
        self._latest.append(seconds)
        self._latest_waits.append(wait)

    def summary(self, parts: dict[str, float]) -> dict[str, Any]:
        """Return the means a batch; ``parts`` are sums that the script timed itself."""
        timed = {name: spent / self.count for name, spent in parts.items() if spent}
        known = self.wait / self.count + self.other / self.count + sum(timed.values())
        return {
            "steps": self.count,
            "seconds": self.total / self.count,
            "p95_seconds": _p95(self._latest),
            "data_wait": self.wait / self.count,
            "data_wait_p95": _p95(self._latest_waits),
            "compute": max(0.0, self.total / self.count - known),
            "other": self.other / self.count,
            **timed,
        }


def _p95(values: Iterable[float]) -> float:
    ranked = sorted(values)
    return ranked[int(0.95 * (len(ranked) - 1))]


def _adapter(recorder: Recorder, base: Any, begin: str, end: str) -> Any:
    """Return a trainer's callback that starts and stops the recorder."""
    calls = {
        begin: lambda self, *_, **__: recorder.start(),
        end: lambda self, *_, **__: recorder.stop(),
    }
    return type("TrainwrightCallback", (base,), calls)()


# What is counted: the calls of torch and gc, wrapped while recording


def _hook(recorder: Recorder) -> None:
    """Wrap what is there already, and the rest as soon as it is imported."""
    _wrap(recorder, gc, "collect", "garbage")
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "optim"):
        _hook_torch(recorder)
    else:
        finder = _WhenTorchComes(recorder)
        sys.meta_path.insert(0, finder)
        recorder.undo.append(finder.leave)


class _WhenTorchComes:
    """Finds nothing; notices the first import after torch's own is complete."""

    def __init__(self, recorder: Recorder) -> None:
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


def _hook_torch(recorder: Recorder) -> None:
    torch = sys.modules["torch"]
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
    for name in ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__"):
        _wrap_read(recorder, torch, name)
    _note_autocast(recorder, torch)
    _note_parallel(recorder, torch)
    _note_anomaly(recorder)


def _wrap(recorder: Recorder, holder: Any, name: str, what: str) -> None:
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

    _put(recorder, holder, name, call)


def _wrap_read(recorder: Recorder, torch: Any, name: str) -> None:
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

    _put(recorder, torch.Tensor, name, call)


def _put(recorder: Recorder, holder: Any, name: str, value: Any) -> None:
    own = name in vars(holder)
    previous = vars(holder).get(name)
    setattr(holder, name, value)
    recorder.undo.append(lambda: setattr(holder, name, previous) if own else delattr(holder, name))


def _hook_loader(recorder: Recorder) -> None:
    """Time ``next`` of DataLoader's iterators, and the making of batches in workers."""
    module = importlib.import_module("torch.utils.data.dataloader")
    iterators = module._BaseDataLoaderIter
    original = iterators.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        if not recorder.mine():
            return original(self)
        timed = vars(self).setdefault("_trainwright", _Batches())
        recorder.asked(timed)
        try:
            batch = original(self)
        except StopIteration:
            recorder.ended(timed)
            raise
        recorder.given(timed, timed.facts or _loader_facts(self))
        return batch

    _put(recorder, iterators, "__next__", following)
    fetching = importlib.import_module("torch.utils.data._utils.fetch")
    worker = importlib.import_module("torch.utils.data._utils.worker")
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _time_fetching(recorder, getattr(fetching, name), worker)


def _time_fetching(recorder: Recorder, fetcher: Any, worker: Any) -> None:
    original, slots = fetcher.fetch, recorder.workers
    if slots is None:
        return

    @functools.wraps(original)
    def fetch(self: Any, *arguments: Any) -> Any:
        started, on_core, waited = time.perf_counter(), time.thread_time(), _delay()
        result = original(self, *arguments)
        with contextlib.suppress(Exception):
            info = worker.get_worker_info()
            at = (0 if info is None else info.id + 1) % _SLOTS * _SLOT.size
            done = _SLOT.unpack_from(slots, at)
            spent = (
                1.0,
                time.perf_counter() - started,
                time.thread_time() - on_core,
                _delay() - waited,
            )
            _SLOT.pack_into(slots, at, *map(sum, zip(done, spent, strict=True)))
        return result

    _put(recorder, fetcher, "fetch", fetch)


def _note_autocast(recorder: Recorder, torch: Any) -> None:
    original = torch.autocast.__enter__

    @functools.wraps(original)
    def enter(self: Any) -> Any:
        if getattr(self, "_enabled", False) and not torch.compiler.is_compiling():
            recorder.learnt(precision=_MIXED.get(str(getattr(self, "fast_dtype", ""))))
        return original(self)

    _put(recorder, torch.autocast, "__enter__", enter)


_MIXED = {"torch.float16": "fp16-mixed", "torch.bfloat16": "bf16-mixed"}


def _note_anomaly(recorder: Recorder) -> None:
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

        _put(recorder, holder, "__init__", functools.wraps(original)(begin))


def _note_parallel(recorder: Recorder, torch: Any) -> None:
    parallel = torch.nn.parallel
    for holder, strategy in (
        (parallel.DataParallel, "dp"),
        (parallel.DistributedDataParallel, "ddp"),
    ):
        original = holder.__init__

        def begin(
            self: Any,
            *arguments: Any,
            _original: Any = original,
            _strategy: str = strategy,
            **named: Any,
        ) -> None:
            facts: dict[str, Any] = {"strategy": _strategy}
            if "find_unused_parameters" in named:
                facts["find_unused_parameters"] = bool(named["find_unused_parameters"])
            recorder.learnt(**facts)
            _original(self, *arguments, **named)

        _put(recorder, holder, "__init__", functools.wraps(original)(begin))


# Facts of the set-up


def _loader_facts(loader: Any) -> dict[str, Any]:
    """Return what a DataLoader, or its iterator, says of itself."""
    names = {
        "num_workers": ("num_workers", "_num_workers"),
        "prefetch_factor": ("prefetch_factor", "_prefetch_factor"),
        "pin_memory": ("pin_memory", "_pin_memory"),
        "persistent_workers": ("persistent_workers", "_persistent_workers"),
    }
    found: dict[str, Any] = {}
    for key, choices in names.items():
        for name in choices:
            value = getattr(loader, name, None)
            if isinstance(value, (bool, int)):
                found[key] = value
                break
    sampler = getattr(loader, "_index_sampler", None)
    batch = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
    if isinstance(batch, int) and batch > 0:
        found["batch"] = batch
    if not found.get("num_workers", 1):
        found.pop("persistent_workers", None)
        found.pop("prefetch_factor", None)
    return found


def _optimizer_facts(optimizer: Any) -> dict[str, Any]:
    """Return what the parameters that an optimizer moves say of the model."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    if not parameters:
        return {}
    sizes = {size for each in parameters if each.dim() >= 2 for size in each.shape[:2]}
    kernels = [each for each in parameters if each.dim() == 4 and max(each.shape[2:]) > 1]
    found: dict[str, Any] = {
        "parameters": sum(each.numel() for each in parameters),
        "optimizer": type(optimizer).__name__.lower(),
        "dims": sorted(sizes)[-32:],
        "_dtype": str(parameters[0].dtype),
        "_device": parameters[0].device.type,
    }
    group = optimizer.param_groups[0]
    if group.get("foreach") is False and not group.get("fused"):
        found["optimizer_foreach"] = False
    if kernels:
        found["model_kind"] = "convolution"
        last = sys.modules["torch"].channels_last
        found["channels_last"] = all(each.is_contiguous(memory_format=last) for each in kernels)
    return found


def _profiling() -> bool:
    """Whether a profiler runs now; afterwards nobody tells."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.autograd._profiler_enabled())


def _torch_facts() -> dict[str, Any]:
    """Return how torch is set up, of what can be told now."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):
        return {}
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "torch_threads": torch.get_num_threads(),
        "anomaly_detection": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads):
        found["omp_num_threads"] = int(threads)
    if torch.cuda.is_initialized():
        found["tf32_allowed"] = torch.get_float32_matmul_precision() != "highest"
        found["cudnn_benchmark"] = torch.backends.cudnn.benchmark
        settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        found["allocator"] = (
            "expandable" if "expandable_segments:true" in (settings or "").lower() else "native"
        )
    dynamo = sys.modules.get("torch._dynamo.utils")
    found["compile"] = bool(dynamo and dynamo.counters["frames"].get("ok"))
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        found["world_size"] = distributed.get_world_size()
        found["backend"] = distributed.get_backend()
    return found


def _settled(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the set-up with device and precision told from what the parameters were."""
    setup = dict(setup)
    kind, dtype = setup.pop("_device", None), setup.pop("_dtype", "")
    if kind == "cuda":
        hip = getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None)
        kind = "rocm" if hip else "cuda"
    if kind in ("cuda", "rocm", "xpu", "mps", "cpu"):
        setup["device"] = kind
    if setup.get("precision") is None:
        tf32 = setup.get("tf32_allowed") and kind == "cuda"
        setup["precision"] = {
            "torch.float32": "tf32" if tf32 else "fp32",
            "torch.bfloat16": "bf16",
            "torch.float16": "fp16",
            "torch.float64": "fp64",
        }.get(dtype)
    if setup.get("world_size") == 1 or (kind == "cpu" and "world_size" not in setup):
        setup.setdefault("strategy", "single")
    return {key: value for key, value in setup.items() if value is not None}


def _observed() -> dict[str, Any]:
    """Return counters of this moment."""
    torch = sys.modules.get("torch")
    found: dict[str, Any] = {"time": time.perf_counter()}
    if torch is not None and torch.cuda.is_initialized():
        found["memory"] = torch.cuda.memory_stats()
    if surroundings is not None:
        found["around"] = surroundings.observed()
    return found


def _host_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    if surroundings is None:
        return {}
    return surroundings.host_between(before["around"], after["around"])


def _delay() -> float:
    if surroundings is None:
        return 0.0
    return surroundings.own_delay()


def _replace(path: Path, text: str) -> None:
    """Put the text in the file's place in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".record")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
