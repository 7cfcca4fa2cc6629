#!/usr/bin/env bash
# PEFT's target_modules="all-linear" selects a layer that PEFT itself then refuses.
#
# Versions: peft 0.21.2, transformers 5.24.0, torch 2.13.0.
# Expected: the shorthand leaves out what cannot be adapted, as it leaves out the output head.
# Seen: on Falcon-H1 it selects out_proj of the Mamba mixer, and get_peft_model raises a ValueError.
#   The eight other kinds of linear layers, named one by one, are adapted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 peft==0.21.2 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, FalconH1Config


def model():
    config = FalconH1Config(
        num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=256, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16,
    )
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


try:
    get_peft_model(model(), LoraConfig(target_modules="all-linear"))
except ValueError as error:
    print("all-linear:", error)
    assert "out_proj" in str(error)
else:
    raise AssertionError("all-linear is accepted now")
named = ["down_proj", "gate_proj", "in_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]
get_peft_model(model(), LoraConfig(target_modules=named)).print_trainable_parameters()
PY
