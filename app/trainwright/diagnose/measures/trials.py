"""What an experiment took from a step, however the record states it."""

import re
from collections.abc import Callable, Iterator

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import data_wait, on_gpu, processes, utilisation
from trainwright.diagnose.measures.play import asks_the_model
from trainwright.diagnose.trials import Changed, Trial

_TRIED: dict[str, tuple[Changed, ...]] = {
    "synthetic_batch": ("synthetic-data",),
    "cached_data": ("cached-data", "drive"),
    "augmentation": ("augmentation",),
    "other_precision": ("precision", "tf32"),
    "channels_last": ("channels-last",),
    "compiled": ("compile",),
    "graphs": ("graphs",),
    "fused_attention": ("attention",),
    "shapes": ("shapes",),
    "padding": ("padding",),
    "kernels": ("cudnn-benchmark",),
    "all_threads": ("threads",),
    "affinity": ("affinity",),
    "quota": ("quota",),
    "power_limit": ("power-limit",),
    "cooling": ("cooling",),
    "slice": ("slice",),
    "alone": ("other-programs",),
    "without_empty_cache": ("empty-cache",),
    "without_garbage": ("garbage-collection",),
    "without_offloading": ("offloading",),
    "without_checkpointing": ("checkpointing",),
    "allocator": ("allocator",),
    "without_synchronisation": ("synchronisation",),
    "without_logging": ("logging", "checkpoints", "evaluation"),
    "without_profiler": ("profiler",),
    "without_anomaly_detection": ("anomaly-detection",),
    "communication": ("backend", "bucket"),
    "link": ("link",),
    "accumulation": ("accumulation",),
    "pinned_memory": ("pinned-memory",),
    "faster_cpu": ("cpu",),
}
"""Name of an experiment -> what trials of it change."""
_BURDENS: tuple[Changed, ...] = (
    *("augmentation", "other-programs", "padding", "offloading", "empty-cache"),
    *("garbage-collection", "synchronisation", "logging", "checkpoints", "evaluation"),
    *("profiler", "anomaly-detection"),
)
"""What takes the more time the more there is of it, and none where there is none."""
_SAME_WORK: tuple[Changed, ...] = (
    *("workers", "prefetch", "pinned-memory", "synthetic-data", "cached-data", "augmentation"),
    *("drive", "threads", "affinity", "quota", "other-programs", "devices", "nodes", "link"),
    *("backend", "bucket", "offloading", "empty-cache", "garbage-collection", "synchronisation"),
    *("logging", "checkpoints", "evaluation", "profiler", "anomaly-detection", "cpu"),
)
"""What leaves the kernels of a step as they are."""


def step_times(trial: Trial, evidence: Evidence) -> float | None:
    """Return a step's time in a trial over that of the run as it is.

    Of a larger batch or longer sequences a step does more: samples a second tell of it by the
    factor. What does not change a device's work changes its utilisation as it changes the rate.
    """
    if trial.step_times is not None:
        return trial.step_times
    if trial.rate_times is None:
        before = utilisation(evidence)
        if not before or not trial.utilisation or trial.changed not in _SAME_WORK:
            return None
        return before / trial.utilisation
    grows = trial.changed in ("batch", "accumulation", "sequence-length")
    return (factor_of(trial, evidence) or 1.0 if grows else 1.0) / trial.rate_times


def saved_by(experiment: str) -> Callable[[Evidence], float | None]:
    """Return the measure of the share of a step that an experiment took away, the best of them."""

    def saved(evidence: Evidence) -> float | None:
        found = [round(1 - times, 9) for times in _times_of(experiment, evidence)]
        return max(found) if found else None

    return saved


def _times_of(experiment: str, evidence: Evidence) -> Iterator[float]:
    """Yield steps' times in an experiment over that of the run as it is."""
    timed = getattr(evidence.experiments, experiment, None)
    if timed is not None and evidence.steps is not None:
        yield timed / evidence.steps.seconds
    for trial in evidence.trials:
        times, factor = step_times(trial, evidence), factor_of(trial, evidence)
        if times is None or factor == 1:
            continue
        if trial.changed == experiment == "accumulation":
            yield _of_a_sample(trial, factor, times)
        elif trial.changed in _TRIED.get(experiment, ()):
            yield _at_best(trial.changed, factor, times)
        elif experiment == "without_workers" and (trial.changed, factor) == ("workers", 0):
            yield times
        elif experiment == "more_workers" and _tells_of_workers(trial, evidence):
            yield _with_more(factor, times)
        elif experiment == "single_device" and _tells_of_devices(trial, evidence):
            as_much = _of_as_much(trial, factor, times, evidence)
            yield as_much if factor is None or factor < 1 else 1 / as_much


