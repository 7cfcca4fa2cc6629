import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from exporting import SETTINGS, llama, on_two_computers, on_two_gpus, plan, put, settings

from trainwright import export
from trainwright.export.comments import columns
from trainwright.export.sharing import ON_NODES, RUNS, SPLIT
from trainwright.machine.network import Network
from trainwright.messages import Message, UserError, render
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.workload import FullSettings

TARGETS = tuple(export.TARGETS)
SHARING = [name for name, runs in RUNS.items() if "fsdp2" in runs and name not in export.CONFIGS]

OTHERS: dict[str, tuple[Any, ...]] = {
    "recipe": ("trl-sft",),
    "precision": ("tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16", "fp8"),
    "quantization": ("int8", "int4", "nf4", "fp4", "fp8"),
    "optimizer_implementation": ("foreach", "for-loop"),
    "momentum": (0.0,),
    "kbit_preparation": ("all", "norms"),
    "double_quantization": (False,),
    "adapter_dtype": ("weights",),
    "input_gradients": (True,),
    "scores_upcast": ("shifted", "returned", "none"),
    "loss_in_model": (True,),
    "expanded_heads": (True,),
    "separate_experts": (True,),
    "position_tables": (True,),
    "reentrant": (True,),
    "softmax_inputs": (True,),
    "output_kept": ("step", "next"),
    "gradients_cleared": ("before-backward", "zeroed"),
    "framework": ("torch-1.12", "torch-2.0"),
    "kv_cache": ("fp8",),
    "engine": ("vllm",),
    "memory_share": (0.8,),
    "generation": (),  # of grpo, which no program of ours runs: test_trl_runs
    "micro_batch": (4,),
    "accumulation": (2,),
    "checkpointing": ("full", "every-2", "every-3", "selective"),
    "optimizer": (
        *("adamw-8bit", "sgd", "adafactor", "lion", "muon", "paged-adamw-8bit"),
        *("adamw-8bit-torchao", "adamw-4bit", "paged-adamw"),
    ),
    "optimizer_in_backward": (True,),
    "optimizer_offload": ("cpu",),
    "cross_entropy": ("chunked", "fused", "tiled"),
    "activation_offload": (True,),
    "attention": ("eager", "flash"),
    "compile": (True,),
    "channels_last": (True,),
    "allocator": ("expandable",),
    "strategy": ("ddp",),
    "reshard_after_forward": (),  # of fsdp2: test_resharding_and_offload_reach_the_files
    "shard_degree": (),  # of fsdp2: test_a_copy_in_each_computer_reaches_the_files
    "tensor_degree": (),  # test_split_layers_reach_the_files_or_are_refused, and of servers
    "pipeline_stages": (),  # of pp: test_stages_reach_the_files_or_are_refused
    "shard_offload": (),  # of fsdp2: test_resharding_and_offload_reach_the_files
    "learning_rate": (1e-4, None),
    "warmup": (7, None),
    "num_workers": (4, 0),
    "prefetch_factor": (3,),
    "pin_memory": (False,),
    "persistent_workers": (True,),
}
"""For each setting, the values that differ from ``BASE``."""

