"""GPUs that wait for each other are given ways out, each with what it would bring."""

from typing import Any

import pytest

from trainwright.advise import advise
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan


def plan(gpu: str, batch: int, **settings: Any) -> Plan:
    return Plan.model_validate(
        {
            "model": {"preset": "gpt2"},
            "workload": {
                "task": "pretrain",
                "effective_batch": batch,
                "inputs": {"sequence_length": 1024},
            },
            "machine": {"gpus": [{"id": gpu, "count": 4}]},
            "settings": {"precision": "bf16-mixed", "micro_batch": 4} | settings,
        }
    )


def found(asked: Plan) -> Facts:
    facts = resolve(asked)
    if not isinstance(facts, Facts):
        pytest.skip("the profile of gpt2 is not built")
    return facts


def notes(asked: Plan) -> dict[str, Message]:
    advice = advise(asked, found(asked))
    return {note.id.removeprefix("advise.waiting."): note for note in advice.notes
            if note.id.startswith("advise.waiting.")}  # fmt: skip


def rate(asked: Plan) -> float:
    """Return the samples a second of a plan with all settings that matter."""
    samples = evaluate(asked, found(asked)).time.samples_per_second
    assert samples is not None
    return samples.value


WHOLE = {"checkpointing": "none", "cross_entropy": "full"}


def test_on_a_slow_link_weights_that_stay_are_named() -> None:
    shared = WHOLE | {"strategy": "fsdp2"}
    told = notes(plan("rtx-3090", 16, **shared))
    now = rate(plan("rtx-3090", 16, **shared))
    kept = rate(plan("rtx-3090", 16, **shared, reshard_after_forward=False))
    assert kept > 1.02 * now
    assert told["kept"].values["less"] == pytest.approx(1 - now / kept, abs=1e-3)


def test_on_a_slow_link_a_larger_batch_is_named() -> None:
    told = notes(plan("rtx-3090", 16, **WHOLE, strategy="ddp"))
    now, larger = (rate(plan("rtx-3090", size, **WHOLE, strategy="ddp")) for size in (16, 64))
    assert larger > 1.02 * now
    assert told["larger"].values["batch"] == 64
    assert told["larger"].values["more"] == pytest.approx(larger / now - 1, abs=1e-3)


def test_what_is_fixed_or_alone_is_not_named() -> None:
    assert "kept" not in notes(plan("rtx-3090", 16, strategy="fsdp2", reshard_after_forward=True))
    assert notes(plan("rtx-3090", 16, strategy="single")) == {}


@pytest.mark.parametrize(("network", "alone"), [("ethernet-10g", True), ("infiniband-ndr", False)])
def test_one_computer_is_named_first_where_the_network_makes_two_slower(
    network: str, alone: bool
) -> None:
    asked = plan("h100-80gb-sxm", 64).model_dump(exclude_none=True)
    machine = asked["machine"] | {"nodes": 2, "network": {"kind": network}}
    two = Plan.model_validate(asked | {"machine": machine})
    advice = advise(two, found(two))
    one = Plan.model_validate(asked)
    best = advise(one, found(one), top=1).choices[0].estimate.time.samples_per_second
    both = advice.choices[0].estimate.time.samples_per_second
    assert best is not None
    assert both is not None
    assert (best.value > both.value) == alone
    named = [note.values for note in advice.first_notes if note.id == "advise.fewer-nodes"]
    assert [round(each["alone"]) for each in named] == ([round(best.value)] if alone else [])
