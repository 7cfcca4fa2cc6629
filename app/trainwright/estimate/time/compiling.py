"""What torch.compile costs before the first step, and after how many steps it has paid that back.

Dynamo traces the model, AOTAutograd the joint graph, inductor writes kernels for both: the time
grows with the operators that are traced, hardly with the size of their tensors. Rows:
``tests/accuracy/rows/compile.csv``. Later runs of the same model find the kernels in a cache.
"""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from trainwright.explain import Kind, Quantity, Unit
from trainwright.explain.quantity import Interval
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings, Workload

if TYPE_CHECKING:
    from trainwright.estimate.time.clock import Clock

SECONDS_AN_OPERATOR = 0.0105
"""Of forward and backward, cold cache: Llama 1B in 22 s (2 218 traced operators), 8B in 47 s
(4 377), both trained on a B200 with torch 2.13 (stas00, torch.compile). Equal layers share
their kernels."""
SECONDS_OF_CONVOLUTIONS = 0.053
"""An operator where there are convolutions, whose layers differ: ResNet-50 in 27.9 s (523
operators) with torch of April 2023 (pytorch/benchmark #1547); one row, no newer one found."""
FACTOR = 2.0
"""Of the interval: assumed."""
SOURCE = "stas00, torch.compile on B200; accelerate, benchmarks/torch.compile"


@dataclass(frozen=True, slots=True)
class Compiling:
    """The cost and the gain of compiling."""

    seconds: Quantity
    """Before the first step, with a cold cache."""
    operators: int
    saved: float
    """Seconds that a step is shorter; negative where it is longer."""
    step: float
    """Seconds of a compiled step."""

    @property
    def gain(self) -> float:
        """Share of the time of a step that is saved."""
        return self.saved / (self.step + self.saved)

    @property
    def steps(self) -> float | None:
        """Steps until the cost is paid back; None where it never is."""
        return self.seconds.value / self.saved if self.saved > 0 else None


def warm_up_s(operators: float, *, convolutions: bool) -> float:
    """Return the seconds that compiling so many traced operators takes."""
    return operators * (SECONDS_OF_CONVOLUTIONS if convolutions else SECONDS_AN_OPERATOR)


def compiling(clock: "Clock", profile: Profile, settings: FullSettings, batch: int) -> Compiling:
    """Return what compiling the model costs and gains, whether it is on in the settings or not."""
    plain, compiled = (settings.model_copy(update={"compile": on}) for on in (False, True))
    step = clock.terms(profile, compiled, batch).step
    operators = _traced(clock, profile, settings, batch)
    convolutions = profile.convolves
    seconds = warm_up_s(operators, convolutions=convolutions)
    quantity = Quantity(
        Message.of("time.compile-warm-up"),
        seconds,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula=f"{seconds / max(operators, 1) * 1e3:.3g} ms · {operators:,}",
        source=SOURCE,
        interval=Interval(seconds / FACTOR, seconds * FACTOR),
    )
    return Compiling(quantity, operators, clock.terms(profile, plain, batch).step - step, step)


def _traced(clock: "Clock", profile: Profile, settings: FullSettings, batch: int) -> int:
    """Return the operators of forward and backward that move or compute anything."""
    stages = clock.stages(profile, settings.model_copy(update={"accumulation": 1}), batch)
    wanted = ("forward", "backward", "prefill")
    return round(sum(float(n[t.launches > 0].sum()) for name, t, n in stages if name in wanted))


def steps_of(workload: Workload) -> float | None:
    """Return the optimizer steps of the whole run; None where nobody says."""
    if workload.samples is None or workload.effective_batch is None:
        return None
    rows = workload.effective_batch * workload.inputs.samples_a_row
    return workload.samples * (workload.epochs or 1) / rows


def verdict(found: Compiling, workload: Workload) -> tuple[str, dict[str, Any]]:
    """Return whether compiling pays in this run, as the end of a message's id, and its values."""
    interval = found.seconds.interval
    assert interval is not None, "made with one"
    values: dict[str, Any] = {
        "seconds": found.seconds.value,
        "low": interval.low,
        "high": interval.high,
        "gain": found.gain,
    }
    if found.steps is None:
        return "never", values
    values |= {"steps": ceil(found.steps), "elapsed": found.steps * found.step}
    run = steps_of(workload)
    if run is None:
        return "after", values
    return ("pays" if found.steps < run else "too-short"), values | {"run": round(run)}
