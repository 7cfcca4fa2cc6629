"""Several computers, joined by a network: what a person sees of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from trainwright.advise import advise, make_it_fit
from trainwright.estimate.time.scaling import ScalingPoint
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan

NDR = {"kind": "infiniband-ndr", "ports": 8}
"""Of a DGX H100."""


def plan(nodes: int = 1, count: int = 8, *, network: Any = None, **settings: Any) -> Plan:
    gpus = [{"id": "h100-80gb-sxm", "count": count}]
    machine = {"gpus": gpus, "nodes": nodes} | ({"network": network} if network else {})
    return Plan.model_validate(
        {
            "model": {"preset": "llama-3.1-8b"},
            "workload": {
                "task": "full",
                "inputs": {"sequence_length": 4096},
                "effective_batch": 128,
            },
            "machine": machine,
            "settings": {"precision": "tf32", "strategy": "fsdp2", "checkpointing": "full"}
            | {"micro_batch": 2}
            | settings,
        }
    )


def report(asked: Plan) -> Report:
    found = resolve(asked)
    assert isinstance(found, Facts)
    return evaluate(asked, found)


def last(report: Report) -> ScalingPoint:
    return report.time.scaling[-1]


def test_two_computers_on_a_wide_network_train_nearly_twice_as_fast() -> None:
    one, two = report(plan()), report(plan(2, network=NDR))
    assert two.settings.accumulation == one.settings.accumulation // 2
    assert last(two).gpus == 16
    ratio = last(two).samples_per_second.value / last(one).samples_per_second.value
    assert 1.7 < ratio < 2.0


def test_ports_that_nobody_states_are_those_of_the_server_and_are_said() -> None:
    """A DGX H100 has eight ConnectX-7 of 400 Gbit/s: NVIDIA's data sheet."""
    assumed, stated = (
        report(plan(2, network={"kind": "infiniband-ndr"})),
        report(plan(2, network=NDR)),
    )
    assert last(assumed).samples_per_second == last(stated).samples_per_second
    ethernet = report(plan(2, network={"kind": "ethernet-100g"}))
    ids = [
        [(note.id, dict(note.values)["ports"]) for note in each.notes if "machine.ports" in note.id]
        for each in (assumed, stated, ethernet)
    ]
    assert ids == [[("machine.ports-each", 8)], [], [("machine.ports-one", 1)]]


def test_a_slow_network_is_said_to_make_it_slower_than_one_computer() -> None:
    slow = report(plan(2, network={"kind": "ethernet-10g"}))
    [note] = [note for note in slow.notes if note.id.startswith("time.note.scaling")]
    values = dict(note.values)
    assert (note.id, values["best"], values["gpus"]) == ("time.note.scaling-too-many", 8, 16)
    # 32 GB of weights twice and as many of gradients, four times a step, by what 10 GbE carries.
    wire = 4 * 3 * 32.12e9 * 15 / 16 / 1.25e9
    assert wire < values["seconds"] < 2 * wire


def test_shares_are_those_of_all_gpus_and_system_memory_that_of_one_computer() -> None:
    one, two = report(plan()), report(plan(2, network=NDR))
    terms = [
        {term.role: term.value for term in each.memory.terms}["optimizer"] for each in (one, two)
    ]
    assert terms[0] == pytest.approx(2 * terms[1], rel=1e-3)
    aside = [
        report(plan(nodes, network=network, shard_offload=True)).memory.host
        for nodes, network in ((1, None), (2, NDR))
    ]
    assert aside[0] is not None
    assert aside[1] is not None
    assert aside[1].value == pytest.approx(aside[0].value / 2, rel=0.3)


def test_a_copy_in_each_computer_sends_gradients_alone_over_the_network() -> None:
    slow = {"kind": "ethernet-100g"}
    one, two = report(plan(2, network=slow)), report(plan(2, network=slow, shard_degree=8))
    (note,) = [note for note in two.notes if note.id.startswith("time.note.scaling")]
    values = dict(note.values)
    # 32 GB of gradients once a step, each of 8 GPUs an eighth; each port sends all of it.
    assert values["bytes"] == pytest.approx(32.12e9 / 8, rel=1e-3)
    assert 32.12e9 / 12.5e9 < values["seconds"] < 2 * 32.12e9 / 12.5e9
    assert last(two).samples_per_second.value > 2 * last(one).samples_per_second.value
    terms = [
        {term.role: term.value for term in each.memory.terms}["optimizer"] for each in (one, two)
    ]
    assert terms[1] == pytest.approx(2 * terms[0], rel=1e-3)


@pytest.mark.parametrize(
    ("network", "degree"), [({"kind": "ethernet-100g"}, 8), (NDR, 16)], ids=["slow", "fast"]
)
def test_advice_weighs_the_network_against_memory(network: Any, degree: int) -> None:
    asked = plan(2, network=network, checkpointing=None, micro_batch=None)
    found = resolve(asked)
    assert isinstance(found, Facts)
    best = advise(asked, found, top=1).choices[0]
    (reason,) = [one for one in best.reasons if one.setting == "shard_degree"]
    assert reason.value == degree
    assert resolve(make_it_fit(asked, advise(asked, found, top=1))).settings == best.settings


@pytest.mark.parametrize(("each", "degree"), [(8, 12), (6, 4)])
def test_a_copy_that_would_straddle_computers_is_refused(each: int, degree: int) -> None:
    with pytest.raises(UserError) as caught:
        resolve(plan(2, each, network=NDR, shard_degree=degree, micro_batch=None))
    assert caught.value.message.id == "workload.shard-degree"


def test_more_modules_than_one_computer_holds_are_asked_about() -> None:
    with pytest.raises(UserError) as caught:
        resolve(plan(count=16))
    assert caught.value.message.id == "machine.impossible.modules"
    assert {"nodes": 2, "each": 8}.items() <= dict(caught.value.message.values).items()


def test_several_computers_need_a_network() -> None:
    with pytest.raises(ValidationError, match="no network"):
        plan(2)
