"""Logs of training loops: step times, data times, rates.

Of transformers, Lightning, accelerate and whatever draws tqdm's bars; timm, torchvision's and
torch's examples, mmengine, detectron2, Megatron-LM, DeepSpeed, torchtitan, nanoGPT, Keras; and of
loops that print ``name value`` pairs or lines of JSON under the usual names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import (
    Found,
    GpuSample,
    gpu_readings,
    step_budget,
    without_absent,
)
from trainwright.messages import Message, UserError

Quantity = Literal[
    "step", "data", "forward", "backward", "optimizer", "communication",
    "steps_s", "samples_s", "tokens_s", "load",
]  # fmt: skip

_TIME = r"(?:[ _-]?(?:time|step|microstep|compute))?"
_PER = r"(?:/s(?:ec(?:ond)?)?|[ _]?per[ _]?sec(?:ond)?)"
_NAMES: dict[Quantity, str] = {
    "load": r"gpu[ _-]?util(?:i[sz]ation)?",
    "tokens_s": rf"tok(?:en)?s?{_PER}|tps|tgs|wps",
    "samples_s": rf"(?:curr)?(?:samples?|img|imgs|images?|examples?){_PER}",
    "steps_s": rf"(?:steps?|it|its|iters?|iterations|batch(?:es)?){_PER}|ups",
    "data": r"(?:last[ _])?data(?:[ _-]?(?:loading|load|loader|wait))?(?:[ _-]?time)?"
            r"|load(?:er|ing)?[ _-]?time|batch-generator",
    "communication": rf"(?:comm|communication|(?:bwd_)?allreduce){_TIME}",
    "forward": rf"(?:forward|fwd){_TIME}",
    "backward": rf"(?:backward|bwd)(?:_inner)?{_TIME}",
    "optimizer": rf"opt(?:im(?:izer)?)?{_TIME}|step_microstep|(?<=\| )step(?=: \d{{1,9}}\.\d\d$)",
    "step": r"elapsed time per iteration|(?:step|iter|iteration|batch)(?=_(?:ms|secs?|seconds?)\b)"
            r"|(?:(?:batch|step|iter|iteration|last)[ _-]?)?time"
            r"|time(?:[ _]per[ _]|_|/(?!batch))(?:step|iter|iteration|batch)"
            r"|(?:s|ms|sec|seconds)/(?:it|iter|step|batch)",
}  # fmt: skip
"""What loops call the quantities, in lower case."""
_PAIR = re.compile(
    r"(?<![\w/-])(?P<name>(?:(?:train|throughput)[/_]){0,2}(?:"
    + "|".join(f"(?P<{quantity}>{names})" for quantity, names in _NAMES.items())
    + r"))(?P<in> ?\((?:ms|s|sec|us)\)|_(?:ms|us|s|secs?|seconds?)(?![a-z]))?"
    r"[\"']?[ \t]{0,9}(?P<dots>\.{3,200}[ \t]{0,9})?[:=]?"
    r"[ \t]{0,9}[\"'(]?(?P<value>\d[\d,]{0,20}(?:\.\d{1,20})?(?:e[-+]\d{1,3})?)(?![\d:]|e[-+]?\d)"
    r"(?P<unit>[ ]?(?:ms|us|µs|sec|s|%)(?![\w/]))?"
)
"""A name, and behind it a number that is not a clock's."""
_RATE = re.compile(
    r"(?<![\d,.])(?P<value>\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,9})?) ?"
    r"(?P<unit>s/it|s/step|ms/step|ms/it|it/s|steps?/s(?:ec)?"
    r"|(?:img|imgs|images?|samples?|examples?)/s(?:ec)?|tok(?:ens?)?/s(?:ec)?)\b"
)
"""tqdm, Lightning, Keras: the unit behind the number."""
_AT = re.compile(
    r"(?:\b(?:step|iter|iteration|global_step|batch)\b[\"']? {0,20}[:=/]? {0,20}(\d{1,9})"
    r"|\[ {0,20}(\d{1,9}) {0,20}/ {0,20}\d{1,9}|(?<![\d:.])(\d{1,9})/\d{1,9} {0,20}\[)",
    re.IGNORECASE,
)
"""The step that a line is about."""

