"""Short lessons on settings that people mix up, with the numbers of the plan that is open."""

from collections.abc import Callable, Iterator, Mapping

from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile.presets import presets

_NF4_BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""With double quantisation; section 3 of arXiv 2305.14314."""

Lesson = Callable[[Plan, Facts, Report], Iterator[Message]]


def quantisation(plan: Plan, facts: Facts, report: Report) -> Iterator[Message]:
    """Yield what quantisation changes, and what mixed precision does."""
    yield Message.of("lesson.quantisation.what")
    if (count := _parameters(plan, facts)) is not None:
        sizes = {"fp32": 4.0 * count, "bf16": 2.0 * count, "nf4": count * _NF4_BITS / 8}
        yield Message.of("lesson.quantisation.sizes", parameters=count, **sizes)
    terms = {term.role: term.value for term in report.memory.terms}
    yield Message.of("lesson.quantisation.here", weights=terms.get("parameters", 0.0),
                     training=terms.get("gradients", 0.0) + terms.get("optimizer", 0.0),
                     activations=terms.get("activations", 0.0),
                     used=report.memory.device_used.value)  # fmt: skip
    yield Message.of("lesson.quantisation.frozen")
    if casts := terms.get("casts", 0.0):
        yield Message.of("lesson.quantisation.casts", casts=casts)
    yield Message.of("lesson.quantisation.choose")


def second_gpu(_plan: Plan, facts: Facts, report: Report) -> Iterator[Message]:
    """Yield why a second GPU does not double the speed, and may even cost some."""
    yield Message.of("lesson.second-gpu.what")
    point = next((each for each in report.time.scaling if each.gpus == 2), None)
    if point is not None:
        yield Message.of("lesson.second-gpu.here", gpu=facts.machine.gpu.record.name,
                         gain=point.gain, efficiency=point.efficiency.value)  # fmt: skip
    gradients = sum(term.value for term in report.memory.terms if term.role == "gradients")
    if gradients:
        yield Message.of("lesson.second-gpu.traffic", gradients=gradients)
    yield Message.of("lesson.second-gpu.slower")
    yield Message.of("lesson.second-gpu.remedy")


LESSONS: Mapping[str, Lesson] = {"quantisation": quantisation, "second-gpu": second_gpu}


def _parameters(plan: Plan, facts: Facts) -> int | None:
    """Return how many parameters the model has; packed weights do not tell."""
    preset = presets().get(plan.model.preset or "")
    if preset is not None:
        return preset.parameters
    packed = facts.settings.quantization != "none"
    return None if packed else facts.profile.model.get("parameters")
