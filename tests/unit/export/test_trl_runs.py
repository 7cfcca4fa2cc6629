"""What the target ``trl`` writes for pairs of answers runs in TRL's own trainer."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import LLAMA, plan, put, settings, start

from trainwright import export
from trainwright.messages import UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.review.kinds import declared

TRIED = [sys.executable, "train_pairs.py", "--cpu", "--steps", "2", "--selfcheck"]


def pairs(model: Path, task: str, **keys: Any) -> Plan:
    changed = {f"workload.{key}": value for key, value in keys.items()}
    asked = plan({"hf": str(model / "config.json")}, task)
    return with_keys(asked, {"workload.objective": "dpo"} | changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "keys"),
    [
        ("full", {}),
        ("full", {"reference": "precomputed"}),
        ("lora", {}),
        ("lora", {"reference": "precomputed"}),
        ("full", {"objective": "reward"}),
        ("lora", {"objective": "reward"}),
        ("full", {"objective": "grpo", "inputs.new_tokens": 8, "inputs.prompt_tokens": 8}),
        (
            "lora",
            {
                "objective": "grpo",
                "reference": "adapter-off",
                "inputs.new_tokens": 8,
                "inputs.prompt_tokens": 8,
            },
        ),
    ],
)
def test_pairs_are_trained_on_as_the_plan_says(
    tmp_path: Path, model: Path, task: str, keys: dict[str, Any]
) -> None:
    pytest.importorskip("trl")
    asked = pairs(model, task, **keys)
    chosen = settings(checkpointing="full")
    folder = put(tmp_path / "내 실험", "trl", asked, chosen)
    script = "train_grpo.py" if asked.workload.writes else "train_pairs.py"
    done = start([sys.executable, script, *TRIED[2:], "--synthetic"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "NOT IN FORCE" not in done.stdout
    if asked.workload.compared is not None:
        assert f"reference      asked: {asked.workload.compared}" in done.stdout
    if task == "lora" and asked.workload.objective == "reward":
        saved = json.loads((folder / "checkpoints" / "adapter_config.json").read_text())
        assert "score" in saved["modules_to_save"]
    state = json.loads((folder / "checkpoints/checkpoint-2/trainer_state.json").read_text())
    assert state["global_step"] == 2


@pytest.mark.slow
def test_what_is_misspelt_missing_or_not_in_force_is_one_line(tmp_path: Path, model: Path) -> None:
    pytest.importorskip("trl")
    folder = put(tmp_path / "run", "trl", pairs(model, "full"), settings())
    for options, said in (
        (["--synthetic", "--data_name", "x"], "--data_name"),
        (["--synthetic", "--model_name_or_path", str(tmp_path / "none")], "none"),
        (["--synthetic", "--precompute_ref_log_probs", "true"], "not in force"),
        (["--dataset_name", str(tmp_path / "없음")], "없음"),
    ):
        done = start([*TRIED, *options], folder)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr.strip().splitlines()[-1]


def test_every_key_is_one_that_trl_declares(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    asked = pairs(tmp_path, "lora", **{"inputs.mean_tokens": 8})
    text = export.files("trl", asked, settings(cross_entropy="tiled"), {}, "en")["dpo.yaml"]
    assert set(yaml.safe_load(text)) <= declared("trl-dpo").keys


def test_answers_are_written_as_the_plan_says(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    keys = {"objective": "grpo", "rollout": {"updates": 2}, "inputs.new_tokens": 8}
    given = settings(
        cross_entropy="tiled", recipe="trl-grpo", generation="vllm-sleep", memory_share=0.4
    )
    files = export.files("trl", pairs(tmp_path, "lora", **keys), given, {}, "en")
    asked = yaml.safe_load(files["grpo.yaml"])
    assert set(asked) - {"reward_funcs"} <= declared("trl-grpo").keys
    assert asked["reward_funcs"] == ["rewards.reward"]
    assert "TO BE REPLACED" in files["rewards.py"]
    assert asked["steps_per_generation"] == 2 * asked["gradient_accumulation_steps"]
    assert asked["vllm_enable_sleep_mode"]
    assert asked["vllm_gpu_memory_utilization"] == 0.4
    assert asked["beta"] == 0
    assert "max_length" not in asked


def test_what_trl_does_not_say_is_listed_and_other_targets_refuse_pairs(tmp_path: Path) -> None:
    asked = pairs(tmp_path, "lora", reference="model")
    given = settings(cross_entropy="tiled", recipe="trl-dpo")
    said = [one.values for one in export.target("trl").not_expressible(asked, given)]
    assert {"setting": "reference", "value": "model", "instead": "adapter-off"} in said
    assert "input_gradients" not in [one["setting"] for one in said]
    for name in export.ALL.keys() - {"trl", "vllm", "sglang", "ollama"}:
        with pytest.raises(UserError, match="trl"):
            export.files(name, asked, given, {}, "en")
