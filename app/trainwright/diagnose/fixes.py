"""What to do about a cause: a sentence, and the plan's settings where it has some for it."""

from collections.abc import Callable
from contextlib import suppress
from math import ceil
from typing import Any, get_args

from trainwright.catalog.query import find_gpu
from trainwright.diagnose.evidence import Evidence, Setup
from trainwright.diagnose.measures.cost import memory_share
from trainwright.diagnose.measures.figures import lowest_capability, number, on_cpu, on_gpu
from trainwright.diagnose.measures.kernels import capped_by_board
from trainwright.diagnose.measures.trials import factor_of, saved_by, step_times
from trainwright.diagnose.measures.work import waits_for_the_interpreter, workers_starve_computing
from trainwright.diagnose.refuted import WORTH, refuted
from trainwright.diagnose.verdict import Cause, Fix
from trainwright.diagnose.wording import wording
from trainwright.messages import Message, UserError
from trainwright.workload.settings import Attention, Precision

PLAN_PRECISIONS = get_args(Precision)
PLAN_ATTENTION = get_args(Attention)
MOST_WORKERS = 16
"""Workers that are proposed at most where nobody timed how many keep up; assumed."""
READY = 4
"""Batches that a worker holds ready: twice torch's default; assumed."""
SPARE = 1.25
"""Times the workers that would just keep up: some batches take longer; assumed."""
FULL = 0.6
"""Share of a GPU's memory in use from which twice the batch is not proposed; assumed."""


def fixes(cause: Cause, variant: str, evidence: Evidence) -> tuple[Fix, ...]:
    """Return the fixes, the first one to try first; none that the evidence speaks against."""
    made = _FIXES.get((cause, variant)) or _FIXES.get((cause, ""), ())
    found = [fix for make in made if (fix := make(evidence)) is not None]
    return tuple(fix for fix in found if not refuted(fix, evidence))


def _say(id: str, patch: dict[str, Any] | None = None, **values: Any) -> Fix:
    return Fix(Message.of(f"diagnose.fix.{id}", **values), patch or {})


def _saying(id: str, **patch: Any) -> Callable[[Evidence], Fix | None]:
    """Return a fix that is the same for every run; ``__`` stands for a dot."""
    keys = {f"settings.{key.replace('__', '.')}": value for key, value in patch.items()}
    return lambda _: _say(id, keys)


def _setup(evidence: Evidence) -> Setup:
    return evidence.setup or Setup()


def _more_workers(evidence: Evidence) -> Fix | None:
    """As many workers as keep up, or twice those of now; one core is left for the training process.

    None where those that are there take the cores that a step is computed on.
    """
    if workers_starve_computing(evidence):
        return None
    host, enough = evidence.host, _enough_workers(evidence)
    usable = int(host.usable_cores) if host is not None and host.usable_cores else None
    return _workers(evidence, least=2, most=max(1, (usable or 5) - 1), wanted=enough)


def _workers(evidence: Evidence, least: int, most: int, wanted: int | None = None) -> Fix | None:
    """Return the advice to use so many workers; only "more" where nobody knows how many it has."""
    setup = _setup(evidence)
    now = setup.num_workers
    if now is None and wanted is None:
        return _say("workers-more")
    goal = min(most, wanted or min(MOST_WORKERS, max(least, 2 * (now or 0))))
    if goal <= (now or 0):
        return None
    if setup.persistent_workers:
        return _say("workers-kept", {"settings.loader.num_workers": goal}, count=goal)
    patch = {"settings.loader.num_workers": goal, "settings.loader.persistent_workers": True}
    return _say("workers", patch, count=goal)


def _enough_workers(evidence: Evidence) -> int | None:
    """Return the workers whose batches come as fast as steps take them; None: not timed."""
    loading, steps = evidence.loading, evidence.steps
    if loading is None or not loading.batch_seconds or steps is None or steps.data_wait is None:
        return None
    taken = max(0.01 * steps.seconds, steps.seconds - steps.data_wait)
    return max(2, ceil(SPARE * loading.batch_seconds / taken))


def _fewer_workers(evidence: Evidence) -> Fix | None:
    """One worker less than cores, where there are more; libraries in them with a thread each."""
    host, now = evidence.host, _setup(evidence).num_workers
    goal = max(1, int(host.usable_cores if host is not None and host.usable_cores else 2) - 1)
    if now is not None and goal >= now:
        return None
    return _say("fewer-workers", {"settings.loader.num_workers": goal}, count=goal)


def _waiting_workers(evidence: Evidence) -> Fix | None:
    """Workers that wait need no core each: four, or twice those of now, unless that is many."""
    return _workers(evidence, least=4, most=MOST_WORKERS)


