"""Which cause the known runs had that are most like a run: a linear model of its traits.

Rules say what a reading means by itself. What several readings mean together, none of which
decides, is learned from runs of known cause: a multinomial logistic regression, fitted by
``scripts/fit_likeness.py`` to ``tests/accuracy/situations``.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, fsum

from trainwright.data import resources
from trainwright.diagnose.verdict import Cause, Signal

FITTED_TO = "logistic regression of recorded runs whose causes are known"
"""The source of what likeness says; see ``limits.po``."""
ALWAYS = "(always)"
"""The trait that every run has: how frequent the causes are."""
SHOWN = 4
"""Traits that are named as what makes a run alike; assumed."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How likely each cause is, and what speaks for it."""

    chances: Mapping[Cause, float]
    """They sum to 1."""
    had: frozenset[str]
    """Those of the run's traits that known runs had."""

    def speaking_for(self, cause: Cause) -> tuple[str, ...]:
        """Return the traits that speak most for a cause; the weights' mean over causes is zero."""
        known = weights()
        ranked = sorted(self.had, key=lambda name: (-known[name][cause], name))
        return tuple(name for name in ranked[:SHOWN] if known[name][cause] > 0)

    def signals(self, cause: Cause) -> tuple[Signal, ...]:
        """Return what likeness says of a cause, as a verdict's evidence."""
        named = ", ".join(dict.fromkeys(map(_key, self.speaking_for(cause))))
        return (
            _signal(cause, "likeness.chance", self.chances[cause]),
            *((_signal(cause, "likeness.traits", named),) if named else ()),
        )


def likeness(traits: frozenset[str]) -> Likeness:
    """Return how like a run is to those of each cause; traits that no known run had count not."""
    known = weights()
    had = traits & known.keys()
    scores = {
        cause: fsum((always, *(known[name][cause] for name in had)))  # the same in any order
        for cause, always in known[ALWAYS].items()
    }
    highest = max(scores.values())
    parts = {cause: exp(score - highest) for cause, score in scores.items()}
    return Likeness({cause: part / sum(parts.values()) for cause, part in parts.items()}, had)


@cache
def weights() -> Mapping[str, Mapping[Cause, float]]:
    """Return the shipped weights: trait -> cause -> weight."""
    with resources("calibration", "likeness.csv").open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return {
            row.pop("trait"): {Cause(cause): float(each) for cause, each in row.items()}
            for row in rows
        }


def _key(trait: str) -> str:
    """Return the record's key that a trait is of: ``rule gpus.utilisation 0.4``."""
    words = trait.removeprefix("rule ").split(" ")
    return f"trials: {words[1].rstrip(':')}" if words[0] == "trials" else words[0]


def _signal(cause: Cause, reading: str, value: float | str) -> Signal:
    return Signal(
        cause=cause,
        variant="",
        reading=reading,
        value=value,
        form="word" if isinstance(value, str) else "share",
        weight=1,
        limit=None,
        above=True,
        source=FITTED_TO,
    )
