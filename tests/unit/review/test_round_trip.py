"""A file that is read, planned and written for the same tool gives the same run."""

import json
from pathlib import Path

import pytest
from runs import RUNS, Run
from trainerfiles import AXOLOTL, FACTORY, TITAN, TRL, UNSLOTH, Files, reviewed

from trainwright import export
from trainwright.advise import near
from trainwright.export.lost import LOOP
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.file import text_data
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.review import plan_of, sources
from trainwright.workload.weightfiles import config_of as config_file

MACHINE = ("machine.gpus=[{id: a100-80gb}]",)
TUNED = AXOLOTL + "lora_alpha: 32\n"
ASIDE = {"epochs", "samples", "dataset"}
"""Of the data, which no memory and no step depends on."""
FILES: list[tuple[str, Files]] = [
    ("axolotl", {"a.yml": TUNED}),
    ("axolotl", {"a.yml": TUNED.replace("qlora", "lora").replace("load_in_4bit: true\n", "")}),
    ("axolotl", {"a.yml": TUNED.replace("sample_packing: true", "gradient_checkpointing: true")}),
    ("llamafactory", {"f.yaml": FACTORY}),
    ("llamafactory", {"f.yaml": FACTORY + "quantization_bit: 4\nlora_alpha: 32\n"}),
    ("llamafactory", {"f.yaml": FACTORY.replace("lora\nlora_rank: 8", "full\npure_bf16: true")
                      .replace("bf16: true\n", "", 1).replace("bf16: true\n", "")}),
    ("trl", {"s.yaml": TRL}),
    ("trl", {"s.yaml": TRL + "load_in_4bit: true\nlora_r: 32\nmax_length: 512\n"}),
    ("trl", {"s.yaml": "model_name_or_path: gpt2\ndataset_name: d\nmax_length: 512\n"
                       "per_device_train_batch_size: 2\noptim: adamw_bnb_8bit\n"}),
    ("unsloth", {"u.py": UNSLOTH}),
    ("unsloth", {"u.py": UNSLOTH.replace("load_in_4bit=True", "load_in_4bit=False")
                 .replace('"unsloth",', 'True, use_rslora=True, target_modules="all-linear",')
                 .replace("bf16=True", "fp16=True, bf16=False, packing=True")}),
    ("torchtitan", {"t.toml": TITAN}),
    ("torchtitan", {"t.toml": TITAN.replace('"full"', '"selective"')}),
    ("torchtitan", {"t.toml": TITAN.replace("= 8", "= 1")
                    .replace("[par", 'mixed_precision_param = "float32"\n[par')
                    + "[checkpoint]\nenable = true\n"
                    'initial_load_path = "x"\ninitial_load_in_hf = true\n'}),
    ("vllm", {"v.sh": "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 "
                      "--gpu-memory-utilization 0.85 --dtype bfloat16\n"}),
    ("sglang", {"s.sh": "python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B "
                        "--context-length 8192 --mem-fraction-static 0.8 --dtype bfloat16\n"}),
    ("ollama", {"Modelfile": "FROM llama3.1:8b-instruct-q5_K_M\nPARAMETER num_ctx 8192\n"
                             "PARAMETER num_predict 512\n"}),
]  # fmt: skip


def read(folder: Path) -> Plan:
    names = [str(path) for path in sorted(folder.rglob("*")) if path.is_file()]
    return plan_of(sources(names), MACHINE)


def taken_in(folder: Path, run: Run) -> Plan:
    machine = f"machine.gpus=[{{id: a100-80gb, count: {run.gpus}}}]"
    return plan_of(sources([str(folder)]), (machine, *run.changes))


@pytest.mark.parametrize(("target", "files"), FILES)
def test_what_is_read_is_written_as_the_same_run(tmp_path: Path, target: str, files: Files) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    for name, text in files.items():
        (before / name).write_text(text, encoding="utf-8")
    given = read(before)
    facts = near.resolved(given)
    assert isinstance(facts, Facts | Pending)
    export.write(export.files(target, given, facts.settings, {}, "en"), after)
    again = read(after)
    assert again.model == given.model
    old, new = text_data(given), text_data(again)
    kept = {key: value for key, value in old["workload"].items() if key not in ASIDE}
    assert {key: new["workload"].get(key) for key in kept} == kept
    for name in old.get("settings", {}).keys() - {"loader"}:
        assert new["settings"][name] == old["settings"][name], name


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_any_tool_is_written_as_the_same_run(tmp_path: Path, run: Run) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    for name, text in run.files.items():
        (before / name).write_text(text, encoding="utf-8")
    given = taken_in(before, run)
    chosen = near.resolved(given).settings
    export.write(export.files(run.target, given, chosen, {}, "en"), after)
    again = taken_in(after, run._replace(changes=()))
    assert config_of(again) == config_of(given)
    old, new = (plan.workload.model_dump(exclude_none=True) for plan in (given, again))
    assert again.workload.lora == given.workload.lora
    assert old.pop("inputs").items() <= new["inputs"].items()
    assert {key: new.get(key) for key in old.keys() - ASIDE} == {
        key: value for key, value in old.items() if key not in ASIDE
    }
    listed = {one.values["setting"] for one in
              export.target(run.target).not_expressible(given, chosen)}  # fmt: skip
    ours = near.resolved(again).settings
    differs = {name for name, value in chosen if getattr(ours, name) != value}
    open_ = ("learning_rate", "warmup", "memory_share")
    free = {name for name in open_ if getattr(chosen, name) is None}
    assert differs <= listed | free | {*LOOP}


def config_of(plan: Plan) -> object:
    """Return the configuration of a plan's model, whatever names it."""
    source = plan.model
    if source.preset is not None and (preset := presets.find(source.preset)).hf:
        return json.loads(preset.definition())
    if source.hf is not None:
        return json.loads(config_file(Path(source.hf)).read_text(encoding="utf-8"))
    return source


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_any_tool_has_its_errors_and_risks_said(tmp_path: Path, run: Run) -> None:
    found = reviewed(tmp_path, run.files, "a100-80gb", run.gpus)
    assert [one.rule for one in found.findings if one.level != "gain"] == [*run.said]
