#!/usr/bin/env bash
# torch's own Adafactor cannot move parameters that torch's own fully_shard has sharded.
#
# Version: torch 2.13.0.
# Expected: the optimizer step of a matrix, as AdamW, SGD and Muon of torch do it.
# Seen: a RuntimeError at the first step, already with one process: Adafactor squares a norm of the
#   gradient in place, and a DTensor that is a partial norm refuses that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29512 "$folder/venv/bin/python" - <<'PY'
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")


def step(kind):
    layer = torch.nn.Linear(8, 8)
    fully_shard(layer, mesh=init_device_mesh("cpu", (1,)))
    optimizer = kind(layer.parameters())
    layer(torch.randn(2, 8)).sum().backward()
    optimizer.step()


step(torch.optim.AdamW)
print("AdamW: moved")
try:
    step(torch.optim.Adafactor)
except RuntimeError as error:
    print("Adafactor:", str(error).splitlines()[0])
    assert "in-place operations that require placement changes" in str(error)
else:
    raise AssertionError("Adafactor moves it now")
dist.destroy_process_group()
PY
