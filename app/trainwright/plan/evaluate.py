"""The two steps on which app, command line, exporters and tests stand."""

from dataclasses import dataclass

from trainwright.machine.machine import Machine
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class Facts:
    """What ``resolve`` looked up: all that ``evaluate`` may know beside the plan."""

    machine: Machine
    settings: FullSettings
    profile: Profile
    notes: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """The profile is not at hand: this must be traced first."""

    machine: Machine
    settings: FullSettings
    spec: TraceSpec


def resolve(plan: Plan) -> Facts | Pending:
    """Look up the machine, the defaults and the profile: the only impure step.

    Raises:
        UserError: an id is unknown, a file is missing, the pieces do not go together.
    """
    raise NotImplementedError


def evaluate(plan: Plan, facts: Facts) -> Report:
    """Return the report; pure."""
    raise NotImplementedError
