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


_AVOIDED = ("P7", "G7")
"""Warnings that rule parts out where others do without: a card behind the chipset, which the others
wait for, and a cooler that the processor is too hot for."""


def errs(
    rules: Iterable[Rule], build: Build, placement: Placement | None = None, *, sound: bool = False
) -> bool:
    """Return whether one of the rules forbids the parts, lanes and power left aside."""
    return forbidden(said(rules, build, placement), sound=sound)


def forbidden(checks: Iterable[Check], *, sound: bool) -> bool:
    """Return whether a rule forbids some parts; ``sound`` ones are also known to pass them all."""
    return any(check.verdict == "error" or (sound and _unsound(check)) for check in checks)


def _unsound(check: Check) -> bool:
    """Return whether other parts around the cards would do better; the cards are given."""
    if check.verdict == "unknown":
        return not all(field.startswith("gpu.") for field in check.missing)
    return check.verdict == "warning" and check.rule in _AVOIDED


def said(
    rules: Iterable[Rule],
    build: Build,
    placement: Placement | None = None,
    use: Use = _NO_USE,
) -> Iterator[Check]:
    """Yield what the rules say of the parts, lanes and power left aside."""
    facts = Facts(build, use, placement or _NOWHERE, _NO_POWER)
    for rule in rules:
        yield from rule(facts)