def _prefetch(evidence: Evidence) -> Fix | None:
    setup = _setup(evidence)
    if not setup.num_workers or (setup.prefetch_factor or 0) >= READY:
        return None
    return _say("prefetch", {"settings.loader.prefetch_factor": READY})


def _larger_batch(evidence: Evidence) -> Fix | None:
    """Twice the batch, or the best that was tried, unless the GPU's memory has no room for it."""
    setup, times = _setup(evidence), _best_batch(evidence)
    counters = evidence.counters
    was_full = counters is not None and (counters.out_of_memory or counters.alloc_retries)
    if was_full or (on_gpu(evidence) and (memory_share(evidence) or 0) > FULL):
        return None
    if setup.batch is None:
        return _say("larger-batch")
    batch, steps = times * setup.batch, setup.accumulation or 1
    patch: dict[str, Any] = {"settings.micro_batch": batch}
    if times == 2 and steps > 1 and steps % 2 == 0:
        patch |= {"settings.accumulation": steps // 2}
        return _say("larger-batch-for-accumulation", patch, batch=batch)
    return _say("larger-batch-of", patch | {"settings.accumulation": None}, batch=batch)


def _best_batch(evidence: Evidence) -> int:
    """Return how many times the batch gave most samples a second of those tried; 2: none was."""
    tried = [
        (factor / times, int(factor))
        for trial in evidence.trials
        if trial.changed == "batch"
        if (factor := factor_of(trial, evidence) or 0.0) >= 2 and factor == int(factor)
        if (times := step_times(trial, evidence)) is not None
    ]
    return max(tried)[1] if tried else 2


def _smaller_batch(evidence: Evidence) -> Fix | None:
    setup = _setup(evidence)
    if setup.batch is None and not on_cpu(evidence):
        return _say("fewer-samples")
    if not setup.batch or setup.batch < 2:
        return None
    patch = {
        "settings.micro_batch": setup.batch // 2,
        "settings.accumulation": 2 * (setup.accumulation or 1),
    }
    return _say("smaller-batch", patch, batch=setup.batch // 2)


def _compile(evidence: Evidence) -> Fix | None:
    if wording(Cause.TUNING, "compile", evidence) == "anew":
        return _say("compile-once")
    if _setup(evidence).compile:
        slower = (saved_by("compiled")(evidence) or 0.0) >= WORTH
        return _say("no-compile", {"settings.compile": False}) if slower else None
    return _say("compile", {"settings.compile": True})


def _compile_well(evidence: Evidence) -> Fix | None:
    """A run that is compiled and slow by compiling compiles too often."""
    again = _setup(evidence).compile and not saved_by("compiled")(evidence)
    return _say("compile-once") if again else _compile(evidence)


def _layout(evidence: Evidence) -> Fix:
    """The other layout than now: a run that has channels_last is slow by that."""
    if _setup(evidence).channels_last:
        return _say("channels-first", {"settings.channels_last": False})
    return _say("channels-last", {"settings.channels_last": True})


def _lower_precision(evidence: Evidence) -> Fix | None:
    """bf16 needs compute capability 8.0; fp16 with a scaled loss runs from 7.0 on.

    What was tried and is faster goes first; a processor is fast in fp32.
    """
    setup = _setup(evidence)
    if setup.precision == "fp64" or setup.device == "cpu":
        return None if setup.precision in (None, "fp32") else _precision("fp32")
    if (tried := _faster_precision(evidence)) is not None:
        return _precision(tried)
    return _precision("bf16-mixed" if _have_bf16(evidence) else "fp16-mixed")


def _have_bf16(evidence: Evidence) -> bool:
    """Return False where a GPU's compute capability, reported or by its name, is below 8.0."""
    reported = lowest_capability(evidence)
    if reported is not None:
        return reported >= 8.0
    known = []
    for gpu in evidence.gpus or ():
        with suppress(UserError):
            known.append(find_gpu(gpu.name or "").record.compute_capability)
    return min(filter(None, known), default=(8, 0)) >= (8, 0)


def _precision(word: str) -> Fix:
    return _say("precision", {"settings.precision": word}, precision=word)


def _faster_precision(evidence: Evidence) -> str | None:
    """Return the plan's precision in which a step was tried and took the least time."""
    tried = [
        (times, trial.to)
        for trial in evidence.trials
        if trial.changed == "precision" and trial.to in PLAN_PRECISIONS
        if (times := step_times(trial, evidence)) is not None and times < 1
    ]
    return min(tried)[1] if tried else None


def _attention(evidence: Evidence) -> Fix | None:
    if wording(Cause.TUNING, "attention", evidence) == "fallback":
        return _say("flash-mask")
    now = _setup(evidence).attention
    if now in (None, "eager"):
        return _say("attention", {"settings.attention": "sdpa"})
    tried = [
        (times, trial.to)
        for trial in evidence.trials
        if trial.changed == "attention" and trial.to in PLAN_ATTENTION
        if (times := step_times(trial, evidence)) is not None and times < 1
    ]
    if not tried:
        return _say("attention-other")
    name = min(tried)[1]
    return _say("attention-tried", {"settings.attention": name}, name=name)


def _kernels(evidence: Evidence) -> Fix:
    """The library of convolutions that is off, cuDNN's autotuner, or the kernels themselves."""
    if evidence.setup is not None and evidence.setup.onednn is False:
        return _say("onednn")
    named = {"own": "own-kernel", "slow": "slow-operators"}
    return _say(named.get(wording(Cause.TUNING, "kernels", evidence), "kernels"))


def _padding(evidence: Evidence) -> Fix:
    if wording(Cause.TUNING, "padding", evidence) == "ignored":
        return _say("ignored-targets")
    return _say("packing", {"workload.inputs.batching": "packed"})


def _heap(evidence: Evidence) -> Fix:
    return _say("grown" if wording(Cause.MEMORY, "heap", evidence) else "heap")


def _on_device(evidence: Evidence) -> Fix:
    """A run on the processor has no setting for it; what it keeps in files is the script's."""
    if _setup(evidence).device == "cpu":
        return _say("in-memory")
    patch = {"settings.optimizer_offload": "none", "settings.activation_offload": False}
    return _say("no-offload", patch)


def _expandable(evidence: Evidence) -> Fix | None:
    """Not on Windows, which alone lends memory to a GPU, and where torch has none of them."""
    lent = any(gpu.memory_shared_bytes for gpu in evidence.gpus or ())
    if lent or on_cpu(evidence) or _setup(evidence).allocator == "expandable":
        return None
    return _say("expandable", {"settings.allocator": "expandable"})


def _less_at_once(evidence: Evidence) -> Fix | None:
    """A processor's run has the system's memory, and shares it with its workers."""
    return _say("swapping") if on_cpu(evidence) else None


def _checkpointing(evidence: Evidence) -> Fix | None:
    recomputes = (number("counters.recomputations")(evidence) or 0) > 0
    if recomputes or _setup(evidence).checkpointing not in (None, "none"):
        return None
    return _say("checkpointing", {"settings.checkpointing": "full"})


def _sharded(evidence: Evidence) -> bool:
    return _setup(evidence).strategy in ("fsdp", "zero")


def _fewer_shards(evidence: Evidence) -> Fix | None:
    """Sharded parameters are gathered in each pass, whatever is accumulated."""
    return _say("fewer-shards") if _sharded(evidence) else None


def _overlap(evidence: Evidence) -> Fix | None:
    return None if _sharded(evidence) else _say("overlap")


def _fewer_updates(evidence: Evidence) -> Fix | None:
    """Not of shards: FSDP keeps whole gradients under ``no_sync``, and gathers as often."""
    setup = _setup(evidence)
    if _sharded(evidence):
        return None
    patch = {"settings.accumulation": 2 * setup.accumulation} if setup.accumulation else {}
    return _say("fewer-updates", patch)


def _threads(evidence: Evidence) -> Fix | None:
    host = evidence.host
    if waits_for_the_interpreter(evidence):
        return _say("threads-own")
    cores = int(host.usable_cores) if host is not None and host.usable_cores else None
    if cores and _setup(evidence).torch_threads == cores:
        return _say("threads-others")
    return _say("threads-of", count=max(1, cores)) if cores else _say("threads")


def _workers_of_quota(evidence: Evidence) -> Fix | None:
    """Fewer workers, where both they and the cores that the run may use are known."""
    host = evidence.host
    known = host is not None and host.usable_cores and _setup(evidence).num_workers
    return _fewer_workers(evidence) if known else None


def _measure(evidence: Evidence) -> Fix:
    """A command that was run, and in which no step was seen, has a loop of another kind."""
    return _say("measure-loop" if evidence.command else "measure")


def _on_gpu_only(make: Callable[[Evidence], Fix | None]) -> Callable[[Evidence], Fix | None]:
    return lambda evidence: None if on_cpu(evidence) else make(evidence)


def _power(evidence: Evidence) -> Fix:
    """A limit that stands at the board's default may be the most that the board allows.

    A GPU that is held down below its limit is held by something that no limit lifts.
    """
    if capped_by_board(evidence):
        return _say("power-brake")
    gpus = evidence.gpus or ()
    lowered = any(
        gpu.power_limit_w < gpu.power_limit_default_w
        for gpu in gpus
        if gpu.power_limit_w and gpu.power_limit_default_w
    )
    told = all(gpu.power_limit_w and gpu.power_limit_default_w for gpu in gpus)
    return _say("power-board" if gpus and told and not lowered else "power")


def _watched(id: str, setting: str) -> Callable[[Evidence], Fix]:
    """What is off by the run's own settings is something else that watches each operation."""
    return lambda evidence: _say(
        "watching" if getattr(evidence.setup, setting, None) is False else id
    )


_PIN = _on_gpu_only(_saying("pin", loader__pin_memory=True))
_FIXES: dict[tuple[Cause, str], tuple[Callable[[Evidence], Fix | None], ...]] = {
    (Cause.INPUT, ""): (_more_workers, _prefetch, _saying("input")),
    (Cause.INPUT, "fetch"): (_waiting_workers, _saying("shards"), _prefetch),
    (Cause.INPUT, "preprocessing"): (_more_workers, _saying("decoder"), _prefetch),
    (Cause.INPUT, "transfer"): (_PIN, _on_gpu_only(_saying("non-blocking"))),
    (Cause.PARALLELISM, ""): (_larger_batch, _compile),
    (Cause.PARALLELISM, "host-bound"): (_compile, _larger_batch, _saying("fused-optimizer")),
    (Cause.TUNING, ""): (_lower_precision, _compile),
    (Cause.TUNING, "precision"): (_lower_precision,),
    (Cause.TUNING, "shapes"): (_saying("shapes"),),
    (Cause.TUNING, "layout"): (_layout,),
    (Cause.TUNING, "attention"): (_attention,),
    (Cause.TUNING, "compile"): (_compile_well,),
    (Cause.TUNING, "kernels"): (_kernels,),
    (Cause.TUNING, "padding"): (_padding,),
    (Cause.TUNING, "architecture"): (_saying("architecture"),),
    (Cause.MEMORY, ""): (_expandable, _smaller_batch),
    (Cause.MEMORY, "empty-cache"): (_saying("empty-cache"), _expandable),
    (Cause.MEMORY, "fragmentation"): (_expandable, _smaller_batch),
    (Cause.MEMORY, "full"): (_smaller_batch, _checkpointing, _expandable, _less_at_once),
    (Cause.MEMORY, "offload"): (_on_device, _checkpointing),
    (Cause.MEMORY, "garbage"): (_saying("garbage"),),
    (Cause.MEMORY, "recomputation"): (_saying("no-checkpointing", checkpointing="none"),),
    (Cause.MEMORY, "heap"): (_heap,),
    (Cause.MEMORY, "swapping"): (_workers_of_quota, _saying("swapping")),
    (Cause.COMMUNICATION, ""): (_fewer_shards, _fewer_updates, _overlap),
    (Cause.COMMUNICATION, "data-parallel"): (_saying("ddp", strategy="ddp"),),
    (Cause.COMMUNICATION, "backend"): (_saying("nccl"),),
    (Cause.COMMUNICATION, "straggler"): (_saying("straggler"),),
    (Cause.SCHEDULING, "other-programs-gpu"): (_saying("other-programs-gpu"),),
    (Cause.SCHEDULING, "other-programs-cpu"): (_saying("other-programs-cpu"),),
    (Cause.SCHEDULING, "uneven"): (_saying("uneven"),),
    (Cause.SCHEDULING, "mig"): (_saying("mig"),),
    (Cause.SCHEDULING, "mps"): (_saying("mps"),),
    (Cause.SCHEDULING, "power"): (_power,),
    (Cause.SCHEDULING, "heat"): (_saying("heat"),),
    (Cause.SCHEDULING, "battery"): (_saying("battery"),),
    (Cause.SCHEDULING, "quota"): (_saying("quota"), _workers_of_quota),
    (Cause.SCHEDULING, "threads"): (_threads,),
    (Cause.SCHEDULING, "workers"): (_fewer_workers,),
    (Cause.SCHEDULING, "affinity"): (_saying("affinity"), _threads),
    (Cause.SCHEDULING, "numa"): (_saying("numa"),),
    (Cause.SCHEDULING, "link"): (_saying("link"),),
    (Cause.MONITORING, "synchronisation"): (_saying("synchronisation"),),
    (Cause.MONITORING, "anomaly-detection"): (_watched("anomaly-detection", "anomaly_detection"),),
    (Cause.MONITORING, "profiler"): (_watched("profiler", "profiler_on"),),
    (Cause.MONITORING, "logging"): (_saying("logging"),),
    (Cause.MONITORING, "nothing-measured"): (_measure,),
}
