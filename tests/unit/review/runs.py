"""Runs as people keep them, in the keys that their tools document, with what a review must say.

Each is a target that writes the same run, the files, and the rules of the errors and risks in them.
``MODEL`` stands for a folder with the config.json of a small Llama.
"""

import json
from typing import NamedTuple

from trainerfiles import ACCELERATE, AXOLOTL, FACTORY, JOB, TITAN, TRL, UNSLOTH, ZERO, Files, args


class Run(NamedTuple):
    """Files of one run."""

    target: str
    files: Files
    said: tuple[str, ...] = ()
    gpus: int = 1
    changes: tuple[str, ...] = ()
    """What no file says, as a person gives it with ``--set``."""


SMALL = ("model.preset=llama-3.2-1b", "workload.inputs.sequence_length=1024")
FSDP = ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n  fsdp_version: 2\n"
FOUR = FSDP.replace("processes: 2", "processes: 4")
LLAMA = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000},
    **{"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22},
    **{"num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048},
}
ADAPTER = {
    **{"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 32, "lora_alpha": 64, "use_dora": True},
    **{"lora_dropout": 0.1, "target_modules": ["q_proj", "v_proj"], "bias": "none"},
}
AUTO = {
    "bf16": {"enabled": "auto"},
    "zero_optimization": {**ZERO, "overlap_comm": True, "reduce_bucket_size": "auto"},
    **{"gradient_accumulation_steps": "auto", "train_batch_size": "auto"},
    **{"gradient_clipping": "auto", "train_micro_batch_size_per_gpu": "auto"},
}
SHARED_AUTO = {
    "fp16": {"enabled": "auto"},
    "bf16": {"enabled": "auto"},
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"},
    },
    "zero_optimization": {
        **{"stage": 3, "overlap_comm": True, "reduce_bucket_size": "auto"},
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "offload_param": {"device": "cpu", "pin_memory": True},
        "stage3_param_persistence_threshold": "auto",
    },
    **{"gradient_accumulation_steps": "auto", "gradient_clipping": "auto"},
    **{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"},
}
TUNE = """\
output_dir: /tmp/torchtune/llama3_2_1B/lora_single_device
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 64
  lora_alpha: 128
  lora_dropout: 0.0
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  path: /tmp/Llama-3.2-1B-Instruct/original/tokenizer.model
  max_seq_len: 2048
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
dataset: {_component_: torchtune.datasets.alpaca_cleaned_dataset, packed: False}
batch_size: 4
optimizer: {_component_: torch.optim.AdamW, fused: True, weight_decay: 0.01, lr: 3e-4}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
epochs: 1
gradient_accumulation_steps: 8
compile: False
device: cuda
dtype: bf16
enable_activation_checkpointing: True
"""
LIGHTNING = """\
# lightning.pytorch==2.6
seed_everything: 42
trainer:
  accelerator: gpu
  devices: 2
  strategy: ddp
  precision: bf16-mixed
  max_epochs: 3
  accumulate_grad_batches: 4
  gradient_clip_val: 1.0
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 2.0e-05, weight_decay: 0.01}}
model:
  class_path: finetuning.Text
  init_args: {model_name: meta-llama/Llama-3.2-1B}
data:
  class_path: finetuning.Rows
  init_args: {batch_size: 4, num_workers: 8, max_length: 1024}
"""
LITGPT = """\
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B
out_dir: out/finetune/lora-llama-3.2-1b
precision: bf16-true
devices: 1
num_nodes: 1
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_query: true
lora_key: false
lora_value: true
lora_projection: false
lora_mlp: false
lora_head: false
train: {global_batch_size: 16, micro_batch_size: 1, max_seq_length: 512, epochs: 1}
"""
KBIT = """\
import torch
from peft import LoraConfig, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

quantized = BitsAndBytesConfig(
    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
)
model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B-Instruct", quantization_config=quantized, attn_implementation="sdpa"
)
peft = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear")
args = SFTConfig(
    output_dir="out", max_length=1024, per_device_train_batch_size=2, bf16=True,
    gradient_accumulation_steps=8, optim="paged_adamw_8bit", dataloader_num_workers=2,
)
trainer = SFTTrainer(model=model, args=args, train_dataset=data, peft_config=peft)
"""
HSDP = """\
[model]
name = "qwen3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 4096
steps = 1000
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
"""
REGISTRY = """\
def llama3_8b():
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-8B",
        optimizer=OptimizersContainer.Config(lr=3e-4),
        training=TrainingConfig(local_batch_size=1, seq_len=8192, steps=1000),
        parallelism=ParallelismConfig(data_parallel_shard_degree=8),
        activation_checkpoint=ActivationCheckpointConfig(mode="full"),
    )
"""
COMPOSE = """\
services:
  llm:
    image: lmsysorg/sglang:latest
    entrypoint: python3 -m sglang.launch_server
    command: --model-path Qwen/Qwen2.5-7B-Instruct --context-length 8192
      --mem-fraction-static 0.85 --dtype bfloat16
    deploy:
      resources:
        reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}
"""
POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:latest
          args: [--model, mistralai/Mistral-7B-Instruct-v0.3, --max-model-len, "4096",
                 --gpu-memory-utilization, "0.9", --kv-cache-dtype, fp8]
          resources: {limits: {nvidia.com/gpu: 1}}
"""
TRL_DPO = "model_name_or_path: Qwen/Qwen2.5-1.5B\ndataset_name: d\nbeta: 0.1\nmax_length: 1024\n"
RUN_CLM = (
    "run_clm.py --model_name_or_path openai-community/gpt2 --dataset_name wikitext --do_train"
    " --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --block_size 1024 --bf16"
    " --optim adamw_torch_fused --dataloader_num_workers 4 --output_dir out"
)


RUNS: list[Run] = [
    # accelerate's default_config.yaml, with the Trainer's arguments
    Run("accelerate", {"a.yaml": ACCELERATE, "t.json": args()}, (), 2, SMALL),
    Run("accelerate", {"a.yaml": FSDP + "  fsdp_reshard_after_forward: true\n", "t.json": args()},
        (), 2, SMALL),
    Run("accelerate", {"a.yaml": FSDP + "  fsdp_reshard_after_forward: false\n"
                       "  fsdp_offload_params: true\n", "t.json": args()},
        (), 2, SMALL),
    Run("accelerate", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n"
                       "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_offload_params: false\n",
                       "t.json": args()}, ("fsdp1",), 2, SMALL),
    Run("accelerate", {"a.yaml": FOUR + "parallelism_config:\n"
                       "  parallelism_config_dp_replicate_size: 2\n"
                       "  parallelism_config_dp_shard_size: 2\n", "t.json": args()}, (), 4, SMALL),
    Run("accelerate", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "'NO'").replace("bf16", "fp16")
                       .replace("processes: 2", "processes: 1")
                       + "dynamo_config: {dynamo_backend: INDUCTOR}\n",
                       "t.json": args(bf16=False, fp16=True)}, ("fp16-overflows",), 1, SMALL),
    Run("accelerate", {"l.sh": f"accelerate launch --num_processes 2 --multi_gpu {RUN_CLM}\n"},
        (), 2),
    # DeepSpeed
    Run("deepspeed", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "DEEPSPEED") + "deepspeed_config:\n"
                      "  gradient_accumulation_steps: 2\n  gradient_clipping: 1.0\n"
                      "  offload_optimizer_device: none\n  zero_stage: 2\n",
                      "t.json": args(gradient_accumulation_steps=2)}, (), 2, SMALL),
    Run("deepspeed", {"z.json": json.dumps(AUTO), "t.json": args(deepspeed="z.json"),
                      "l.sh": "deepspeed --num_gpus 4 train.py\n"}, (), 4, SMALL),
    Run("deepspeed", {"z.json": json.dumps({
        "train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "steps_per_print": 100,
        "gradient_accumulation_steps": 4, "bf16": {"enabled": True},
        "zero_optimization": {"stage": 1, "reduce_bucket_size": 20_000_000}})}, (), 2, SMALL),
    Run("deepspeed", {"ds_z3_auto.json": json.dumps(SHARED_AUTO), "training_args.json": args(
        deepspeed="ds_z3_auto.json", gradient_accumulation_steps=4,
        gradient_checkpointing=True)}, (), 2, SMALL),
    # TrainingArguments
    Run("transformers", {"t.json": args(learning_rate=1e-4, warmup_steps=100)}, (), 1, SMALL),
    Run("transformers", {"t.json": args(
        per_device_train_batch_size=8, gradient_accumulation_steps=4, optim="adamw_bnb_8bit",
        gradient_checkpointing=True, num_train_epochs=3)}, (), 1, SMALL),
    Run("transformers", {"t.json": args(fsdp=True, fsdp_config={
        "version": 2, "reshard_after_forward": True, "activation_checkpointing": True}),
        "l.sh": "torchrun --nproc_per_node 4 train.py\n"}, (), 4, SMALL),
    Run("transformers", {"t.json": args(
        bf16=False, tf32=True, optim="adafactor", activation_checkpointing=True,
        activation_checkpointing_kwargs={"use_reentrant": False, "every_n_layers": 2})},
        (), 1, SMALL),
    Run("transformers", {"t.yaml": "output_dir: o\nper_device_train_batch_size: 2\nbf16: true\n"
                         "optim: lion_32bit\nuse_liger_kernel: true\ntorch_compile: true\n"
                         "dataloader_num_workers: 2\n"}, (), 1, SMALL),
    Run("transformers", {"l.sh": f"torchrun --nproc_per_node 2 {RUN_CLM}\n"}, (), 2),
    # PEFT's and a model's own files
    Run("transformers", {"config.json": json.dumps(LLAMA), "adapter_config.json":
                         json.dumps(ADAPTER), "t.json": args(gradient_checkpointing=True)},
        (), 1, ("workload.inputs.sequence_length=1024",)),
    Run("trl", {"t.py": KBIT}),
    # TRL
    Run("trl", {"s.yaml": TRL.replace("use_peft: true", "attn_implementation: flash_attention_2")
                + "packing: true\nmax_length: 2048\ndataloader_num_workers: 2\n"}),
    Run("trl", {"s.yaml": TRL + "use_dora: true\nload_in_4bit: true\nlora_r: 64\nlora_alpha: 16\n"
                "use_bnb_nested_quant: true\nlora_target_modules: [q_proj, v_proj]\n"
                "gradient_checkpointing: true\ndataloader_num_workers: 2\n"}),
    Run("trl", {"d.yaml": TRL_DPO + "use_peft: true\nlora_target_modules: all-linear\n"}),
    Run("trl", {"d.yaml": TRL_DPO + "precompute_ref_log_probs: true\ndtype: bfloat16\n"}),
    Run("trl", {"r.sh": "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name d "
                        "--per_device_train_batch_size 4 --max_length 512 --bf16 true "
                        "--dataloader_num_workers 2\n"}),
    # axolotl
    Run("axolotl", {"axolotl.yml": AXOLOTL.replace("3.2-1B", "3.1-8B").replace("r: 16", "r: 32")
                    .replace("adamw_bnb", "paged_adamw").replace("2048", "4096")
                    + "lora_alpha: 16\nlora_dropout: 0.05\ngradient_checkpointing: true\n"}),
    Run("axolotl", {"a.yml": AXOLOTL.replace("adapter: qlora\nload_in_4bit: true\nlora_r: 16\n"
                                             "lora_target_linear: true\n", "")
                    + "chunked_cross_entropy: true\ngradient_checkpointing: true\n"}),
    Run("axolotl", {"a.yml": AXOLOTL.replace("qlora\nload_in_4bit", "lora\nload_in_8bit")
                    .replace("sample_packing: true", "sample_packing: false")
                    + "gradient_checkpointing: true\nactivation_offloading: true\n"}),
    Run("axolotl", {"a.yml": AXOLOTL.replace("qlora\nload_in_4bit: true", "lora\n"
                    "peft_use_rslora: true").replace("flash_attention", "sdp_attention"),
                    "l.sh": "accelerate launch --num_processes 2 -m axolotl.cli.train a.yml\n"},
        (), 2),
    # LLaMA-Factory
    Run("llamafactory", {"f.yaml": FACTORY + "use_dora: true\nlora_target: q_proj,v_proj\n"}),
    Run("llamafactory", {"f.yaml": FACTORY.replace("stage: sft", "stage: pt").replace(
        "lora\nlora_rank: 8", "full") + "enable_liger_kernel: true\nflash_attn: fa2\n"}),
    Run("llamafactory", {"f.yaml": FACTORY + "quantization_bit: 4\noptim: paged_adamw_8bit\n"
                         "packing: true\n"}),
    # unsloth
    Run("unsloth", {"u.py": UNSLOTH.replace("r=8", "r=64, use_dora=True, lora_dropout=0.1")
                    .replace('"unsloth",', "False,").replace("FastLanguage", "Fast")}),
    # torchtitan
    Run("torchtitan", {"t.toml": HSDP}, (), 8),
    Run("torchtitan", {"t.toml": TITAN.replace("degree = 8", "degree = 1\n"
                       "data_parallel_replicate_degree = 8").replace("llama3", "qwen3")}, (), 8),
    Run("torchtitan", {"registry.py": REGISTRY}, (), 8),
    # torchtune and LitGPT, which nothing writes: as the Trainer of TRL, or plain
    Run("trl", {"t.yaml": TUNE}),
    Run("plain", {"t.yaml": TUNE.replace("lora_llama3", "llama3").replace("rank: 64", "rank: 8")}),
    Run("plain", {"l.yaml": LITGPT}),
    # Lightning
    Run("lightning", {"config.yaml": LIGHTNING}, (), 2),
    Run("lightning", {"config.yaml": LIGHTNING.replace("devices: 2", "devices: 1").replace(
        "ddp", "auto").replace("bf16-mixed", "32-true").replace("AdamW", "SGD")}),
    Run("lightning", {"fit.sh": "python main.py fit --config config.yaml --trainer.devices 4 "
                                "--data.batch_size 8\n",
                      "config.yaml": LIGHTNING.replace("devices: 2", "devices: 1")}, (), 4),
    # Job scripts and lines of shells
    Run("slurm", {"j.sbatch": JOB}, (), 8),
    Run("trl", {"swift.sh": "CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-7B-Instruct "
                            "--train_type lora --dataset a/b#500 --lora_rank 8 --max_length 2048 "
                            "--per_device_train_batch_size 1 --gradient_accumulation_steps 16\n"}),
    # Servers
    Run("vllm", {"r.sh": "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model "
                         "Qwen/Qwen2.5-7B-Instruct --max-model-len 16384 --dtype bfloat16 "
                         "--quantization fp8\n"}),
    Run("vllm", {"k8s.yaml": POD}),
    Run("vllm", {"r.sh": "docker run --gpus all ghcr.io/huggingface/text-generation-inference:3.3 "
                         "--model-id mistralai/Mistral-7B-v0.3 --max-total-tokens 4096\n"}),
    Run("sglang", {"compose.yaml": COMPOSE}),
    Run("ollama", {"Modelfile": "FROM llama3.2:3b-instruct-q8_0\nPARAMETER num_ctx 16384\n"
                                "PARAMETER temperature 0.7\nSYSTEM Be kind.\n"}),
    Run("ollama", {"s.sh": "llama-server -m Llama-3.1-8B-Instruct-Q4_K_M.gguf -c 8192 -ngl 99\n"}),
]  # fmt: skip
