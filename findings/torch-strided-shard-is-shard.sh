#!/usr/bin/env bash
# A weight that FSDP2 shards on top of tensor parallelism is a shard that says it is not one.
#
# Version: torch 2.13.0.
# Expected: after fully_shard over a mesh dimension "dp", the placement of every parameter in that
#   dimension answers is_shard() with True, as it does without tensor parallelism.
# Seen: where ColwiseParallel has split dimension 0 already, the placement is _StridedShard, whose
#   is_shard() is False though each process holds a quarter of the weight. RowwiseParallel splits
#   dimension 1, and there is_shard() is True. A check that counts shards by is_shard() misses half
#   of a transformer's weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

cat > "$folder/split.py" <<'PY'
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def run(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29543")
    dist.init_process_group("gloo", rank=rank, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    up, down = torch.nn.Linear(8, 16, bias=False), torch.nn.Linear(16, 8, bias=False)
    model = torch.nn.Sequential(up, down)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    seen = {}
    for name, weight in model.named_parameters():
        first = weight.placements[0]
        part = weight.to_local().numel() / weight.numel()
        seen[name] = (type(first).__name__, first.is_shard(), part)
    if rank == 0:
        print(seen)
        assert seen == {
            "0.weight": ("_StridedShard", False, 0.25),
            "1.weight": ("Shard", True, 0.25),
        }
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, nprocs=4)
PY
"$folder/venv/bin/python" "$folder/split.py"