_OF_MORE = re.compile(
    r"\b(epoch|total|elapsed|training|wall|eval\w*|val\w*|test|compile|remaining|run|all)[ _-]$",
    re.IGNORECASE,
)
"""Words before ``time`` that make it that of more than a step."""
_NOT_TRAINING = re.compile(
    r"\s*\W?(test|val|valid|validation|eval|evaluat\w*)\b"
    r"|[^|\n]{0,300}\b(?:adding|applying|caching|casting|converting|creating|download\w*|extracting"
    r"|fetching|filter|flattening|generating|loading|map|packing|predict\w*|(?:pre)?processing"
    r"|resolving|sanity|saving|scanning|tokeniz\w*|truncating|upload\w*)\b"
    r"[^|\n]{0,300}(?:\d%\||examples \[)"
    r"|[^|\n]{0,100}\bepochs? ?: +\d{1,3}%\|",
    re.IGNORECASE,
)
"""Evaluation, progress bars of work before training, and bars that count epochs."""

_UNITS = {quantity: re.compile(names) for quantity, names in _NAMES.items()}
_ERROR = re.compile(r"out of memory|OutOfMemoryError|Traceback \(most recent call last\)")
MOST_SECONDS = 86_400.0
"""Of a step; assumed: a day."""
MOST_LINES = 1_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says: seconds, rates a second, shares."""

    at: int | None
    values: dict[Quantity, float]


def recognised(text: str) -> bool:
    """Return whether a line gives the time of a step, its parts, or a rate."""
    return any(map(_timed, _lines(text)))


_TIMED: set[Quantity] = {"step", "data", "steps_s", "samples_s", "tokens_s"}
_PASSES: set[Quantity] = {"forward", "backward"}


def _timed(line: Line) -> bool:
    return bool(_TIMED & set(line.values)) or set(line.values) >= _PASSES


_LOSS = re.compile(r"\bloss[\"']?[ :=]{1,5}[\"']?\d", re.IGNORECASE)


def without_times(text: str) -> bool:
    """Return whether this is the log of a training that prints its loss, and no time or rate."""
    return sum(1 for _ in _LOSS.finditer(text[: 1 << 20])) >= FEW_LOSSES


def read(text: str) -> Found:
    """Return the step times of a log.

    Raises:
        UserError: no line has a time or rate.
    """
    every = list(_lines(text))
    lines = [line for line in every if _timed(line)]
    if not lines:
        raise UserError.of("diagnose.file.no-rows")
    if len(lines) > FEW_LINES:  # the first waits for workers to start and kernels to be chosen
        every = every[every.index(lines[0]) + 1 :]
        lines = lines[1:]
    step, steps = _step_seconds(lines), _steps(lines)
    if summed := step is None:
        step = _sum_of_passes(every)
    parts = _parts(every, step)
    facts: dict[str, Any] = {"throughput": _throughput(lines)}
    if step is not None:
        facts["steps"] = {"steps": steps, "seconds": step} | parts
    took = [Message.of("diagnose.file.log", count=len(lines))]
    missed = [Message.of("diagnose.file.log-summed")] if summed and step is not None else []
    missed += _missed(lines, step, parts, text)
    loads = [value for line in lines if (value := line.values.get("load")) is not None]
    samples = [GpuSample(0, {"utilisation": load}) for load in loads]
    if samples:
        took.append(Message.of("diagnose.file.log-load"))
        facts["gpus"] = gpu_readings(samples)
    divided = step_budget(step, parts) if step is not None and parts else None
    told = {name: each for name, each in facts.items() if each}
    return Found(tuple(took), tuple(missed), told, budget=divided)


FEW_LOSSES = 2
"""One may stand in a text about training; assumed."""
FEW_LINES = 3
"""With more, the first is left out as warm-up; assumed."""


def _missed(
    lines: list[Line], step: float | None, parts: dict[str, float], text: str
) -> Iterator[Message]:
    if step is None:
        yield Message.of("diagnose.file.log-no-step")
    elif "data_wait" not in parts:
        told = any("data" in line.values for line in lines)
        yield Message.of("diagnose.file.log-data-longer" if told else "diagnose.file.log-no-data")
    if _ERROR.search(text):
        yield Message.of("diagnose.file.log-error")


def _lines(text: str) -> Iterator[Line]:
    whole_steps = "| fwd: " in text  # DeepSpeed, which prints them and each micro-step
    for count, line in enumerate(text.splitlines()):
        if count >= MOST_LINES:
            return
        if (
            len(line) > 5000
            or (whole_steps and "fwd_microstep" in line)
            or _NOT_TRAINING.match(line)
            or not any(each.isdigit() for each in line)
        ):
            continue
        values: dict[Quantity, float] = {}
        for found in _PAIR.finditer(line.lower()):
            if _OF_MORE.search(line, max(0, found.start() - 20), found.start()):
                continue
            quantity = next(each for each in _NAMES if found[each] is not None)
            megatron = "ms" if found["dots"] else ""
            unit = (found["unit"] or found["in"] or megatron) + found["name"]
            _take(values, quantity, found["value"], unit)
        for found in _RATE.finditer(line):
            unit = found["unit"].lower()
            quantity = next(each for each, names in _UNITS.items() if names.fullmatch(unit))
            _take(values, quantity, found["value"], unit)
        if values:
            at = _AT.search(line)
            yield Line(int(next(filter(None, at.groups()))) if at else None, values)


def _take(values: dict[Quantity, float], quantity: Quantity, word: str, unit: str) -> None:
    """Note one value unless the line has given the quantity already; the name may hold the unit."""
    value = texts.number(word)
    if value is None:
        return
    if quantity == "load":
        # 22 is per cent with and without its sign; 0.4 is a share unless the sign says otherwise.
        value = value / 100 if value > 1 or "%" in unit else value
        believed = value <= 1
    elif quantity in _SECONDS:
        if "_inner" in unit:  # the whole of backward, read before, holds the exchange as well
            values.pop(quantity, None)
        value *= _factor(unit)
        believed = "%" not in unit and value <= MOST_SECONDS and (value > 0 or quantity != "step")
    else:
        believed = True
    if believed:
        values.setdefault(quantity, value)


def _factor(unit: str) -> float:
    """Return the seconds of a unit; Megatron's and DeepSpeed's timers count milliseconds."""
    if re.search(r"ms(?!g)|_microstep|^(?:fwd|bwd)|^step$", unit):
        return 1e-3
    return 1e-6 if re.search(r"us|µs", unit) else 1.0


_SECONDS = ("step", "data", "forward", "backward", "optimizer", "communication")


def _mean(lines: list[Line], quantity: Quantity) -> float | None:
    values = [line.values[quantity] for line in lines if quantity in line.values]
    return sum(values) / len(values) if values else None


def _step_seconds(lines: list[Line]) -> float | None:
    """Return the mean time of a step; from the rate where no line has the time itself."""
    timed = _mean(lines, "step")
    rates = [line.values["steps_s"] for line in lines if line.values.get("steps_s")]
    if timed is None and rates:
        return len(rates) / sum(rates)
    return timed


def _sum_of_passes(lines: list[Line]) -> float | None:
    """Return the mean of all parts together, where forward, backward and optimizer are known."""
    passes: tuple[Quantity, ...] = ("forward", "backward", "optimizer")
    means = [_mean(lines, each) for each in passes]
    if None in means:
        return None
    besides: tuple[Quantity, ...] = ("communication", "data")
    return sum(filter(None, means)) + sum(_mean(lines, each) or 0.0 for each in besides)


def _steps(lines: list[Line]) -> int:
    """Return the steps that the lines span; where they are not numbered, one a line."""
    at = [line.at for line in lines if line.at is not None]
    risen = at and all(a <= b for a, b in pairwise(at))
    return max(len(lines), at[-1] - at[0]) if risen else len(lines)


def _parts(lines: list[Line], step: float | None) -> dict[str, float]:
    """Return the parts of a step that fit into it; a longer one is of something else."""
    if step is None:
        return {}
    names: dict[str, Quantity] = {
        "data_wait": "data", "forward": "forward", "backward": "backward",
        "optimizer": "optimizer", "communication": "communication",
    }  # fmt: skip
    means = {name: _mean(lines, quantity) for name, quantity in names.items()}
    return {name: mean for name, mean in means.items() if mean is not None and mean <= step}


def _throughput(lines: list[Line]) -> dict[str, float]:
    names: tuple[Quantity, ...] = ("steps_s", "samples_s", "tokens_s")
    return without_absent({name: _mean(lines, name) for name in names})
