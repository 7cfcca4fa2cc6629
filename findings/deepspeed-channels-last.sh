#!/usr/bin/env bash
# deepspeed.initialize does not take weights in channels_last.
#
# Versions: deepspeed 0.19.8, torch 2.13.0.
# Expected: a convolution in channels_last is initialised like any other layer, as
#   DistributedDataParallel takes it.
# Seen: a RuntimeError. The engine sends every weight from the first process to the others as bytes,
#   by p.data.view(torch.uint8), which needs a last dimension without gaps. One process is enough.
#   In torch's usual layout the same call passes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy setuptools wheel
DS_ACCELERATOR=cpu "$folder/venv/bin/pip" install -q --no-build-isolation deepspeed==0.19.8

DS_ACCELERATOR=cpu RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 \
    "$folder/venv/bin/python" - <<'PY'
import deepspeed
import torch

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # needs a compiler
deepspeed.init_distributed("gloo", verbose=False)
CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 0}}


def initialize(layout):
    model = torch.nn.Conv2d(3, 8, 3).to(memory_format=layout)
    optimizer = torch.optim.AdamW(model.parameters())
    deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)


initialize(torch.contiguous_format)
print("contiguous: initialised")
try:
    initialize(torch.channels_last)
except RuntimeError as error:
    print("channels_last:", error)
    assert "view" in str(error)
else:
    raise AssertionError("channels_last is initialised now")
PY
