"""All rules of compatibility, and what they say of a build."""

from collections.abc import Callable, Iterator

from trainwright.machine import (
    rules_cooling,
    rules_fit,
    rules_lanes,
    rules_links,
    rules_memory,
    rules_plugs,
    rules_power,
    rules_processor,
    rules_storage,
)
from trainwright.machine.build import Build, Check, Use, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.placement import place
from trainwright.machine.power import power

Rule = Callable[[Facts], Iterator[Check]]

RULES: tuple[Rule, ...] = (
    *rules_processor.RULES,
    *rules_lanes.RULES,
    *rules_fit.RULES,
    *rules_power.RULES,
    *rules_plugs.RULES,
    *rules_memory.RULES,
    *rules_storage.RULES,
    *rules_cooling.RULES,
    *rules_links.RULES,
)
"""Each looks at the facts alone, and says nothing where the parts that it is about are not
chosen."""

SEVERITY: tuple[Verdict, ...] = ("error", "warning", "unknown", "note", "ok")
"""Gravest first."""


def checks(build: Build, use: Use | None = None) -> tuple[Check, ...]:
    """Return what every rule says of the build, gravest first, else by rule."""
    return checks_of(facts_of(build, use))


def facts_of(build: Build, use: Use | None = None) -> Facts:
    """Return what every rule is given of the build."""
    return Facts(build, use or Use(), place(build), power(build))


def checks_of(facts: Facts) -> tuple[Check, ...]:
    """Return what every rule says, gravest first, else by rule."""
    made = [check for rule in RULES for check in rule(facts)]
    return tuple(sorted(made, key=lambda check: SEVERITY.index(check.verdict)))
