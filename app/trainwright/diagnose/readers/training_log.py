"""Logs of training loops: step times, data times, rates.

Of transformers, Lightning, accelerate and whatever draws tqdm's bars; timm, torchvision's and
torch's examples, mmengine, detectron2, Megatron-LM, DeepSpeed, torchtitan, nanoGPT, Keras; and of
loops that print ``name value`` pairs or lines of JSON under the usual names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trainwright.diagnose import budget
from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, GpuSample, gpu_readings, without_absent
from trainwright.messages import Message, UserError

Quantity = Literal[
    "step", "data", "forward", "backward", "optimizer", "communication",
    "steps_s", "samples_s", "tokens_s", "load", "tflops", "mfu",
]  # fmt: skip

_PAIR = re.compile(
    r"""["']?(?<![\w/-])(?P<key>(?:train[/_])?(?:"""
    r"""elapsed\ time\ per\ iteration|(?:batch|step|iter|iteration|last)[ _-]?time|time[ _]per[ _](?:step|iter|iteration|batch)"""
    r"""|time[/_](?:step|iter|batch)|sec(?:onds)?/(?:step|iter|it|batch)|s/(?:it|step|iter)|ms/(?:it|step|iter)|time"""
    r"""|(?:last[ _])?data(?:[ _-]?(?:loading|load|wait|loader))?[ _-]?time|data[ _-]?(?:loading|load|wait)|(?:data)?load(?:er|ing)?[ _-]?time|data|batch-generator"""
    r"""|(?:forward|fwd|backward|bwd|optimizer|optim|comm|communication|allreduce)(?:[ _-](?:time|step|microstep|compute))?|optimizer[ _]step[ _]time"""
    r"""|forward-compute|backward-compute|step_microstep|fwd_microstep|bwd_inner_microstep|bwd_allreduce_microstep"""
    r"""|(?:train_)?steps[ _]per[ _]second|steps?/s(?:ec)?|it(?:er)?s?/s(?:ec)?|iterations[ _]per[ _]second"""
    r"""|(?:train_)?samples[ _]per[ _]second|(?:Curr)?SamplesPerSec|(?:samples?|img|imgs|images?|examples?)/s(?:ec(?:ond)?)?|images[ _]per[ _]second"""
    r"""|tokens?/s(?:ec(?:ond)?)?|tok/s(?:ec)?|tokens[ _]per[ _]second|tps|tgs"""
    r"""|gpu[ _-]?util(?:ization|isation)?|mfu|tflops"""
    r"""))(?P<in>\ ?\((?:ms|s|sec|us)\))?["']?\s*(?:\.{3,}\s*)?[:=]?\s*["'(]?"""
    r"""(?P<value>\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?)(?![\d:])(?P<unit>\s?(?:ms|us|µs|sec|s|%)(?![\w/]))?""",
    re.IGNORECASE | re.VERBOSE,
)
"""A name, and behind it a number that is not a clock's."""
_RATE = re.compile(
    r"(?P<value>\d[\d,]*\.?\d*)\s?(?P<unit>s/it|s/step|ms/step|ms/it|it/s|steps?/s(?:ec)?"
    r"|(?:img|imgs|images?|samples?|examples?)/s(?:ec)?|tok(?:ens?)?/s(?:ec)?)\b"
)
"""tqdm, Lightning, Keras: the unit behind the number."""
_AT = re.compile(
    r"(?:\b(?:step|iter|iteration|global_step|batch)\b[\"']?\s*[:=/]?\s*(\d{1,9})"
    r"|\[\s*(\d{1,9})\s*/\s*\d+|(?<![\d:.])(\d{1,9})/\d{1,9}\s*\[)",
    re.IGNORECASE,
)
"""The step that a line is about."""

_OF_MORE = re.compile(
    r"\b(epoch|total|elapsed|training|wall|eval\w*|val\w*|test|compile|remaining|run|all)[ _-]$",
    re.IGNORECASE,
)
"""Words before ``time`` that make it that of more than a step."""
_NOT_TRAINING = re.compile(r"\s*\W?(test|val|valid|validation|eval|evaluat\w*)\b", re.IGNORECASE)

