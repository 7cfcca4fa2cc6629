#!/usr/bin/env bash
# A re-entrant checkpoint needs more memory than the other kind for the same block.
#
# Version: torch 2.13.0.
# Expected: use_reentrant=True and False keep the same tensors, the block's inputs, and recompute
#   the same operators, so that their peaks are equal.
# Seen: the re-entrant one holds the block's recomputed output and the gradient that came in for it
#   until the block's backward is done (both are arguments and locals of
#   CheckpointFunction.backward). The other stops its recomputation at the last saved tensor and
#   lets the gradient die at its first use. For a block whose output is cast, as under autocast,
#   with 16 MiB of output the peak is 88 MiB against 56 MiB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

MIB = 2**20
OUTPUT = 16 * MIB


def block(x):
    return x.bfloat16().exp().sin().exp().sin().exp().float()


def peak(reentrant):
    x = torch.randn(OUTPUT // 4, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as log:
        checkpoint(block, x * 1, use_reentrant=reentrant).mul(2).sum().backward()
    events = log.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    living = most = 0
    for _, change in changes:
        living += change
        most = max(most, living)
    return most


usual, reentrant = peak(False), peak(True)
print(f"peak, usual: {usual / MIB:.1f} MiB, re-entrant: {reentrant / MIB:.1f} MiB")
assert abs(reentrant - usual - 2 * OUTPUT) < MIB
PY
