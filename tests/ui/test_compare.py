"""Compare: plans side by side, as a person reads and copies them."""

import csv
import io

import fakes
import pytest
from PySide6.QtGui import QGuiApplication
from walk import settled, texts

from trainwright.data import resources
from trainwright.messages import LANGUAGES
from trainwright.plan import comparing, file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.ui.core import Core
from trainwright.ui.i18n import tr


def row(table, name):
    return next(cells[1:] for cells in table.texts() if cells[0] == name)


@pytest.fixture
def screen(opened, qtbot):
    """The open plan, and a copy from before its micro-batch was doubled."""
    window = opened(core=Core(), plan=resources("examples", "llama-8b-qlora-rtx4060ti.plan.yaml"))
    made = window.screen_named("compare")
    made.keep.click()
    window.session.set_key("settings.micro_batch", 2)
    qtbot.waitUntil(lambda: settled(window) and made.table is not None, timeout=20_000)
    return made


def test_differences_and_the_best_are_marked(screen):
    batch = tr("ui.key.micro_batch")
    assert row(screen.table, batch) == ["2", "1"]
    changed = [one for one in screen.table.parts.rows if one.differs]
    assert batch in {tr(one.name.id) for one in changed}
    assert not next(r for r in screen.table.parts.rows if r.cells[0] == "Llama 3.1 8B").differs
    now, before = row(screen.table, "Samples per second")
    assert now.endswith(("✓", "○")) != before.endswith(("✓", "○"))
    assert "–" in now  # the interval


def test_a_plan_without_a_name_is_called_so_in_the_readers_language(opened, qtbot, preferences):
    preferences.language = "ko"
    window = opened(plan=None, core=Core())
    window.start_with("new", None)
    made = window.screen_named("compare")
    made.keep.click()
    qtbot.waitUntil(lambda: settled(window) and made.table is not None, timeout=60_000)
    said = "\n".join(texts(window))
    one, kept = (plan.title for plan in made.table.parts.headings[1:])
    assert one == tr("ui.plan.unnamed")
    assert tr("cli.compare.same", first=one, other=kept) in said
    assert "untitled" not in said


def test_it_is_copied_as_markdown_and_csv(screen):
    copies = {action.text(): action for action in screen.table.copies().actions()}
    copies[tr("ui.copy.csv")].trigger()
    lines = list(csv.reader(io.StringIO(QGuiApplication.clipboard().text())))
    assert len({len(line) for line in lines}) == 1
    assert lines[0][1:] == ["llama-8b-qlora-rtx4060ti", "llama-8b-qlora-rtx4060ti, kept 1"]
    copies[tr("ui.copy.markdown")].trigger()
    assert QGuiApplication.clipboard().text().startswith("|  | llama")


def test_four_plans_at_most_and_each_can_be_taken_out(opened, qtbot):
    window = opened()
    made = window.screen_named("compare")
    for _ in range(3):
        made.add_file(fakes.EXAMPLE)
    assert not made.add.isEnabled()
    qtbot.waitUntil(lambda: made.table is not None)
    assert len(made.table.heads()) == 5
    made.remove(1)
    assert made.add.isEnabled()
    assert len(window.session.compared) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_plans_stay_in_the_table_when_the_language_changes(opened, qtbot, preferences, language):
    window = opened()
    window.screen_named("compare").add_file(fakes.EXAMPLE)
    preferences.language = language
    window.take_preferences()
    made = window.screen_named("compare")
    qtbot.waitUntil(lambda: made.table is not None)
    assert made.table.heads()[1:] == [window.session.plan.name] * 2


def answered(**keys):
    plan = file.read(resources("examples", "llama-8b-qlora-rtx4060ti.plan.yaml"))
    plan = with_keys(plan, keys)
    facts = resolve(plan)
    return comparing.Answered(plan, facts, evaluate(plan, facts))


def test_nothing_is_best_where_plans_do_not_do_the_same():
    def best(one, two):
        return {r.name.id for r in comparing.figure_rows([one, two]) if r.best is not None}

    one, longer = answered(), answered(**{"workload.epochs": 7})
    faster = answered(**{"settings.micro_batch": 2, "workload.epochs": 7})
    assert best(one, longer) == set()  # alike but for the length of the run
    assert "time.samples-per-second" in best(one, faster)
    assert "time.run" not in best(one, faster)
    assert best(one, answered(**{"workload.inputs.sequence_length": 512})) == set()
