#!/usr/bin/env bash
# The head of TRL's SFTTrainer that makes no logits takes more memory than the logits of a small
# vocabulary.
#
# Versions: trl 1.16.0, torch 2.13.0, transformers 5.24.0.
# Expected: at most what all logits take, since "without materializing the logits" is what it is for.
# Seen: each of its tiles has 32,768 columns, whatever the vocabulary, and as many rows as tokens, up
#   to 4,096. With a vocabulary of 1,000 and 512 tokens in fp32 it takes 73 MB where all logits and
#   their softmax are 4 MB; with 4,096 tokens, 586 MB against 33. On a GPU the tile is the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 trl==1.16.0 \
    datasets==5.2.0 accelerate==1.15.0

cat > "$folder/tile.py" <<'PY'
import torch
from torch.profiler import ProfilerActivity, profile
from trl.kernels.chunked_logprob import ChunkedLogProbFunction


def peak(run):
    """Return the most bytes that torch's CPU allocator had given out at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as log:
        run()
    events = log.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    living = most = 0
    for _, change in changes:
        living += change
        most = max(most, living)
    return most


for tokens in (512, 4096):
    hidden, weight = torch.randn(tokens, 64), torch.randn(1000, 64)
    targets = torch.zeros(tokens, dtype=torch.int64)
    whole = peak(lambda: torch.log_softmax(hidden @ weight.T, -1))
    tiled = peak(
        lambda: ChunkedLogProbFunction.apply(
            hidden, weight, None, targets, 1.0, 32768, None, 1.0, ("log_probs",)
        )
    )
    print(f"{tokens} tokens: all logits and their softmax {whole:,} B, in tiles {tiled:,} B")
    assert tiled > 4 * 32768 * tokens > 8 * whole
PY
"$folder/venv/bin/python" "$folder/tile.py"
