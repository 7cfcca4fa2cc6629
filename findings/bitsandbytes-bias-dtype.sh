#!/usr/bin/env bash
# A 4-bit linear layer of bitsandbytes changes the dtype of its bias for good in its first forward.
#
# Versions: bitsandbytes 0.50.2, torch 2.13.0.
# Expected: forward computes with a cast copy. The bias stays fp32, as
#   peft.prepare_model_for_kbit_training and other preparations leave it.
# Seen: forward assigns the cast to bias.data. With a bf16 input the fp32 bias is bf16 afterwards,
#   and stays so for later fp32 inputs. Models with biases (Qwen 2, GPT-2, StarCoder) so end with
#   other bytes, and other values, than their preparation set.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 bitsandbytes==0.50.2 numpy

"$folder/venv/bin/python" - <<'PY'
import bitsandbytes
import torch

layer = bitsandbytes.nn.Linear4bit(
    64, 64, bias=True, compute_dtype=torch.bfloat16, quant_type="nf4"
)
layer.to("cpu")  # quantises the weight
layer.bias.data = layer.bias.data.float()
before = layer.bias.dtype
layer(torch.randn(2, 64, dtype=torch.bfloat16))
print("bias before:", before, "after one forward in bf16:", layer.bias.dtype)
assert before == torch.float32
assert layer.bias.dtype == torch.bfloat16
PY
