"""Files of other trainers: planted faults are found, sound files have none, defaults are true."""

import dataclasses
import json
import operator
from pathlib import Path

import pytest

from trainwright.messages import Message, UserError, render
from trainwright.review import Review, lora_targets, review, reviewing, sources
from trainwright.review.apply import write
from trainwright.review.kinds import KINDS, declared

Files = dict[str, str]


def reviewed(folder: Path, files: Files | str, gpu: str, count: int = 1) -> Review:
    """Review files, or a command line, without an estimate."""
    if isinstance(files, str):
        named = [files]
    else:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        named = [str(folder / name) for name in files]

    def answer(_plan: object) -> tuple[object, object]:
        raise UserError(Message.of("review.no-model"))

    machine = {"gpus": [{"id": gpu, "count": count}], "memory_gib": 64}
    return review(sources(named), machine, answer)  # type: ignore[arg-type]


def args(**changes: object) -> str:
    """Return sound TrainingArguments as JSON, with changes."""
    sound = {"output_dir": "out", "per_device_train_batch_size": 2, "bf16": True}
    return json.dumps({**sound, "dataloader_num_workers": 4, **changes})


AXOLOTL = """\
base_model: meta-llama/Llama-3.2-1B
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
flash_attention: true
datasets:
  - {path: tatsu-lab/alpaca, type: alpaca}
"""
FACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
lora_rank: 8
template: qwen
dataset: alpaca_en_demo
cutoff_len: 2048
output_dir: saves
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
bf16: true
use_reentrant_gc: false
dataloader_num_workers: 4
"""
ZERO = {"stage": 3, "reduce_bucket_size": 20_000_000}
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
global_batch_size = 16
seq_len = 4096
[parallelism]
data_parallel_shard_degree = 8
[activation_checkpoint]
mode = "full"
"""
LIGHTNING = """\
seed_everything: 0
trainer:
  precision: bf16-mixed
  devices: 2
  strategy: ddp
  max_epochs: 3
data:
  class_path: my.Data
  init_args: {batch_size: 32, num_workers: 4}
model:
  class_path: my.Model
"""
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
mixed_precision: bf16
num_machines: 1
num_processes: 2
use_cpu: false
"""
SCRIPT = """\
from transformers import AutoModelForCausalLM, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments(output_dir="out", bf16=True, dataloader_num_workers=2)
"""
PEFT = (
    '{"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"], "base_model_name_or_path": "gpt2"}'
)
RUN = "--per_device_train_batch_size 2 --model_name_or_path gpt2 --dataloader_num_workers 2"


def deepspeed(**changes: object) -> str:
    """Return a sound DeepSpeed file, with changes."""
    sound = {"bf16": {"enabled": True}, "zero_optimization": ZERO}
    return json.dumps({**sound, "train_micro_batch_size_per_gpu": 2, **changes})


FAULTS: list[tuple[str, Files | str, str, int]] = [
    ("key-moved", {"a.json": args(evaluation_strategy="steps")}, "rtx-4090", 1),
    ("key-gone", {"a.json": args(overwrite_output_dir=True)}, "rtx-4090", 1),
    ("key-unknown-near", {"a.json": args(gradient_acumulation_steps=4)}, "rtx-4090", 1),
    ("no-bf16", {"a.json": args()}, "rtx-2080-ti", 1),
    ("no-bf16", {"a.yml": AXOLOTL.replace("bf16: auto", "bf16: true")}, "v100-16gb", 1),
    ("no-fp16", {"a.json": args(bf16=False, fp16=True)}, "gtx-1080-ti", 1),
    ("no-tf32", {"a.json": args(bf16=False, fp16=True, tf32=True)}, "v100-16gb", 1),
    ("one-of", {"a.json": args(fp16=True)}, "rtx-4090", 1),
    ("needs-workers", {"a.json": args(dataloader_num_workers=0, dataloader_prefetch_factor=2)},
     "rtx-4090", 1),
    ("best-model", {"a.json": args(load_best_model_at_end=True)}, "rtx-4090", 1),
    ("best-model-steps", {"a.json": args(load_best_model_at_end=True, eval_strategy="steps",
                                         eval_steps=200, save_steps=300)}, "rtx-4090", 1),
    ("batch-product", {"z.json": deepspeed(train_batch_size=30, gradient_accumulation_steps=4),
                       "a.yaml": ACCELERATE}, "rtx-4090", 2),
    ("batch-divides", {"t.toml": TITAN.replace("= 16", "= 20")}, "h100-80gb", 8),
    ("conflict", {"a.json": args(), "z.json": deepspeed(train_micro_batch_size_per_gpu=4)},
     "rtx-4090", 1),
    ("gpus", {"a.yaml": ACCELERATE.replace("processes: 2", "processes: 8")}, "rtx-4090", 2),
    ("gpus", {"l.yaml": LIGHTNING}, "rtx-4090", 1),
    ("quantized-zero3", {"a.yml": AXOLOTL + "deepspeed: z.json\n", "z.json": deepspeed()},
     "rtx-4090", 1),
    ("quantized-whole", {"a.yml": AXOLOTL.replace("adapter: qlora\n", "")}, "rtx-4090", 1),
    ("qlora-whole", {"a.yml": AXOLOTL.replace("load_in_4bit: true\n", "")}, "rtx-4090", 1),
    ("cache", {"a.json": args(gradient_checkpointing=True),
               "config.json": '{"model_type": "gpt2", "use_cache": true, "architectures": ["G"]}'},
     "rtx-4090", 1),
    ("device-map", {"t.py": SCRIPT.replace('"gpt2"', '"gpt2", device_map="auto"'),
                    "a.yaml": ACCELERATE}, "rtx-4090", 2),
    ("reentrant-frozen", {"f.yaml": FACTORY.replace("_gc: false", "_gc: true")}, "rtx-4090", 1),
    ("bucket", {"z.json": deepspeed(zero_optimization={"stage": 2})}, "rtx-4090", 1),
    ("no-workers", {"f.yaml": FACTORY.replace("workers: 4", "workers: 0")}, "rtx-4090", 1),
    ("offload-memory", {"f.yaml": FACTORY.replace("finetuning_type: lora\nlora_rank: 8",
                                                  "finetuning_type: full") + "deepspeed: z.json\n",
                        "z.json": deepspeed(zero_optimization={
                            **ZERO, "offload_optimizer": {"device": "cpu"},
                            "offload_param": {"device": "cpu"}},
                            train_micro_batch_size_per_gpu="auto")}, "rtx-4090", 1),
    ("offload-optimizer", {"a.json": args(optim="adamw_bnb_8bit"), "z.json": deepspeed(
        zero_optimization={**ZERO, "offload_optimizer": {"device": "cpu"}})}, "rtx-4090", 1),
    ("flash-gpu", {"a.yml": AXOLOTL.replace("bf16: auto", "fp16: true")}, "rtx-2080-ti", 1),
    ("auto-unfilled", {"z.json": deepspeed(train_batch_size="auto"), "l.yaml": LIGHTNING},
     "rtx-4090", 2),
    ("key-moved", {"l.yaml": LIGHTNING.replace("devices:", "gpus:")}, "rtx-4090", 2),
    ("key-moved", {"t.toml": TITAN.replace("local_batch_size", "batch_size")}, "h100-80gb", 8),
    ("key-unknown-near", {"t.toml": TITAN.replace("seq_len", "seq_lenn")}, "h100-80gb", 8),
    ("key-moved", {"s.yaml": "model_name_or_path: gpt2\ndataset_name: d\nmax_seq_length: 512\n"},
     "rtx-4090", 1),
    ("no-bf16", f"torchrun --nproc_per_node 2 train.py {RUN} --bf16", "rtx-2080-ti", 2),
    ("gpus", f"torchrun --nproc_per_node 4 train.py {RUN} --bf16", "rtx-4090", 2),
    ("share-above-one", "vllm serve gpt2 --gpu-memory-utilization 1.5", "rtx-4090", 1),
    ("key-moved", "vllm serve gpt2 --worker-use-ray", "rtx-4090", 1),
    ("no-fp8", "vllm serve gpt2 --kv-cache-dtype fp8", "gtx-1080-ti", 1),
    ("packing-mixes", {"s.yaml": "model_name_or_path: gpt2\ndataset_name: d\npacking: true\n"
                                 "dataloader_num_workers: 2\n"}, "rtx-4090", 1),
    ("fsdp1", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")
               + "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"}, "rtx-4090", 2),
]  # fmt: skip
SOUND: list[tuple[Files | str, str, int]] = [
    ({"a.json": args()}, "rtx-4090", 1),
    ({"a.json": args(bf16=False, fp16=True)}, "rtx-2080-ti", 1),
    ({"a.json": args(load_best_model_at_end=True, eval_strategy="epoch", save_strategy="epoch")},
     "rtx-4090", 1),
    ({"a.json": args(gradient_checkpointing=True, tf32=True,
                     gradient_checkpointing_kwargs={"use_reentrant": False})}, "rtx-3090", 1),
    ({"a.json": args(dataloader_prefetch_factor=4, dataloader_persistent_workers=True)},
     "a100-80gb", 1),
    ({"a.yml": AXOLOTL}, "rtx-4090", 1),
    ({"a.yml": AXOLOTL.replace("qlora", "lora").replace("load_in_4bit: true\n", "")},
     "a100-80gb", 1),
    ({"f.yaml": FACTORY}, "rtx-4090", 1),
    ({"f.yaml": FACTORY + "quantization_bit: 4\n"}, "rtx-4090", 1),
    ({"z.json": deepspeed()}, "rtx-4090", 1),
    ({"a.json": args(deepspeed="z.json"), "z.json": deepspeed(
        train_micro_batch_size_per_gpu="auto", train_batch_size="auto")}, "rtx-4090", 1),
    ({"z.json": deepspeed(train_batch_size=16, gradient_accumulation_steps=4),
      "a.yaml": ACCELERATE}, "rtx-4090", 2),
    ({"t.toml": TITAN}, "h100-80gb", 8),
    ({"l.yaml": LIGHTNING}, "rtx-4090", 2),
    ({"a.yaml": ACCELERATE}, "rtx-4090", 2),
    ({"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_reshard_after_forward: true\n"}, "rtx-4090", 2),
    ({"t.py": SCRIPT}, "rtx-4090", 1),
    ({"adapter_config.json": PEFT, "a.json": args()}, "rtx-4090", 1),
    ({"s.yaml": "model_name_or_path: gpt2\ndataset_name: d\nmax_length: 512\nuse_peft: true\n"
                "lora_r: 8\ndataloader_num_workers: 2\n"}, "rtx-4090", 1),
    ({"Modelfile": "FROM llama3.1:8b\nPARAMETER num_ctx 8192\nSYSTEM \"\"\"\nBe kind.\n\"\"\"\n"},
     "rtx-4090", 1),
    ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192", "rtx-4090", 1),
    ("python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2", "rtx-4090", 2),
    (f"torchrun --nproc_per_node 2 train.py {RUN} --bf16", "rtx-4090", 2),
    (f"accelerate launch --num_processes 2 train.py {RUN} --fp16 true", "v100-16gb", 2),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "files", "gpu", "count"), FAULTS)
def test_a_planted_fault_is_found(
    tmp_path: Path, rule: str, files: Files | str, gpu: str, count: int
) -> None:
    found = reviewed(tmp_path, files, gpu, count)
    assert rule in [finding.rule for finding in found.findings]
    assert all(render(one.message, lang) != one.message.id
               for one in found.findings for lang in ("en", "ko"))  # fmt: skip


@pytest.mark.parametrize(("files", "gpu", "count"), SOUND)
def test_a_sound_file_has_no_fault(
    tmp_path: Path, files: Files | str, gpu: str, count: int
) -> None:
    found = reviewed(tmp_path, files, gpu, count)
    assert [one.rule for one in found.findings if one.level != "gain"] == []
    assert [unread.key for unread in found.not_understood] == []


def test_a_pickle_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "training_args.bin").write_bytes(b"not even a pickle")
    with pytest.raises(UserError, match="runs code when it is read"):
        sources([str(tmp_path / "training_args.bin")])


def test_what_nobody_knows_is_listed(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": AXOLOTL + "mystery: 3\n"}, "rtx-4090")
    assert [unread.key for unread in found.not_understood] == ["mystery"]


def test_files_that_a_file_names_are_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "z.json").write_text(deepspeed(), encoding="utf-8")
    found = reviewed(tmp_path, {"a.json": args(deepspeed="z.json")}, "rtx-4090")
    assert [source.kind.name for source in found.run.sources] == ["training-arguments", "deepspeed"]
    lost = reviewed(tmp_path, {"b.json": args(deepspeed="gone.json")}, "rtx-4090")
    assert len(lost.run.absent) == 1


COMMENTED = """\
# our run
base_model: gpt2   # small
micro_batch_size: 2
fp16: true         # as always
sequence_len: 512
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: true   # why?
"""


def test_changes_keep_comments_and_a_copy(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": COMMENTED}, "rtx-4090")
    changed = reviewing.texts(found, reviewing.mended(found))
    ((path, backup),) = write(changed)
    assert backup.read_text() == COMMENTED
    assert (
        path.read_text()
        == COMMENTED.replace("fp16: true         # as", "fp16: false         # as").replace(
            "reentrant: true ", "reentrant: false "
        )
        + "bf16: true\n"
    )


def test_a_file_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": COMMENTED}, "rtx-4090")
    (tmp_path / "a.yml").write_text("base_model: other\n")
    with pytest.raises(UserError, match="changed since"):
        write(reviewing.texts(found, reviewing.mended(found)))
    assert (tmp_path / "a.yml").read_text() == "base_model: other\n"


@pytest.mark.parametrize("files", [
    {"a.json": args(evaluation_strategy="steps", overwrite_output_dir=True)},
    {"a.json": json.dumps(json.loads(args(evaluation_strategy="no")), indent=2)},
    {"t.toml": TITAN.replace("local_batch_size", "batch_size")},
    {"z.json": deepspeed(zero_optimization={"stage": 2})},
])  # fmt: skip
def test_a_written_change_leaves_nothing_to_change(tmp_path: Path, files: Files) -> None:
    found = reviewed(tmp_path, files, "rtx-4090", 8)
    before = reviewing.mended(found)
    assert before
    (changed,) = reviewing.texts(found, before).values()
    again = reviewed(tmp_path, {next(iter(files)): changed[1]}, "rtx-4090", 8)
    assert not reviewing.mended(again)


# Truth: the installed libraries' own defaults


@pytest.mark.slow
def test_defaults_are_those_of_transformers() -> None:
    from transformers import TrainingArguments

    ours = declared("training-arguments")
    own = {field.name: field for field in dataclasses.fields(TrainingArguments)}
    assert set(ours.keys) == set(own)
    for name, default in ours.defaults.items():
        assert own[name].default == default, name


@pytest.mark.slow
def test_defaults_are_those_of_accelerate_and_peft() -> None:
    from accelerate.commands.config.config_args import ClusterConfig
    from peft import LoraConfig

    for library, kind in ((ClusterConfig, "accelerate"), (LoraConfig, "peft")):
        own = {field.name: field for field in dataclasses.fields(library)}
        ours = declared(kind)
        assert set(own) <= set(ours.keys), kind
        for name, default in ours.defaults.items():
            if name in own:
                assert own[name].default == default, name


@pytest.mark.slow
def test_defaults_are_those_of_deepspeed() -> None:
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    ours = declared("deepspeed").defaults
    for name, field in DeepSpeedZeroConfig.model_fields.items():
        key = f"zero_optimization.{field.alias or name}"
        if key in ours:
            assert field.default == ours[key], key


def test_every_key_that_we_read_is_one_that_a_tool_declares() -> None:
    for kind in KINDS.values():
        if kind.listed is None or "" in kind.open:
            continue
        known = declared(kind.listed).keys | set(kind.moved) | set(kind.open)
        for key in kind.keys:
            above = {key.rsplit(".", n)[0] for n in range(key.count(".") + 1)}
            # Keys of SFTConfig are refused there.
            trl = kind.name in ("trl-dpo", "trl-reward", "trl-grpo")
            assert above & known or trl, f"{kind.name}: {key}"


def test_what_a_file_says_of_sharding_is_planned(tmp_path: Path) -> None:
    text = ACCELERATE.replace("MULTI_GPU", "FSDP") + (
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
        "  fsdp_offload_params: true\n"
    )
    found = reviewed(tmp_path, {"a.yaml": text, "t.py": SCRIPT}, "rtx-4090", 2)
    plan = found.planned.plan
    assert plan is not None
    settings = plan.settings
    assert (settings.strategy, settings.shard_offload) == ("fsdp2", True)
    assert settings.reshard_after_forward is False
    assert found.planned.not_planned == ()


KBIT = """\
from peft import LoraConfig, prepare_model_for_kbit_training
bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(
    "mistralai/Mistral-7B-v0.3", quantization_config=bits, device_map={"": 0})
