"""Files of other trainers, as their tools' documentation shows them, and their review."""

import json
from pathlib import Path

from trainwright.messages import Message, UserError
from trainwright.review import Review, review, sources

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
UNSLOTH = """\
from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Llama-3.2-1B", max_seq_length=2048, load_in_4bit=True
)
model = FastLanguageModel.get_peft_model(
    model, r=8, lora_alpha=16, use_gradient_checkpointing="unsloth",
)
trainer = SFTTrainer(
    model=model,
    train_dataset=data,
    args=SFTConfig(
        max_length=2048, per_device_train_batch_size=2, gradient_accumulation_steps=4,
        optim="adamw_8bit", bf16=True, learning_rate=2e-4, warmup_steps=5,
    ),
)
trainer.train()
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
    '{"peft_type": "LORA", "r": 8, "target_modules": ["c_attn"], "base_model_name_or_path": "gpt2"}'
)
RUN = "--per_device_train_batch_size 2 --model_name_or_path gpt2 --dataloader_num_workers 2"


TRL = "model_name_or_path: meta-llama/Llama-3.2-1B\ndataset_name: d\nuse_peft: true\n"
DPO = "model_name_or_path: gpt2\ndataset_name: d\nbeta: 0.2\nuse_liger_kernel: true\n"
GRPO = "model_name_or_path: gpt2\ndataset_name: d\nnum_generations: 8\nmax_completion_length: 200\n"
TUNE = """\
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: true
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 512}
batch_size: 2
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
JOB = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:a100:8
export LAUNCH="torchrun --nproc_per_node 8 --rdzv_id $RANDOM --rdzv_endpoint $(hostname):29500"
export SIZES="--per_device_train_batch_size 3 \\
  --model_name_or_path gpt2"
srun --jobid $SLURM_JOB_ID bash -c "$LAUNCH train.py $SIZES"
"""


V1 = "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ntrain_dataset: d.yaml\nmicro_batch_size: 3\n"
NEMO = """\
trainer: {devices: 8, num_nodes: 1, precision: bf16-mixed, accumulate_grad_batches: 1}
exp_manager: {name: run}
name: run
model:
  restore_from_path: llama-3.1-8b.nemo
  micro_batch_size: 2
  global_batch_size: 64
  data: {train_ds: {max_seq_length: "${model.longest}"}}
  longest: 1024
"""
MOSAIC = """\
variables: {longest: 4096}
max_seq_len: ${variables.longest}
model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-3.1-8B}
train_loader: {name: finetuning, dataset: {max_seq_len: "${max_seq_len}"}, num_workers: 8}
optimizer: {name: decoupled_lionw, lr: 1.0e-6}
max_duration: 2ep
global_train_batch_size: 64
device_train_microbatch_size: 4
precision: amp_bf16
fsdp_config: {sharding_strategy: FULL_SHARD, activation_checkpointing: true}
"""
VERL = "-m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct"
VERL += " data.micro_batch_size_per_gpu=4 data.max_length=1024 model.lora_rank=32 optim.lr=1e-4"
HERE = """\
read -r -d '' steps <<EOF
openrlhf.cli.train_sft \\
   --pretrain meta-llama/Llama-3.1-8B \\
   --train_batch_size 64 --micro_train_batch_size 2
EOF
    # it's a comment
deepspeed --module $steps
"""
SWIFT = "NPROC_PER_NODE=2 swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B --model_name bot"
NEW_TITAN = """\
def small() -> Trainer.Config:
    spec = model_registry("8B")
    return FluxTrainer.Config(model_spec=spec, hf_assets_path="./Llama-3.1-8B", optimizer=adamw(),
        training=TrainingConfig(local_batch_size=3), lr_scheduler=LRSchedulersContainer.Config(),
        parallelism=ParallelismConfig(spmd_backend="x"), activation_checkpoint=FullAC.Config())
def other() -> Trainer.Config:
    config = small()
    config.compile = CompileConfig(enable=True)
    return config
"""
NANO = "batch_size = 4\nblock_size = 512\ngradient_accumulation_steps = 5 * 8\nmax_iters = 9\n"
SKY = "resources: {accelerators: A100:2}\nenvs: {M: Qwen/Qwen2.5-7B}\nrun: vllm serve $M -tp 2\n"
OWN = "--model_name_or_path mistralai/Mistral-7B-v0.1 --per_device_train_batch_size 1"


def deepspeed(**changes: object) -> str:
    """Return a sound DeepSpeed file, with changes."""
    sound = {"bf16": {"enabled": True}, "zero_optimization": ZERO}
    return json.dumps({**sound, "train_micro_batch_size_per_gpu": 2, **changes})