def _tells_of_workers(trial: Trial, evidence: Evidence) -> bool:
    """Whether a trial tells what more workers save: fewer do only where no more were tried."""
    if trial.changed not in ("workers", "prefetch"):
        return False
    factor = factor_of(trial, evidence)
    tried = [
        factor_of(each, evidence) or 0 for each in evidence.trials if each.changed == "workers"
    ]
    return factor is None or factor > 1 or max(tried, default=0) <= 1


def _of_a_sample(trial: Trial, factor: float | None, times: float) -> float:
    """Return what a sample takes: micro-batches may get smaller as there are more of them."""
    return 1 / trial.rate_times if trial.rate_times else times / (factor or 1.0)


def _tells_of_devices(trial: Trial, evidence: Evidence) -> bool:
    """Whether a trial tells what a run loses by having several devices.

    What more of them would lose is theirs, where fewer were tried too. Where the batch of all
    stays, each device's grows as they get fewer: what that saves may be the batch's.
    """
    if trial.changed not in ("devices", "nodes"):
        return False
    if _OTHER_MODEL.search(trial.to.lower()) is not None:
        return False
    if _with_larger_batches(trial, evidence) and (trial.rate_times or 0) > KEPT:
        return False
    fewer = any(has_fewer(each, evidence) for each in evidence.trials)
    return not fewer or (factor_of(trial, evidence) or 0) <= 1


def has_fewer(trial: Trial, evidence: Evidence) -> bool:
    """Whether a trial has fewer devices or nodes than the run."""
    return trial.changed in ("devices", "nodes") and 0 < (factor_of(trial, evidence) or 0.0) < 1


def _with_larger_batches(trial: Trial, evidence: Evidence) -> bool:
    """Whether fewer devices share the samples that all of them had."""
    return has_fewer(trial, evidence) and _SAME_FOR_ALL.search(trial.to.lower()) is not None


def _at_best(changed: Changed, factor: float | None, times: float) -> float:
    """Return the step's time over now with none of a burden, or with more of what it lives on.

    A tenth of the logs, or ten times as many, tell what all of them cost. What another processor
    changes hangs on it, faster or slower.
    """
    if changed in _BURDENS and factor is not None:
        return max(0.0, 1 - (times - 1) / (factor - 1))
    if changed == "cpu":
        return min(times, 1 / times)
    return _with_more(factor, times) if changed in ("drive", "link") else times


_TIMES = {"half": 0.5, "twice": 2.0, "double": 2.0, "doubled": 2.0, "halved": 0.5}
COUNTS = {
    **{"none": 0.0, "one": 1.0, "single": 1.0, "alone": 1.0, "two": 2.0, "three": 3.0},
    **{"four": 4.0, "six": 6.0, "eight": 8.0, "sixteen": 16.0},
}
NUMBER = rf"(?:\d+|{'|'.join(COUNTS)})"
_AMOUNT = re.compile(rf"\b(?:\d+|{'|'.join((*_TIMES, *COUNTS))})\b")
_MULTIPLE = re.compile(rf"\b({NUMBER}) ?(?:times|x|fold)\b")
_FROM = re.compile(rf"\bfrom {NUMBER}\b.{0, 100}?\bto\b")
_SMALLER = re.compile(r"small|less|fewer")
_SAME_FOR_ALL = re.compile(r"same (?:batch (?:for|in|of) all|global batch|\d+ samples a step)")
_OTHER_MODEL = re.compile(r"\ba (?:smaller |larger )?model of\b")
_FEWER_CHUNKS = re.compile(
    r"\A(?>.*?(?:half|quarter|third|eighth|as many|fewer) ).*(?:chunks|micro-?batches)"
)
"""What a trial changes besides: a batch in larger pieces is no larger batch."""


