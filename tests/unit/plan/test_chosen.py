"""What a search chose stays open, says why, survives a file, and gives way to a person."""

import pytest

from trainwright.advise import advise, make_it_fit
from trainwright.export import files
from trainwright.messages import UserError, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import resolve

ASKED = """
trainwright: 1
model: {preset: gpt2}
workload: {task: pretrain, effective_batch: 24, inputs: {sequence_length: 1024}}
machine: {gpus: [{id: rtx-3060-12gb}], memory_gib: 32}
settings: {precision: bf16-mixed}
"""


@pytest.fixture(scope="module")
def fitted():
    plan = file.parsed(ASKED, "asked")
    return make_it_fit(plan, advise(plan, resolve(plan), top=1))


def test_a_choice_survives_save_and_load_with_its_reason(fitted, tmp_path):
    saved = file.write(fitted, tmp_path / "a.plan.yaml")
    again = file.read(tmp_path / "a.plan.yaml")
    assert again == saved
    assert again.chosen["micro_batch"].reason == fitted.chosen["micro_batch"].reason
    assert again.settings == file.parsed(ASKED, "asked").settings
    assert resolve(again).settings.micro_batch == fitted.chosen["micro_batch"].value


def test_a_later_search_is_free_to_choose_again(fitted):
    longer = with_keys(fitted, {"workload.inputs.sequence_length": 256})
    micro = make_it_fit(longer, advise(longer, resolve(longer), top=1)).chosen["micro_batch"]
    assert micro.value > fitted.chosen["micro_batch"].value


def test_what_a_person_sets_goes_before_what_was_chosen(fitted):
    own = with_keys(fitted, {"settings.micro_batch": 2})
    assert "micro_batch" not in own.chosen
    assert resolve(own).settings.micro_batch == 2


def test_more_gpus_are_used_though_one_was_searched_for(fitted):
    assert fitted.chosen["strategy"].value == "single"
    four = resolve(with_keys(fitted, {"machine.gpus": [{"id": "rtx-3060-12gb", "count": 4}]}))
    assert four.settings.strategy == "ddp"
    assert 4 * four.settings.micro_batch * four.settings.accumulation == 24


def test_choices_that_no_longer_go_with_the_plan_are_left_out_and_said(fitted):
    odd = with_keys(fitted, {"workload.effective_batch": 23})
    facts = resolve(odd)
    assert facts.settings.micro_batch * facts.settings.accumulation == 23
    assert "plan.note.choices-dropped" in [note.id for note in facts.notes]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_an_exported_file_says_why_instead_of_set_in_the_plan(fitted, language):
    facts = resolve(fitted)
    text = "\n".join(files("plain", fitted, facts.settings, {}, language).values())
    flat = " ".join(text.replace("#", " ").split())
    for key in ("micro_batch", "optimizer"):
        assert " ".join(render(fitted.chosen[key].reason, language).split()) in flat


@pytest.mark.parametrize(
    "entry",
    [
        "micro_batch: {value: 4, because: advise.no-such-reason}",
        "micro_batch: {value: 4, because: plan.empty}",
        "micro_batch: {value: 4, because: advise.micro.whole, values: {other: 1}}",
        "micro_batch: {value: four, because: advise.chosen.best}",
        "no_such_key: {value: 4, because: advise.chosen.best}",
        "loader: {value: 4, because: advise.chosen.best}",
        "loader.no_such_key: {value: 4, because: advise.chosen.best}",
    ],
)
def test_a_choice_that_this_version_does_not_know_is_refused_in_one_line(entry):
    with pytest.raises(UserError) as refused:
        file.parsed(f"{ASKED}chosen: {{{entry}}}\n", "a.plan.yaml")
    assert str(refused.value).startswith("a.plan.yaml")
    assert "chosen" in str(refused.value)
    assert "\n" not in str(refused.value)
