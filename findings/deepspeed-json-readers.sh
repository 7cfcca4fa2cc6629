#!/usr/bin/env bash
# One DeepSpeed file is read by two readers, and each refuses what the other takes.
#
# Versions: deepspeed 0.19.8, transformers 5.24.0, accelerate 1.15.0, torch 2.13.0.
# Expected: a ds_config.json that DeepSpeed reads is read by the Trainer as well.
# Seen: DeepSpeed reads Hjson, with comments and a comma behind the last value, and refuses a key that
#   is there twice. The Trainer reads JSON: it refuses the comments, and of two keys takes the last.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.24.0 accelerate==1.15.0 numpy setuptools
DS_BUILD_OPS=0 "$folder/venv/bin/pip" install -q --no-build-isolation deepspeed==0.19.8

cat > "$folder/comments.json" <<'JSON'
{
  # of the small GPUs
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 2},
}
JSON
cat > "$folder/twice.json" <<'JSON'
{
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 2},
  "zero_optimization": {"stage": 3}
}
JSON
"$folder/venv/bin/python" - "$folder" <<'PY'
import json
import sys

from deepspeed.runtime.config import DeepSpeedConfig
from transformers.integrations import HfDeepSpeedConfig

folder = sys.argv[1]
print("DeepSpeed, comments: stage", DeepSpeedConfig(f"{folder}/comments.json").zero_optimization_stage)
try:
    HfDeepSpeedConfig(f"{folder}/comments.json")
    raise SystemExit("the Trainer reads comments now")
except json.JSONDecodeError as error:
    print("Trainer, comments:", error)
try:
    DeepSpeedConfig(f"{folder}/twice.json")
    raise SystemExit("DeepSpeed takes a key twice now")
except ValueError as error:
    print("DeepSpeed, a key twice:", error)
stage = HfDeepSpeedConfig(f"{folder}/twice.json").get_value("zero_optimization.stage")
print("Trainer, a key twice: stage", stage)
assert stage == 3
PY
