"""Rules that are asked of a few parts, before the whole computer is known."""

from collections.abc import Callable, Iterable, Iterator

from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine.build import Build, Check, Use
from trainwright.machine.facts import Facts
from trainwright.machine.placement import Placement
from trainwright.machine.power import PowerBudget
from trainwright.messages import Message

Rule = Callable[[Facts], Iterator[Check]]

_NO_USE, _NOWHERE = Use(), Placement()
_NO_POWER = PowerBudget(
    (), Quantity(Message.of("build.power.sustained"), 0.0, Unit.WATTS, Kind.ASSUMED)
)


def errs(rules: Iterable[Rule], build: Build, placement: Placement | None = None) -> bool:
    """Return whether one of the rules forbids the parts, lanes and power left aside."""
    return any(check.verdict == "error" for check in said(rules, build, placement))


def said(
    rules: Iterable[Rule], build: Build, placement: Placement | None = None
) -> Iterator[Check]:
    """Yield what the rules say of the parts, lanes and power left aside."""
    facts = Facts(build, _NO_USE, placement or _NOWHERE, _NO_POWER)
    for rule in rules:
        yield from rule(facts)
