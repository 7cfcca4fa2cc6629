"""What files say is what is planned."""

import json
import operator
import re
from pathlib import Path

import pytest
from trainerfiles import (
    ACCELERATE,
    AXOLOTL,
    DPO,
    FACTORY,
    GRPO,
    JOB,
    LIGHTNING,
    MEGATRON,
    RUN,
    SCRIPT,
    TITAN,
    TRL,
    TUNE,
    UNSLOTH,
    Files,
    args,
    reviewed,
)

from trainwright.review import sources
from trainwright.review.facts import joined
from trainwright.review.interpret import interpreted
from trainwright.review.machines import machine_of
from trainwright.review.reviewing import mended, texts

KBIT = """\
from peft import LoraConfig, prepare_model_for_kbit_training
bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(
    "mistralai/Mistral-7B-v0.3", quantization_config=bits, device_map={"": 0})
model = prepare_model_for_kbit_training(model)
adapters = LoraConfig(lora_alpha=32, target_modules=["q_proj", "v_proj"])
args = SFTConfig(max_length=1024, bf16=True, dataloader_num_workers=4)
"""
BARE_UNSLOTH = """\
model, tokenizer = FastLanguageModel.from_pretrained('unsloth/Llama-3.2-3B')
model = FastLanguageModel.get_peft_model(model)
args = SFTConfig(bf16=True)
"""
LITGPT = """\
checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3.1-8B
lora_r: 32
lora_key: true
lora_value: false
train: {global_batch_size: 8, micro_batch_size: 1}
"""
DIFFUSERS = """\
export MODEL="stable-diffusion-v1-5/stable-diffusion-v1-5"
accelerate launch --mixed_precision="fp16" train_text_to_image_lora.py \\
  --pretrained_model_name_or_path=$MODEL --resolution=768 --train_batch_size=2 --rank 8
"""
TIMM = "torchrun --nproc_per_node=2 train.py --model resnet50 --batch-size 64 --amp --opt sgd"
NEMO = """\
torchrun --nproc-per-node=8 finetune.py trainer.precision=bf16 model.micro_batch_size=2 \\
  model.restore_from_path=llama-3.1-8b.nemo model.peft.peft_scheme=lora +model.odd.key=1
"""
COMPOSE = """\
services:
  llm:
    image: lmsysorg/sglang:latest
    entrypoint: python3 -m sglang.launch_server
    command: --model-path meta-llama/Llama-3.1-8B-Instruct
      --context-length 4096 --mem-fraction-static 0.8
  proxy:
    image: nginx
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: vllm}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:latest
      command: [/bin/sh, -c]
      args: ["vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max-model-len 4096 -tp 2"]
"""
REGISTRY = """\
def llama3_8b():
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-8B",
        optimizer=OptimizersContainer.Config(lr=3e-4),
        training=TrainingConfig(local_batch_size=3, seq_len=4096),
        activation_checkpoint=ActivationCheckpointConfig(mode="full"),
    )
"""
OF_IMAGES = LIGHTNING + "  init_args: {model_name: resnet50}\n"
FSDP_CLASS = """\
strategy:
    class_path: lightning.pytorch.strategies.FSDPStrategy
    init_args:
      sharding_strategy: SHARD_GRAD_OP
      activation_checkpointing_policy: [torch.nn.TransformerEncoderLayer]"""
