"""The deciding trial, run: the command once more with one thing changed, and both compared."""

from collections.abc import Sequence

from trainwright.diagnose import running
from trainwright.diagnose.changing import RUNNABLE
from trainwright.diagnose.decide import judge
from trainwright.diagnose.deciding import Deciding, deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.trials import Trial

SECONDS = 30.0
"""Of each run where nobody says for how long; assumed: some hundred steps."""


def trial_of(evidence: Evidence) -> Deciding | None:
    """Return the trial that can be run for what was seen; None where none is needed or known."""
    if evidence.steps is None:
        return None
    return deciding(judge(evidence), evidence, RUNNABLE)


def tried(
    trial: Deciding, evidence: Evidence, command: Sequence[str], *, seconds: float, quiet: bool
) -> Evidence:
    """Run the command with one thing changed, and return the evidence with what that did.

    The evidence is returned as it is where no step was timed.

    Raises:
        UserError: the command cannot be started.
    """
    second = running.run(command, seconds=seconds, quiet=quiet, trial=trial.changed).evidence
    if evidence.steps is None or second.steps is None:
        return evidence
    times = second.steps.seconds / evidence.steps.seconds
    found = Trial(changed=trial.changed, step_times=times)
    return evidence.model_copy(update={"trials": (*evidence.trials, found)})