BASE = settings(num_workers=2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return llama(tmp_path_factory.mktemp("모델"))


@cache
def code(program: str) -> str:
    """A program without the comments, which name every setting anyhow."""
    return ast.unparse(ast.parse(program))


def differ(first: dict[str, str], second: dict[str, str]) -> bool:
    """Whether files do different things; the plain ones, which are quick to compare, first."""
    if first.keys() != second.keys():
        return True
    changed = [name for name in first if first[name] != second[name]]
    return any(not name.endswith(".py") for name in changed) or any(
        code(first[name]) != code(second[name]) for name in changed
    )


def written(target: str, plan: Plan, settings: FullSettings) -> dict[str, str]:
    return export.files(target, plan, settings, {}, "en")


def asking_for(plan: Plan, name: str, value: Any) -> Plan:
    """The plan as if the person had set this, on as many GPUs as it takes."""
    document = plan.model_dump(mode="json", exclude_none=True)
    if name in ("kv_cache", "engine", "memory_share"):
        document["settings"][name] = value
    if name == "strategy":
        document["machine"]["gpus"][0]["count"] = 2
    return Plan.model_validate(document)


def test_a_strategy_is_refused_where_the_files_cannot_run_it(tiny: Plan) -> None:
    with pytest.raises(UserError) as refused:
        export.files("deepspeed", tiny, settings(strategy="fsdp2"), {}, "en")
    assert "fsdp2; export to plain, " in render(refused.value.message, "en")


@pytest.mark.parametrize(
    ("changed", "task", "says"),
    [
        ({"optimizer": "adafactor"}, "full", "adafactor cannot move weights that are shared"),
        ({"quantization": "int8"}, "qlora", "or with qlora in nf4 or fp4 for plain, slurm"),
    ],
)
def test_what_shares_cannot_do_is_refused_in_one_line(
    tmp_path: Path, changed: dict[str, Any], task: str, says: str
) -> None:
    chosen = settings(strategy="fsdp2", **changed)
    with pytest.raises(UserError) as refused:
        export.files("plain", llama(tmp_path, task), chosen, {}, "en")
    assert says in render(refused.value.message, "en")


@pytest.mark.parametrize("changed", [{"reshard_after_forward": False}, {"shard_offload": True}])
@pytest.mark.parametrize("target", SHARING)
def test_resharding_and_offload_reach_the_files(
    tiny: Plan, target: str, changed: dict[str, Any]
) -> None:
    chosen = settings(strategy="fsdp2")
    two = asking_for(tiny, "strategy", "fsdp2")
    usual = written(target, two, chosen)
    assert differ(usual, written(target, two, chosen.model_copy(update=changed)))


@pytest.mark.parametrize("target", SHARING)
def test_a_copy_in_each_computer_reaches_the_files(tiny: Plan, target: str) -> None:
    plan, one = on_two_computers(tiny), settings(strategy="fsdp2")
    copied = one.model_copy(update={"shard_degree": 2})
    assert differ(written(target, plan, one), written(target, plan, copied))


@pytest.mark.parametrize("target", [*SHARING, "torchtitan"])
def test_split_layers_reach_the_files_or_are_refused(tiny: Plan, target: str) -> None:
    plan = on_two_gpus(tiny)
    split = settings(strategy="fsdp2", tensor_degree=2)
    if target not in SPLIT:
        with pytest.raises(UserError) as refused:
            export.files(target, plan, split, {}, "en")
        assert refused.value.message.id == "export.no-splitting"
        return
    assert "parallelize_module" in written(target, plan, split)["train.py"]
    assert "parallelize" not in written(target, plan, settings(strategy="fsdp2"))["train.py"]


@pytest.mark.parametrize("target", [*SHARING, "torchtitan", "lightning", "trl"])
def test_stages_reach_the_files_or_are_refused(tiny: Plan, target: str) -> None:
    plan, stages = on_two_gpus(tiny), settings(strategy="pp", pipeline_stages=2)
    if target not in SPLIT:
        with pytest.raises(UserError) as refused:
            export.files(target, plan, stages, {}, "en")
        assert refused.value.message.id == "export.no-sharding"
        return
    files = written(target, plan, stages)
    assert "return_outputs=False" in files["train.py"]
    assert json.loads(files["plan.json"])["settings"]["pipeline_stages"] == 2


def test_every_setting_is_listed_here() -> None:
    assert set(OTHERS) == set(FullSettings.model_fields)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FullSettings.model_fields)
def test_every_setting_reaches_the_files_or_is_said_to_be_lost(
    tiny: Plan, target: str, name: str
) -> None:
    base = BASE.model_copy(update={"optimizer": "sgd"} if name == "momentum" else {})
    before = written(target, tiny, base)
    if (target, name) == ("transformers", "loss_in_model"):
        return  # its Trainer passes labels to the model whatever the plan says
    for value in OTHERS[name]:
        changed = base.model_copy(update={name: value})
        asked = asking_for(tiny, name, value)
        lost = export.target(target).not_expressible(asked, changed)
        assert differ(before, written(target, asked, changed)) or [
            message for message in lost if message.values["setting"] == name
        ], f"{target} loses {name} = {value} without a word"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("precision", ["fp8", "bf16-mixed"])