ANCHORS = """\
%YAML 1.1
---
usual: &usual
  lora_r: 64
  max_length: 512
  use_peft: !!bool true
per_device_train_batch_size: &batch 4
gradient_accumulation_steps: *batch
model_name_or_path: !!str gpt2
lora_target_modules: &layers [c_attn]
lora_r: 8
<<: *usual
"""
DOCKERFILE = """\
# syntax=docker/dockerfile:1
FROM vllm/vllm-openai:v0.10.1 AS serve
ENV MODEL=meta-llama/Llama-3.1-8B-Instruct
RUN pip install flashinfer && \\
    rm -rf /root/.cache
ENTRYPOINT ["python3", "-m", "vllm.entrypoints.openai.api_server"]
CMD ["--model", "$MODEL", "--max-model-len", "8192", "--gpu-memory-utilization", "0.9"]
"""
OLD_TRAINER = """\
from trl import SFTTrainer
args = TrainingArguments(output_dir="out", bf16=True, dataloader_num_workers=2)
trainer = SFTTrainer("gpt2", args=args, tokenizer=tokenizer, packing=True, max_seq_length=256)
"""
READ: list[tuple[Files | str, dict[str, object]]] = [
    ({"t.py": KBIT}, {"workload.task": "qlora", "workload.lora.targets": ("q_proj", "v_proj"),
                      "settings.kbit_preparation": "all", "settings.checkpointing": "full"}),
    ({"u.py": UNSLOTH.replace('lora_alpha=16, use_gradient_checkpointing="unsloth",', "")},
     {"workload.lora.rank": 8, "workload.lora.alpha": 16, "settings.activation_offload": True,
      "workload.lora.targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                "down_proj")}),
    ({"u.py": BARE_UNSLOTH},
     {"workload.task": "qlora", "workload.lora.rank": 16, "settings.activation_offload": True,
      "workload.inputs.sequence_length": 2048, "model.preset": "llama-3.2-3b"}),
    ({"u.py": BARE_UNSLOTH.replace("-3B", "-3B', load_in_4bit=False, x='")},
     {"workload.task": "lora", "settings.quantization": None}),
    ({"t.toml": TITAN.replace("= 8", "= 1\ndata_parallel_replicate_degree = 2")
                + "[checkpoint]\ninitial_load_in_hf = true\n"},
     {"settings.strategy": "ddp", "workload.task": "full"}),
    ({"t.toml": TITAN.replace("= 8", '= 8\nfsdp_reshard_after_forward = "never"')},
     {"settings.strategy": "fsdp2", "settings.reshard_after_forward": False}),
    ({"t.yaml": TUNE}, {"workload.lora.targets": ("q_proj", "o_proj", "gate_proj", "up_proj",
                                                  "down_proj")}),
    ({"l.yaml": LITGPT}, {"workload.lora.targets": ("q_proj", "k_proj")}),
    ({"l.yaml": re.sub("checkpoint_dir: .*", "checkpoint_dir: tiiuae/falcon-7b", LITGPT)},
     {"model.preset": "falcon-7b", "workload.lora.targets": ("query_key_value",)}),
    ({"m.sh": MEGATRON}, {"settings.micro_batch": 3, "workload.inputs.sequence_length": 2048,
                          "settings.checkpointing": "selective",
                          "workload.effective_batch": 12}),
    ({"d.sh": DIFFUSERS}, {"model.preset": "sd-1.5-unet", "workload.task": "lora",
                           "workload.inputs.image_size": 768, "workload.lora.rank": 8,
                           "settings.recipe": "diffusers-script"}),
    (TIMM, {"settings.optimizer": "sgd", "settings.precision": "fp16-mixed",
            "workload.effective_batch": 128}),
    ({"a.yml": AXOLOTL}, {"settings.recipe": "axolotl", "workload.lora.targets": ("all-linear",)}),
    ({"f.yaml": FACTORY}, {"settings.recipe": "llama-factory", "settings.reentrant": False}),
    ({"f.yaml": FACTORY}, {"workload.lora.alpha": 16}),
    ({"s.yaml": TRL}, {"workload.lora.targets": ("q_proj", "v_proj")}),
    ({"g.yaml": GRPO}, {"workload.objective": "grpo", "workload.inputs.new_tokens": 200,
                        "workload.rollout.generations": 8, "workload.reference": None,
                        "settings.generation": None}),
    ({"g.yaml": GRPO + "beta: 0.04\nuse_vllm: true\nvllm_enable_sleep_mode: true\n"
      "vllm_gpu_memory_utilization: 0.4\nnum_iterations: 2\ngradient_accumulation_steps: 2\n"
      "steps_per_generation: 4\n"},
     {"workload.reference": "model", "settings.generation": "vllm-sleep",
      "settings.memory_share": 0.4, "workload.rollout.iterations": 2,
      "workload.rollout.updates": 2}),
    ({"d.yaml": DPO}, {"workload.objective": "dpo", "workload.compared": "model",
                       "workload.inputs.sequence_length": 1024, "settings.checkpointing": "full",
                       "settings.recipe": None, "settings.cross_entropy": None}),
    ({"d.yaml": DPO + "use_peft: true\n"}, {"workload.compared": "adapter-off"}),
    ({"d.yaml": DPO + "precompute_ref_log_probs: true\n"}, {"workload.compared": "precomputed"}),
    ({"d.yaml": DPO, "a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")},
     {"workload.objective": None, "settings.recipe": "trl-sft"}),
    ({"r.yaml": "model_name_or_path: gpt2\ndataset_name: d\ncenter_rewards_coefficient: 0.01\n"},
     {"workload.objective": "reward", "workload.compared": None, "settings.recipe": None}),
    ({"r.sh": "trl reward --model_name_or_path gpt2 --dataset_name d --use_peft\n"},
     {"workload.objective": "reward", "workload.task": "lora"}),
    ({"tune.sh": "tune run lora_finetune --config t.yaml batch_size=4\n", "t.yaml": TUNE},
     {"settings.micro_batch": 4}),
    ({"run.sh": "swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a/b#500 "
                "--per_device_train_batch_size 1 --max_length 512\n"},
     {"workload.task": "lora", "workload.inputs.sequence_length": 512,
      "workload.lora.targets": ("all-linear",), "settings.precision": "bf16-mixed",
      "settings.checkpointing": "full"}),
    ({"run.sh": "litgpt finetune_lora meta-llama/Llama-3.2-1B --train.max_seq_length 512\n"},
     {"workload.task": "lora", "workload.lora.rank": 8}),
    ({"run.sh": "docker run --gpus all -p 1:1 vllm/vllm-openai:v0.11 --model gpt2 "
                "--max-model-len 512\n"},
     {"workload.task": "infer", "settings.engine": "vllm"}),
    ({"g.py": 'a = GRPOConfig(bf16=True)\nt = GRPOTrainer(model="Qwen/Qwen2.5-0.5B", args=a)\n'},
     {"model.preset": "qwen-2.5-0.5b"}),
    ({"p.py": 'm = AutoModelForCausalLM.from_pretrained("gpt2")\n'
              't = L.Trainer(devices=4, strategy=FSDPStrategy(state_dict_type="full"))\n'},
     {"settings.strategy": "fsdp2", "model.preset": "gpt2"}),
    ("torchrun --nproc_per_node=gpu run_clm.py --model_name_or_path gpt2 --do_train "
     "--per_device_train_batch_size 2", {"workload.effective_batch": 16}),
    ({"a.yml": AXOLOTL + "gradient_checkpointing: offload\nplugins:\n"
      "  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"},
     {"settings.activation_offload": True, "settings.cross_entropy": "fused"}),
    ({"e.py": SCRIPT + "model.gradient_checkpointing_enable()\n"},
     {"settings.checkpointing": "full"}),
    ({"fit.sh": "python main.py fit --config l.yaml --trainer.devices 4 --data.batch_size 8\n",
      "l.yaml": LIGHTNING + "  init_args: {backbone: resnet50}\n"},
     {"settings.micro_batch": 8, "workload.effective_batch": 32}),
    ({"run.sh": f"CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 t.py {RUN}\n"},
     {"workload.effective_batch": 4}),
    ({"pod.yaml": POD}, {"settings.engine": "vllm", "workload.inputs.prompt_tokens": 3840}),
    ({"a.yaml": ACCELERATE, "t.json": args(), "m.py": SCRIPT}, {"settings.recipe": "hf-trainer"}),
    ({"n.sh": NEMO}, {"settings.micro_batch": 2, "workload.task": "lora",
                      "model.preset": "llama-3.1-8b"}),
    ({"compose.yaml": COMPOSE}, {"workload.task": "infer", "settings.engine": "sglang",
                                 "settings.memory_share": 0.8}),
    ({"j.sbatch": JOB}, {"settings.micro_batch": 3, "workload.effective_batch": 24}),
    ({"registry.py": REGISTRY}, {"model.preset": "llama-3.1-8b", "settings.checkpointing": "full",
                                 "settings.micro_batch": 3, "settings.learning_rate": 3e-4}),
    ({"t.toml": TITAN}, {"settings.checkpointing": "full"}),
    ({"t.toml": TITAN.replace("degree = 8", "degree = -1").replace("global_batch_size = 16\n", "")},
     {"workload.effective_batch": 16}),
    ("llama-server -m Llama-3.1-8B-Instruct-Q4_K_M.gguf -c 8192 -ngl 99 --cache-type-k q8_0",
     {"settings.engine": "llama.cpp", "settings.quantization": "q4_k_m",
      "settings.kv_cache": "int8", "model.preset": "llama-3.1-8b"}),
    ("docker run --gpus all ghcr.io/huggingface/text-generation-inference:3.3.5 "
     "--model-id Qwen/Qwen2.5-7B-Instruct --max-total-tokens 4096 --quantize fp8",
     {"workload.task": "infer", "settings.quantization": "fp8"}),
    ({"d.yaml": "model_name_or_path: gpt2\nbeta: 0.1\nmax_length: 512\ntorch_dtype: bfloat16\n"},
     {"settings.precision": "bf16"}),
    ({"t.toml": TITAN.replace('"full"', '"selective"\nselective_ac_option = "op"')},
     {"settings.checkpointing": "selective"}),
    ({"t.toml": TITAN.replace("= 8", "= 4\ntensor_parallel_degree = 2")},
     {"settings.tensor_degree": 2, "settings.strategy": "fsdp2", "workload.effective_batch": 16}),
    ({"t.toml": TITAN.replace("= 8", "= 4\npipeline_parallel_degree = 2")},
     {"settings.tensor_degree": None, "workload.effective_batch": 16}),
    ({"l.yaml": OF_IMAGES.replace("strategy: ddp", FSDP_CLASS)},
     {"settings.strategy": "fsdp2", "settings.checkpointing": "full",
      "settings.reshard_after_forward": False}),
    ({"l.yaml": OF_IMAGES.replace("strategy: ddp", "strategy: deepspeed")},
     {"settings.strategy": "zero2"}),
    ({"l.yaml": OF_IMAGES.replace("strategy: ddp", "strategy:\n    class_path: lightning.pytorch."
                                  "strategies.DeepSpeedStrategy\n    init_args: {stage: 3}")},
     {"settings.strategy": "zero3"}),
    ({"s.yaml": ANCHORS}, {"settings.micro_batch": 4, "settings.accumulation": 4,
                           "workload.inputs.sequence_length": 512, "workload.lora.rank": 8}),
    ({"Dockerfile": DOCKERFILE}, {"workload.task": "infer", "settings.engine": "vllm",
                                  "settings.memory_share": 0.9, "model.preset": "llama-3.1-8b"}),
    ("trl vllm-serve --model Qwen/Qwen2.5-7B --max_model_len 4096",
     {"settings.engine": "vllm", "workload.inputs.prompt_tokens": 3840}),
    ({"v.py": 'llm = LLM("meta-llama/Llama-3.1-8B", gpu_memory_utilization=0.8, '
              "max_model_len=4096)\n"},
     {"settings.engine": "vllm", "settings.memory_share": 0.8, "model.preset": "llama-3.1-8b",
      "workload.inputs.prompt_tokens": 3840}),
    ("python src/train.py --stage sft --do_train --model_name_or_path meta-llama/Llama-3.1-8B "
     "--template llama3 --finetuning_type lora --lora_target q_proj,v_proj --cutoff_len 1024 "
     "--per_device_train_batch_size 2 --fp16 --output_dir o",
     {"workload.task": "lora", "workload.lora.targets": ("q_proj", "v_proj"),
      "settings.recipe": "llama-factory"}),
    ("trl kto --model_name_or_path gpt2 --dataset_name d --bf16",
     {"settings.recipe": "trl-sft", "workload.objective": None}),
    ("trtllm-serve Qwen/Qwen2.5-7B-Instruct --max_seq_len 8192 --max_batch_size 16",
     {"workload.task": "infer", "workload.inputs.concurrent": 16}),
    ("deepspeed --module openrlhf.cli.train_sft --pretrain meta-llama/Llama-3.1-8B --max_len 1024 "
     "--train_batch_size 256 --micro_train_batch_size 2 --zero_stage 3 --bf16",
     {"workload.effective_batch": 256, "settings.micro_batch": 2, "settings.strategy": "zero3",
      "workload.inputs.sequence_length": 1024}),
    ("torchrun --nproc_per_node 4 -m torchtitan.train --model.name llama3 --model.flavor 8B "
     "--training.local_batch_size 2 --activation_checkpoint.mode full",
     {"settings.micro_batch": 2, "settings.strategy": "fsdp2", "settings.checkpointing": "full"}),
    ({"t.sh": "CONFIG_FILE=./t.toml ./run_train.sh --training.local_batch_size 1\n",
      "t.toml": TITAN}, {"settings.micro_batch": 1, "model.preset": "llama-3.1-8b"}),
    ("tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full",
     {"settings.strategy": "fsdp2"}),
    ("fabric run --strategy=fsdp --devices=4 --precision=bf16-true t.py --model gpt2 "
     "--batch_size 2",
     {"settings.strategy": "fsdp2", "settings.precision": "bf16", "workload.effective_batch": 8}),
    ("python run_clm.py --config_name gpt2 --do_train --per_device_train_batch_size 2",
     {"model.preset": "gpt2"}),
    (TIMM + " --amp-dtype bfloat16", {"settings.precision": "bf16-mixed"}),
    ("python sdxl_train_network.py --network_module networks.lora --network_dim 32 "
     "--pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0 "
     "--resolution 1024,768 --optimizer_type AdamW8bit --train_batch_size 1",
     {"model.preset": "sdxl-unet", "workload.task": "lora", "workload.lora.rank": 32,
      "workload.inputs.image_size": 1024, "settings.optimizer": "adamw-8bit"}),
    ({"f.yaml": FACTORY + "deepspeed: examples/deepspeed/ds_z3_config.json\n"},
     {"settings.strategy": "zero3"}),
    ({"a.yml": AXOLOTL.replace("adapter: qlora\nload_in_4bit: true\n", "")
      .replace("adamw_bnb_8bit", "adamw_torch")
      + "deepspeed: deepspeed_configs/zero2.json\n"}, {"settings.strategy": "zero2"}),
    ({"registry.py": REGISTRY + REGISTRY.replace("8b", "70b").replace("size=3", "size=1")},
     {"model.preset": "llama-3.1-8b", "settings.micro_batch": 3}),
    ({"t.py": OLD_TRAINER}, {"workload.inputs.sequence_length": 256,
                             "workload.inputs.batching": "packed"}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), READ)
def test_what_files_say_is_planned(
    tmp_path: Path, files: Files | str, expected: dict[str, object]
) -> None:
    found = reviewed(tmp_path, files, "rtx-4090", 8)
    assert {one.rule for one in found.errors} <= {"key-moved"}
    plan = found.planned.plan
    assert plan is not None
    for key, value in expected.items():
        assert operator.attrgetter(key)(plan) == value, key


def test_a_notebook_is_read_at_its_own_lines(tmp_path: Path) -> None:
    cells = [
        ["%pip install -q trl\n", "!nvidia-smi"],
        ["x = 1\n", "args = SFTConfig(\n", "    bf16=True, max_length=512)"],
    ]
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# SFT"]},
            *({"cell_type": "code", "source": cell, "outputs": []} for cell in cells),
        ]
    }
    text = json.dumps(book, indent=1)
    found = reviewed(tmp_path, {"train.ipynb": text}, "t4")
    (wrong,) = [one for one in found.findings if one.rule == "no-bf16"]
    assert wrong.line is not None
    assert "bf16=True" in text.split("\n")[wrong.line - 1]


