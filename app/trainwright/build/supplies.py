"""Which power supplies are enough for some parts: their plugs, their watts, the outlet behind them.

What a rule of power says depends on cards, processor, memory and drives alone, whatever stands
around them: it is asked once for all parts that draw the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, tee
from math import floor

from trainwright.build.ruling import forbidden, said
from trainwright.build.sites import Around
from trainwright.build.speeds import Cards
from trainwright.catalog import PsuRecord
from trainwright.machine import rules_plugs, rules_power
from trainwright.machine.build import Build, CircuitName, Use
from trainwright.machine.facts import Facts
from trainwright.machine.placement import Placement
from trainwright.machine.power import PowerBudget, draw, efficiency_of, supplied

LEAST_LIMIT = 0.7
"""Share of a card's power below which no limit is weighed. Assumed for all, by the RTX 5090, whose
driver takes 400 to 600 W."""
LIMIT_STEP = 0.05
"""Of the same; assumed."""


def limits(cards: Cards) -> Iterator[Cards]:
    """Yield the cards with ever lower power limits, in whole tens of watts."""
    watts = cards.gpus[0].watts or 0.0
    for number in range(1, round((1 - LEAST_LIMIT) / LIMIT_STEP) + 1):
        limit = floor(watts * (1 - number * LIMIT_STEP) / 10) * 10.0
        if limit:
            yield replace(cards, limit_w=limit)


class Supplies:
    """The supplies on sale; answers are kept."""

    def __init__(self, around: Around, circuit: CircuitName | None) -> None:
        self.efficiency = max((efficiency_of(psu, circuit) for psu in around.psus), default=1.0)
        """That none exceeds."""
        self._around = around
        self._found: dict[tuple[object, ...], Iterator[PsuRecord]] = {}

    def enough(self, build: Build, use: Use) -> Iterator[PsuRecord]:
        """Yield those that power parts without a supply, cheapest first.

        They have the plugs and a fifth to spare, and draw no more than outlet and wishes allow.
        """
        key = _drawing(build)
        kept = self._found.get(key) or self._judged(build, use)
        self._found[key], found = tee(kept)  # each is judged once, and only if anyone asks
        return found

    def _judged(self, build: Build, use: Use) -> Iterator[PsuRecord]:
        gpu = build.gpus[0]
        cards = Cards(gpu.record, gpu.count, gpu.power_limit_w)
        drawn = draw(build)
        least = supplied(drawn, None, build.circuit).recommended_psu_w
        large = (psu for psu in self._around.psus if psu.watts >= least)
        for _, alike in groupby(large, lambda psu: self._around.shelves.cost("psu", psu)):
            allowed = [
                psu
                for psu in alike
                if self._around.supplies(psu, cards)
                and self._allowed(replace(build, psu=psu), supplied(drawn, psu, build.circuit), use)
            ]
            yield from sorted(allowed, key=lambda psu: _adapters(replace(build, psu=psu)))

    def _allowed(self, build: Build, budget: PowerBudget, use: Use) -> bool:
        """Return whether a build's supply carries it, and the outlet carries it for hours."""
        cap, psu = self._around.wishes.wall_w, build.psu
        watts = budget.wall_w or budget.sustained.value
        if psu is None or psu.watts < budget.recommended_psu_w or (cap and watts > cap):
            return False
        facts = Facts(build, use, Placement(), budget)
        checks = [check for rule in rules_power.RULES for check in rule(facts)]
        hot = any(check.rule == "W11" and check.verdict == "warning" for check in checks)
        return not hot and not forbidden(checks, sound=self._around.sound)


def _adapters(build: Build) -> bool:
    """Return whether cards hang on adapters: of supplies at one price that is the worse one."""
    return any(check.verdict == "warning" for check in said((rules_plugs.plugs,), build))


def _drawing(build: Build) -> tuple[object, ...]:
    """Return what of the parts decides what they draw."""
    cpu, gpu = build.cpu, build.gpus[0]
    return (
        *(gpu.record.id, gpu.count, gpu.power_limit_w),
        *((cpu.max_power_w, cpu.tdp_w) if cpu is not None else ()),
        tuple((kit.module, kit.modules * count) for kit, count in build.memory),
        tuple(drive.interface for drive in build.drives),
    )