def factor_of(trial: Trial, evidence: Evidence) -> float | None:
    """Return how many times as much of it a trial has, also where that is said in words."""
    to = _FROM.sub("", trial.to.lower())
    said, multiple = _AMOUNT.search(to), _MULTIPLE.search(to)
    if trial.factor is not None or said is None or trial.changed not in _NOW:
        return trial.factor
    if multiple is not None:
        return COUNTS.get(multiple[1]) or float(multiple[1])
    if (word := said.group()) in _TIMES:
        return _TIMES[word]
    amount = COUNTS[word] if word in COUNTS else float(word)
    now = _NOW[trial.changed](evidence)
    if not amount:
        return 0.0
    return amount / now if now else None


def _set(key: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: getattr(evidence.setup, key, None)


def _if_one(evidence: Evidence) -> float | None:
    """Return 1; None of a run over a network, whose computers nobody counted."""
    network = evidence.setup is not None and evidence.setup.link == "network"
    return None if network else 1.0


_NOW: dict[Changed, Callable[[Evidence], float | None]] = {
    "devices": processes,
    "nodes": lambda evidence: _set("nodes")(evidence) or _if_one(evidence),
    "batch": _set("batch"),
    "accumulation": _set("accumulation"),
    "sequence-length": _set("sequence_length"),
    "workers": _set("num_workers"),
}
"""How much the run as it is has of what is counted."""


def fewer_workers(evidence: Evidence) -> float | None:
    """Return the share of a step that fewer of the loader's workers take away."""
    found = [
        1 - times
        for trial in evidence.trials
        if trial.changed == "workers" and 0 < (factor_of(trial, evidence) or 0) < 1
        if (times := step_times(trial, evidence)) is not None
    ]
    return max(found) if found else None


def _of_as_much(trial: Trial, factor: float | None, times: float, evidence: Evidence) -> float:
    """Return the time of as much on each device: fewer of them take more steps for an epoch."""
    if trial.rate_times is not None:
        return 1 / trial.rate_times
    epoch = evidence.steps is not None and evidence.steps.unit == "epoch"
    return times * factor if epoch and factor else times


def beyond_their_size(evidence: Evidence) -> float | None:
    """Return how many times as fast smaller inputs or models are as their size cubed makes them."""
    found = [
        factor**3 / times
        for trial in evidence.trials
        if trial.changed in ("shapes", "sequence-length", "model-size")
        if 0.3 <= (factor := trial.factor or 0.0) < 1 and (times := step_times(trial, evidence))
    ]
    return max(found, default=None)


def _with_more(factor: float | None, times: float) -> float:
    """Return the step's time with more of what changed over the time with less."""
    return 1 / times if factor is not None and factor < 1 else times


def doubled_batch(evidence: Evidence) -> float | None:
    """Return how much longer a step with twice the samples takes: 1 is the same time, 2 twice.

    Other factors are brought to it: a step takes what its size does not change, and the rest.
    """
    timed = evidence.experiments.doubled_batch if evidence.experiments is not None else None
    if timed is not None and evidence.steps is not None:
        return timed / evidence.steps.seconds
    return _doubled(evidence, "batch", "sequence-length")


def waits_by_samples(evidence: Evidence) -> float | None:
    """Return ``data_wait``, but where larger batches are waited for as long.

    What is read or prepared takes its time for each sample; what is as long for all of them is a
    chain of small operations, as of words that a model writes one after the other. Nor is a wait
    for games one for batches whose most is the model, asked about a position at a time.
    """
    wait, doubled = data_wait(evidence), _doubled(evidence, "batch")
    flat = wait is not None and doubled is not None and doubled - 1 < wait / 2
    return None if flat or asks_the_model(evidence) else wait


def doubled_model(evidence: Evidence) -> float | None:
    """Return how much longer a step of a model of twice the size takes.

    Other models, of sizes that nobody states, tell it where all of them take as long as this one.
    """
    known = _doubled(evidence, "model-size")
    if known is not None:
        return known
    others = (each for each in evidence.trials if each.changed == "model-size" and not each.factor)
    told = [times for each in others if (times := step_times(each, evidence)) is not None]
    return 1.0 if told and all(abs(1 - times) <= AS_LONG for times in told) else None


def _doubled(evidence: Evidence, *changed: Changed) -> float | None:
    found = [
        1 + (times - 1) / (factor - 1)
        for trial in evidence.trials
        if trial.changed in changed and (factor := factor_of(trial, evidence)) is not None
        if factor != 1 and (times := _of_a_step(trial, factor, evidence)) is not None
        if _FEWER_CHUNKS.search(trial.to.lower()) is None
    ]
    if "batch" in changed:
        found += _by_fewer_devices(evidence)
    return max(0.0, min(found)) if found else None


def _of_a_step(trial: Trial, factor: float, evidence: Evidence) -> float | None:
    """Return a step's time in a trial over now, also where epochs were timed: they have fewer.

    Not where most of an epoch is waited for, as iterations of play are: more worlds play more.
    """
    times = step_times(trial, evidence)
    epochs = evidence.steps is not None and evidence.steps.unit == "epoch"
    fewer = epochs and trial.changed == "batch" and trial.rate_times is None
    fewer = fewer and (data_wait(evidence) or 0.0) < 0.5
    return times * factor if times is not None and fewer else times


def _by_fewer_devices(evidence: Evidence) -> list[float]:
    """Return how much longer twice the samples take, by fewer devices that share those of all.

    Where those do as much all together as more did, something else holds all of them back.
    """
    shared = [
        (1 / factor, rate)
        for trial in evidence.trials
        if _with_larger_batches(trial, evidence) and (factor := factor_of(trial, evidence))
        if (rate := trial.rate_times) is not None
    ]
    return [
        1 + (more / rate - 1) / (more - 1) for more, rate in shared if rate < KEPT_IN_ALL * more
    ]


def attention_by_length(evidence: Evidence) -> float | None:
    """Return the share of a transformer's step that grows with the square of the length.

    A token's own work is the same in any sequence; attention's grows with the tokens beside it.
    """
    setup = evidence.setup
    if setup is None or setup.model_kind != "transformer":
        return None
    found = [
        (times / factor - 1) / (factor - 1)
        for trial in evidence.trials
        if trial.changed == "sequence-length" and (factor := factor_of(trial, evidence)) is not None
        if factor not in (0, 1) and (times := step_times(trial, evidence)) is not None
    ]
    return min(1.0, max(found)) if found else None


def saved_by_larger(evidence: Evidence) -> float | None:
    """Return the share of a sample's time that a larger batch takes away, of no stated size."""
    found = [
        1 - 1 / trial.rate_times
        for trial in evidence.trials
        if trial.changed == "batch" and trial.rate_times and factor_of(trial, evidence) is None
        if not _SMALLER.search(trial.to.lower())
    ]
    return max(found, default=None)


def doubled_past_filling(evidence: Evidence) -> float | None:
    """Return ``doubled_batch`` where smaller batches were tried, and gave fewer samples a second.

    A device gives more with the batch until it is full; a loader gives as much with any.
    """
    larger, lost = _larger_tried(evidence), max(_smaller_batches(evidence), default=0)
    return doubled_batch(evidence) if larger and lost >= LOST else None


def saved_by_smaller(evidence: Evidence) -> float | None:
    """Return the share of a sample's time that a smaller batch takes away, the best of them.

    Smaller batches fill a device less: what makes their samples faster is room in memory.
    """
    found = _smaller_batches(evidence)
    return 1 - min(found) if found and on_gpu(evidence) else None


def _smaller_batches(evidence: Evidence) -> list[float]:
    """Return what a sample takes in each smaller batch that was tried, over what it takes now.

    How much smaller need not be known where samples a second were counted.
    """
    tried = [trial for trial in evidence.trials if trial.changed == "batch"]
    sized = [
        times / factor
        for trial in tried
        if 0 < (factor := factor_of(trial, evidence) or 0.0) < 1
        if (times := step_times(trial, evidence)) is not None
    ]
    return sized + [
        1 / trial.rate_times
        for trial in tried
        if trial.rate_times and factor_of(trial, evidence) is None
        if _SMALLER.search(trial.to.lower())
    ]


def _larger_tried(evidence: Evidence) -> bool:
    timed = evidence.experiments is not None and evidence.experiments.doubled_batch is not None
    return timed or any(
        each.changed == "batch" and (factor_of(each, evidence) or 0) > 1 for each in evidence.trials
    )


AS_LONG = 0.05
"""By how much times differ that people call the same; assumed."""
KEPT, KEPT_IN_ALL = 1.1, 0.9
"""A device's rate that fewer, larger shares hardly change, and all devices' that they keep;
assumed."""
LOST = 1.15
"""How much more of a sample's time a smaller batch takes, to say that it fills less; assumed."""
