"""The chosen settings against the best of the whole space: regret, and the expert's word."""

from itertools import groupby
from math import inf

import pytest
from advicerows import SITUATIONS

from trainwright.advise import advise
from trainwright.advise.choose import STORED
from trainwright.advise.search import Search
from trainwright.advise.walk import Timed
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.report import HEADROOM
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect

MOST_REGRET = 0.01


def planned(one):
    workload = {"task": one.task, "inputs": one.inputs}
    if one.task != "infer":
        workload["effective_batch"] = one.batch
    gpus = [{"id": one.gpu, "count": one.count}]
    return Plan.model_validate({
        "trainwright": 1,
        "model": {"preset": one.preset},
        "workload": workload,
        "machine": {"gpus": gpus, "memory_gib": one.memory},
    })  # fmt: skip


def everything(search, space):
    """Yield all points whose profile is at hand, whether they fit or not."""
    groups = (group for effect in Effect for group in space.roots(effect))
    waiting = [point for group in groups if search.compares(group) for point in group]
    while waiting:
        point = waiting.pop()
        waiting.extend(space.below(point))
        if search.profile(point) is not None:
            yield point


def best_of_all(plan, facts):
    """(effect, seconds) of what changes the training least: the fastest with headroom, else the
    leanest.

    Every point is timed, and in order of worth replayed. Only what a lower bound of its memory
    rules out is not replayed. Whole copies that fit go before shares that are only faster.
    """
    search = Search(plan, facts, STORED)
    points = everything(search, search.preferred.space)
    timed = sorted((Timed(one, search.seconds(one) or inf) for one in points), key=rank)
    for (effect, _), alike in groupby(timed, key=lambda one: one.candidate.departs):
        alike = [*alike]
        roomy = [one for one in alike if search.may_fit(one.candidate, spare=HEADROOM)]
        for found, report in search.confirmed(roomy):
            if report.roomy:
                return effect, found.seconds
        if tight := [*search.confirmed(alike)]:
            return effect, min(tight, key=used)[0].seconds
    return None, inf


def rank(timed):
    return timed.rank


def used(found):
    return found[1].memory.device_used_p95.value


@pytest.mark.slow
@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.name)
def test_the_choice_is_the_best_of_the_whole_space(one, capsys):
    plan = planned(one)
    facts = resolve(plan)
    assert isinstance(facts, Facts), "the preset ships without this profile"
    advice = advise(plan, facts, top=1)
    effect, seconds = best_of_all(plan, facts)
    chosen = advice.choices[0] if advice.choices else None
    taken = chosen.estimate.time.step_seconds.value if chosen else inf
    regret = 0.0 if taken == seconds else taken / seconds - 1
    found = (chosen is not None, chosen.effect.name.lower() if chosen else "-")
    agrees = found == (one.fits, one.effect if one.fits else "-")
    ways = ", ".join(way.change.id.rpartition(".")[2] for way in advice.nothing_fits)
    with capsys.disabled():
        expected = "as expected" if agrees else f"the expert: fits {one.fits}, {one.effect}"
        print(f"\n{one.name:20} regret {regret:7.3%}  fits {found[0]!s:5} {found[1]:9} {expected}"
              f"{'; ways: ' + ways if ways else ''}", end="")  # fmt: skip
    assert (chosen.effect if chosen else None) is effect
    assert regret <= MOST_REGRET


def test_the_table_is_large_enough_and_names_each_situation_once():
    names = [one.name for one in SITUATIONS]
    assert len(names) >= 40
    assert len(set(names)) == len(names)
