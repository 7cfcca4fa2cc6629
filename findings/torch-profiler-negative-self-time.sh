#!/usr/bin/env bash
# torch.profiler's key_averages gives a function less than no time of its own, with stacks on.
#
# Version: torch 2.13.0 (CPU).
# Expected: "Self CPU" of a row is its time without what it called, and never below zero.
# Seen: with with_stack=True the row of DataLoader's __next__ has a negative Self CPU time and
#   share. Its children are counted for more time than it took itself. Without stacks no row has.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=4)
model = torch.nn.Linear(8, 8)


def negative(with_stack):
    with profile(activities=[ProfilerActivity.CPU], with_stack=with_stack) as profiled:
        for (batch,) in loader:
            model(batch).sum().backward()
    rows = profiled.key_averages()
    return [(row.key, row.self_cpu_time_total) for row in rows if row.self_cpu_time_total < 0]


print("without stacks:", negative(False))
print("with stacks:", negative(True))
assert not negative(False)
assert negative(True)
PY
