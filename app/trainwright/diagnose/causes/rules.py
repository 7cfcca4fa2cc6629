"""Rules: what a reading says of a cause, as data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import Measure
from trainwright.diagnose.verdict import Cause, Form, Signal


@dataclass(frozen=True, slots=True)
class Level:
    """A limit, and what it means to be past it."""

    limit: float | None
    """None: any value of the measure will do."""
    weight: int
    source: str
    """Tool, document or study, or ``assumed``."""
    above: bool = True
    """Whether a value must be at or above the limit, or below it."""

    def holds(self, value: float | str) -> bool:
        """Return whether the value is past the limit."""
        if self.limit is None or isinstance(value, str):
            return True
        return value >= self.limit if self.above else value < self.limit


@dataclass(frozen=True, slots=True)
class Rule:
    """One reading, held against limits; the weightiest level that holds is the signal."""

    cause: Cause
    reading: str
    measure: Measure
    form: Form
    levels: tuple[Level, ...]
    variant: str = ""

    def signal(self, evidence: Evidence) -> Signal | None:
        """Return what the evidence says by this rule; None where it says nothing."""
        value = self.measure(evidence)
        if value is None:
            return None
        holding = [level for level in self.levels if level.holds(value)]
        if not holding:
            return None
        level = max(holding, key=lambda each: abs(each.weight))
        plain = self.form in ("word", "yes-no")
        return Signal(
            cause=self.cause,
            variant=self.variant,
            reading=self.reading,
            value=value,
            form=self.form,
            weight=level.weight,
            limit=None if plain else level.limit,
            above=level.above,
            source=level.source,
        )


def above(limit: float, weight: int, source: str) -> Level:
    """Return the level of values at or above the limit."""
    return Level(limit, weight, source)


def below(limit: float, weight: int, source: str) -> Level:
    """Return the level of values below the limit."""
    return Level(limit, weight, source, above=False)


def yes(weight: int, source: str) -> Level:
    """Return the level of what is so."""
    return Level(0.5, weight, source)


def no(weight: int, source: str) -> Level:
    """Return the level of what is known not to be so."""
    return Level(0.5, weight, source, above=False)


def any_of(weight: int, source: str) -> Level:
    """Return the level of words that the measure lets through."""
    return Level(None, weight, source)


def signals(rules: Iterable[Rule], evidence: Evidence) -> tuple[Signal, ...]:
    """Return what the rules find in the evidence."""
    found = (rule.signal(evidence) for rule in rules)
    return tuple(signal for signal in found if signal is not None)


def rules_of(cause: Cause) -> Callable[..., Rule]:
    """Return what makes the rules of one cause: reading, measure, form, levels, variant."""

    def rule(name: str, measure: Measure, form: Form, *levels: Level, variant: str = "") -> Rule:
        return Rule(cause, name, measure, form, levels, variant)

    return rule
