"""The chosen settings against the best of the whole space: regret, and the expert's word."""

from math import inf

import pytest
from advicerows import SITUATIONS

from trainwright.advise import advise
from trainwright.advise.choose import STORED
from trainwright.advise.search import Search, Timed
from trainwright.plan.evaluate import Facts, resolve
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


def best_of_all(plan, facts):
    """(effect, seconds) of the best that fits: every point is timed, in order of worth replayed.

    Only what a lower bound of its memory rules out is not replayed.
    """
    search = Search(plan, facts, STORED)
    points = {effect: [] for effect in Effect}
    for point in search.obedient.everything():
        points[point.effect].append(point)
    for effect in Effect:
        timed = [(search.seconds(point) or inf, point) for point in points[effect]]
        may = [Timed(point, seconds) for seconds, point in timed if search.may_fit(point)]
        for found, _ in search.confirmed(sorted(may, key=lambda one: one.rank)):
            return effect, found.seconds
    return None, inf


@pytest.mark.slow
def test_the_choice_is_the_best_of_the_whole_space(capsys):
    rows = []
    for one in SITUATIONS:
        plan = planned(one)
        facts = resolve(plan)
        assert isinstance(facts, Facts), one.name
        advice = advise(plan, facts, top=1)
        effect, seconds = best_of_all(plan, facts)
        chosen = advice.choices[0] if advice.choices else None
        taken = chosen.estimate.time.step_seconds.value if chosen else inf
        regret = 0.0 if taken == seconds else taken / seconds - 1
        expected = (one.fits, one.effect if one.fits else "-")
        found = (chosen is not None, chosen.effect.name.lower() if chosen else "-")
        ways = [way.change.id.rpartition(".")[2] for way in advice.nothing_fits]
        rows.append((one, regret, expected == found, found, ways))
        if chosen is not None:
            assert chosen.effect is effect, one.name
        assert (chosen is None) == (effect is None), one.name
    with capsys.disabled():
        for one, regret, agrees, found, ways in rows:
            mark = "as expected" if agrees else f"expected fits {one.fits}, {one.effect}"
            print(f"\n{one.name:20} regret {regret:7.3%}  fits {found[0]!s:5} {found[1]:9} {mark}"
                  f"{'; ways: ' + ', '.join(ways) if ways else ''}", end="")  # fmt: skip
        agreeing = sum(agrees for _, _, agrees, _, _ in rows)
        print(f"\n{len(rows)} situations, {agreeing} as the expert expects")
    assert len(rows) >= 40
    assert max(regret for _, regret, *_ in rows) <= MOST_REGRET
