"""Short lessons on settings that people mix up, with the numbers of the plan that is open."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.explain import Quantity
from trainwright.messages import Message, UserError
from trainwright.messages.keys import value_name
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import pipeline_rows
from trainwright.profile.presets import presets

_NF4_BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""With double quantisation; section 3 of arXiv 2305.14314."""

Cell = Message | Quantity | str


@dataclass(frozen=True, slots=True)
class Figures:
    """A small table of a lesson."""

    headings: tuple[Message, ...]
    rows: tuple[tuple[Cell, ...], ...]


Line = Message | Figures
Lesson = Callable[[Plan, Facts, Report], Iterator[Line]]


def quantisation(plan: Plan, facts: Facts, report: Report) -> Iterator[Line]:
    """Yield what quantisation changes, and what mixed precision does."""
    yield Message.of("lesson.quantisation.what")
    if (count := _parameters(plan, facts)) is not None:
        sizes = {"fp32": 4.0 * count, "bf16": 2.0 * count, "nf4": count * _NF4_BITS / 8}
        yield Message.of("lesson.quantisation.sizes", parameters=count, **sizes)
    terms = _terms(report)
    yield Message.of("lesson.quantisation.here", weights=terms.get("parameters", 0.0),
                     training=terms.get("gradients", 0.0) + terms.get("optimizer", 0.0),
                     activations=terms.get("activations", 0.0),
                     used=report.memory.device_used.value)  # fmt: skip
    yield Message.of("lesson.quantisation.frozen")
    if casts := terms.get("casts", 0.0):
        yield Message.of("lesson.quantisation.casts", casts=casts)
    yield Message.of("lesson.quantisation.choose")


_SPACINGS = ("none", "every-4", "every-2", "full")
"""From the most memory to the least."""


def checkpointing(plan: Plan, _facts: Facts, _report: Report) -> Iterator[Line]:
    """Yield how checkpointing trades time for memory, and whether it pays here."""
    yield Message.of("lesson.checkpointing.what")
    found = {spacing: report for spacing in _SPACINGS
             if (report := _with(plan, {"settings.checkpointing": spacing}))}  # fmt: skip
    yield _trade("checkpointing", {value_name("checkpointing", s): r for s, r in found.items()})
    if len(found) < 2:
        yield Message.of("lesson.checkpointing.alone")
    elif "none" in found and "full" in found:
        yield _verdict_on(found["none"], found["full"])
    yield Message.of("lesson.checkpointing.choose")


def _verdict_on(none: Report, full: Report) -> Message:
    """Return whether checkpointing pays, between not at all and everywhere."""
    saved = none.memory.device_used.value - full.memory.device_used.value
    if not none.fits:
        return Message.of(f"lesson.checkpointing.{'pays' if full.fits else 'short'}", saved=saved)
    slower = _speed(full) / _speed(none) - 1 if _speed(full) and _speed(none) else None
    if slower is None:
        return Message.of("lesson.checkpointing.saves", saved=saved)
    return Message.of("lesson.checkpointing.costs", saved=saved, slower=slower)


