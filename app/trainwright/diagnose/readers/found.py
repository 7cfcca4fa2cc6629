"""What a reader returns: parts of a record as plain data, and what it could not take."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Any, Literal

from trainwright.data import resources
from trainwright.diagnose import texts
from trainwright.diagnose.budget import Budget, Use, divided
from trainwright.diagnose.measures.figures import UNEVEN
from trainwright.messages import Message
from trainwright.workload.settings import Frozen
from trainwright.yamltext import parse

MIB, KIB = 1 << 20, 1 << 10
MOST_ROWS = 50
"""Rows of a profile that a record holds."""
MOST_GPUS = 64
"""GPUs that a record holds."""
IDLE_BELOW = 0.1
"""Utilisation of a sample that counts as idle, as ``GpuReadings.idle_share`` says."""
A_RUN = 1 << 30
"""Least memory that a run holds; assumed: CUDA's context takes 500 MiB, and a desktop no more."""
FEW_SAMPLES = 3
"""Fewer tell nothing of how a reading changes; assumed."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one moment."""

    index: int
    readings: Mapping[str, Any]
    """Fields of ``FIELDS`` that the tool printed; shares, bytes, watts, degrees, MHz."""
    throttled: frozenset[str] | None = None
    """Reasons that held the clocks down, in the words of a record; None where none was asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one file says."""

    took: tuple[Message, ...]
    """Sentences about what was read."""
    missed: tuple[Message, ...] = ()
    """Sentences about what the file does not say, or what could not be read."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of a record, as its file would hold them: ``{"steps": {...}}``."""
    gpus: tuple[GpuSample, ...] = ()
    budget: Budget | None = None


