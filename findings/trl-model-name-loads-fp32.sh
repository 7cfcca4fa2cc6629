#!/usr/bin/env bash
# SFTTrainer loads a model that is given by name in float32, whatever the checkpoint holds.
#
# Version: trl 1.16.0, transformers 5.24.0, torch 2.13.0.
# Expected: SFTTrainer(model="folder") loads the weights as AutoModelForCausalLM.from_pretrained does,
#   which keeps the checkpoint's bfloat16 since transformers 5.
# Seen: float32, twice the memory, LoRA's frozen weights included. SFTConfig(model_init_kwargs=
#   {"dtype": "bfloat16"}) keeps 16 bits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 trl==1.16.0 peft==0.21.2

cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {"<pad>": 0, "a": 1, "b": 2}
tokens = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
tokens.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=tokens, pad_token="<pad>", eos_token="<pad>"
).save_pretrained("tiny")
small = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=16, eos_token_id=0)
GPT2LMHeadModel(small).to(torch.bfloat16).save_pretrained("tiny")


def frozen(**more):
    given = SFTConfig(output_dir="out", use_cpu=True, bf16=False, report_to="none", **more)
    trainer = SFTTrainer(
        model="tiny",
        args=given,
        train_dataset=Dataset.from_dict({"text": ["a b", "b a"]}),
        peft_config=LoraConfig(target_modules=["c_attn"], fan_in_fan_out=True),
    )
    weights = trainer.model.named_parameters()
    return {str(one.dtype) for name, one in weights if not one.requires_grad}


seen = {
    "from_pretrained": {str(AutoModelForCausalLM.from_pretrained("tiny").dtype)},
    "SFTTrainer": frozen(),
    "with dtype": frozen(model_init_kwargs={"dtype": "bfloat16"}),
}
print(seen)
assert seen == {
    "from_pretrained": {"torch.bfloat16"},
    "SFTTrainer": {"torch.float32"},
    "with dtype": {"torch.bfloat16"},
}, seen
PY