def accumulation(plan: Plan, facts: Facts, report: Report) -> Iterator[Line]:
    """Yield what accumulation does to memory and speed, and what it leaves as it is."""
    settings = facts.settings
    gpus = settings.ranks_of(facts.machine.gpu_count) if settings.several else 1
    whole = settings.micro_batch * settings.accumulation
    yield Message.of("lesson.accumulation.what", micro=settings.micro_batch, gpus=gpus,
                     steps=settings.accumulation, effective=whole * gpus)  # fmt: skip
    found: dict[Cell, Report] = {}
    for micro in (2**power for power in range(whole.bit_length())):
        near = settings.micro_batch / 4 <= micro <= settings.micro_batch * 4
        if near and whole % micro == 0:
            split = {"settings.micro_batch": micro, "settings.accumulation": whole // micro}
            if (other := _with(plan, split)) is not None:
                found[f"{micro} × {whole // micro}"] = other
    yield _trade("accumulation", found)
    if gradients := _terms(report).get("gradients"):
        yield Message.of("lesson.accumulation.gradients", gradients=gradients)
    for part in ("same", "norm", "tokens"):
        yield Message.of(f"lesson.accumulation.{part}")


def second_gpu(_plan: Plan, facts: Facts, report: Report) -> Iterator[Line]:
    """Yield why a second GPU does not double the speed, and may even cost some."""
    yield Message.of("lesson.second-gpu.what")
    point = next((each for each in report.time.scaling if each.gpus == 2), None)
    if point is not None:
        yield Message.of("lesson.second-gpu.here", gpu=facts.machine.gpu.record.name,
                         gain=point.gain, efficiency=point.efficiency.value)  # fmt: skip
    if gradients := _terms(report).get("gradients"):
        yield Message.of("lesson.second-gpu.traffic", gradients=gradients)
    yield Message.of("lesson.second-gpu.slower")
    yield Message.of("lesson.second-gpu.remedy")


def loader(_plan: Plan, _facts: Facts, report: Report) -> Iterator[Line]:
    """Yield what workers and prefetching do, and which stage of the input is slowest."""
    yield Message.of("lesson.loader.what")
    pipeline = report.time.pipeline
    if pipeline is None:
        yield Message.of("lesson.loader.no-dataset")
    else:
        heads = (Message.of("lesson.loader.stage"), Message.of("cli.scaling.rate"))
        yield Figures(heads, tuple(pipeline_rows(pipeline)))
        yield from (message for _, message in pipeline.remedies)
    yield Message.of("lesson.loader.workers")
    yield Message.of("lesson.loader.prefetch")


def sharing(_plan: Plan, facts: Facts, report: Report) -> Iterator[Line]:
    """Yield how several jobs share a GPU: one after another, by MPS, or by MIG."""
    yield Message.of("lesson.sharing.what")
    used, total = report.memory.device_used_p95.value, report.memory.device_total.value
    copies = int(total / used) if used else 0
    yield Message.of(f"lesson.sharing.{'several' if copies > 1 else 'one'}", used=used, total=total,
                     copies=copies, gpu=facts.machine.gpu.record.name)  # fmt: skip
    for way in ("queue", "mps", "mig"):
        yield Message.of(f"lesson.sharing.{way}")


def fragmentation(plan: Plan, _facts: Facts, report: Report) -> Iterator[Line]:
    """Yield why more is reserved than allocated, and what ``empty_cache`` does about it."""
    memory = report.memory
    yield Message.of("lesson.fragmentation.what")
    yield Message.of("lesson.fragmentation.here", allocated=memory.allocated_peak.value,
                     reserved=memory.reserved_peak.value,
                     cached=memory.reserved_peak.value - memory.allocated_peak.value)  # fmt: skip
    both = {value_name("allocator", kind): other for kind in ("native", "expandable")
            if (other := _with(plan, {"settings.allocator": kind}))}  # fmt: skip
    rows = ((kind, other.memory.allocated_peak, other.memory.reserved_peak)
            for kind, other in both.items())  # fmt: skip
    names = ("allocator", "allocated", "reserved")
    heads = tuple(Message.of(f"lesson.fragmentation.{name}") for name in names)
    yield Figures(heads, tuple(rows))
    yield Message.of("lesson.fragmentation.expandable")
    yield Message.of("lesson.fragmentation.empty-cache")


LESSONS: Mapping[str, Lesson] = {
    "quantisation": quantisation,
    "checkpointing": checkpointing,
    "accumulation": accumulation,
    "second-gpu": second_gpu,
    "loader": loader,
    "sharing": sharing,
    "fragmentation": fragmentation,
}
LESSON_OF: Mapping[str, str] = {
    "precision": "quantisation",
    "quantization": "quantisation",
    "checkpointing": "checkpointing",
    "accumulation": "accumulation",
    "count": "second-gpu",
    "strategy": "second-gpu",
    "loader.num_workers": "loader",
    "allocator": "fragmentation",
}
"""The lesson on a setting."""


def _with(plan: Plan, keys: dict[str, Any]) -> Report | None:
    """Return the report of a changed plan; None where it is refused, or must be traced first."""
    try:
        changed = with_keys(plan, keys)
        facts = resolve(changed)
        return evaluate(changed, facts) if isinstance(facts, Facts) else None
    except UserError:
        return None


def _trade(name: str, found: Mapping[Cell, Report]) -> Figures:
    """Return memory and speed of variants of the plan."""
    rows = (
        (variant, report.memory.device_used_p95,
         report.time.samples_per_second or Message.of("time.not-predicted"),
         Message.of(f"ui.verdict.{report.verdict.value}"))
        for variant, report in found.items()
    )  # fmt: skip
    heads = (f"lesson.{name}.variant", "lesson.memory", "cli.scaling.rate", "cli.compare.verdict")
    return Figures(tuple(map(Message.of, heads)), tuple(rows))


def _speed(report: Report) -> float:
    rate = report.time.samples_per_second
    return rate.value if rate is not None else 0.0


def _terms(report: Report) -> dict[str, float]:
    """Return the bytes of each term by its role; several of a role add up."""
    found: dict[str, float] = {}
    for term in report.memory.terms:
        found[term.role] = found.get(term.role, 0.0) + term.value
    return found


def _parameters(plan: Plan, facts: Facts) -> int | None:
    """Return how many parameters the model has; packed weights do not tell."""
    preset = presets().get(plan.model.preset or "")
    if preset is not None:
        return preset.parameters
    packed = facts.settings.quantization != "none"
    return None if packed else facts.profile.model.get("parameters")
