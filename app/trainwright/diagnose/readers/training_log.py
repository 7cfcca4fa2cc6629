"""Logs of training loops: step times, data times, rates, by bars, pairs of name and value, JSON."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import Found, GpuSample, gpu_readings, step_budget
from trainwright.messages import Message

Quantity = Literal[
    "step", "data_wait", "forward", "backward", "optimizer", "communication",
    "steps_s", "samples_s", "tokens_s", "load",
]  # fmt: skip
"""Parts and rates have their names in a record."""
PARTS: tuple[Quantity, ...] = (
    "data_wait", "forward", "backward", "optimizer", "communication",
)  # fmt: skip
RATES: tuple[Quantity, ...] = ("steps_s", "samples_s", "tokens_s")
_TIMED: set[Quantity] = {"step", "data_wait", *RATES}
_PASSES: set[Quantity] = {"forward", "backward"}

_TIME = r"(?:[ _-]?(?:time|step|microstep|compute))?"
_PER = r"(?:/s(?:ec(?:ond)?)?|[ _]?per[ _]?sec(?:ond)?(?:_per_gpu)?)"
_NAMES: dict[Quantity, str] = {
    "load": r"gpu[ _-]?util(?:i[sz]ation)?",
    "tokens_s": rf"tok(?:en)?s?{_PER}|tps|tgs|wps"
                r"|throughput(?=\": [0-9.]{1,20}, \"total_tokens)",  # LLaMA-Factory
    "samples_s": rf"(?:curr)?(?:samples?|img|imgs|images?|examples?){_PER}",
    "steps_s": rf"(?:steps?|it|its|iters?|iterations|batch(?:es)?){_PER}|ups",
    "data_wait": r"(?:last[ _])?data(?:[ _-]?(?:loading|load|loader|wait))?(?:[ _-]?time)?"
                 r"|load(?:er|ing)?[ _-]?time|batch-generator",
    "communication": rf"(?:comm|communication|(?:bwd_)?allreduce){_TIME}|all-grads-sync",
    "forward": rf"(?:forward|fwd){_TIME}",
    "backward": rf"(?:backward|bwd)(?:_inner)?{_TIME}",
    "optimizer": rf"opt(?:im(?:izer)?)?{_TIME}|step_microstep|(?<=\| )step(?=: \d{{1,9}}\.\d\d$)",
    "step": r"elapsed time per iteration|train_step_timing in s|timing_s/step"
            r"|(?:step|iter|iteration|batch)(?=_(?:ms|secs?|seconds?)\b)"
            r"|(?:(?:batch|step|iter|iteration|last)[ _-]?)?time"
            r"|time(?:[ _]per[ _]|_|/(?!batch))(?:step|iter|iteration|batch)"
            r"|(?:s|ms|sec|seconds)/(?:it|iter|step|batch)",
}  # fmt: skip
"""What loops call the quantities, in lower case."""
_PAIR = re.compile(
    r"(?<![\w/-])(?=[a-z])(?P<name>(?:(?:train|throughput)[/_]){0,2}(?:"
    + "|".join(f"(?P<{quantity}>{names})" for quantity, names in _NAMES.items())
    + r"))(?P<in> ?\((?:ms|s|sec|us)\)|_(?:ms|us|s|secs?|seconds?)(?![a-z]))?"
    r"[\"']?[ \t]{0,9}+(?P<dots>\.{3,200}[ \t]{0,9}+)?[:=]?"
    r"[ \t]{0,9}+[\"'(]?(?P<value>\d[\d,]{0,20}(?:\.\d{1,20})?(?:e[-+]\d{1,3})?)"
    r"(?![\d:]|-\d|e[-+]?\d)"
    r"(?P<unit>[ ]?(?:ms|us|µs|sec|s|%)(?![\w/]))?"
)
"""A name, and behind it a number that is not a clock's or a calendar's."""
_RATE = re.compile(
    r"(?<![\d,.])(?P<value>\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,9})?) ?"
    r"(?P<unit>s/it|s/step|ms/step|ms/it|it/s|steps?/s(?:ec)?"
    r"|(?:img|imgs|images?|samples?|examples?)/s(?:ec)?|tok(?:ens?)?/s(?:ec)?)\b"
)
"""tqdm, Lightning, Keras: the unit behind the number."""
_AT = re.compile(
    r"(?:\b(?:step|iter|iteration|global_step|current_steps|batch)\b[\"']? {0,20}[:=/]? {0,20}"
    r"(\d{1,9})(?!\d|\.\d)"
    r"|\[ {0,20}(\d{1,9}) {0,20}/ {0,20}\d{1,9}|(?<![\d:.])(\d{1,9})/\d{1,9} {0,20}\[)",
    re.IGNORECASE,
)
"""The step that a line is about."""
_CLOCK = re.compile(
    r"\"current_steps\": ?(\d{1,9}),[^\n]{0,400}\"elapsed_time\": ?"
    r"\"(?:(\d{1,3}) days?, )?(\d{1,2}):(\d\d):(\d\d)\""
)
_OF_MORE = re.compile(
    r"\b(epoch|total|elapsed|training|wall|eval\w*|val\w*|test|compile|remaining|run|all)[ _-]$",
    re.IGNORECASE,
)
"""Words before ``time`` that make it that of more than a step."""
_NOT_TRAINING = re.compile(
    r"\s*\W?(test|val|valid|validation|eval|evaluat\w*)\b"
    r"|\s*class +images +instances\b"
    r"|[^|\n]{0,300}\b(?:adding|applying|caching|casting|converting|creating|download\w*|extracting"
    r"|fetching|filter|flattening|generating|loading|map|packing|predict\w*|(?:pre)?processing"
    r"|resolving|sanity|saving|scanning|tokeniz\w*|truncating|upload\w*)\b"
    r"[^|\n]{0,300}(?:\d%\||examples \[)"
    r"|[^|\n]{0,100}\bepochs? ?: +\d{1,3}%\|"
    r"|[^|\n]{0,200}(?:\bAvg (?:prompt|generation) throughput|#running-req)",
    re.IGNORECASE,
)
"""Evaluation, YOLO's too, bars of work before training and of epochs, servers."""

