"""Files in styles that people publish: what a review must not say of them, and what it must."""

import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import FSDP
from trainerfiles import (
    FACTORY,
    HERE,
    MEGATRON,
    MOSAIC,
    NANO,
    NEMO,
    NEW_TITAN,
    OWN,
    SKY,
    SWIFT,
    TITAN,
    TRL,
    V1,
    VERL,
    args,
    reviewed,
)

from trainwright.advise import near
from trainwright.cli import planning
from trainwright.cli.run import run
from trainwright.messages import Message, UserError
from trainwright.profile import store
from trainwright.review import sources

LORA_8B = """\
model_name_or_path: meta-llama/Llama-3.1-8B
dataset_name: d
use_peft: true
per_device_train_batch_size: 1
max_length: 2048
gradient_checkpointing: true
dataloader_num_workers: 4
"""
FULL_8B = LORA_8B.replace("use_peft: true\n", "")
FOUR_COMPUTERS = """\
compute_environment: LOCAL_MACHINE
deepspeed_config: {deepspeed_multinode_launcher: standard, zero_stage: 3}
distributed_type: DEEPSPEED
machine_rank: 0
main_process_ip: 10.0.0.1
mixed_precision: bf16
num_machines: 4
num_processes: 32
"""


@pytest.fixture
def answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Return exit code and JSON of a review, which may not trace."""

    def refused(*_args: object, **_named: object) -> None:
        raise AssertionError("a trace takes too long for a review")

    monkeypatch.setattr(store, "trace", refused)

    def reviewing(*words: str) -> tuple[int, dict[str, Any]]:
        code = run(["review", *words, "--json"], lambda _path: 0)
        return code, json.loads(capsys.readouterr().out)

    return reviewing


def named(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("adapter_config.json", json.dumps({
            "peft_type": "LOHA", "r": 8, "alpha": 8, "module_dropout": 0.0,
            "target_modules": ["q_proj"], "base_model_name_or_path": "Qwen/Qwen2.5-7B"})),
        ("adapter_config.json", json.dumps({
            "peft_type": "IA3", "target_modules": ["k_proj"], "feedforward_modules": ["down_proj"],
            "base_model_name_or_path": "Qwen/Qwen2.5-7B"})),
        ("t.py", "model = AutoModelForCausalLM.from_pretrained('gpt2')\n"
                 "peft = IA3Config(task_type='CAUSAL_LM')\n"
                 "args = SFTConfig(max_length=512, dataloader_num_workers=2)\n"),
    ],
)  # fmt: skip
def test_adapters_that_are_not_planned_are_neither_full_training_nor_wrong(
    tmp_path: Path, name: str, text: str
) -> None:
    found = reviewed(tmp_path, {name: text}, "rtx-4090")
    assert found.planned.plan is None
    assert found.unestimated is not None
    assert found.unestimated.id == "review.adapter-unplanned"
    assert not [one for one in found.findings if one.level in ("error", "risk")]


@pytest.mark.parametrize("name", ["PROMPT_TUNING", "PromptTuningConfig"])
def test_prompts_are_no_low_rank_adapters(tmp_path: Path, name: str) -> None:
    text = f"peft = {name}(num_virtual_tokens=8)\nargs = SFTConfig()\n"
    files = {"t.py": "model = AutoModelForCausalLM.from_pretrained('gpt2')\n" + text}
    if name.isupper():
        keys = {"peft_type": name, "num_virtual_tokens": 8, "base_model_name_or_path": "gpt2"}
        files = {"adapter_config.json": json.dumps(keys)}
    plan = reviewed(tmp_path, files, "rtx-4090").planned.plan
    assert plan is not None
    assert plan.workload.task == "prompt"


def test_switches_that_are_on_by_themselves_are_turned_off(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    line = "--output_dir o --no_remove_unused_columns --bf16 --use_cpu"
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    (theirs,) = parser.parse_args_into_dataclasses(line.split())
    assert theirs.remove_unused_columns is False
    found = reviewed(tmp_path, f"trl sft --model_name_or_path gpt2 --dataset_name d {line}", "l4")
    assert not found.errors


def test_several_computers_are_planned_as_such(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yaml": FOUR_COMPUTERS, "t.json": args()}, "a100-80gb", 8)
    assert not found.errors
    from trainwright.review import review, sources

    def answer(_plan: object) -> Any:
        raise UserError(Message.of("review.no-model"))

    paths = [str(tmp_path / "a.yaml"), str(tmp_path / "t.json")]
    machine = {"gpus": [{"id": "a100-80gb"}]}
    found = review(sources(paths), machine, answer, changes=["model.preset=llama-3.1-8b"])
    assert found.planned.plan is not None
    assert (found.planned.plan.machine.nodes, found.planned.plan.machine.gpu_count) == (4, 32)
    assert found.planned.plan.workload.effective_batch == 64
    asked = {one.key: one.taken for one in found.planned.asked}
    assert asked["machine.gpus[0].count"] == 32
    assert "machine.network.kind" in asked  # no file says it


def test_weights_that_trl_loads_in_32_bits_count(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    path = named(tmp_path, "s.yaml", LORA_8B)
    code, found = answered(path, "--machine", "rtx-4090")
    assert code == 1
    (error,) = (one for one in found["findings"] if one["level"] == "error")
    assert "32 bits" in error["message"]
    (way,) = (one for one in found["findings"] if one["level"] == "way")
    assert [(one["key"], one["value"]) for one in way["changes"]] == [("dtype", "bfloat16")]
    assert way["memory_bytes"] == pytest.approx(-2 * 8.03e9, rel=0.02)
    named(tmp_path, "s.yaml", LORA_8B + "dtype: bfloat16\n")
    code, found = answered(path, "--machine", "rtx-4090")
    assert code == 0
    assert not [one for one in found["findings"] if one["level"] != "gain"]


def test_trl_loads_in_32_bits(tmp_path: Path) -> None:
    utils = pytest.importorskip("trl.trainer.utils")
    import torch
    import transformers

    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=16)
    model = transformers.GPT2LMHeadModel(config).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    assert utils.create_model_from_path(str(tmp_path)).dtype == torch.float32
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path).dtype == torch.bfloat16


def test_adapters_in_place_of_full_training_come_with_narrow_weights(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    found = answered(named(tmp_path, "s.yaml", FULL_8B), "--machine", "rtx-4090")[1]
    ways = [
        {one["key"]: one["value"] for one in way["changes"]}
        for way in found["findings"] if way["level"] == "way"
    ]  # fmt: skip
    adapters = [way for way in ways if way.get("use_peft")]
    assert [way.get("load_in_4bit", False) for way in adapters] in ([False, True], [True, False])
    assert all(way["dtype"] == "bfloat16" for way in adapters)


def test_a_way_to_16_bit_weights_does_not_switch_autocast_off(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    text = FACTORY.replace("lora\nlora_rank: 8", "full")
    found = answered(named(tmp_path, "f.yaml", text), "--machine", "h100-80gb")[1]
    ways = [one for one in found["findings"] if one["level"] == "way"]
    assert ways
    changed = [(one["key"], one["value"]) for way in ways for one in way["changes"]]
    assert ("bf16", False) not in changed


def test_a_file_of_deepspeed_that_is_not_there_leaves_the_verdict_open(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    text = FACTORY.replace("lora\nlora_rank: 8", "full") + "deepspeed: ds_z3.json\n"
    code, found = answered(named(tmp_path, "f.yaml", text), "--machine", "h100-80gb")
    (memory,) = (one for one in found["findings"] if one["rule"] == "memory")
    assert memory["level"] == "risk"
    assert "ds_z3.json" in memory["message"]
    assert code == 1


def test_a_server_that_is_split_is_planned_as_it_is(
    answered: Callable[..., Any],
) -> None:
    line = "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4"
    found = answered(line, "--machine", "a100-80gb")[1]
    assert found["plan"]["settings"]["tensor_degree"] == 4
    assert found["estimate"]["verdict"] == "fits"
    assert not [one for one in found["findings"] if one["level"] == "way"]


@pytest.mark.parametrize("files", [{"m.sh": MEGATRON}, {"t.toml": TITAN.replace(
    "= 8", "= 4\npipeline_parallel_degree = 2")}])  # fmt: skip
def test_a_model_split_in_a_way_that_no_plan_knows_is_not_refused_for_its_batch(
    tmp_path: Path, files: dict[str, str]
) -> None:
    found = reviewed(tmp_path, files, "h100-80gb", 8 if "t.toml" in files else 4)
    assert found.planned.plan is not None
    near.resolved(found.planned.plan)  # raises where the batch does not divide
    assert found.planned.not_planned


def test_a_run_far_too_large_is_told_of_smaller_ones(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    found = answered(
        named(tmp_path, "s.yaml", FULL_8B.replace("8B", "70B")), "--machine", "rtx-4090"
    )[1]
    assert [one["rule"] for one in found["findings"] if one["level"] == "error"] == ["memory"]


def test_what_needs_no_trace_is_said_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = []

    def tracing(*_args: object, **_named: object) -> None:
        before.append(capsys.readouterr().out)
        raise UserError(Message.of("review.no-model"))

    monkeypatch.setattr(planning, "facts", tracing)
    path = named(tmp_path, "s.yaml", TRL + "use_dora: true\nuse_cache: true\nwarmup_ratio: 0.1\n")
    assert run(["review", path, "--machine", "rtx-4090"], lambda _path: 0) == 1
    assert "warmup_ratio" in before[0]
    assert "traced" in before[0]
    after = capsys.readouterr().out
    assert "warmup_steps in" not in after  # not a second time
    assert "Not estimated" in after


def test_what_plans_cannot_say_is_no_error_of_the_files(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    named(tmp_path, "a.yaml", FSDP)
    path = named(tmp_path, "t.json", args(optim="adamw_bnb_8bit"))
    files = (str(tmp_path / "a.yaml"), path, "--set", "model.preset=llama-3.2-1b")
    code, found = answered(*files, "--machine", "a100-80gb:2")
    assert code == 0
    assert "adamw-8bit is not planned" in found["not_estimated"]
    assert not [one for one in found["findings"] if one["level"] == "error"]


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        (FACTORY.replace("lora\nlora_rank: 8", "full") + "use_galore: true\n", "uncounted"),
        (FACTORY.replace("lora\nlora_rank: 8", "freeze"), "uncounted"),
        (FACTORY.replace("length: 2048", "length: 4096").replace("stage: sft", "stage: dpo"),
         "at-least"),
    ],
)  # fmt: skip
def test_a_run_unlike_its_figures_neither_fits_nor_is_out_of_memory(
    tmp_path: Path, answered: Callable[..., Any], file: str, rule: str
) -> None:
    code, found = answered(named(tmp_path, "f.yaml", file), "--machine", "rtx-4090")
    (memory,) = (one for one in found["findings"] if one["rule"] == "memory")
    assert memory["level"] == "risk"
    assert "is not known" in memory["message"]
    assert code == 1


def test_a_config_of_torchtunes_own_that_is_not_there_leaves_the_verdict_open(
    answered: Callable[..., Any],
) -> None:
    line = "tune run --nproc_per_node 4 full_finetune_distributed --config llama3_1/8B_full"
    code, found = answered(f"{line} batch_size=4", "--machine", "a100-80gb")
    (memory,) = (one for one in found["findings"] if one["rule"] == "memory")
    assert (memory["level"], code) == ("risk", 1)
    assert "llama3_1/8B_full" in memory["message"]


def test_a_config_of_accelerate_that_is_not_there_leaves_the_verdict_open(
    answered: Callable[..., Any],
) -> None:
    line = "accelerate launch --config_file fsdp.yaml train.py --per_device_train_batch_size 1"
    more = "--model_name_or_path meta-llama/Llama-3.1-8B --bf16 --max_seq_length 1024"
    code, found = answered(f"{line} {more}", "--machine", "a100-80gb:8")
    (memory,) = (one for one in found["findings"] if one["rule"] == "memory")
    assert (memory["level"], code) == ("risk", 1)
    assert "fsdp.yaml" in memory["message"]


def test_ollama_leaves_to_the_processor_what_does_not_fit(
    tmp_path: Path, answered: Callable[..., Any]
) -> None:
    path = named(tmp_path, "Modelfile", "FROM qwen2.5:14b\nPARAMETER num_ctx 32768\n")
    code, found = answered(path, "--machine", "rtx-3060-12gb")
    (memory,) = (one for one in found["findings"] if one["rule"] == "memory")
    assert memory["level"] == "risk"
    assert "does not refuse" in memory["message"]
    assert code == 0


def test_a_smaller_micro_batch_keeps_a_whole_batch_that_the_file_names(
    answered: Callable[..., Any],
) -> None:
    line = "deepspeed --module openrlhf.cli.train_sft --pretrain meta-llama/Llama-3.1-8B --bf16"
    more = "--train_batch_size 256 --micro_train_batch_size 2 --zero_stage 2 --max_len 2048"
    found = answered(f"{line} {more}", "--machine", "a100-80gb:8")[1]
    offered = [beyond for one in found["findings"] for beyond in one.get("beyond", [])]
    assert offered
    assert not [beyond for beyond in offered if "accumulation" in beyond]


@pytest.mark.parametrize("line", ["xtuner train some_config --deepspeed zero2", "mytool run --a b"])
def test_a_command_of_no_tool_that_is_known_is_no_missing_file(line: str) -> None:
    with pytest.raises(UserError) as refused:
        sources([line])
    assert refused.value.message.id == "review.unknown-kind"


AXOLOTL_FSDP = """\
base_model: Qwen/Qwen2.5-7B
adapter: lora
load_in_8bit: true
micro_batch_size: 1
sequence_len: 1024
sample_packing: true
attn_implementation: flex_attention
gradient_checkpointing: true
gradient_checkpointing_kwargs: {use_reentrant: true}
fsdp_config: {reshard_after_forward: true}
device_map: {"": 0}
"""


def test_what_axolotl_does_by_itself_is_no_error_of_its_file(tmp_path: Path) -> None:
    """It shards 8 bits, packs with any attention it is told, and prepares inputs of adapters."""
    plugins = "plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_rms_norm_gated: true\n"
    own = AXOLOTL_FSDP + plugins + "batch_size: 4\n"
    review = reviewed(tmp_path, {"a.yaml": own}, "rtx-4090", 2)
    wrong = {"int8-sharded", "packing-mixes", "reentrant-frozen", "key-ignored", "value-unknown"}
    assert not wrong & {one.rule for one in review.findings}
    assert not [one for one in review.findings if one.level == "error" and one.rule != "memory"]


def test_axolotls_keys_that_change_memory_are_named_as_not_planned(tmp_path: Path) -> None:
    keys = "quantize_moe_experts: true\nexpert_parallel_size: 4\nlora_mlp_kernel: false\n"
    found = reviewed(tmp_path, {"a.yaml": AXOLOTL_FSDP + keys}, "rtx-4090", 2).planned
    said = [one for one in found.not_planned if one.id == "review.not-planned.keys"]
    assert said[0].values["keys"] == ["quantize_moe_experts", "expert_parallel_size"]


@pytest.mark.parametrize(("forces", "errors"), [("true", 1), ("false", 0)])
def test_deepspeed_that_is_told_to_take_any_optimizer_takes_it(
    tmp_path: Path, forces: str, errors: int
) -> None:
    zero = f"""{{"zero_optimization": {{"stage": 2, "offload_optimizer":
        {{"device": "cpu"}}}}, "zero_force_ds_cpu_optimizer": {forces}}}"""
    own = AXOLOTL_FSDP.replace("fsdp_config: {reshard_after_forward: true}", "deepspeed: z.json")
    files = {"a.yaml": own + "optimizer: adamw_bnb_8bit\n", "z.json": zero}
    review = reviewed(tmp_path, files, "rtx-4090", 2)
    assert [one.rule for one in review.findings].count("offload-optimizer") == errors


def test_a_part_of_the_models_blocks_may_be_wrapped(tmp_path: Path) -> None:
    own = AXOLOTL_FSDP.replace("Qwen/Qwen2.5-7B", "mistralai/Mixtral-8x7B-v0.1").replace(
        "forward: true", "forward: true, transformer_layer_cls_to_wrap: MixtralSparseMoeBlock"
    )
    review = reviewed(tmp_path, {"a.yaml": own}, "h100-sxm-80gb", 2)
    assert "wrap-absent" not in {one.rule for one in review.findings}


TUNE = """\
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  quantize_base: true
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: t, max_seq_len: 512}
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer}
batch_size: 1
max_seq_length: 512
seed: 1
"""


def test_a_recipe_without_an_optimizer_is_not_taken_for_a_training(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        reviewed(tmp_path, {"eval.yaml": TUNE + "tasks: [mmlu]\n"}, "rtx-4090", 1)
    assert refused.value.message.id == "review.trains-nothing"


def test_a_quantized_base_and_a_teacher_of_torchtune_are_seen(tmp_path: Path) -> None:
    more = "optimizer: {_component_: torch.optim.AdamW}\nteacher_model: {_component_: x}\n"
    review = reviewed(tmp_path, {"kd.yaml": TUNE + more}, "rtx-4090", 1)
    assert review.planned.plan is not None
    assert review.planned.plan.workload.task == "qlora"
    assert [one.id for one in review.planned.not_planned] == ["review.not-planned.keys"]


def test_accelerate_without_a_distribution_starts_one_process(tmp_path: Path) -> None:
    own = FOUR_COMPUTERS.replace("DEEPSPEED", "'NO'").replace("num_machines: 4", "num_machines: 1")
    own = own.replace(
        "deepspeed_config: {deepspeed_multinode_launcher: standard, zero_stage: 3}\n", ""
    )
    review = reviewed(tmp_path, {"a.yaml": own, "s.yaml": LORA_8B}, "rtx-4090", 1)
    assert not {"processes", "sharded-alone"} & {one.rule for one in review.findings}
    assert not [a for a in review.planned.asked if a.key == "machine.gpus[0].count"]


def test_the_file_that_axolotl_ships_for_offloading_takes_any_optimizer(tmp_path: Path) -> None:
    shipped = "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json"
    own = AXOLOTL_FSDP.replace("fsdp_config: {reshard_after_forward: true}", shipped)
    own = own.replace("load_in_8bit: true\n", "") + "optimizer: adamw_torch_8bit\n"
    review = reviewed(tmp_path, {"a.yaml": own}, "rtx-4090", 2)
    assert "offload-optimizer" not in {one.rule for one in review.findings}


PUBLISHED = [
    ({"v1.yaml": V1}, {"settings.micro_batch": 3, "settings.precision": "bf16-mixed"}),
    ({"v1.yaml": V1 + "peft_config: {name: lora, r: 16}\nquant_config: {quantization_bit: 4}\n"},
     {"workload.task": "qlora", "workload.lora.rank": 16}),
    ({"n.yaml": NEMO}, {"workload.effective_batch": 64, "workload.inputs.sequence_length": 1024}),
    ({"m.yaml": MOSAIC}, {"workload.inputs.sequence_length": 4096, "settings.optimizer": "lion",
                          "settings.checkpointing": "full", "workload.epochs": 2.0}),
    (f"torchrun --nproc_per_node 8 {VERL}", {"workload.task": "lora", "settings.micro_batch": 4,
                                             "workload.inputs.sequence_length": 1024}),
    ({"o.sh": HERE}, {"settings.micro_batch": 2, "settings.strategy": "zero2"}),
    (SWIFT, {"model.preset": "qwen-2.5-7b", "workload.effective_batch": 2}),
    ({"r.py": NEW_TITAN}, {"settings.micro_batch": 3, "settings.checkpointing": "full",
                           "settings.compile": False}),
    ({"c.py": NANO}, {"model.preset": "gpt2", "workload.effective_batch": 160,
                      "workload.inputs.sequence_length": 512}),
    ({"s.yaml": SKY}, {"settings.engine": "vllm", "settings.tensor_degree": 2}),
    ("./distributed_train.sh 8 d --model vit_tiny_patch16_224 --opt sgd --sched cosine -b 64 --amp",
     {"workload.effective_batch": 512, "model.timm": "vit_tiny_patch16_224"}),
    ("python -u -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-7B",
     {"settings.engine": "vllm"}),
    ("ray job submit --address=a -- python3 -m openrlhf.cli.train_sft --pretrain gpt2 "
     "--micro_train_batch_size 2", {"settings.micro_batch": 2}),
    (f"python train.py {OWN} --use_peft_lora True --use_4bit_quantization True",
     {"workload.task": "qlora"}),
    (f"python train.py {OWN} --lora_enable True --lora_r 128", {"workload.lora.rank": 128}),
    ({"j.sh": f"#SBATCH --gres=gpu:8  # if it's 8\nARGS=\"\n  --nproc_per_node 8\n\"\n"
              f"srun -N 1 torchrun $ARGS train.py {OWN}\n"}, {"workload.effective_batch": 8}),
    ({"a.sh": "A=(--micro-batch-size 2)\nB=(\n  --use-distributed-optimizer\n)\nA+=(\"${B[@]}\")\n"
              "A+=(\n  \"--seq-length 512\"\n)\n"
              "torchrun --nproc_per_node 8 t.py ${A[@]} --model gpt2"},
     {"settings.strategy": "zero1", "workload.inputs.sequence_length": 512}),
    ("accelerate launch swift/cli/sft.py --model gpt2 --train_type lora --lora_rank 4",
     {"workload.lora.rank": 4, "settings.checkpointing": "full"}),
    ({"l.yaml": "checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\nout_dir: o\nlora_r: 8\n"
                "quantize: bnb.nf4-dq\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n"},
     {"workload.task": "qlora", "settings.double_quantization": True}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), PUBLISHED)
def test_what_published_files_say_is_planned(
    tmp_path: Path, files: dict[str, str] | str, expected: dict[str, object]
) -> None:
    found = reviewed(tmp_path, files, "h100-sxm", 8)
    assert not found.errors
    assert found.planned.plan is not None
    for key, value in expected.items():
        assert operator.attrgetter(key)(found.planned.plan) == value, key