def without_absent(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that are there: what is None was not said."""
    return {key: value for key, value in facts.items() if value is not None}


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return mean, least and largest of values, as a record holds them."""
    held = tuple(values)
    return {"mean": fmean(held), "low": min(held), "high": max(held)}


def share(value: float) -> float:
    """Return a share without what rounding adds to it."""
    return min(1.0, max(0.0, value))


def profile_rows(
    spent: Iterable[tuple[str, float, float]], whole: float, steps: int
) -> list[dict[str, Any]]:
    """Return the rows of a profile of ``whole`` seconds, from names, seconds and calls."""
    largest = sorted(spent, key=lambda each: -each[1])[:MOST_ROWS]
    return [
        {
            "name": name[:500],
            "share": share(seconds / whole),
            "calls": calls / steps,
            "seconds": seconds / calls if calls else 0.0,
        }
        for name, seconds, calls in largest
        if seconds > 0
    ]


def step_budget(step: float, parts: Mapping[str, float]) -> Budget:
    """Return the budget of a step whose parts a log tells, by their names in a record."""
    spent: dict[Use, float] = {
        "input": parts.get("data_wait", 0.0),
        "transfer": parts.get("transfer", 0.0),
        "compute": parts.get("forward", 0.0) + parts.get("backward", 0.0),
        "optimizer": parts.get("optimizer", 0.0),
        "communication": parts.get("communication", 0.0),
    }
    return divided(step, spent, Message.of("diagnose.budget.log"))


class _Field(Frozen):
    """A reading in the file; its head says what the keys mean."""

    word: Literal["name", "percent", "part", "amount", "memory", "state", "link"]
    over: Literal["spread", "mean", "largest", "last"]
    query: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    wandb: tuple[str, ...] = ()
    nvtop: tuple[str, ...] = ()


def _between(low: float, high: float, kind: type[float] = float) -> Callable[[str], float | None]:
    def read(word: str) -> float | None:
        value = texts.number(word)
        return kind(value) if value is not None and low <= value <= high else None

    return read


_state = _between(0, 15, int)
_WORDS: dict[str, Callable[[str], Any]] = {
    "name": lambda word: word.strip()[:200] or None,
    "percent": texts.percent,
    "part": _between(0, 1),
    "amount": _between(0, inf),
    "memory": lambda word: texts.size(word if word[-1:].isalpha() else f"{word}MiB"),
    "state": lambda word: _state(word.strip().removeprefix("P")),
    "link": _between(1, 32, int),
}
"""How a tool's word is read; where a GPU's tool leaves out the unit of memory, it is MiB."""
_OVER: dict[str, Callable[[list[Any]], Any]] = {
    "spread": spread,
    "mean": fmean,
    "largest": max,
    "last": lambda values: values[-1],
}
_FILE = resources("diagnose", "gpu_fields.yaml")
FIELDS = {
    name: _Field.model_validate(each)
    for name, each in parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data.items()
}
"""A GPU's readings, by the fields of a record."""


def called(tool: Literal["query", "columns", "wandb", "nvtop"]) -> dict[str, str]:
    """Return the fields by what a tool calls them."""
    return {word: name for name, each in FIELDS.items() for word in getattr(each, tool)}


def sampled(
    index: int | str, words: Mapping[str, str | None], throttled: frozenset[str] | None = None
) -> GpuSample:
    """Return what words say of a GPU, by field; those that say nothing (``N/A``) are absent."""
    read = {
        name: _WORDS[FIELDS[name].word](word)
        for name, word in words.items()
        if word and name in FIELDS
    }
    return GpuSample(int(index), without_absent(read), throttled)


def gpu_readings(samples: Iterable[GpuSample]) -> list[dict[str, Any]]:
    """Return the readings of each GPU over its samples, by index."""
    by_index: dict[int, list[GpuSample]] = {}
    for sample in samples:
        by_index.setdefault(sample.index, []).append(sample)
    return [_over_time(by_index[index]) for index in sorted(by_index)]


def in_use(gpus: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the readings of the GPUs less those that rest and hold little, where others do not."""

    def empty(gpu: dict[str, Any]) -> bool:
        rests = gpu.get("utilisation", {"high": 0})["high"] < IDLE_BELOW
        return bool(rests and gpu.get("memory_used_bytes", A_RUN) < A_RUN)

    opened = any(gpu.get("memory_used_bytes", 0) >= A_RUN for gpu in gpus)
    return [gpu for gpu in gpus if not (opened and empty(gpu))]


def _over_time(samples: list[GpuSample]) -> dict[str, Any]:
    held = {name: [each.readings[name] for each in samples if name in each.readings]
            for name in FIELDS}  # fmt: skip
    readings = {name: _OVER[FIELDS[name].over](values) for name, values in held.items() if values}
    if len(used := held["utilisation"]) >= FEW_SAMPLES:
        readings["idle_share"] = sum(value < IDLE_BELOW for value in used) / len(used)
    reasons = [each.throttled for each in samples if each.throttled is not None]
    if reasons:
        readings["throttled"] = {
            reason: sum(reason in each for each in reasons) / len(reasons)
            for reason in sorted(frozenset().union(*reasons))
        }
    return readings


def of_gpus(samples: Iterable[GpuSample], *more: Message, missed: Iterable[str] = ()) -> Found:
    """Return what a tool's samples say; it knows nothing of steps, and ``missed`` nothing else."""
    held = tuple(each for each in samples if each.index < MOST_GPUS)
    left = ("no-step-times", *missed)
    sentences = tuple(Message.of(f"diagnose.file.{each}") for each in left)
    return Found((*_counted(held), *_apart(gpu_readings(held)), *more), sentences, gpus=held)


def _apart(gpus: Sequence[dict[str, Any]]) -> Iterator[Message]:
    """Yield the sentences on GPUs that are not the run's, and on those that do not work alike."""
    used = in_use(gpus)
    if at_rest := len(gpus) - len(used):
        yield Message.of("diagnose.file.gpus-at-rest", count=at_rest)
    loads = [gpu["utilisation"]["mean"] for gpu in used if "utilisation" in gpu]
    if loads and max(loads) - min(loads) >= UNEVEN:
        yield Message.of("diagnose.file.uneven", low=min(loads), high=max(loads))


def _counted(samples: Sequence[GpuSample]) -> Iterator[Message]:
    """Yield the sentence on how many GPUs were seen, and how often."""
    indices = Counter(each.index for each in samples)
    if indices:
        times = max(indices.values())
        gpus = Message.of("diagnose.file.gpus", count=len(indices))
        yield Message.of("diagnose.file.gpu-samples", gpus=gpus, count=times)
        if times < FEW_SAMPLES:
            yield Message.of("diagnose.file.a-glance")
