"""Targets whose tool needs nothing but its own file: what is written is what is read again."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import llama, settings

from trainwright import export
from trainwright.messages import UserError, render
from trainwright.plan.schema import Plan
from trainwright.review import plan_of, sources
from trainwright.review.kinds import KINDS, declared
from trainwright.workload import FullSettings

TRAINERS = {"trl": "trl-sft", "axolotl": "axolotl", "llamafactory": "llamafactory"}


def plan(preset: str, task: str, **sections: Any) -> Plan:
    workload = {"task": task, "effective_batch": 16, "inputs": {"sequence_length": 1024}}
    return Plan.model_validate(
        {
            "name": "x",
            "model": {"preset": preset},
            "workload": {**workload, **sections.pop("workload", {})},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


LORA = {"lora": {"rank": 8, "alpha": 16, "targets": ["q_proj", "v_proj"], "dropout": 0.1}}
PLANS = [
    (plan("llama-3.1-8b", "lora", workload=LORA), settings(precision="bf16-mixed", warmup=10)),
    (
        plan("qwen-2.5-7b", "qlora", workload=LORA),
        settings(
            precision="bf16-mixed",
            quantization="nf4",
            checkpointing="full",
            optimizer="paged-adamw-8bit",
            num_workers=4,
        ),
    ),
    (plan("gpt2", "full"), settings(precision="bf16", optimizer="adafactor", attention="flash")),
]


@pytest.mark.parametrize("target", TRAINERS)
@pytest.mark.parametrize(("given", "decided"), PLANS)
def test_what_is_written_reads_as_the_same_run(
    tmp_path: Path, target: str, given: Plan, decided: FullSettings
) -> None:
    decided = decided.model_copy(update={"accumulation": 8})
    export.write(export.files(target, given, decided, {}, "ko"), tmp_path)
    (path,) = tmp_path.iterdir()
    read = plan_of(sources([str(path)]), ("machine.gpus=[{id: rtx-4090}]",))
    assert (read.model, read.workload.task) == (given.model, given.workload.task)
    assert read.workload.lora == given.workload.lora
    assert read.workload.effective_batch == 16
    assert read.workload.inputs.sequence_length == 1024
    for name in ("micro_batch", "accumulation", "precision", "optimizer", "attention"):
        assert getattr(read.settings, name) == getattr(decided, name), name
    assert (read.settings.checkpointing or "none") == decided.checkpointing
    assert (read.settings.quantization or "none") == decided.quantization
    assert read.settings.loader.num_workers == decided.num_workers


@pytest.mark.parametrize("target", TRAINERS)
@pytest.mark.parametrize(("given", "decided"), PLANS)
def test_every_key_is_one_that_the_tool_declares(
    target: str, given: Plan, decided: FullSettings
) -> None:
    (text,) = export.files(target, given, decided, {}, "en").values()
    kind = KINDS[TRAINERS[target]]
    known = declared(str(kind.listed)).keys | set(kind.open)
    assert set(yaml.safe_load(text)) <= known


@pytest.mark.parametrize("target", TRAINERS)
def test_what_a_file_cannot_say_is_listed(tmp_path: Path, target: str) -> None:
    given = llama(tmp_path, "full")
    base = settings(num_workers=2)
    before = export.files(target, given, base, {}, "en")
    changes = {
        **{"precision": "fp8", "checkpointing": "selective", "optimizer": "muon"},
        **{"channels_last": True, "allocator": "expandable", "optimizer_in_backward": True},
        **{"compile": True, "pin_memory": False, "persistent_workers": True, "attention": "eager"},
        **{"kv_cache": "fp8", "framework": "torch-1.12", "scores_upcast": "none"},
    }
    for name, value in changes.items():
        changed = base.model_copy(update={name: value})
        after = export.files(target, given, changed, {}, "en")
        lost = export.target(target).not_expressible(given, changed)
        texts = [yaml.safe_load(next(iter(one.values()))) for one in (before, after)]
        listed = name in [message.values["setting"] for message in lost]
        if name == "kv_cache":
            continue  # a plan that trains has none
        assert listed or texts[0] != texts[1], f"{target} loses {name}"
        assert all(render(one, "ko") != one.id for one in lost)


def test_servers_serve_and_trainers_train() -> None:
    with pytest.raises(UserError, match="trains"):
        export.files("vllm", PLANS[0][0], PLANS[0][1], {}, "en")
    served = Plan.model_validate(
        {
            "name": "x\n--evil",
            "model": {"preset": "llama-3.1-8b"},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 1000, "new_tokens": 24}},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    decided = settings(precision="bf16", engine="vllm", micro_batch=4, memory_share=0.8)
    for target in ("vllm", "sglang", "ollama"):
        (text,) = export.files(target, served, decided, {}, "en").values()
        assert "--evil" not in text
        assert "1024" in text
    with pytest.raises(UserError, match="infer"):
        export.files("axolotl", served, decided, {}, "en")


@pytest.mark.parametrize("target", TRAINERS)
def test_a_task_that_a_file_cannot_say_is_refused(target: str) -> None:
    with pytest.raises(UserError, match="prefix"):
        export.files(target, plan("gpt2", "prefix"), settings(), {}, "en")


def test_all_linear_layers_of_a_mixture_are_not_left_to_trl():
    """PEFT would adapt the experts too, which the plan leaves alone."""
    mixture = plan("mixtral-8x7b", "lora")
    with pytest.raises(UserError) as caught:
        export.files("trl", mixture, settings(precision="bf16-mixed"), {}, "en")
    assert caught.value.message.id == "export.mixture-targets"
    named = plan("mixtral-8x7b", "lora", workload=LORA)
    assert export.files("trl", named, settings(precision="bf16-mixed"), {}, "en")


def test_all_linear_is_written_as_each_tool_has_it():
    words = {"trl": "all-linear", "llamafactory": "all", "axolotl": True}
    keys = {"trl": "lora_target_modules", "llamafactory": "lora_target",
            "axolotl": "lora_target_linear"}  # fmt: skip
    asked = plan("llama-3.1-8b", "lora", workload={"lora": {"targets": ["all-linear"]}})
    for target, word in words.items():
        (text,) = export.files(target, asked, settings(precision="bf16-mixed"), {}, "en").values()
        assert yaml.safe_load(text)[keys[target]] == word
