"""The place Verify: a run that is started, watched, cancelled, compared and applied."""

import time
from dataclasses import replace

import fakes
import pytest

from trainwright.advise.advice import Relaxation
from trainwright.data import resources
from trainwright.explain import Interval, Kind, Quantity, Unit
from trainwright.messages import Message, UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.trial import Here
from trainwright.plan.verified import Measured, Outcome, RanOut, Row
from trainwright.ui.screens.verify import Compared
from trainwright.ui.widgets.base import Label
from trainwright.ui.widgets.buttons import Button

GIB = 1 << 30


class Trial:
    """What the screen reads of a trial."""

    here = Here("cpu", "made up", None, "2.13.0", "")
    notes = (Message.of("verify.note.cpu"),)
    micro_batches = 2

    def __init__(self, settings):
        self.settings = settings
        self.predicted = type("Prediction", (), {"device_used": quantity(5 * GIB)})


def quantity(value, kind=Kind.ESTIMATED, unit=Unit.BYTES):
    interval = Interval(0.98 * value, 1.02 * value)
    return Quantity(Message.of("verify.row.allocated"), value, unit, kind, interval=interval)


def measured():
    seconds = quantity(0.5, Kind.MEASURED, Unit.SECONDS)
    return Measured(quantity(4 * GIB, Kind.MEASURED), None, None, seconds, 10, 0.01, 1, None)


@pytest.fixture
def settings(opened):
    window = opened()
    return window.session.report.settings


def core_with(run, nearest=(), kept=None):
    return replace(
        fakes.core(),
        verify=run,
        nearest=lambda outcome: tuple(nearest) if outcome.ran_out else (),
        keep_correction=kept if kept is not None else lambda outcome: None,
    )


def done(settings):
    rows = (
        Row("allocated", quantity(4 * GIB), quantity(4.05 * GIB, Kind.MEASURED)),
        Row("reserved", None, None, Message.of("verify.no-allocator")),
        Row("process", quantity(5 * GIB), quantity(6 * GIB, Kind.MEASURED)),
        Row("step", None, measured().step, Message.of("verify.no-time-on-cpu")),
    )
    return Outcome(Trial(settings), measured(), None, rows)


def button(screen, text):
    return next(one for one in screen.findChildren(Button) if one.text() == text)


def shown(qtbot, screen, text):
    """Wait until a label says it."""

    def said():
        labels = (label for label in screen.findChildren(Label) if label.isVisible())
        return any(text in label.text() for label in labels)

    qtbot.waitUntil(said, timeout=5000)


def test_run_shows_predicted_beside_measured(opened, qtbot, settings):
    window = opened(core=core_with(lambda *asked: done(settings)))
    screen = window.screen_named("verify")
    screen.start.click()
    qtbot.waitUntil(lambda: len(screen.findChildren(Compared)) == 4, timeout=5000)
    spoken = [row.accessibleName() for row in screen.findChildren(Compared)]
    assert "Allocated peak: Predicted ~4.00 GiB, Measured 4.05 GiB" in spoken[0]
    assert "inside the range" in spoken[0]
    assert "outside the range" in spoken[2]
    assert "no prediction" in spoken[3]
    shown(qtbot, screen, "Outside its range: Memory of the process")


def test_progress_and_cancel(opened, qtbot):
    def endless(plan, wanted, progress, cancelled):
        progress(0.4, "worker.verify-timing")
        while not cancelled():
            time.sleep(0.01)
        raise UserError.of("worker.cancelled")

    window = opened(core=core_with(endless))
    screen = window.screen_named("verify")
    screen.start.click()
    qtbot.waitUntil(lambda: "Timing steps" in screen.progress.accessibleName(), timeout=5000)
    assert screen.cancel.isVisible()
    assert not screen.start.isVisible()
    screen.cancel.click()
    qtbot.waitUntil(lambda: screen.start.isVisible(), timeout=5000)
    shown(qtbot, screen, "Cancelled")


def test_limits_are_those_that_were_set(opened, qtbot, settings):
    asked = []

    def run(plan, wanted, progress, cancelled):
        asked.append(wanted)
        return done(settings)

    window = opened(core=core_with(run))
    screen = window.screen_named("verify")
    screen.steps.setValue(3)
    screen.minutes.setValue(2)
    screen.memory.setValue(6)
    screen.start.click()
    qtbot.waitUntil(lambda: bool(asked), timeout=5000)
    (wanted,) = asked
    assert (wanted.steps, wanted.limits.seconds) == (3, 120)
    assert wanted.limits.memory_bytes == 6 * GIB
    assert wanted.folder is None
    qtbot.waitUntil(lambda: screen.start.isVisible(), timeout=5000)


def test_memory_that_ran_out_offers_plans_that_fit(opened, qtbot, settings):
    window = opened()
    smaller = with_keys(window.session.plan, {"settings.checkpointing": "every-2"})
    change = Message.of("verify.fits", micro=1, steps=64, checkpointing="every-2")
    gone = Outcome(Trial(settings), None, RanOut("host", "worker.verify-warming", "", 4 * GIB))
    window = opened(core=core_with(lambda *asked: gone, [Relaxation(change, smaller)]))
    screen = window.screen_named("verify")
    screen.start.click()
    shown(qtbot, screen, "ran out")
    button(screen, "Apply").click()
    assert window.session.plan.settings.checkpointing == "every-2"
    assert window.session.undo_label is not None


def test_correction_is_kept_once(opened, qtbot, settings):
    kept = []
    window = opened(core=core_with(lambda *asked: done(settings), kept=kept.append))
    screen = window.screen_named("verify")
    screen.start.click()
    qtbot.waitUntil(lambda: bool(screen.findChildren(Compared)), timeout=5000)
    button(screen, "Keep the correction").click()
    assert len(kept) == 1


def test_serving_plan_has_nothing_to_run(opened, qtbot):
    window = opened()
    window.open_path(resources("examples", "llama-8b-serve-rtx4090.plan.yaml"))
    screen = window.screen_named("verify")
    assert not screen.start.isEnabled()
    shown(qtbot, screen, "has no training step")


@pytest.mark.parametrize(("accumulation", "said"), [(2, "each of 2 micro-batches"), (8, "2 of 8")])
def test_others_are_only_spoken_of_where_there_are_others(
    opened, qtbot, settings, accumulation, said
):
    window = opened(
        core=core_with(
            lambda *asked: done(settings.model_copy(update={"accumulation": accumulation}))
        )
    )
    screen = window.screen_named("verify")
    screen.start.click()
    shown(qtbot, screen, said)
