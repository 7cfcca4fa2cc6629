"""How long a plan's whole training is, and whether it ends in time."""

from dataclasses import dataclass

from trainwright.plan.schema import Plan

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Run:
    """All steps of a training."""

    steps: float | None
    """None: the plan does not say how many, or nothing is trained."""
    deadline: float | None
    """Seconds after which it must have ended; None: any time will do."""

    def seconds(self, step: float) -> float:
        """Return the seconds of all steps; of one where their number is not known."""
        return step * (self.steps or 1)

    def in_time(self, step: float) -> bool:
        """Return whether steps of so many seconds end in time."""
        return self.ends(self.seconds(step))

    def ends(self, seconds: float | None) -> bool:
        """Return whether a run of so many seconds ends in time; False where nobody can tell."""
        if self.deadline is None:
            return True
        return self.steps is not None and seconds is not None and seconds <= self.deadline


def run_of(plan: Plan) -> Run:
    """Return the training of a plan."""
    work, deadline = plan.workload, plan.limits.deadline_h
    steps = None
    if work.trains and work.samples and work.effective_batch:
        steps = work.samples * (work.epochs or 1) / work.effective_batch
    return Run(steps, deadline * HOUR if deadline is not None else None)
