"""What verified steps say of this computer, and how much of it estimates take over.

A run of ``trainwright verify`` that a person keeps is a record: by device, driver and torch.
Context and workspace are constants of these three, and the last measured ones are taken as
they are. The factor of time is evidence: it is shrunk towards none by the fewness of steps and
plans, as the mean of a normal distribution with a normal prior (Gelman et al., Bayesian Data
Analysis, 3rd edition, equation 2.12).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, with_config

from trainwright import saving
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine.machine import Gpu, Machine
from trainwright.messages import Message
from trainwright.probe import measurements

BETWEEN_PLANS = 0.1
"""Standard deviation of log(measured / estimated) from plan to plan on one computer, which no
number of steps of one plan makes smaller; assumed."""
PRIOR = 0.25
"""Standard deviation of log(measured / estimated) before anything was measured, where the
estimate gives no interval; assumed."""
Z90 = 1.645
"""Standard deviations between the middle and the ends of a 90 % interval."""


@with_config(ConfigDict(allow_inf_nan=False, extra="forbid"))
@dataclass(frozen=True, slots=True)
class Verified:
    """One verified plan."""

    device: str
    """Id of the GPU in the catalog; ``cpu`` and the processor's name."""
    driver: str
    torch: str
    date: str
    """ISO 8601, UTC."""
    plan: str
    """Digest of what was run: a later run of the same takes its place."""
    steps: Annotated[int, Field(ge=1)]
    context_bytes: int | None = None
    """Outside torch's allocator; of a CPU: what the process holds beside the tensors."""
    workspace_bytes: int | None = None
    ratio: Annotated[float, Field(gt=0)] | None = None
    """Measured seconds of a step over the estimate without any correction; None where the
    GPU's kernels do not decide them."""
    scatter: Annotated[float, Field(ge=0)] = 0.0
    """Standard deviation of the logarithm of the steps' seconds."""
    prior: Annotated[float, Field(gt=0)] = PRIOR
    """Standard deviation of the logarithm of the estimate, by its own interval."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What a correction holds for."""
        return self.device, self.driver, self.torch


@dataclass(frozen=True, slots=True)
class Correction:
    """What estimates of this computer take over; a part that was not measured is None."""

    context: Quantity | None = None
    workspace: Quantity | None = None
    slowness: Quantity | None = None


_RECORDS = TypeAdapter(tuple[Verified, ...])


def path() -> Path:
    """Return the file of the kept runs."""
    return measurements.folder() / "corrections.json"


def load() -> tuple[tuple[Verified, ...], Message | None]:
    """Return the kept runs, and what is wrong with their file."""
    return measurements.read(path(), _RECORDS)


def keep(new: Verified) -> None:
    """Add a run, in place of an earlier one of the same plan here.

    Raises:
        UserError: the file cannot be written.
    """
    with saving.changing(path(), "kept.unwritable"):
        known, _ = load()
        stayed = (one for one in known if (one.key, one.plan) != (new.key, new.plan))
        measurements.write(path(), _RECORDS, (*stayed, new))


def forget() -> int:
    """Remove all kept runs; return how many there were.

    Raises:
        UserError: the file cannot be written.
    """
    with saving.changing(path(), "kept.unwritable"):
        known, _ = load()
        if known:
            measurements.write(path(), _RECORDS, ())
    return len(known)


def correction(
    runs: Iterable[Verified], device: str, driver: str, torch: str, since: str = ""
) -> Correction:
    """Return what the runs on one device, driver and torch say.

    Times that were compared before ``since`` count no more: the rates that estimates start from
    were measured again then.
    """
    fitting = [one for one in runs if one.key == (device, driver, torch)]
    fitting.sort(key=lambda one: one.date)
    compared = [one for one in fitting if one.date > since]
    return Correction(_last(fitting, "context"), _last(fitting, "workspace"), _slowness(compared))


def applied(
    machine: Machine, runs: Sequence[Verified], driver: str, torch: str, since: str = ""
) -> Machine:
    """Return the machine with what was measured on each of its GPUs."""

    def corrected(gpu: Gpu) -> Gpu:
        found = correction(runs, gpu.record.id, driver, torch, since)
        return replace(
            gpu, context=found.context, workspace=found.workspace, slowness=found.slowness
        )

    return replace(machine, gpus=tuple(map(corrected, machine.gpus)))


def source(date: str) -> str:
    """Return how a figure of a verified run names its source."""
    return f"calibrated here on {date[:10]}: trainwright verify"


def _last(runs: Sequence[Verified], name: str) -> Quantity | None:
    """Return a constant as the last run that has it measured it."""
    for run in reversed(runs):
        value = getattr(run, f"{name}_bytes")
        if value is not None:
            return Quantity(
                Message.of("memory.context" if name == "context" else "verify.workspace"),
                value,
                Unit.BYTES,
                Kind.MEASURED,
                source=source(run.date),
                note=Message.of("verify.note.calibrated", date=run.date[:10]),
                role=name,
            )
    return None


def _slowness(runs: Sequence[Verified]) -> Quantity | None:
    """Return the posterior mean of the factor."""
    timed = [run for run in runs if run.ratio is not None]
    if not timed:
        return None
    prior = sum(run.prior for run in timed) / len(timed)
    weights = [1 / (BETWEEN_PLANS**2 + run.scatter**2 / run.steps) for run in timed]
    pairs = zip(weights, timed, strict=True)
    evidence = sum(weight * log(run.ratio) for weight, run in pairs if run.ratio)
    shrunk = exp(evidence / (1 / prior**2 + sum(weights)))
    return Quantity(
        Message.of("verify.slowness"),
        shrunk,
        Unit.RATIO,
        Kind.MEASURED,
        formula="exp(Σ wᵢ·ln rᵢ / (1/τ² + Σ wᵢ)),  wᵢ = 1 / (σ² + sᵢ²/nᵢ)",
        source=source(timed[-1].date),
        note=Message.of("verify.note.slowness", number=len(timed), date=timed[-1].date[:10]),
    )
