#!/usr/bin/env bash
# Llama4ForConditionalGeneration of transformers fails in every forward, with images or without.
#
# Versions: transformers 5.24.0, torch 2.13.0.
# Expected: the class that Llama 4's checkpoints name runs, as Llama4ForCausalLM does.
# Seen: it asks the output of its text part for image_outputs, which that output
#   (MoeCausalLMOutputWithPast) does not have: AttributeError. The text part alone runs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from transformers import Llama4Config, Llama4ForConditionalGeneration

config = Llama4Config(
    image_token_index=90,
    text_config=dict(
        vocab_size=100, hidden_size=64, intermediate_size=64, intermediate_size_mlp=64,
        num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        num_local_experts=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    ),
    vision_config=dict(
        hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=256,
        vision_output_dim=128, image_size=64, patch_size=16, projector_input_dim=128,
        projector_output_dim=128,
    ),
)
model = Llama4ForConditionalGeneration(config)
text = torch.zeros(1, 16, dtype=torch.long)
both = text.clone()
both[0, 2:6] = 90
for name, inputs in {
    "text": {"input_ids": text},
    "text and an image": {"input_ids": both, "pixel_values": torch.zeros(1, 3, 64, 64)},
}.items():
    try:
        model(**inputs)
    except AttributeError as error:
        print(f"{name}: {error}")
        assert "image_outputs" in str(error)
    else:
        raise AssertionError(f"{name} runs now")
print("text part alone:", tuple(model.language_model(input_ids=text).logits.shape))
PY
