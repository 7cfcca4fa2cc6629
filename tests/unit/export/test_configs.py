"""Targets whose tool needs nothing but its own file: what is written is what is read again."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import llama, on_two_computers, on_two_gpus, settings

from trainwright import export
from trainwright.cli.run import run
from trainwright.messages import UserError, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.review import plan_of, sources
from trainwright.review.kinds import KINDS, declared
from trainwright.workload import FullSettings

TRAINERS = {"trl": "trl-sft", "axolotl": "axolotl", "llamafactory": "llamafactory"}


def plan(preset: str, task: str, **sections: Any) -> Plan:
    workload: dict[str, Any] = {"task": task}
    if task != "infer":
        workload |= {"effective_batch": 16, "inputs": {"sequence_length": 1024}}
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


@pytest.mark.parametrize("target", [*TRAINERS, "unsloth"])
@pytest.mark.parametrize(("given", "decided"), PLANS)
def test_what_is_written_reads_as_the_same_run(
    tmp_path: Path, target: str, given: Plan, decided: FullSettings
) -> None:
    if target == "unsloth" and not given.workload.adapts:
        return  # it is refused: test_unsloth_is_written_for_adapters_on_one_gpu
    decided = decided.model_copy(update={"accumulation": 8})
    export.write(export.files(target, given, decided, {}, "ko"), tmp_path)
    (path,) = tmp_path.iterdir()
    read = plan_of(sources([str(path)]), ("machine.gpus=[{id: rtx-4090}]",))
    assert (read.model, read.workload.task) == (given.model, given.workload.task)
    assert read.workload.lora == given.workload.lora
    assert read.workload.effective_batch == 16
    assert read.workload.inputs.sequence_length == 1024
    for name in ("micro_batch", "accumulation", "precision", "optimizer"):
        assert getattr(read.settings, name) == getattr(decided, name), name
    assert (read.settings.attention or "sdpa") == decided.attention
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


@pytest.mark.parametrize(
    ("machine", "copies"),
    [
        ({"gpus": [{"id": "rtx-4090", "count": 2}]}, 2),
        ({"gpus": [{"id": "rtx-4090"}, {"id": "rtx-3090"}]}, 1),  # of which one serves
        ({"local": True}, 1),  # whose GPUs the plan does not name
    ],
)
def test_a_server_runs_as_many_copies_as_the_estimate_counts(
    machine: dict[str, Any], copies: int
) -> None:
    served = Plan.model_validate(
        {
            "model": {"preset": "llama-3.1-8b"},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 1000, "new_tokens": 24}},
            "machine": machine,
        }
    )
    decided = settings(precision="bf16", engine="vllm", micro_batch=4)
    (text,) = export.files("vllm", served, decided, {}, "en").values()
    assert ("--data-parallel-size 2" in text) == (copies == 2)
    assert f"--max-num-seqs {4 // copies}" in text


@pytest.mark.parametrize("target", ["vllm", "sglang"])
def test_a_server_splits_its_layers_over_the_gpus_of_a_copy(target: str) -> None:
    """vLLM: docs, Parallelism and Scaling; SGLang: docs, Server Arguments."""
    served = Plan.model_validate(
        {
            "model": {"preset": "llama-3.1-8b"},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 1000, "new_tokens": 24}},
            "machine": {"gpus": [{"id": "rtx-4090", "count": 4}]},
        }
    )
    decided = settings(precision="bf16", engine=target, micro_batch=4, tensor_degree=2)
    (text,) = export.files(target, served, decided, {}, "en").values()
    assert "--tensor-parallel-size 2" in text
    assert "--data-parallel-size 2" in text


def test_each_engine_has_its_own_word_for_a_cache_in_fp8() -> None:
    """SGLang 0.5.23 refuses vLLM's plain fp8 (``sglang/srt/server_args.py``)."""
    served = Plan.model_validate(
        {
            "model": {"preset": "qwen-3-30b-a3b"},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 1000, "new_tokens": 24}},
            "machine": {"gpus": [{"id": "h100-80gb-sxm"}]},
        }
    )
    for target, word in (("vllm", "fp8"), ("sglang", "fp8_e4m3")):
        decided = settings(precision="bf16", engine=target, kv_cache="fp8")
        (text,) = export.files(target, served, decided, {}, "en").values()
        assert f"--kv-cache-dtype {word}\n" in text
        assert "Qwen/Qwen3-30B-A3B" in text


def unsloth(given: Plan, **decided: Any) -> str:
    (text,) = export.files("unsloth", given, settings(**decided), {}, "ko").values()
    return text


