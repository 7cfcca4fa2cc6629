#!/usr/bin/env bash
# accelerate stops a run over settings that its own sentence says are ignored.
#
# Versions: accelerate 1.15.0, deepspeed 0.19.8, torch 2.13.0.
# Expected: next to deepspeed_config_file, gradient_accumulation_steps of the accelerate file is
#   ignored, perhaps with a warning.
# Seen: a ValueError, whose text begins "the following accelerate config variables will be ignored".
#   It lists all such keys, and not the one that is set.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 accelerate==1.15.0 numpy setuptools
DS_BUILD_OPS=0 "$folder/venv/bin/pip" install -q --no-build-isolation deepspeed==0.19.8

echo '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}' > "$folder/ds.json"
cat > "$folder/config.yaml" <<YAML
compute_environment: LOCAL_MACHINE
deepspeed_config:
  deepspeed_config_file: $folder/ds.json
  gradient_accumulation_steps: 4
distributed_type: DEEPSPEED
machine_rank: 0
num_machines: 1
num_processes: 1
use_cpu: true
YAML
cat > "$folder/run.py" <<'PY'
from accelerate import Accelerator

try:
    Accelerator()
except ValueError as error:
    print("ValueError:", str(error)[:160])
    assert "will be ignored" in str(error)
else:
    raise SystemExit("the setting is ignored now")
PY
"$folder/venv/bin/accelerate" launch --config_file "$folder/config.yaml" "$folder/run.py"