_UNITS = {quantity: re.compile(names) for quantity, names in _NAMES.items()}
_ERROR = re.compile(
    r"out of memory|OutOfMemoryError|Traceback \(most recent call last\)|\b[Kk]illed\b|oom.kill"
)
_LOSS = re.compile(r"\bloss[\"']?[ :=]{1,5}[\"']?\d", re.IGNORECASE)
_LOSS_NAME = re.compile(r"(?:^|[_/. -])loss$", re.IGNORECASE)
_MILLISECONDS = re.compile(r"ms(?!g)|_microstep|^(?:fwd|bwd)|^step$")
"""Megatron's and DeepSpeed's timers count them, also where no unit says so."""
_MICROSECONDS = re.compile(r"us|µs")
ERROR = Message.of("diagnose.file.log-error")
"""What is missed of a log that ends in an error."""
MOST_SECONDS = 86_400.0
"""Of a step; assumed: a day."""
MOST_LINES = 1_000_000
FEW_LOSSES = 2
"""One may stand in a text about training; assumed."""
FEW_LINES = 3
"""With more, the first is left out as warm-up; assumed. Of fewer, where it is the first step's."""

Values = dict[Quantity, float]
"""Seconds, rates a second, shares."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says."""

    at: int | None
    """The step that it is about."""
    values: Values

    @property
    def timed(self) -> bool:
        """Whether it gives the time of a step, its parts, or a rate."""
        return bool(_TIMED & set(self.values)) or set(self.values) >= _PASSES


def without_times(text: str) -> bool:
    """Return whether this is the log of a training that prints its loss, and no time or rate."""
    held = texts.table(text[: 1 << 20])
    if held is not None and any(_LOSS_NAME.search(name) for name in held[0]):
        return len(held[1]) >= FEW_LOSSES
    return sum(1 for _ in _LOSS.finditer(text[: 1 << 20])) >= FEW_LOSSES


def read(text: str) -> Found | None:
    """Return the step times of a log: of lines with the time of a step, its parts, or a rate."""
    return told(list(_lines(text)), text)