def test_unsloth_is_written_for_adapters_on_one_gpu() -> None:
    with pytest.raises(UserError, match="full"):
        unsloth(plan("gpt2", "full"))
    two = on_two_gpus(plan("llama-3.1-8b", "lora"))
    with pytest.raises(UserError) as refused:
        unsloth(two, strategy="ddp")
    assert "one GPU" in render(refused.value.message, "en")


def test_unsloth_offloads_where_the_plan_does_and_listed_settings_are_not_written() -> None:
    given = plan("llama-3.1-8b", "lora", workload=LORA)
    assert 'use_gradient_checkpointing="unsloth"' in unsloth(
        given, checkpointing="full", activation_offload=True
    )
    assert "use_gradient_checkpointing=True" in unsloth(given, checkpointing="selective")
    assert "use_gradient_checkpointing=False" in unsloth(given)
    base = settings(precision="bf16-mixed", cross_entropy="chunked")
    changes = {"precision": "bf16", "compile": True, "checkpointing": "every-2",
               "attention": "eager", "optimizer": "muon", "activation_offload": True,
               "cross_entropy": "fused", "allocator": "expandable"}  # fmt: skip
    target = export.target("unsloth")
    assert target.not_expressible(given, base) == ()
    for name, value in changes.items():
        lost = target.not_expressible(given, base.model_copy(update={name: value}))
        assert name in [message.values["setting"] for message in lost], name


