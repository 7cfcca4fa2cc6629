"""Quick answers: as near to the traced step as they say, and never silent about it."""

from dataclasses import replace

import pytest

from trainwright.advise import near
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.profiles import nearest
from trainwright.plan.schema import Plan
from trainwright.profile import store


def plan(**lora: object) -> Plan:
    return Plan.model_validate(
        {
            "name": "x",
            "model": {"preset": "gpt2"},
            "workload": {
                "task": "lora",
                "effective_batch": 8,
                "inputs": {"sequence_length": 512},
                "lora": {"rank": 8, **lora},
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"precision": "bf16-mixed", "micro_batch": 8, "recipe": "hf-trainer"},
        }
    )


def test_an_answer_of_a_nearby_step_names_what_it_leaves_out():
    facts = near.resolved(plan(dropout=0.1))
    assert isinstance(facts, Facts)
    (note,) = (one for one in facts.notes if one.id == near.NOTE)
    assert set(note.values["keys"]) == {"lora.dropout", "lora.rank", "loss_in_model"}


def test_a_step_that_differs_much_has_no_nearby_one():
    assert isinstance(near.resolved(plan(variant="dora")), Pending)


@pytest.mark.slow
@pytest.mark.parametrize("lora", [{"dropout": 0.1}, {"targets": ["c_attn"]}])
def test_a_nearby_step_is_as_near_as_it_says(lora):
    given = plan(**lora)
    asked = resolve(given)
    assert isinstance(asked, Pending)
    found = nearest(asked.spec)
    traced = store.trace(replace(asked.spec), at=asked.point, keep=False)
    exact, quick = (
        evaluate(given, asked.answered(profile)).memory.device_used.value
        for profile in (traced, found.profile)
    )
    assert quick == pytest.approx(exact, rel=found.share)


def test_of_a_step_that_is_not_stored_another_task_is_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of all weights of a 70B model: those steps are not shipped, those of its adapters are."""
    small = {"model.preset": "gpt2-xl", "machine.gpus[0].id": "rtx-3060-12gb"}
    small |= {"settings.micro_batch": 1, "workload.effective_batch": 1}
    full = with_keys(plan(), small | {"workload.task": "full", "workload.lora": None})
    facts = near.resolved(full)
    assert isinstance(facts, Facts)
    load = store.load
    monkeypatch.setattr(store, "load", lambda spec: None if spec.task == "full" else load(spec))
    tasks = [way.changes.get("workload.task") for way in near.ways(full, facts, lambda: True)]
    assert "lora" in tasks