def test_lines_for_ipython_in_a_script_are_passed_over(tmp_path: Path) -> None:
    script = (
        "!pip install trl\nfor _ in range(2):\n    %time f()\nargs = SFTConfig(max_length=256)\n"
    )
    assert reviewed(tmp_path, {"colab.py": script}, "t4").facts.value("length") == 256


def test_a_precision_that_the_script_asks_the_gpu_for_is_the_gpus(tmp_path: Path) -> None:
    script = UNSLOTH.replace("bf16=True", "fp16=not has_bf16(), bf16=has_bf16()")
    plan = reviewed(tmp_path, {"u.py": script}, "t4").planned.plan
    assert plan is not None
    assert plan.settings.precision is None


def test_arguments_in_a_mapping_are_read(tmp_path: Path) -> None:
    script = """\
how = dict(torch_dtype=torch.bfloat16, attn_implementation="sdpa", device_map=found())
trainer = SFTTrainer(model="gpt2", args=SFTConfig(model_init_kwargs=how), peft_config=LoraConfig())
"""
    found = reviewed(tmp_path, {"t.py": script}, "rtx-4090")
    assert found.facts.value("weights_dtype") == "bf16"
    assert found.facts.value("attention") == "sdpa"
    assert [one.key for one in found.computed] == ["model_init_kwargs.device_map"]
    assert found.planned.plan is not None
    assert found.planned.plan.workload.lora.rank == 8  # PEFT's, not that of TRL's command line


