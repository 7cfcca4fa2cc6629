"""Trainwright from Python: what ``trainwright estimate --json`` prints, in this process.

>>> import trainwright
>>> found = trainwright.estimate("llama.plan.yaml", {"settings.micro_batch": 8})
>>> found.fits, found.device_used_p95_bytes, found.step_seconds

Neither torch nor Qt is loaded: a model whose profile is not at hand is traced in a child process.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.limits import with_limits
from trainwright.plan.overrides import changes_of
from trainwright.plan.report import Report, as_json
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.workload.sourcefiles import check_code

__all__ = ["Estimate", "UserError", "estimate"]

DATA = "<plan>"
"""What errors call a plan that was given as data."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory and time of a plan; a figure that is not known is None, never 0."""

    fits: bool
    """Whether the p95 of the device memory lies below the GPU's."""
    verdict: str
    """``fits``, ``tight``, ``queues``, ``spills``, ``no`` or ``cannot-check``."""
    allocated_peak_bytes: int
    """``torch.cuda.max_memory_allocated`` of one GPU."""
    reserved_peak_bytes: int
    """``torch.cuda.max_memory_reserved`` of one GPU."""
    device_used_bytes: int
    """Reserved, the CUDA context, and what other programs hold."""
    device_used_p95_bytes: int | None
    """Device memory that 95 % of runs stay below."""
    device_total_bytes: int
    step_seconds: float | None
    """Of one optimizer step; of one generation when serving."""
    samples_per_second: float | None
    interval90: tuple[float, float] | None
    """90 % interval of the samples a second."""
    document: Mapping[str, Any]
    """Everything: the object that ``trainwright estimate --json`` prints."""


def estimate(
    plan: str | PathLike[str] | Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
    *,
    allow_code: bool = False,
) -> Estimate:
    """Return memory and time of a plan as it stands.

    Args:
        plan: A plan file's path, or its content as plain data.
        changes: Values by dotted key, ``{"settings.micro_batch": 8}``; None takes a key away.
        allow_code: Consent to run the Python file that the plan's model names, in a child process.

    Raises:
        UserError: the plan is not valid, or its model cannot be traced; one line says what to do.
    """
    if not isinstance(plan, str | PathLike | Mapping):
        raise UserError.of("plan.not-given", kind=type(plan).__name__)
    if not isinstance(changes, Mapping | None):
        raise UserError.of("plan.changes-not-given", kind=type(changes).__name__)
    changed = changes_of(changes or {})
    if isinstance(plan, Mapping):
        return answered(file.from_data(plan, DATA, changes=changed), DATA, allow_code=allow_code)
    name = fspath(plan)
    return answered(file.read(name, changed), name, allow_code=allow_code)


def answered(plan: Plan, name: str, *, allow_code: bool = False) -> Estimate:
    """Return memory and time of a plan that was read; ``name`` is what errors call it.

    Raises:
        UserError: as ``estimate`` does.
    """
    with file.naming(name):
        if plan.model.code is not None:
            check_code(plan.model)
            if not allow_code:
                raise UserError.of("plan.code-consent", path=plan.model.code)
        found = resolve(plan)
        facts = found if isinstance(found, Facts) else _traced(found)
        return _estimate(with_limits(plan, facts, evaluate(plan, facts)))


def _traced(found: Pending) -> Facts:
    """Trace the model for all batches, and keep that: the next call is answered at once."""
    return found.answered(store.trace_for(found.spec, found.point))


def _estimate(report: Report) -> Estimate:
    document = as_json(report)
    memory, time = document["memory"], document["time"]
    interval = time["interval90"]
    return Estimate(
        fits=document["fits"],
        verdict=document["verdict"],
        **{name: memory[name] for name in _MEMORY},
        step_seconds=time["step_seconds"],
        samples_per_second=time["samples_per_second"],
        interval90=tuple(interval) if interval is not None else None,
        document=document,
    )


_MEMORY = (
    "allocated_peak_bytes",
    "reserved_peak_bytes",
    "device_used_bytes",
    "device_used_p95_bytes",
    "device_total_bytes",
)