def test_says_what_is_written_instead(tiny: Plan, target: str, precision: str) -> None:
    lost = export.target(target).not_expressible(tiny, settings(precision=precision))
    texts = [render(message, "en") for message in lost]
    assert any("bf16-mixed is written instead" in text for text in texts) == (precision == "fp8")


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("target", TARGETS)
def test_programs_compile_and_their_comments_carry_the_reasons(
    tiny: Plan, target: str, language: Any
) -> None:
    reason = Message.of("export.lost.kv-cache", setting="kv_cache")
    files = export.files(target, tiny, SETTINGS, {"precision": reason}, language)
    for name, text in files.items():
        if name.endswith(".py"):
            compile(text, name, "exec")
    first = next(iter(files.values()))
    comments = " ".join(
        line.removeprefix("#").strip() for line in first.splitlines() if line.startswith("#")
    )
    assert f"precision = fp32: {render(reason, language)}" in comments
    assert "작은 라마" in comments
    assert "torch >=2.10,<2.14" in comments
    assert "framework" not in comments


@pytest.mark.parametrize("target", TARGETS)
def test_settings_left_open_share_one_paragraph_of_comments(tiny: Plan, target: str) -> None:
    first = next(iter(export.files(target, tiny, SETTINGS, {}, "en").values()))
    head = [line.removeprefix("#") for line in first.splitlines() if line.startswith("#")]
    comments = " ".join(" ".join(head).split())
    assert comments.count("Left open in the plan") == 1
    unsaid = {"kv_cache", "engine", "memory_share", "framework", "generation"}
    shared = set(FullSettings.model_fields) - unsaid
    for name in (name for name in shared if getattr(SETTINGS, name) is not None):
        assert f"{name} = " in comments


@pytest.mark.parametrize(
    "name",
    ["x\nimport os", "x\r\nimport os", "x\u2028import os", "x\fimport os", "# x", '"""', "\\"],
)
def test_a_plan_name_stays_a_comment(tmp_path: Path, name: str) -> None:
    source = llama(tmp_path)
    named = source.model_copy(update={"name": name})
    programs = [
        next(iter(export.files("plain", case, SETTINGS, {}, "en").values()))
        for case in (source, named)
    ]
    plain, hostile = [ast.dump(ast.parse(program)) for program in programs]
    assert plain == hostile


@pytest.mark.parametrize("language", ["en", "ko"])
def test_comments_fit_the_line_as_linters_count(tiny: Plan, language: Any) -> None:
    text = export.files("plain", tiny, SETTINGS, {}, language)["train.py"]
    assert max(map(columns, text.splitlines())) <= 100


