#!/usr/bin/env bash
# torch.profiler counts one more call of a DataLoader's __next__ than there are batches.
#
# Version: torch 2.13.0 (CPU).
# Expected: the row "enumerate(DataLoader)#..." has as many calls as the loop had batches, so that
#   its mean is the wait for a batch.
# Seen: the call that ends the loop is counted too, at every epoch. Of short epochs the mean is too
#   low: with 2 batches an epoch a third of the calls brought nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

"$folder/venv/bin/python" - <<'PY'
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(8, 8)), batch_size=4)
batches = 0
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    for _ in range(5):
        for _ in loader:
            batches += 1
(row,) = [row for row in profiled.key_averages() if row.key.startswith("enumerate(DataLoader)#")]
print(batches, "batches,", row.count, "calls")
assert row.count == batches + 5
PY