def told(every: list[Line], text: str = "") -> Found | None:
    """Return what lines say together; None where none has the time of a step, or a rate."""
    lines = [line for line in every if line.timed]
    if not lines:
        return None
    # The first step waits for workers to start and kernels to be chosen.
    if len(lines) > FEW_LINES or (len(lines) > 1 and lines[0].at in (0, 1)):
        every = every[every.index(lines[0]) + 1 :]
        lines = lines[1:]
    means = _means(every)
    took, missed = [Message.of("diagnose.file.log", count=len(lines))], []
    step = means.get("step")
    if step is None and (rates := [each for line in lines if (each := line.values.get("steps_s"))]):
        step = len(rates) / sum(rates)
    if step is None and means.keys() >= _PASSES | {"optimizer"}:
        step = sum(means.get(each, 0.0) for each in PARTS)
        missed.append("log-summed")
    # A part that is longer than the step is of something else.
    parts: dict[str, float] = {
        each: means[each]
        for each in PARTS
        if step is not None and means.get(each, step + 1) <= step
    }
    facts: dict[str, Any] = {"throughput": {each: means[each] for each in RATES if each in means}}
    if step is None:
        missed.append("log-no-step")
    else:
        facts["steps"] = {"steps": _steps(lines), "seconds": step} | parts
        if "data_wait" not in parts:
            missed.append("log-data-longer" if "data_wait" in means else "log-no-data")
    if _ERROR.search(text):
        missed.append("log-error")
    if loads := [line.values["load"] for line in lines if "load" in line.values]:
        took.append(Message.of("diagnose.file.log-load"))
        facts["gpus"] = gpu_readings(GpuSample(0, {"utilisation": each}) for each in loads)
    return Found(
        tuple(took),
        tuple(Message.of(f"diagnose.file.{each}") for each in missed),
        {name: each for name, each in facts.items() if each},
        budget=step_budget(step, parts) if step is not None and parts else None,
    )  # fmt: skip


def _means(lines: list[Line]) -> Values:
    named = {quantity for line in lines for quantity in line.values}
    return {each: fmean(line.values[each] for line in lines if each in line.values)
            for each in named}  # fmt: skip


def _steps(lines: list[Line]) -> int:
    """Return the steps that the lines span; where they are not numbered, one a line."""
    at = [line.at for line in lines if line.at is not None]
    risen = at and all(a <= b for a, b in pairwise(at))
    return max(len(lines), at[-1] - at[0]) if risen else len(lines)


def _lines(text: str) -> Iterator[Line]:
    yield from _by_clock(text)
    whole_steps = "| fwd: " in text  # DeepSpeed, which prints them and each micro-step
    for line in text.splitlines()[:MOST_LINES]:
        if (
            len(line) > 5000
            or (whole_steps and "fwd_microstep" in line)
            or _NOT_TRAINING.match(line)
            or not any(each.isdigit() for each in line)
        ):
            continue
        values: Values = {}
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


def _by_clock(text: str) -> Iterator[Line]:
    """Yield LLaMA-Factory's lines, whose steps take what passes from one to the next."""
    at = []
    for found in _CLOCK.finditer(text):
        step, days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
        at.append((step, ((days * 24 + hours) * 60 + minutes) * 60 + seconds))
    for (first, then), (last, now) in pairwise(at):
        if last > first and now > then:
            yield Line(last, {"step": (now - then) / (last - first)})


_COLUMN = re.compile(
    r"(?:(?:train|perf|performance|throughput|time|times|timing|timers?|speed)[/_.])*"
    r"(?:" + "|".join(f"(?P<{quantity}>{names})" for quantity, names in _NAMES.items()) + r")"
    r"(?P<in> ?\((?:ms|s|sec|us)\)|_(?:ms|us|s|secs?|seconds?))?"
)  # fmt: skip
"""A metric by the names of ``_PAIR``, with the groups that trackers put it in."""


def named(metric: str) -> tuple[Quantity, str] | None:
    """Return the quantity that a tracker's metric is, and the words that tell its unit."""
    found = _COLUMN.fullmatch(metric.strip().lower())
    if found is None:
        return None
    quantity = next(each for each in _NAMES if found[each] is not None)
    return quantity, (found["in"] or "") + found[quantity]


def line_of(at: float | None, cells: list[tuple[Quantity, float, str]]) -> Line:
    """Return a line of a table of metrics, from quantities, numbers and words for their units."""
    values: Values = {}
    for quantity, value, unit in cells:
        _take(values, quantity, repr(value), unit)
    return Line(None if at is None else int(at), values)


def _take(values: Values, quantity: Quantity, word: str, unit: str) -> None:
    """Note one value unless the line has given the quantity already; the name may hold the unit."""
    value = texts.number(word)
    if value is None:
        return
    believed = True
    if quantity == "load":
        # 22 is per cent with and without its sign; 0.4 is a share unless the sign says otherwise.
        value = value / 100 if value > 1 or "%" in unit else value
        believed = value <= 1
    elif quantity not in RATES:
        if "_inner" in unit:  # the whole of backward, read before, holds the exchange as well
            values.pop(quantity, None)
        if _MILLISECONDS.search(unit):
            value *= 1e-3
        elif _MICROSECONDS.search(unit):
            value *= 1e-6
        believed = "%" not in unit and value <= MOST_SECONDS and (value > 0 or quantity != "step")
    if believed:
        values.setdefault(quantity, value)
