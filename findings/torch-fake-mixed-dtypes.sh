#!/usr/bin/env bash
# torch's tensors without data multiply float32 by float16, which real tensors refuse.
#
# Version: torch 2.13.0.
# Expected: what raises a RuntimeError on real tensors raises it on fake ones too: torch.export and
#   memory estimates run a model on them instead of running it.
# Seen: under FakeTensorMode mm and linear take a float32 input and float16 weights, and return
#   float32. A convolution does so on "meta", without a bias; with one, or under FakeTensorMode, it
#   raises. So a model whose types do not go together may be exported, and fails when it runs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy

"$folder/venv/bin/python" - <<'PY'
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

CASES = {
    "mm": (torch.mm, (2, 3), (3, 4)),
    "linear": (F.linear, (2, 3), (4, 3)),
    "conv2d": (F.conv2d, (1, 3, 8, 8), (4, 3, 3, 3)),
    "conv2d with a bias": (F.conv2d, (1, 3, 8, 8), (4, 3, 3, 3), (4,)),
}
WAYS = {"real": nullcontext(), "fake": FakeTensorMode(), "meta": torch.device("meta")}

ran = set()
for name, (operator, given, *weights) in CASES.items():
    for way, mode in WAYS.items():
        with mode:
            halves = [torch.zeros(shape, dtype=torch.float16) for shape in weights]
            try:
                said = operator(torch.zeros(given), *halves).dtype
                ran.add((name, way))
            except RuntimeError as error:
                said = f"RuntimeError: {str(error).splitlines()[0]}"
        print(f"{name}, {way}: {said}")
both = {(name, way) for name in ("mm", "linear") for way in ("fake", "meta")}
assert ran == both | {("conv2d", "meta")}, ran
PY
