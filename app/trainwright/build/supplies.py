"""Which power supplies are enough for some parts: their plugs, their watts, the outlet behind them.

What a rule of power says depends on cards, processor, memory and drives alone, whatever stands
around them: it is asked once for all parts that draw the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import tee

from trainwright.build.ruling import forbidden
from trainwright.build.sites import Around
from trainwright.build.speeds import Cards
from trainwright.catalog import PsuRecord
from trainwright.machine import rules_power
from trainwright.machine.build import Build, CircuitName, Use
from trainwright.machine.facts import Facts
from trainwright.machine.placement import Placement
from trainwright.machine.power import PowerBudget, draw, efficiency_of, supplied


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
        cards = Cards(build.gpus[0].record, build.gpus[0].count)
        drawn = draw(build)
        least = supplied(drawn, None, build.circuit).recommended_psu_w
        for psu in self._around.psus:
            if psu.watts >= least and self._around.supplies(psu, cards):
                budget = supplied(drawn, psu, build.circuit)
                if self._allowed(replace(build, psu=psu), psu, budget, use):
                    yield psu

    def _allowed(self, build: Build, psu: PsuRecord, budget: PowerBudget, use: Use) -> bool:
        cap = self._around.wishes.wall_w
        watts = budget.wall_w or budget.sustained.value
        if psu.watts < budget.recommended_psu_w or (cap is not None and watts > cap):
            return False
        facts = Facts(build, use, Placement(), budget)
        said = (check for rule in rules_power.RULES for check in rule(facts))
        return not forbidden(said, sound=self._around.sound)


def _drawing(build: Build) -> tuple[object, ...]:
    """Return what of the parts decides what they draw."""
    cpu, gpu = build.cpu, build.gpus[0]
    return (
        *(gpu.record.id, gpu.count),
        *((cpu.max_power_w, cpu.tdp_w) if cpu is not None else ()),
        tuple((kit.module, kit.modules * count) for kit, count in build.memory),
        tuple(drive.interface for drive in build.drives),
    )
