"""Layers cut into pipeline stages (1F1B): what a person sees of it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from trainwright.advise import advise
from trainwright.estimate.parallel.stages import cut, order
from trainwright.estimate.parallel.stagetime import bubble_share
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile import store

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 2048,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(autouse=True)
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests trace is traced once, and not kept."""
    monkeypatch.setenv("TRAINWRIGHT_CACHE", str(folder / "cache"))


def plan(folder: Path, gpu: str = "rtx-4090", count: int = 4, **changed: Any) -> Plan:
    workload = {"task": "pretrain", "inputs": {"sequence_length": 256}, "effective_batch": 16}
    config = {**LLAMA, **changed.pop("config", {})}
    path = folder / f"{abs(hash(json.dumps(config)))}" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")
    settings = {"strategy": "pp", "micro_batch": 2}
    return Plan.model_validate(
        {
            "model": {"hf": str(path)},
            "workload": workload | changed.pop("workload", {}),
            "machine": {"gpus": [{"id": gpu, "count": count}]} | changed.pop("machine", {}),
            "settings": settings | changed,
        }
    )


def facts(asked: Plan) -> Facts:
    found = resolve(asked)
    return found.answered(store.trace(found.spec)) if isinstance(found, Pending) else found


def report(asked: Plan) -> Report:
    return evaluate(asked, facts(asked))


@pytest.mark.parametrize(
    ("changed", "id"),
    [
        ({"strategy": "fsdp2", "pipeline_stages": 2}, "workload.stages-strategy"),
        ({"workload": {"task": "lora"}}, "workload.stages-task"),
        ({"workload": {"frozen": ["model.embed_tokens"]}}, "workload.stages-task"),
        ({"count": 1}, "workload.stages-alone"),
        ({"pipeline_stages": 3}, "workload.stages-count"),
        ({"compile": True}, "workload.stages-with"),
        ({"cross_entropy": "chunked"}, "workload.stages-with"),
        ({"gpu": "v100-32gb-sxm", "precision": "fp16-mixed"}, "workload.stages-with"),
        ({"optimizer": "adafactor"}, "workload.sharded-optimizer"),
        ({"micro_batch": 8}, "workload.stages-batches"),
        ({"config": {"model_type": "mixtral"}}, "plan.stages-model"),
        ({"config": {"model_type": "gpt2"}}, "plan.stages-model"),
        ({"config": {"tie_word_embeddings": True}}, "plan.stages-tied"),
        ({"config": {"num_hidden_layers": 3}}, "plan.stages-layers"),
    ],
)
def test_what_does_not_go_with_stages_is_refused(
    folder: Path, changed: dict[str, Any], id: str
) -> None:
    with pytest.raises(UserError) as refused:
        resolve(plan(folder, **changed))
    assert refused.value.message.id == id


def test_each_stage_has_a_micro_batch_by_default(folder: Path) -> None:
    found = resolve(plan(folder, micro_batch=None))
    assert (found.settings.micro_batch, found.settings.accumulation) == (4, 4)


def test_a_pipeline_of_one_forward_one_backward_is_that_of_its_paper() -> None:
    """Narayanan et al. 2021, figure 4: four devices, of which the second has three in flight."""
    passes = [("F" if forward else "B") + str(n + 1) for forward, n in order(3, 8)]
    assert " ".join(passes) == "F1 F2 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 F8 B6 B7 B8"
    assert bubble_share(4, 8) == pytest.approx(3 / 11)


@pytest.mark.parametrize(
    ("layers", "stages", "head", "sizes"),
    [(32, 8, 2, [4, 4, 4, 4, 4, 5, 5, 2]), (6, 2, 1, [4, 2]), (4, 4, 3, [1, 1, 1, 1])],
)
def test_the_last_stage_has_fewer_layers_for_its_head(
    layers: int, stages: int, head: int, sizes: list[int]
) -> None:
    cuts = cut(layers, stages, head)
    assert [end - begin for begin, end in pairwise(cuts)] == sizes


@pytest.mark.slow
def test_more_micro_batches_make_the_bubble_smaller_and_a_stage_needs_less_than_all(
    folder: Path,
) -> None:
    few = report(plan(folder, micro_batch=4))
    many = report(plan(folder, micro_batch=2))
    shares = [
        next(note for note in one.notes if note.id == "time.note.bubble").values["share"]
        for one in (few, many)
    ]
    assert shares[0] > shares[1] > 0
    alone = report(plan(folder, strategy="ddp", micro_batch=2))
    assert many.memory.allocated_peak.value < alone.memory.allocated_peak.value


WIDE = {
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


@pytest.mark.slow
def test_stages_are_chosen_where_a_slow_network_would_pass_all_gradients(folder: Path) -> None:
    slow: dict[str, Any] = {"nodes": 4, "gpus": [{"id": "h100-80gb-sxm", "count": 1}]}
    free: dict[str, Any] = {"strategy": None, "config": WIDE, "workload": {"effective_batch": 32}}
    apart = plan(folder, machine=slow | {"network": {"kind": "ethernet-10g"}}, **free)
    joined = plan(folder, gpu="h100-80gb-sxm", **free)
    [best] = advise(apart, facts(apart), top=1).choices
    assert best.settings.strategy == "pp"
    (why,) = [reason for reason in best.reasons if reason.setting == "pipeline_stages"]
    (note,) = [one for one in best.estimate.notes if one.id == "time.note.bubble"]
    assert why.because.values["bubble"] == pytest.approx(note.values["share"])
    [best] = advise(joined, facts(joined), top=1).choices
    assert best.settings.strategy != "pp"


@pytest.mark.slow
def test_each_stage_has_its_memory_and_fewer_gpus_their_own_pipeline(folder: Path) -> None:
    asked = plan(folder, count=8, pipeline_stages=4)
    found = report(asked)
    stages = [stage.value for stage in found.stages]
    assert len(stages) == 4
    assert max(stages) == found.memory.allocated_peak.value
    assert [stage.name.values["first"] for stage in found.stages] == [1, 2, 3, 4]
    # Three GPUs hold three stages, five to seven no whole number of copies of four.
    points = found.time.scaling
    assert [point.gpus for point in points] == [1, 2, 3, 4, 8]
    assert {point.effective_batch for point in points} == {16}
    last, rate = points[-1], found.time.samples_per_second
    assert rate is not None
    assert last.samples_per_second.value == pytest.approx(rate.value)
    alone = report(plan(folder, count=1, strategy="single", workload={"effective_batch": 16}))
    assert alone.time.samples_per_second is not None
    assert points[0].samples_per_second.value == pytest.approx(alone.time.samples_per_second.value)
    assert last.efficiency.interval is None  # no run in stages was timed


@pytest.mark.slow
def test_no_trainer_that_cannot_take_stages_is_reckoned_with(folder: Path) -> None:
    assert report(plan(folder, strategy="ddp")).likely_bytes is not None
    assert report(plan(folder)).likely_bytes is None