def test_a_deepspeed_file_says_how_many_gpus_its_batch_is_for(tmp_path: Path) -> None:
    path = tmp_path / "z.json"
    path.write_text(
        '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, '
        '"gradient_accumulation_steps": 2, "zero_optimization": {"stage": 1}}'
    )
    facts = joined(one.facts for one in interpreted(sources([str(path)]).sources))
    assert machine_of({"gpus": [{"id": "rtx-4090"}]}, facts)["gpus"][0]["count"] == 4


def test_strategies_written_as_classes_say_how_they_divide(tmp_path: Path) -> None:
    whole = "strategy:\n    class_path: lightning.pytorch.strategies."
    split = "ModelParallelStrategy\n    init_args: {data_parallel_size: 2, tensor_parallel_size: 4}"
    moved = "DeepSpeedStrategy\n    init_args: {stage: 2, offload_optimizer: true}"
    asked = LIGHTNING.replace("devices: 2", "devices: auto")
    found = reviewed(tmp_path, {"l.yaml": asked.replace("strategy: ddp", whole + split)}, "h100", 8)
    assert (found.facts.value("tensor"), found.facts.value("shard")) == (4, 2)
    found = reviewed(tmp_path, {"l.yaml": asked.replace("strategy: ddp", whole + moved)}, "h100", 8)
    assert found.facts.value("offload_optimizer") == "cpu"
    assert found.facts.value("bucket_size") == 200_000_000  # Lightning's, not DeepSpeed's own


