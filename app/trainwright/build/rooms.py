"""The same computer in a case with more room and air, and with a supply that has the cards' own
plugs, as far as money is left for it.
"""

from dataclasses import replace

from trainwright.build.choosing import Outcome
from trainwright.build.ruling import forbidden
from trainwright.build.sites import Around
from trainwright.catalog import CaseRecord
from trainwright.machine.build import Check
from trainwright.machine.checks import checks_of, facts_of
from trainwright.machine.facts import Facts

CLOSE = ("G1", "G2", "G4", "T1")
"""Rules whose warnings a larger case answers: length, openings, the plug's cable, heat."""


def roomier(outcome: Outcome, around: Around, limit: float) -> Outcome:
    """Return the computer in the cheapest case of the fewest warnings that the limit allows.

    A case that is there already is kept, and so is every link.
    """
    build, best, fewest = outcome.build, outcome, _close(outcome.checks)
    own = around.shelves.cost("case", build.case) if build.case is not None else 0.0
    if not own or not fewest:
        return outcome
    rate = _rate(facts_of(build, outcome.use))
    for case in around.cases:
        cost = outcome.cost + around.shelves.cost("case", case) - own
        if cost > limit:
            break
        facts = facts_of(replace(build, case=case), outcome.use)
        said = checks_of(facts)
        if _close(said) < fewest and not forbidden(said, sound=True) and _rate(facts) == rate:
            best, fewest = _moved(outcome, case, said, cost), _close(said)
    return best


def without_adapters(outcome: Outcome, around: Around, limit: float) -> Outcome:
    """Return the computer with the cheapest supply that feeds its cards without adapters.

    The same one where money is left for none, or where it has been there already.
    """
    build = outcome.build
    own = around.shelves.cost("psu", build.psu) if build.psu is not None else 0.0
    if not own or build.psu is None or not _adapted(outcome.checks):
        return outcome
    warned = _warnings(outcome.checks)
    cap = around.wishes.wall_w
    for psu in around.psus:
        cost = outcome.cost + around.shelves.cost("psu", psu) - own
        if cost > limit:
            break
        if psu.watts < build.psu.watts:
            continue
        facts = facts_of(replace(build, psu=psu), outcome.use)
        said = checks_of(facts)
        watts = facts.power.wall_w or facts.power.sustained.value
        better = not _adapted(said) and _warnings(said) < warned
        if better and not forbidden(said, sound=True) and (not cap or watts <= cap):
            return replace(outcome, build=facts.build, checks=said, cost=cost, watts=watts)
    return outcome


def _adapted(checks: tuple[Check, ...]) -> bool:
    return any(check.verdict == "warning" and check.rule == "W7" for check in checks)


def _warnings(checks: tuple[Check, ...]) -> int:
    return sum(check.verdict == "warning" for check in checks)


def _moved(outcome: Outcome, case: CaseRecord, said: tuple[Check, ...], cost: float) -> Outcome:
    build = replace(outcome.build, case=case)
    return replace(outcome, build=build, checks=said, cost=cost)


def _close(checks: tuple[Check, ...]) -> int:
    return sum(check.verdict == "warning" and check.rule in CLOSE for check in checks)


def _rate(facts: Facts) -> float | None:
    slowest = facts.placement.slowest
    return slowest.gb_s if slowest is not None else None
