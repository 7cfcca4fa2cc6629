"""What every rule is given."""

from dataclasses import dataclass

from trainwright.machine.build import Build, Use
from trainwright.machine.placement import Placement
from trainwright.machine.power import PowerBudget


@dataclass(frozen=True, slots=True)
class Facts:
    """A build, what it is for, where its parts sit and what they draw."""

    build: Build
    use: Use
    placement: Placement
    power: PowerBudget