def test_a_change_that_the_file_cannot_take_leaves_the_review(tmp_path: Path) -> None:
    both = args(no_cuda=False, use_cpu=False, evaluation_strategy="no", eval_strategy="no")
    found = reviewed(tmp_path, {"a.json": both}, "rtx-4090")
    ((_, text),) = texts(found, mended(found)).values()
    assert json.loads(text) == json.loads(args(use_cpu=False, eval_strategy="no"))


def test_a_trainer_imported_from_lightning_is_lightnings(tmp_path: Path) -> None:
    script = "from lightning import Trainer\nt = Trainer(devices=4, precision='bf16-mixed')\n"
    facts = reviewed(tmp_path, {"t.py": script}, "rtx-4090", 4).facts
    assert (facts.value("devices"), facts.value("precision")) == (4, "bf16-mixed")


def test_a_strategy_made_in_a_script_is_read_with_its_arguments(tmp_path: Path) -> None:
    script = "t = L.Trainer(devices=2, strategy=DeepSpeedStrategy(stage=3, offload_optimizer=True))"
    facts = reviewed(tmp_path, {"t.py": script}, "rtx-4090", 2).facts
    assert (facts.value("strategy"), facts.value("offload_optimizer")) == ("zero3", "cpu")


@pytest.mark.parametrize("start", ["python", "accelerate launch --num_processes 1"])
def test_scripts_of_trl_started_as_modules_are_trls(tmp_path: Path, start: str) -> None:
    line = f"{start} -m trl.scripts.sft --model_name_or_path gpt2 --use_peft --max_length 512"
    plan = reviewed(tmp_path, line, "rtx-4090").planned.plan
    assert plan is not None
    assert plan.settings.recipe == "trl-sft"


@pytest.mark.parametrize(
    ("config", "preset", "task"),
    [
        ("llama3_1/8B_full", "llama-3.1-8b", "full"),
        ("llama3_2/1B_lora_single_device", "llama-3.2-1b", "lora"),
        ("qwen2_5/0.5B_lora_single_device", "qwen-2.5-0.5b", "lora"),
        ("llama3_1/8B_qlora_single_device", "llama-3.1-8b", "qlora"),
    ],
)
def test_configs_that_torchtune_brings_name_their_model(
    tmp_path: Path, config: str, preset: str, task: str
) -> None:
    line = f"tune run lora_finetune_single_device --config {config} batch_size=2"
    plan = reviewed(tmp_path, line, "rtx-4090").planned.plan
    assert plan is not None
    assert (plan.model.preset, plan.workload.task) == (preset, task)
