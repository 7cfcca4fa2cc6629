"""Times on the Plan screen: the curve over several GPUs, and a time that is refused."""

from dataclasses import replace
from typing import Any

import fakes
import pytest

from trainwright.estimate.time.scaling import ScalingPoint
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.explain import Interval, Unit
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan

REFUSED = Message.of("time.recurrent-share", layers=1, share=0.9)


def point(gpus: int, share: float) -> ScalingPoint:
    around = Interval(share - 0.1, min(share + 0.1, 1.0)) if gpus > 1 else None
    efficiency = fakes.quantity("time.scaling.efficiency", share, Unit.RATIO, interval=around)
    rate = fakes.quantity("time.scaling.rate", 100 * gpus * share, Unit.SAMPLES_PER_SECOND)
    return ScalingPoint(gpus, 1, 16, rate, efficiency)


def several(plan: Plan, facts: Facts) -> Report:
    found = fakes.report(plan, facts, 1.0)
    points = (point(1, 1.0), point(2, 0.45))
    return replace(found, time=replace(found.time, scaling=points))


def refused(plan: Plan, facts: Facts) -> Report:
    found = fakes.report(plan, facts, 1.0)
    nothing = TimeEstimate(None, None, None, None, None, (), notes=(REFUSED,), refusal=REFUSED)
    return replace(found, time=nothing, notes=(REFUSED,))


def test_the_curve_is_drawn_of_several_gpus_and_not_of_one(opened: Any, qtbot: Any) -> None:
    window = opened(core=fakes.core(evaluate=several))
    chart = window.screen_named("plan").scaling
    assert not chart.isVisibleTo(window)
    window.session.set_key("machine.gpus[0].count", 2)
    qtbot.waitUntil(lambda: chart.isVisibleTo(window))
    assert chart.accessibleName() == "2 GPUs: 0.9 times the rate of one, 45 % of what they could"
    assert chart.rows() == [("1 GPU", "1× (100 %)"), ("2 GPU", "0.9× (45 %)")]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_refused_time_shows_no_figure_and_says_why(
    opened: Any, preferences: Any, language: str
) -> None:
    preferences.language = language
    window = opened(core=fakes.core(evaluate=refused))
    screen = window.screen_named("plan")
    assert not screen.waterfall.isVisibleTo(window)
    spoken = [door.accessibleName() for door in screen.figures._doors if door.accessibleName()]
    absent = {"en": "n/a", "ko": "없음"}[language]
    assert len(spoken) == 6
    assert all(absent in name for name in spoken)
    assert not any("0" in name for name in spoken)
    assert screen.verdict.isVisibleTo(window)  # memory stays


def test_a_model_traced_at_one_point_alone_is_advised_all_the_same(opened: Any, qtbot: Any) -> None:
    """Unrolled layers differ from length to length: no trace ever answers for all of them."""
    base = fakes.core()
    traced = True

    def resolve(plan: Plan) -> Facts | Pending:
        facts = base.resolve(plan)
        assert isinstance(facts, Facts)
        if traced:
            return facts
        return Pending(facts.machine, facts.settings, object(), facts.inputs, ())  # type: ignore[arg-type]

    window = opened(core=replace(base, resolve=resolve))
    session, traced = window.session, False
    session.ask_advice()
    qtbot.waitUntil(lambda: session.advice_problem is not None)
    assert session.advice_problem.id == "ui.advise.trace-first"
    session._fitted_all()
    qtbot.waitUntil(lambda: session.advice is not None)
    assert session.advice.choices