model = prepare_model_for_kbit_training(model)
adapters = LoraConfig(lora_alpha=32, target_modules=["q_proj", "v_proj"])
args = SFTConfig(max_length=1024, bf16=True, dataloader_num_workers=4)
"""
TUNE = """\
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: true
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 512}
batch_size: 2
"""
LITGPT = """\
checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3.1-8B
lora_r: 32
lora_key: true
lora_value: false
train: {global_batch_size: 8, micro_batch_size: 1}
"""
MEGATRON = """\
GPUS=4
SIZES="--tensor-model-parallel-size 2 --micro-batch-size 3"
ARGS=(
    --seq-length 2048  # tokens
    --bf16 --recompute-activations
)
torchrun --nproc_per_node ${GPUS:-8} pretrain_gpt.py $SIZES "${ARGS[@]}" --model llama-3.2-1b
"""
DIFFUSERS = """\
export MODEL="stable-diffusion-v1-5/stable-diffusion-v1-5"
accelerate launch --mixed_precision="fp16" train_text_to_image_lora.py \\
  --pretrained_model_name_or_path=$MODEL --resolution=768 --train_batch_size=2 --rank 8
"""
TIMM = "torchrun --nproc_per_node=2 train.py --model resnet50 --batch-size 64 --amp --opt sgd"
TRL = "model_name_or_path: meta-llama/Llama-3.2-1B\ndataset_name: d\nuse_peft: true\n"
GRPO = "model_name_or_path: gpt2\ndataset_name: d\nnum_generations: 8\nmax_completion_length: 200\n"
DPO = "model_name_or_path: gpt2\ndataset_name: d\nbeta: 0.2\nuse_liger_kernel: true\n"
READ: list[tuple[Files | str, dict[str, object]]] = [
    ({"t.py": KBIT}, {"workload.task": "qlora", "workload.lora.targets": ("q_proj", "v_proj"),
                      "settings.kbit_preparation": "all", "settings.checkpointing": "full"}),
    ({"t.yaml": TUNE}, {"workload.lora.targets": ("q_proj", "o_proj", "gate_proj", "up_proj",
                                                  "down_proj")}),
    ({"l.yaml": LITGPT}, {"workload.lora.targets": ("q_proj", "k_proj")}),
    ({"m.sh": MEGATRON}, {"settings.micro_batch": 3, "workload.inputs.sequence_length": 2048,
                          "settings.checkpointing": "selective", "workload.effective_batch": 6}),
    ({"d.sh": DIFFUSERS}, {"model.preset": "sd-1.5-unet", "workload.task": "lora",
                           "workload.inputs.image_size": 768, "workload.lora.rank": 8,
                           "settings.recipe": "diffusers-script"}),
    (TIMM, {"settings.optimizer": "sgd", "settings.precision": "fp16-mixed",
            "workload.effective_batch": 128}),
    ({"a.yml": AXOLOTL}, {"settings.recipe": "axolotl", "workload.lora.targets": ("all-linear",)}),
    ({"f.yaml": FACTORY}, {"settings.recipe": "llama-factory", "settings.reentrant": False}),
    ({"s.yaml": TRL}, {"workload.lora.targets": ("q_proj", "v_proj")}),
    ({"g.yaml": GRPO}, {"workload.inputs.sequence_length": 712}),
    ({"d.yaml": DPO}, {"workload.objective": "dpo", "workload.compared": "model",
                       "workload.inputs.sequence_length": 1024, "settings.checkpointing": "full",
                       "settings.recipe": None, "settings.cross_entropy": None}),
    ({"d.yaml": DPO + "use_peft: true\n"}, {"workload.compared": "adapter-off"}),
    ({"d.yaml": DPO + "precompute_ref_log_probs: true\n"}, {"workload.compared": "precomputed"}),
    ({"r.yaml": "model_name_or_path: gpt2\ndataset_name: d\ncenter_rewards_coefficient: 0.01\n"},
     {"workload.objective": "reward", "workload.compared": None, "settings.recipe": None}),
    ({"r.sh": "trl reward --model_name_or_path gpt2 --dataset_name d --use_peft\n"},
     {"workload.objective": "reward", "workload.task": "lora"}),
    ({"d.yaml": DPO, "a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")},
     {"workload.objective": None, "settings.recipe": "trl-sft"}),
    ({"tune.sh": "tune run lora_finetune --config t.yaml batch_size=4\n", "t.yaml": TUNE},
     {"settings.micro_batch": 4}),
    ({"run.sh": "swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a/b#500 "
                "--per_device_train_batch_size 1 --max_length 512\n"},
     {"workload.task": "lora", "workload.inputs.sequence_length": 512,
      "workload.lora.targets": ("q_proj", "v_proj")}),
    ({"run.sh": "litgpt finetune_lora meta-llama/Llama-3.2-1B --train.max_seq_length 512\n"},
     {"workload.task": "lora", "workload.lora.rank": 8}),
    ({"run.sh": "docker run --gpus all -p 1:1 vllm/vllm-openai:v0.11 --model gpt2 "
                "--max-model-len 512\n"},
     {"workload.task": "infer", "settings.engine": "vllm"}),
    ({"t.toml": TITAN.replace('"full"', '"selective"\nselective_ac_option = "op"')},
     {"settings.checkpointing": "selective"}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), READ)
def test_what_files_say_is_planned(
    tmp_path: Path, files: Files | str, expected: dict[str, object]
) -> None:
    plan = reviewed(tmp_path, files, "rtx-4090", 8).planned.plan
    assert plan is not None
    for key, value in expected.items():
        assert operator.attrgetter(key)(plan) == value, key


def test_pairs_that_no_plan_knows_are_said_to_be_left_out(tmp_path: Path) -> None:
    shared = {"d.yaml": DPO, "a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")}
    factory = {"f.yaml": FACTORY.replace("stage: sft", "stage: dpo")}
    for files, left_out in (({"d.yaml": DPO}, False), (shared, True), (factory, True)):
        found = reviewed(tmp_path, files, "rtx-4090", 2).planned.not_planned
        assert ("review.not-planned.objective" in [one.id for one in found]) is left_out


def test_a_saved_config_is_a_model_and_each_key_counts(tmp_path: Path) -> None:
    saved = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
             "intermediate_size": 128, "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 1e4},
             "pad_token_id": None, "tie_word_embeddings": False, "mlp_bias": False}  # fmt: skip
    found = reviewed(tmp_path, {"config.json": json.dumps(saved)}, "rtx-4090")
    assert found.no_part == ()
    assert found.planned.plan is not None


def test_a_command_line_may_change_what_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TUNE, encoding="utf-8")
    found = reviewed(
        tmp_path, {"r.sh": "tune run lora_finetune --config t.yaml batch_size=4\n"}, "rtx-4090"
    )
    assert "conflict" not in [finding.rule for finding in found.findings]


def test_files_without_processes_run_on_all_gpus_of_the_machine(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": AXOLOTL}, "rtx-4090", 2)
    assert found.planned.plan is not None
    assert found.planned.plan.workload.effective_batch == 2 * 4 * 2


def test_what_changes_memory_and_no_plan_says_is_listed(tmp_path: Path) -> None:
    text = AXOLOTL + "lora_modules_to_save: [embed_tokens, lm_head]\n"
    found = reviewed(tmp_path, {"a.yml": text}, "rtx-4090")
    assert [one.values.get("keys") for one in found.planned.not_planned] == [
        ["lora_modules_to_save"]
    ]
    assert "lora_modules_to_save" not in [unread.key for unread in found.no_part]


def test_variables_of_variables_do_not_grow(tmp_path: Path) -> None:
    script = f"A={'x' * 9000}\ntorchrun t.py --seed {'$A' * 5000}\n"
    (tmp_path / "r.sh").write_text(script, encoding="utf-8")
    (source,) = sources([str(tmp_path / "r.sh")]).sources[1:]
    assert len(source.document.data["seed"]) < 1_100_000


def test_where_output_goes_is_no_value_of_an_option(tmp_path: Path) -> None:
    script = f"torchrun --nproc_per_node 2 train.py {RUN} --max_length 2048 2>&1 | tee log.txt\n"
    found = reviewed(tmp_path, {"r.sh": script}, "rtx-4090", 2)
    assert found.planned.plan is not None
    assert found.planned.plan.workload.inputs.sequence_length == 2048


def test_options_of_a_script_are_not_said_to_have_no_part(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"m.sh": MEGATRON.rstrip() + " --num-layers 32"}, "rtx-4090", 4)
    assert [unread.key for unread in found.own] == ["num_layers"]
    assert found.no_part == ()


def test_deepspeeds_optimizer_and_scheduler_are_known(tmp_path: Path) -> None:
    text = deepspeed(
        optimizer={"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
        scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    )
    assert reviewed(tmp_path, {"z.json": text}, "rtx-4090").findings == ()


def test_a_key_is_renamed_where_it_stands(tmp_path: Path) -> None:
    text = "model_name_or_path: gpt2\nmax_seq_length: 512  # tokens\ndataset_name: d\n"
    found = reviewed(tmp_path, {"s.yaml": text}, "rtx-4090")
    ((_, changed),) = reviewing.texts(found, reviewing.mended(found)).values()
    assert changed == text.replace("max_seq_length", "max_length")


@pytest.mark.slow
def test_layers_left_to_peft_are_those_that_peft_takes() -> None:
    from peft.utils import constants

    own = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    assert {name: list(layers) for name, layers in lora_targets.DEFAULTS.items()} == {
        name: layers for name, layers in own.items() if isinstance(layers, list)
    }


@pytest.mark.parametrize(
    ("written", "nodes"),
    [
        ("fsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: HYBRID_SHARD\n", 2),
        (
            "fsdp_config:\n  fsdp_version: 2\nparallelism_config:\n"
            "  parallelism_config_dp_replicate_size: 2\n"
            "  parallelism_config_dp_shard_size: 4\n",
            1,
        ),
    ],
)
def test_copies_of_shared_weights_are_planned(tmp_path: Path, written: str, nodes: int) -> None:
    text = ACCELERATE.replace("MULTI_GPU", "FSDP") + written
    text = text.replace("num_processes: 2", "num_processes: 8")
    text = text.replace("num_machines: 1", f"num_machines: {nodes}")
    plan = reviewed(tmp_path, {"a.yaml": text, "t.py": SCRIPT}, "a100-80gb", 8).planned.plan
    assert plan is not None
    assert (plan.settings.strategy, plan.settings.shard_degree) == ("fsdp2", 4)