def test_exported_programs_are_clean_for_a_linter(tiny: Plan, tmp_path: Path) -> None:
    for target in TARGETS:
        put(tmp_path / "내보낸 파일" / target, target, tiny)
    for check in (
        ["check", "--select", "E,F,I,B,UP", "--line-length", "100"],
        ["format", "--check"],
    ):
        command = [sys.executable, "-m", "ruff", *check, "--isolated", "--target-version", "py310"]
        if check[0] == "format":
            command += ["--line-length", "100"]
        done = subprocess.run(
            [*command, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_importing_and_writing_needs_no_torch(tiny: Plan) -> None:
    code = (
        "import sys; from trainwright import export; "
        "from trainwright.plan.schema import Plan; from trainwright.workload import FullSettings; "
        "plan = Plan.model_validate_json(sys.argv[1]); "
        "settings = FullSettings.model_validate_json(sys.argv[2]); "
        "[export.files(target, plan, settings, {}, 'ko') for target in export.TARGETS]; "
        "sys.exit(bool({'torch', 'transformers', 'PySide6'} & sys.modules.keys()))"
    )
    documents = [tiny.model_dump_json(exclude_none=True), SETTINGS.model_dump_json()]
    subprocess.run([sys.executable, "-c", code, *documents], check=True)


def test_batch_of_the_files_is_micro_times_accumulation_times_gpus(tiny: Plan) -> None:
    two = asking_for(tiny, "strategy", "ddp")
    files = export.files("plain", two, settings(accumulation=2, strategy="ddp"), {}, "en")
    document = json.loads(files["plan.json"])
    assert document["batch"] == {"effective": 8, "micro": 2, "accumulation": 2, "gpus": 2}
    assert "torchrun --standalone --nproc-per-node=2 train.py" in files["train.py"]


def test_the_step_is_the_traced_one_to_the_letter(tiny: Plan) -> None:
    import trainwright.worker

    traced = Path(trainwright.worker.__file__).parent / "programs" / "step.py"
    source = traced.read_text(encoding="utf-8")
    alone = export.files("plain", tiny, SETTINGS, {}, "en")["train.py"]
    written = {node.name for node in ast.parse(alone).body if isinstance(node, ast.FunctionDef)}
    parts = [
        ast.get_source_segment(source, node)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in written
    ]
    assert len(parts) > 10
    assert all(part is not None and part in alone for part in parts)


def test_unknown_target_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean transformers"):
        export.target("transformer")


def test_inference_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="infer"):
        export.files("plain", llama(tmp_path, "infer"), SETTINGS, {}, "en")


def test_trainer_refuses_models_of_other_libraries() -> None:
    with pytest.raises(UserError, match="export it to plain"):
        export.files("transformers", plan({"timm": "resnet18"}), SETTINGS, {}, "en")


def test_missing_model_file_is_named(tmp_path: Path) -> None:
    gone = plan({"hf": str(tmp_path / "없는 폴더" / "config.json")})
    with pytest.raises(UserError, match="없는 폴더"):
        export.files("plain", gone, SETTINGS, {}, "en")


def test_learning_rate_of_the_plan_wins_and_a_missing_one_names_its_source(tiny: Plan) -> None:
    own = export.files("plain", tiny, settings(learning_rate=0.125), {}, "en")
    open_ = export.files("plain", tiny, settings(learning_rate=None), {}, "en")
    assert json.loads(own["plan.json"])["schedule"]["learning_rate"] == 0.125
    assert json.loads(open_["plan.json"])["schedule"]["learning_rate"] == 3e-4
    assert "learning_rate = 0.0003: " in open_["train.py"]
    assert "Touvron 2023" in open_["train.py"]


def test_a_fine_tuning_is_told_to_name_its_weights(tmp_path: Path) -> None:
    for target in TARGETS:
        tuned, trained = (
            next(iter(export.files(target, llama(tmp_path, task), SETTINGS, {}, "en").values()))
            for task in ("lora", "pretrain")
        )
        tuned = tuned.replace(" \\\n#    ", "")  # as a shell reads the lines
        assert "--data DATA --weights FOLDER-OR-HUB-ID" in tuned
        assert "--data DATA --weights" not in trained


@pytest.mark.parametrize("preset", ["faster-rcnn-r50", "detr-r50", "deeplabv3plus-r50", "yolox-s"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_detector_is_refused_by_name_and_not_written_broken(target: str, preset: str) -> None:
    detector = Plan.model_validate(
        {
            "name": "t",
            "model": {"preset": preset},
            "workload": {"task": "pretrain", "effective_batch": 8},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    with pytest.raises(UserError) as caught:
        export.files(target, detector, BASE, {}, "en")
    assert caught.value.message.values["model"] == presets.find(preset).name


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("preset", ["whisper-tiny", "flux-dit", "sac-mlp"])
def test_a_model_without_data_and_loss_in_the_programs_is_refused_by_name(
    target: str, preset: str
) -> None:
    asked = plan({"preset": preset}, task="pretrain" if preset == "sac-mlp" else "full")
    with pytest.raises(UserError) as caught:
        export.files(target, asked, BASE, {}, "en")
    assert caught.value.message.id in ("export.no-data-for", "export.needs-transformers")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_heads_and_images_that_the_programs_do_not_know_are_refused(
    target: str, tmp_path: Path
) -> None:
    head = llama(tmp_path / "head", task="full", architectures=["LlamaForQuestionAnswering"])
    sees = with_keys(llama(tmp_path / "sees", task="full"), {"workload.inputs.images": 1})
    for asked in (head, sees):
        with pytest.raises(UserError) as caught:
            export.files(target, asked, BASE, {}, "en")
        assert caught.value.message.id == "export.no-data-for"


@pytest.mark.parametrize("target", TARGETS)
def test_files_for_several_computers_start_one_on_each_or_are_refused(
    tiny: Plan, target: str
) -> None:
    two = asking_for(tiny, "strategy", "ddp")
    changed = {"nodes": 2, "network": Network(kind="ethernet-25g")}
    two = two.model_copy(update={"machine": two.machine.model_copy(update=changed)})
    decided = settings(accumulation=1, strategy="ddp")
    if target not in ON_NODES:
        with pytest.raises(UserError, match="2 computers"):
            export.files(target, two, decided, {}, "en")
        return
    text = "\n".join(export.files(target, two, decided, {}, "en").values())
    started = ("--nnodes=2 --nproc-per-node=2", "--nodes=2", "num_machines: 2")
    assert any(each in text for each in started)
