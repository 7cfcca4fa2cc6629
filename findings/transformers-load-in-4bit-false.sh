#!/usr/bin/env bash
# from_pretrained(load_in_4bit=False) is a TypeError of the model's constructor.
#
# Versions: transformers 5.24.0, torch 2.13.0.
# Expected: a switch that is off changes nothing, or an error names quantization_config, which took
#   its place.
# Seen: TypeError: LlamaForCausalLM.__init__() got an unexpected keyword argument 'load_in_4bit'. Scripts
#   that pass the switch of a command line fail also where nobody asks for 4 bits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 numpy

"$folder/venv/bin/python" - "$folder/model" <<'PY'
import sys

from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

folder = sys.argv[1]
sizes = dict(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1,
             num_attention_heads=4, num_key_value_heads=4)
LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(folder)
try:
    AutoModelForCausalLM.from_pretrained(folder, load_in_4bit=False)
except TypeError as error:
    print("TypeError:", error)
    assert "load_in_4bit" in str(error)
else:
    raise SystemExit("load_in_4bit=False is accepted now")
PY
