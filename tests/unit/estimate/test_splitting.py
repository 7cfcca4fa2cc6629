"""Layers split over GPUs (tensor parallelism): what a person sees of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from handmade import product, profile_of

from trainwright.advise import advise
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve, situation_of
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.trial import plan_here
from trainwright.profile import store
from trainwright.workload.defaults import filled

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


def plan(folder: Path, gpu: str = "h100-80gb-sxm", count: int = 4, **changed: Any) -> Plan:
    workload = {"task": "pretrain", "inputs": {"sequence_length": 256}, "effective_batch": 16}
    config = {**LLAMA, **changed.pop("config", {})}
    path = folder / f"{len(json.dumps(config))}" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")
    settings = {"strategy": "fsdp2", "tensor_degree": 2, "micro_batch": 2}
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
        ({"strategy": "ddp"}, "workload.tensor-strategy"),
        ({"workload": {"task": "lora"}, "strategy": "ddp"}, "workload.tensor-task"),
        ({"count": 1, "strategy": "single"}, "workload.tensor-alone"),
        ({"cross_entropy": "chunked"}, "workload.tensor-loss"),
        ({"shard_degree": 2}, "workload.tensor-with"),
        ({"tensor_degree": 3}, "workload.tensor-degree"),
        (
            {"tensor_degree": 8, "machine": {"nodes": 2, "network": {"kind": "ethernet-100g"}}},
            "workload.tensor-degree",
        ),
    ],
)
def test_what_does_not_go_with_split_layers_is_refused(
    folder: Path, changed: dict[str, Any], id: str
) -> None:
    with pytest.raises(UserError) as refused:
        resolve(plan(folder, **changed))
    assert refused.value.message.id == id


def test_all_gpus_train_together(folder: Path) -> None:
    """Two that split a layer, and two such pairs that share what each of them holds."""
    asked = plan(folder)
    found = resolve(asked)
    facts = Facts(found.machine, found.settings, profile_of(product(8, 8, 8)), found.inputs, ())
    assert situation_of(asked, facts).gpu_count == 4


@pytest.mark.parametrize("alone", [{"tensor_degree": 2}, {"shard_degree": 2}])
def test_one_gpu_of_this_computer_tries_the_step_without_the_others(
    folder: Path, alone: dict[str, int]
) -> None:
    asked = plan(folder, **{"tensor_degree": None, "micro_batch": None} | alone)
    found = resolve(asked)
    here = plan_here(asked, found.settings)
    assert filled(here.settings, here.workload, found.machine.gpu.record).strategy == "single"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "id"),
    [
        ({"num_key_value_heads": 1}, "worker.tensor-heads"),
        ({"intermediate_size": 705}, "worker.tensor-size"),
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, "worker.tensor-plan"),
        ({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"]}, "worker.tensor-style"),
    ],
)
def test_models_that_cannot_be_split_say_why(folder: Path, config: dict[str, Any], id: str) -> None:
    found = resolve(plan(folder, config=config))
    assert isinstance(found, Pending)
    with pytest.raises(UserError) as refused:
        store.trace(found.spec, at=found.point, keep=False)
    assert refused.value.message.id == id


@pytest.mark.slow
def test_split_layers_wait_for_each_other_on_their_link(folder: Path) -> None:
    """Two sums a layer forward and five backward, of every token's vector in 16 bits."""
    board, cards = report(plan(folder)), report(plan(folder, "rtx-4090"))
    notes = {one.id: one for one in (*board.notes, *cards.notes)}
    board_note, cards_note = notes["time.note.split"], notes["time.note.split-slow"]
    assert board_note.values["seconds"] < cards_note.values["seconds"]
    tokens, vector, layers, rounds = 2 * 256, 256 * 2, 4, 4
    sums = (7 * layers + 1) * tokens * vector  # the head's input has a gradient too
    gathered = tokens * (vector + 2048 * 2)  # the table's result, and the scores
    assert board_note.values["bytes"] == rounds * (sums + gathered)
    step = board.time.step_seconds
    assert step is not None
    waited = {stage.name: stage.seconds.value for stage in board.time.stages}["communication"]
    assert waited >= board_note.values["seconds"]


WIDE = {
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


@pytest.mark.slow
def test_split_layers_are_chosen_where_weights_outweigh_the_one_sample_of_a_gpu(
    folder: Path,
) -> None:
    free = {"strategy": None, "tensor_degree": None, "micro_batch": None, "config": WIDE}
    few, many = ({"workload": {"effective_batch": size}, **free} for size in (4, 64))
    facts(plan(folder, **few | {"strategy": "fsdp2", "tensor_degree": 2}))
    [best] = advise(plan(folder, **few), facts(plan(folder, **few)), top=1).choices
    assert best.settings.tensor_degree == 2
    assert "tensor_degree" in {reason.setting for reason in best.reasons}
    [best] = advise(plan(folder, **many), facts(plan(folder, **many)), top=1).choices
    assert best.settings.tensor_degree is None
