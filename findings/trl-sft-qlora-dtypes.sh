#!/usr/bin/env bash
# TRL's SFTTrainer no longer prepares a 4-bit model as PEFT's QLoRA guide does.
#
# Versions: trl 1.16.0, peft 0.21.2, bitsandbytes 0.50.2, transformers 5.24.0, torch 2.13.0.
# Expected: norms, embeddings and adapters in fp32, as peft.prepare_model_for_kbit_training and
#   PEFT's default (autocast_adapter_dtype) leave them. Both were what earlier releases of TRL gave.
# Seen: all three in bf16. The trainer casts the adapters and does not prepare the model, so a
#   QLoRA run takes less memory than the same run by PEFT's guide: 2 bytes, not 4, for hidden states,
#   checkpoints, embeddings and head, and half the optimizer state.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 peft==0.21.2 trl==1.16.0 \
    bitsandbytes==0.50.2 datasets==5.2.0 accelerate==1.15.0

cat > "$folder/dtypes.py" <<'PY'
import sys

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from trl import SFTConfig, SFTTrainer

folder = sys.argv[1]
config = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                     num_attention_heads=4, num_key_value_heads=4)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                               bnb_4bit_compute_dtype=torch.bfloat16)
words = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>",
                                    pad_token="</s>", unk_token="<unk>")


def base():
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, quantization_config=four_bits
    )


def dtypes(model):
    parts = {"adapters": "lora_", "norms": "norm", "embeddings": "embed_tokens"}
    found = {}
    for part, name in parts.items():
        kinds = {str(p.dtype) for key, p in model.named_parameters() if name in key}
        found[part] = sorted(kind.removeprefix("torch.") for kind in kinds)
    return found


lora = LoraConfig(task_type="CAUSAL_LM")
by_guide = get_peft_model(prepare_model_for_kbit_training(base()), lora)
trainer = SFTTrainer(
    model=base(),
    args=SFTConfig(output_dir=folder, use_cpu=True, bf16=False, report_to=[]),
    train_dataset=Dataset.from_dict({"text": ["a a a a"] * 4}),
    processing_class=tokenizer,
    peft_config=lora,
)
print("PEFT's guide:", dtypes(by_guide))
print("SFTTrainer:  ", dtypes(trainer.model))
assert all(kinds == ["float32"] for kinds in dtypes(by_guide).values())
assert all(kinds == ["bfloat16"] for kinds in dtypes(trainer.model).values())
PY
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" "$folder/dtypes.py" "$folder/model"
