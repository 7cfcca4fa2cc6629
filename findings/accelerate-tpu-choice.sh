#!/usr/bin/env bash
# accelerate config offers the machine type TPU, and the configuration file refuses that word.
#
# Version: accelerate 1.15.0, torch 2.13.0.
# Expected: a file may say distributed_type: TPU, as the questionnaire names its last choice and as
#   files of earlier versions say.
# Seen: the questionnaire writes XLA for the choice "TPU". A file that says TPU ends in a ValueError
#   of the enumeration, which does not name XLA.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 accelerate==1.15.0 numpy

cat > "$folder/config.yaml" <<'YAML'
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: TPU
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 1
num_processes: 8
use_cpu: false
YAML
"$folder/venv/bin/python" - "$folder/config.yaml" <<'PY'
import inspect
import sys

from accelerate.commands.config import cluster
from accelerate.commands.config.config_args import load_config_from_file

assert '"TPU",' in inspect.getsource(cluster.get_cluster_input)
print("the questionnaire offers TPU and writes", cluster._convert_distributed_mode(10))
try:
    load_config_from_file(sys.argv[1])
except ValueError as error:
    print("ValueError:", error)
    assert "XLA" not in str(error)
else:
    raise SystemExit("distributed_type: TPU is accepted now")
PY
