"""Planted faults are found, and sound files have none."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainerfiles import (
    ACCELERATE,
    AXOLOTL,
    DPO,
    FACTORY,
    GRPO,
    JOB,
    LIGHTNING,
    PEFT,
    RUN,
    SCRIPT,
    TITAN,
    TRL,
    TUNE,
    ZERO,
    Files,
    args,
    deepspeed,
    reviewed,
)

from trainwright.messages import UserError, render
from trainwright.review import sources

SERVED = """\
services:
  llm:
    image: vllm/vllm-openai:latest
    command: --model Qwen/Qwen2.5-7B --tensor-parallel-size 2 --max-model-len 8192
    deploy:
      resources:
        reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}
"""
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
    ("key-of-later", {"r.sh": "docker run --gpus all vllm/vllm-openai:v0.6.3 --model gpt2 "
                              "--num-scheduler-steps 8\n"}, "rtx-4090", 1),
    ("key-gone", {"r.sh": "docker run --gpus all vllm/vllm-openai:latest --model gpt2 "
                          "--num-scheduler-steps 8\n"}, "rtx-4090", 1),
    ("batch-product", {"z.json": deepspeed(train_batch_size=32, gradient_accumulation_steps=4)},
     "rtx-4090", 2),
    ("value-gone", {"a.json": args(optim="adamw_hf")}, "rtx-4090", 1),
    ("quantized-whole", {"f.yaml": FACTORY.replace("lora\nlora_rank: 8",
                                                   "full\nquantization_bit: 4")}, "rtx-4090", 1),
    ("key-moved", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n"
                   "  fsdp_version: 2\n  fsdp_sharding_strategy: FULL_SHARD\n"}, "rtx-4090", 2),
    ("reentrant-frozen", {"s.yaml": TRL + "gradient_checkpointing_kwargs: {use_reentrant: true}\n"},
     "rtx-4090", 1),
    ("grouping-packed", {"a.yml": AXOLOTL + "group_by_length: true\n"}, "rtx-4090", 1),
    ("device-map-zero3", {"t.py": SCRIPT.replace('"gpt2"', '"gpt2", device_map="auto"'),
                          "z.json": deepspeed()}, "rtx-4090", 2),
    ("share-high", "python -m sglang.launch_server --model-path gpt2 --mem-fraction-static 0.95",
     "rtx-4090", 1),
    ("value-unknown", {"l.yaml": LIGHTNING.replace("devices: 2", "devices: []")}, "rtx-4090", 1),
    ("ddp-alone", {"l.yaml": LIGHTNING.replace("devices: 2", "devices: 1")}, "rtx-4090", 1),
    ("packing-mixes", {"a.yml": AXOLOTL.replace("flash_attention: true", "debug: true")},
     "rtx-4090", 1),
    ("fp16-model", {"a.yml": AXOLOTL.replace("meta-llama/Llama-3.2-1B", "google/gemma-2-2b")
                    .replace("bf16: auto", "fp16: true").replace("flash_attention: true\n", "")},
     "rtx-2080-ti", 1),
    ("offload-stage", {"z.json": deepspeed(zero_optimization={
        "stage": 2, "reduce_bucket_size": 20_000_000, "offload_param": {"device": "cpu"}})},
     "rtx-4090", 1),
    ("length-long", {"a.yml": AXOLOTL.replace("meta-llama/Llama-3.2-1B", "gpt2")}, "rtx-4090", 1),
    ("generations-divide", {"g.yaml": GRPO + "per_device_train_batch_size: 3\n"}, "rtx-4090", 1),
    ("exclusive", {"a.json": args(deepspeed="z.json", fsdp="full_shard"), "z.json": deepspeed(
        train_micro_batch_size_per_gpu="auto")}, "rtx-4090", 1),
    ("exclusive", {"a.yml": AXOLOTL + "warmup_steps: 10\nwarmup_ratio: 0.1\n"}, "rtx-4090", 1),
    ("targets-absent", {"t.py": 'model = AutoModelForCausalLM.from_pretrained("gpt2")\n'
                                'a = LoraConfig(target_modules=["q_proj", "v_proj"])\n'},
     "rtx-4090", 1),
    ("one-of", {"z.json": deepspeed(fp16={"enabled": True})}, "rtx-4090", 1),
    ("in-backward", {"t.yaml": TUNE + "optimizer_in_bwd: true\ngradient_accumulation_steps: 8\n"},
     "a100-80gb", 1),
    ("gpus-allotted", {"j.sbatch": JOB.replace("a100:8", "4")}, "a100-80gb", 8),
    ("gpus-allotted", {"compose.yaml": SERVED.replace("count: 2", "count: 1")}, "rtx-4090", 2),
    ("gpus-allotted", {"compose.yaml": SERVED.replace("count: 2", "device_ids: ['3']")},
     "rtx-4090", 2),
    ("gpus", {"compose.yaml": SERVED}, "rtx-4090", 1),
    ("gpus-allotted", f"CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 train.py {RUN}",
     "rtx-4090", 4),
    ("gpus-allotted", {"r.sh": "export CUDA_VISIBLE_DEVICES=2\n"
                               f"torchrun --nproc_per_node 2 train.py {RUN}\n"}, "rtx-4090", 2),
    ("gpus-allotted", "docker run --gpus '\"device=0\"' vllm/vllm-openai:latest --model gpt2 -tp 2",
     "rtx-4090", 2),
    ("context-long", {"Modelfile": "FROM mistral:7b\nPARAMETER num_ctx 65536\n"}, "rtx-4090", 1),
    ("heads", "vllm serve Qwen/Qwen2.5-7B --tensor-parallel-size 3", "rtx-4090", 3),
    ("packing-mixes", {"s.yaml": "model_name_or_path: gpt2\ndataset_name: d\npacking: true\n"
                                 "dataloader_num_workers: 2\n"}, "rtx-4090", 1),
    ("exclusive", {"a.yml": AXOLOTL + "rl: dpo\n"}, "rtx-4090", 1),
    ("qlora-whole", {"a.yml": AXOLOTL.replace("load_in_4bit", "load_in_8bit")}, "rtx-4090", 1),
    ("exclusive", {"f.yaml": FACTORY + "quantization_bit: 4\npissa_init: true\n"}, "rtx-4090", 1),
    ("exclusive", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "DEEPSPEED") + "deepspeed_config:\n"
                   "  deepspeed_config_file: z.json\n  zero_stage: 3\n", "z.json": deepspeed()},
     "rtx-4090", 2),
    ("value-gone", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "TPU")}, "rtx-4090", 2),
    ("value-gone", {"t.yaml": TUNE + "dtype: fp16\n"}, "a100-80gb", 1),
    ("value-gone", {"l.yaml": LIGHTNING.replace("trainer:", "trainer:\n  accelerator: ddp")},
     "rtx-4090", 2),
    ("processes-nodes", {"a.yaml": ACCELERATE.replace("machines: 1", "machines: 2")
                         .replace("processes: 2", "processes: 9")}, "rtx-4090", 8),
    ("wrap-absent", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n"
                     "  fsdp_version: 2\n"
                     "  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n",
                     "l.sh": f"accelerate launch --config_file a.yaml train.py {RUN}\n"},
     "rtx-4090", 2),
    ("offload-refused", {"t.yaml": TUNE + "enable_activation_checkpointing: false\n"
                         "enable_activation_offloading: true\n"}, "a100-80gb", 1),
    ("fp16-weights", {"t.py": SCRIPT.replace('"gpt2"', '"gpt2", dtype=torch.float16')
                      .replace("bf16", "fp16")}, "rtx-2080-ti", 1),
    ("key-moved", {"t.py": SCRIPT + "Trainer(model=model, args=args, tokenizer=tokenizer)\n"},
     "rtx-4090", 1),
    ("key-moved", {"t.py": "trainer = SFTTrainer('gpt2', args=SFTConfig(), tokenizer=tokenizer)\n"},
     "rtx-4090", 1),
    ("key-twice", {"z.json": deepspeed().replace("{", '{"bf16": {"enabled": true}, ', 1)},
     "rtx-4090", 1),
    ("json-comments", {"z.json": "// mine\n" + deepspeed(train_micro_batch_size_per_gpu="auto"),
                       "a.json": args(deepspeed="z.json")}, "rtx-4090", 1),
    ("gpus", {"l.sh": f"deepspeed --include localhost:0,1,2,3 train.py {RUN} --bf16\n"},
     "rtx-4090", 2),
    ("fsdp1", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")
               + "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"}, "rtx-4090", 2),
    ("unlike-default", {"z.json": deepspeed(train_micro_batch_size_per_gpu=4),
                        "a.json": json.dumps({"output_dir": "o", "deepspeed": "z.json",
                                              "bf16": True})}, "a100-80gb", 2),
    ("unlike-default", {"z.json": deepspeed(train_micro_batch_size_per_gpu="auto",
                                            gradient_clipping=0.5),
                        "a.json": args(deepspeed="z.json")}, "a100-80gb", 2),
    ("unlike-default", {"z.json": deepspeed(
        train_micro_batch_size_per_gpu="auto",
        optimizer={"type": "AdamW", "params": {"lr": "auto", "weight_decay": 0.01}}),
        "a.json": args(deepspeed="z.json")}, "a100-80gb", 2),
    ("conflict", {"z.json": deepspeed(train_micro_batch_size_per_gpu="auto", gradient_clipping=0.5),
                  "a.json": args(deepspeed="z.json", max_grad_norm=1.0)}, "a100-80gb", 2),
    ("number-text", {"t.yaml": "output_dir: o\nlearning_rate: 2e-4\nbf16: true\n"}, "rtx-4090", 1),
    ("value-unknown", {"a.json": args(gradient_accumulation_steps=0)}, "rtx-4090", 1),
    ("value-unknown", {"a.json": args(lr_scheduler_type="cosin")}, "rtx-4090", 1),
    ("value-unknown", {"s.yaml": TRL + "lora_r: 0\n"}, "rtx-4090", 1),
    ("targets-partly", {"s.yaml": TRL + "lora_target_modules: [q_prj, v_proj]\n"}, "rtx-4090", 1),
    ("exclusive", {"d.yaml": DPO + "precompute_ref_log_probs: true\nsync_ref_model: true\n"},
     "rtx-4090", 1),
    ("value-gone", {"l.yaml": LIGHTNING.replace("strategy: ddp", "strategy: ddp_sharded")},
     "rtx-4090", 2),
    ("gpus-idle", {"j.sbatch": JOB.replace("nproc_per_node 8", "nproc_per_node 4")},
     "a100-80gb", 8),
    ("key-unknown-near", {"Modelfile": "FROM llama3.1:8b\nPARAMETER num_context 8192\n"},
     "rtx-4090", 1),
    ("engine-gpu", "vllm serve Qwen/Qwen2.5-7B-Instruct-AWQ", "gtx-1080-ti", 1),
    ("engine-elsewhere", "vllm serve Qwen/Qwen2.5-7B", "apple-m3-max", 1),
    ("no-fp8", "vllm serve Qwen/Qwen2.5-7B --quantization fp8", "v100-16gb", 1),
    ("cache", {"t.py": SCRIPT.replace('"gpt2")', '"gpt2", use_cache=True)')
               .replace("bf16=True", "bf16=True, gradient_checkpointing=True")}, "rtx-4090", 1),
    ("quantized-zero3", {"t.py": "b = BitsAndBytesConfig(load_in_4bit=True)\n"
                         "m = AutoModelForCausalLM.from_pretrained('x', quantization_config=b)\n"
                         "args = TrainingArguments('o', deepspeed='z.json', bf16=True)\n",
                         "z.json": deepspeed(train_micro_batch_size_per_gpu="auto")},
     "a100-80gb", 2),
    ("checkpointed-twice", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n"
                            "  fsdp_version: 2\n  fsdp_activation_checkpointing: true\n",
                            "a.json": args(gradient_checkpointing=True)}, "rtx-4090", 2),
    ("unused-reentrant", {"l.sh": "torchrun --nproc_per_node 2 train.py\n", "a.json": args(
        ddp_find_unused_parameters=True, gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": True})}, "rtx-4090", 2),
    ("heads", "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 5", "a100-80gb", 8),
    ("context-long", "vllm serve meta-llama/Llama-3.1-8B --max-model-len 262144", "a100-80gb", 1),
    ("value-gone", {"a.yaml": ACCELERATE.replace("MULTI_GPU", "MPS")}, "rtx-4090", 2),
    ("kto-batch", "trl kto --model_name_or_path gpt2 --dataset_name d "
                  "--per_device_train_batch_size 1", "rtx-4090", 1),
    ("value-unknown", {"a.json": args(warmup_steps=-5)}, "rtx-4090", 1),
    *(("gpus-allotted", {"j.sbatch": f"#SBATCH --nodes=2\n#SBATCH {gpus}\n"
       f"srun torchrun --nnodes 2 --nproc_per_node 4 train.py {RUN}\n"}, "a100-80gb", 4)
      for gpus in ("--gpus=4", "-G 4")),
    ("share-above-one", {"Dockerfile": 'FROM vllm/vllm-openai:latest\nEXPOSE 8000\n'
                         'CMD ["--model", "gpt2", "--gpu-memory-utilization", "1.5"]\n'},
     "a100-80gb", 1),
    ("gpus", "fabric run --devices=4 --strategy=ddp train.py --model gpt2 --batch_size 2",
     "rtx-4090", 2),
    ("padded-pairs", {"a.yml": AXOLOTL.replace("sample_packing: true", "rl: dpo")
                      + "pad_to_sequence_len: true\n"}, "rtx-4090", 1),
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
    ({"z.json": "{ // ZeRO\n" + deepspeed()[1:-1] + ",\n}"}, "rtx-4090", 1),
    ({"t.py": SCRIPT.replace('"gpt2"', '"gpt2", low_cpu_mem_usage=True')
      + "Trainer(model=model, args=args, processing_class=tokenizer)\n"}, "rtx-4090", 1),
    ({"t.py": "model = LlamaForCausalLM.from_pretrained('gpt2', dtype=torch.float16)\n"
              "model = get_peft_model(model, LoraConfig(r=8))\n"
              "args = TrainingArguments(fp16=True, dataloader_num_workers=2)\n"}, "rtx-2080-ti", 1),
    ({"l.sh": f"accelerate launch --config_file a.yaml train.py {RUN}\n",
      "a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP") + "fsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_transformer_layer_cls_to_wrap: GPT2Block\n"}, "rtx-4090", 2),
    ({"t.toml": TITAN}, "h100-80gb", 8),
    ("trl kto --model_name_or_path gpt2 --dataset_name d --per_device_train_batch_size 4 "
     "--dataloader_num_workers 2 --bf16", "rtx-4090", 1),
    ({"j.sbatch": "#SBATCH --nodes=2\n#SBATCH --gpus=8\n"
      f"srun torchrun --nnodes 2 --nproc_per_node 4 train.py {RUN} --bf16\n"}, "a100-80gb", 4),
    ("torchrun --nproc_per_node=4 train.py --model resnet50 --batch-size 256 --amp "
     "--amp-dtype bfloat16 --workers 8 --img-size 224 --opt sgd", "rtx-3090", 4),
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
    ({"compose.yaml": SERVED}, "rtx-4090", 2),
    ("python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2", "rtx-4090", 2),
    (f"torchrun --nproc_per_node 2 train.py {RUN} --bf16", "rtx-4090", 2),
    (f"accelerate launch --num_processes 2 train.py {RUN} --fp16 true", "v100-16gb", 2),
    ({"z.json": deepspeed(
        train_micro_batch_size_per_gpu=8, gradient_clipping=1.0,
        optimizer={"type": "AdamW", "params": {"lr": 5e-5, "weight_decay": 0.0}}),
      "a.json": args(deepspeed="z.json", per_device_train_batch_size=8)}, "a100-80gb", 2),
    ({"t.yaml": "output_dir: o\nlearning_rate: 2.0e-4\nlr_scheduler_type: cosine\nbf16: true\n"
                "dataloader_num_workers: 2\n"}, "rtx-4090", 1),
    ({"s.yaml": TRL + "learning_rate: 2e-4\ndtype: bfloat16\nlora_target_modules: [q_proj, "
                "v_proj]\ndataloader_num_workers: 2\n"}, "rtx-4090", 1),
    ({"Modelfile": "FROM llama3.1:8b\nPARAMETER num_ctx 8192\nPARAMETER temperature 0.7\n"
                   "PARAMETER stop <|eot_id|>\nPARAMETER top_k 40\n"}, "rtx-4090", 1),
    ("vllm serve Qwen/Qwen2.5-7B --quantization fp8 --dtype half", "rtx-2080-ti", 1),
    ({"l.yaml": LIGHTNING.replace("strategy: ddp", "strategy: ddp_find_unused_parameters_true")},
     "rtx-4090", 2),
    ({"g.yaml": GRPO + "per_device_train_batch_size: 8\ndataloader_num_workers: 2\n"},
     "rtx-4090", 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "files", "gpu", "count"), FAULTS)
def test_a_planted_fault_is_found(
    tmp_path: Path, rule: str, files: Files | str, gpu: str, count: int
) -> None:
    found = reviewed(tmp_path, files, gpu, count)
    assert rule in [finding.rule for finding in found.findings]
    assert all(render(one.message, lang) != one.message.id
               for one in found.findings for lang in ("en", "ko"))  # fmt: skip


@pytest.mark.parametrize("said", ["auto", "true"])
def test_of_two_switches_of_precision_one_goes_off_where_the_other_goes_on(
    tmp_path: Path, said: str
) -> None:
    run = {"a.yml": AXOLOTL.replace("bf16: auto", f"bf16: {said}")}
    found = reviewed(tmp_path, run, "v100-16gb", 1)
    (wrong,) = [one for one in found.findings if one.rule == "no-bf16"]
    changed = {change.place[-1]: change.value for change in wrong.changes}
    assert changed == {"bf16": False, "fp16": True}


@pytest.mark.parametrize(("files", "gpu", "count"), SOUND)
def test_a_sound_file_has_no_fault(
    tmp_path: Path, files: Files | str, gpu: str, count: int
) -> None:
    found = reviewed(tmp_path, files, gpu, count)
    assert [one.rule for one in found.findings if one.level != "gain"] == []
    assert [unread.key for unread in found.not_understood] == []


@pytest.mark.parametrize(
    ("file", "said", "agrees"),
    [
        ({"train_micro_batch_size_per_gpu": 4}, {}, False),
        ({"train_micro_batch_size_per_gpu": 4}, {"per_device_train_batch_size": 4}, True),
        ({"gradient_clipping": 0.5}, {}, False),
        ({"gradient_clipping": 1.0}, {}, True),
        ({"optimizer": {"type": "AdamW", "params": {"weight_decay": 0.01}}}, {}, False),
    ],
)
def test_transformers_refuses_what_is_unlike_its_default(
    tmp_path: Path, file: dict[str, Any], said: dict[str, Any], agrees: bool
) -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    theirs = HfTrainerDeepSpeedConfig({"zero_optimization": ZERO, **file})
    theirs.trainer_config_process(
        transformers.TrainingArguments(str(tmp_path), use_cpu=True, **said)
    )
    assert (theirs.mismatches == []) is agrees
    files = {"z.json": json.dumps({"zero_optimization": ZERO, **file}),
             "a.json": json.dumps({"output_dir": "o", "deepspeed": "z.json", **said})}  # fmt: skip
    found = [one.rule for one in reviewed(tmp_path, files, "a100-80gb", 2).findings]
    assert ("unlike-default" not in found) is agrees


def test_the_trainer_keeps_numbers_of_yaml_as_text(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    file = tmp_path / "t.yaml"
    file.write_text(f"output_dir: {tmp_path}\nuse_cpu: true\nlearning_rate: 2e-4\n")
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    assert parser.parse_yaml_file(str(file))[0].learning_rate == "2e-4"


@pytest.mark.parametrize(
    ("name", "text", "id", "tool"),
    [
        ("i.yaml", "model_name_or_path: gpt2\ntemplate: t\ninfer_backend: vllm\n",
         "review.trains-nothing", "LLaMA-Factory"),
        ("p.yaml", FACTORY + "do_predict: true\n",
         "review.trains-nothing", "LLaMA-Factory"),
        ("m.yaml", "model: gpt2\npeft_config: {name: lora, export_dir: o}\n",
         "review.trains-nothing", "LLaMA-Factory"),
        ("x.yml", '{"pipe_parallel_size": 0, "train_micro_batch_size_per_gpu": 4}\n',
         "review.other-tool", "GPT-NeoX"),
        ("l.yaml", "model: m\niters: 1000\nlora_parameters: {rank: 8}\n",
         "review.other-tool", "MLX"),
        ("r.yaml", "policy: {model_name: gpt2}\ncluster: {num_nodes: 1}\n",
         "review.other-tool", "NeMo-RL"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_reviewed_is_refused_by_its_tools_name(
    tmp_path: Path, name: str, text: str, id: str, tool: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as refused:
        sources([str(tmp_path / name)])
    assert refused.value.message.id == id
    assert refused.value.message.values["tool"] == tool


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("use_adam_mini: true\npredict_with_generate: true\n", "use_adam_mini"),
        ("fp8: true\n", "fp8"),
        ("use_kt: true\n", "use_kt"),
        ("expert_model_parallel_size: 2\nmoe_grouped_gemm: true\n", "expert_model_parallel_size"),
        ("mixture_of_depths: convert\n", "mixture_of_depths"),
    ],
)
def test_what_changes_memory_and_is_not_counted_is_said(
    tmp_path: Path, text: str, key: str
) -> None:
    found = reviewed(tmp_path, {"f.yaml": FACTORY + text}, "rtx-4090")
    assert not found.errors
    notes = [one for one in found.planned.not_planned if one.id == "review.not-planned.keys"]
    assert key in notes[0].values["keys"]


def test_orthogonal_adapters_are_not_taken_for_training_all_weights(tmp_path: Path) -> None:
    text = FACTORY.replace("finetuning_type: lora", "finetuning_type: oft")
    found = reviewed(tmp_path, {"f.yaml": text}, "rtx-4090")
    assert found.planned.plan is None
    assert found.unestimated is not None
    assert found.unestimated.id == "review.adapter-unplanned"


def test_weights_that_the_models_name_says_are_quantized_are_said(tmp_path: Path) -> None:
    name = "TechxGenus/Meta-Llama-3-8B-Instruct-AWQ"
    text = f"model_name_or_path: {name}\n" + FACTORY.partition("\n")[2]
    found = reviewed(tmp_path, {"f.yaml": text}, "rtx-4090")
    notes = [one for one in found.planned.not_planned if "named-weights" in one.id]
    assert notes[0].values["weights"] == "int4"