_QUANTITIES: tuple[tuple[Quantity, str], ...] = (
    ("load", r"gpu.?util.*"), ("mfu", r"mfu"), ("tflops", r"tflops"),
    ("tokens_s", r"tok.*|tps|tgs"),
    ("samples_s", r"(train_)?samples.*|currsamples.*|samples?/.*|imgs?/.*|images.*|image/.*|examples?/.*"),
    ("steps_s", r"(train_)?steps.per.second|steps?/s(ec)?|it(er)?s?/s(ec)?|iterations.per.*"),
    ("data", r"(last.)?data.*|(data)?load.*|batch-generator"),
    ("communication", r"comm.*|allreduce.*|bwd_allreduce.*"),
    ("forward", r"(forward|fwd).*"), ("backward", r"(backward|bwd).*"),
    ("optimizer", r"optim.*|step_microstep"),
    ("step", r".*"),
)  # fmt: skip
_BY_NAME = tuple((quantity, re.compile(words)) for quantity, words in _QUANTITIES)
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
    """Return whether a line gives the time of a step, its data, or a rate."""
    return any(_TIMED & set(line.values) for line in _lines(text))


_TIMED: set[Quantity] = {"step", "data", "steps_s", "samples_s", "tokens_s"}


def read(text: str) -> Found:
    """Return the step times of a log.

    Raises:
        UserError: no line has a time or rate.
    """
    lines = [line for line in _lines(text) if _TIMED & set(line.values)]
    if not lines:
        raise UserError.of("diagnose.file.no-rows")
    if len(lines) > FEW_LINES:
        lines = lines[1:]  # the first waits for workers to start and kernels to be chosen
    step, steps = _step_seconds(lines), _steps(lines)
    parts = _parts(lines, step)
    facts: dict[str, Any] = {"throughput": _throughput(lines)}
    if step is not None:
        facts["steps"] = {"steps": steps, "seconds": step} | parts
    took = [Message.of("diagnose.file.log", count=len(lines))]
    missed = list(_missed(lines, step, parts, text))
    loads = [value for line in lines if (value := line.values.get("load")) is not None]
    samples = [GpuSample(0, utilisation=load) for load in loads]
    if samples:
        took.append(Message.of("diagnose.file.log-load"))
        facts["gpus"] = gpu_readings(samples)
    return Found(tuple(took), tuple(missed), {k: v for k, v in facts.items() if v},
                 budget=_budget(step, parts))  # fmt: skip


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
    for count, line in enumerate(text.splitlines()):
        if count >= MOST_LINES:
            return
        if len(line) > 5000 or _NOT_TRAINING.match(line) or not any(each.isdigit() for each in line):
            continue
        values: dict[Quantity, float] = {}
        for found in _PAIR.finditer(line):
            if _OF_MORE.search(line, max(0, found.start() - 20), found.start()):
                continue
            _take(values, found["key"], found["value"], found["unit"] or found["in"] or "")
        for found in _RATE.finditer(line):
            _take(values, found["unit"], found["value"], "")
        if values:
            at = _AT.search(line)
            yield Line(int(next(filter(None, at.groups()))) if at else None, values)


def _take(values: dict[Quantity, float], key: str, word: str, unit: str) -> None:
    """Note one value unless the line has given the quantity already."""
    value, name = texts.number(word), key.lower()
    name = re.sub(r"^train[/_](?!s)", "", name)
    if value is None:
        return
    quantity = next(each for each, words in _BY_NAME if words.fullmatch(name))
    if quantity in ("load", "mfu"):
        # 22 is per cent with and without its sign; 0.4 is a share unless the sign says otherwise.
        value = value / 100 if value > 1 or "%" in unit else value
        if value > 1:
            return
    elif quantity in _SECONDS:
        if "%" in unit:
            return
        milli = "ms" in unit or name.startswith("ms/") or "microstep" in name or "compute" in name
        micro = "us" in unit or "µs" in unit
        value *= 1e-6 if micro else 1e-3 if milli else 1.0
        if not 0 <= value <= MOST_SECONDS or (quantity == "step" and value == 0):
            return
    values.setdefault(quantity, value)


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


def _steps(lines: list[Line]) -> int:
    """Return the steps that the lines span; where they are not numbered, one a line."""
    at = [line.at for line in lines if line.at is not None]
    risen = at and all(a <= b for a, b in zip(at, at[1:], strict=False))
    return max(len(lines), at[-1] - at[0]) if risen else len(lines)


def _parts(lines: list[Line], step: float | None) -> dict[str, float]:
    """Return the parts of a step that fit into it; of a data time that is longer nothing is sure."""
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


def _budget(step: float | None, parts: dict[str, float]) -> budget.Budget | None:
    if step is None or not parts:
        return None
    spent: dict[budget.Use, float] = {
        "input": parts.get("data_wait", 0.0),
        "optimizer": parts.get("optimizer", 0.0),
        "communication": parts.get("communication", 0.0),
        "compute": parts.get("forward", 0.0) + parts.get("backward", 0.0),
    }
    return budget.divided(step, spent, Message.of("diagnose.budget.log"))