def test_unsloth_is_a_clean_script_in_which_names_are_data(tmp_path: Path) -> None:
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    path = "d\"'\u2028\U000e0041\nx.jsonl"
    lora = {"rank": 8, "alpha": 16, "targets": [*layers, "lm_head"]}
    workload = {"lora": lora, "dataset": {"path": path}}
    text = unsloth(plan("llama-3.1-8b", "lora", workload=workload), precision="fp16-mixed")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (made,) = [call for call in calls if getattr(call.func, "id", "") == "SFTConfig"]
    assert {keyword.arg for keyword in made.keywords} <= declared("trl-sft").keys
    (loaded,) = [call for call in calls if getattr(call.func, "id", "") == "load_dataset"]
    assert ast.literal_eval(loaded.args[0]) == "json"
    assert {k.arg: ast.literal_eval(k.value) for k in loaded.keywords}["data_files"] == path
    (tmp_path / "t.py").write_text(text, encoding="utf-8")
    for check in (["check", "--select", "E,F,I,B,UP"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *check, "--isolated", "--line-length", "100"]
        done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def titan(given: Plan, **decided: Any) -> dict[str, Any]:
    (text,) = export.files("torchtitan", given, settings(**decided), {}, "ko").values()
    return tomllib.loads(text)


def test_torchtitan_gets_keys_that_it_declares_and_data_as_data() -> None:
    path = "d\"'\u2028\U000e0041\x7f\n[x]"
    given = plan("qwen-3-8b", "full", workload={"dataset": {"path": path}, "samples": 1000})
    found = titan(given, precision="fp8", checkpointing="every-3", num_workers=2, accumulation=1)
    assert found["training"]["dataset_path"] == path
    assert found["training"]["steps"] == 500  # 2 samples each
    assert found["activation_checkpoint"] == {"mode": "selective", "selective_ac_option": "3"}
    known = declared("torchtitan").keys
    assert {f"{name}.{key}" for name, keys in found.items() for key in keys} <= known


def test_torchtitan_divides_the_gpus_as_the_plan_does(tmp_path: Path) -> None:
    given = on_two_computers(plan("llama-3.1-8b", "pretrain"))
    degrees = ("data_parallel_replicate_degree", "data_parallel_shard_degree")
    cases: tuple[tuple[dict[str, Any], tuple[int, int]], ...] = (
        ({"strategy": "single"}, (1, 1)),
        ({"strategy": "ddp"}, (4, 1)),
        ({"strategy": "fsdp2"}, (1, -1)),  # all that there are
        ({"strategy": "fsdp2", "shard_degree": 2}, (2, 2)),
    )
    for decided, expected in cases:
        found = titan(given, **decided)["parallelism"]
        assert tuple(found[name] for name in degrees) == expected
        folder = tmp_path / str(expected)
        export.write(export.files("torchtitan", given, settings(**decided), {}, "en"), folder)
        changes = ("machine.gpus=[{id: rtx-4090, count: 4}]",)
        read = plan_of(sources([str(folder / "torchtitan.toml")]), changes).settings
        assert (read.strategy or "single") == decided["strategy"]
        assert read.shard_degree == decided.get("shard_degree")


def test_torchtitan_lists_what_it_replaces() -> None:
    given, base = plan("llama-3.1-8b", "pretrain"), settings(precision="bf16-mixed")
    changes = {"precision": "tf32", "optimizer": "lion", "cross_entropy": "fused",
               "attention": "flash", "activation_offload": True, "channels_last": True,
               "optimizer_offload": "cpu", "reentrant": True}  # fmt: skip
    target = export.target("torchtitan")
    assert target.not_expressible(given, base) == ()
    for name, value in changes.items():
        lost = target.not_expressible(given, base.model_copy(update={name: value}))
        assert [message.values["setting"] for message in lost] == [name]


def test_torchtitan_refuses_adapters_and_models_that_it_lacks() -> None:
    with pytest.raises(UserError, match="lora"):
        titan(plan("llama-3.1-8b", "lora"))
    with pytest.raises(UserError) as refused:
        titan(plan("gpt2", "full"))
    assert "llama-3.1-8b" in render(refused.value.message, "en")


@pytest.mark.parametrize("target", TRAINERS)
def test_a_task_that_a_file_cannot_say_is_refused(target: str) -> None:
    with pytest.raises(UserError, match="prefix"):
        export.files(target, plan("gpt2", "prefix"), settings(), {}, "en")


def test_all_linear_layers_of_a_mixture_are_not_left_to_trl():
    """PEFT would adapt the experts too, which the plan leaves alone."""
    mixture = plan("mixtral-8x7b", "lora")
    with pytest.raises(UserError) as caught:
        export.files("trl", mixture, settings(precision="bf16-mixed"), {}, "en")
    assert caught.value.message.id == "export.spared-layers"
    named = plan("mixtral-8x7b", "lora", workload=LORA)
    assert export.files("trl", named, settings(precision="bf16-mixed"), {}, "en")


@pytest.mark.parametrize("target", [*TRAINERS, "unsloth"])
def test_all_linear_layers_are_not_asked_for_where_peft_refuses_some(target: str) -> None:
    """PEFT raises a ValueError for all-linear of these (tuners_utils.py)."""
    hybrid = plan("falcon-h1-0.5b", "lora")
    with pytest.raises(UserError) as caught:
        export.files(target, hybrid, settings(precision="bf16-mixed"), {}, "en")
    assert caught.value.message.id == "export.spared-layers"


def test_all_linear_is_written_as_each_tool_has_it():
    words = {"trl": "all-linear", "llamafactory": "all", "axolotl": True}
    keys = {"trl": "lora_target_modules", "llamafactory": "lora_target",
            "axolotl": "lora_target_linear"}  # fmt: skip
    asked = plan("llama-3.1-8b", "lora", workload={"lora": {"targets": ["all-linear"]}})
    for target, word in words.items():
        (text,) = export.files(target, asked, settings(precision="bf16-mixed"), {}, "en").values()
        assert yaml.safe_load(text)[keys[target]] == word


def test_a_share_with_which_the_engine_does_not_start_is_said_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And on the screen: vLLM refuses to start with a cache smaller than one request."""
    given = plan("llama-3.1-8b", "infer", workload={"inputs": {"prompt_tokens": 4000}})
    path = tmp_path / "p.plan.yaml"
    small = with_keys(given, {"settings.engine": "vllm", "settings.memory_share": 0.6})
    file.write(small, path)
    run(["export", str(path), "--to", "vllm", "-o", str(tmp_path / "v"), "--json"], lambda _p: 0)
    warning = json.loads(capsys.readouterr().out)["warning"]
    assert "does not start" in warning
    text = (tmp_path / "v" / "serve.sh").read_text(encoding="utf-8")
    assert "does not start" in text.replace("\n# ", " ")


def test_a_checkpoint_that_is_published_so_is_not_called_lost() -> None:
    """openai/gpt-oss-20b holds MXFP4; of other models it is another checkpoint."""
    for preset, lost in (("gpt-oss-20b", False), ("olmoe-1b-7b", True)):
        given = Plan.model_validate(
            {
                "model": {"preset": preset},
                "workload": {"task": "infer", "inputs": {"prompt_tokens": 8, "new_tokens": 8}},
                "machine": {"gpus": [{"id": "rtx-4090"}]},
            }
        )
        served = settings(engine="vllm", quantization="mxfp4")
        assert bool(export.target("vllm").not_expressible(given, served)) is lost
