#!/usr/bin/env bash
# PEFT's target_modules="all-linear" adapts routers that return more than a tensor, and forward fails.
#
# Versions: peft 0.21.2, transformers 5.24.0, torch 2.13.0.
# Expected: the shorthand leaves out what an adapter does not work on; get_peft_model gives a model
#   that runs, or refuses the layer.
# Seen: the routers of Llama 4 and Phi-3.5-MoE are subclasses of torch.nn.Linear whose forward
#   returns a tuple. "all-linear" selects them, get_peft_model says nothing, and the first forward
#   raises AttributeError: 'tuple' object has no attribute 'dtype'. With exclude_modules=["router"]
#   both run.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 peft==0.21.2 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from peft import LoraConfig, get_peft_model
from transformers import Llama4ForCausalLM, Llama4TextConfig, PhimoeConfig, PhimoeForCausalLM

SIZES = dict(
    vocab_size=100, hidden_size=32, intermediate_size=32, num_hidden_layers=1, pad_token_id=0,
    num_attention_heads=2, num_key_value_heads=1, num_local_experts=4, bos_token_id=1,
    eos_token_id=2,
)
TOKENS = torch.zeros(1, 8, dtype=torch.long)


def llama():
    more = dict(intermediate_size_mlp=32, head_dim=16, interleave_moe_layer_step=1)
    return Llama4ForCausalLM(Llama4TextConfig(**SIZES, **more))


def phi():
    return PhimoeForCausalLM(PhimoeConfig(**SIZES))


for make in (llama, phi):
    model = get_peft_model(make(), LoraConfig(target_modules="all-linear"))
    adapted = [name for name, _ in model.named_parameters() if "router" in name and "lora" in name]
    assert adapted, "the router is left out now"
    try:
        model(input_ids=TOKENS, labels=TOKENS)
    except AttributeError as error:
        print(make.__name__, "all-linear:", error)
    else:
        raise AssertionError("the adapted router runs now")
    left_out = LoraConfig(target_modules="all-linear", exclude_modules=["router"])
    loss = get_peft_model(make(), left_out)(input_ids=TOKENS, labels=TOKENS).loss
    print(make.__name__, "without the router: loss", round(loss.item(), 3))
PY
