"""Optimizer state is what the real libraries keep, to the byte."""

import gzip
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from trainwright.estimate.memory.device_memory import Asked, estimate_memory
from trainwright.profile import trace
from trainwright.profile.fit import fit
from trainwright.worker import client

RUNS = Path(__file__).parent / "state_runs.py"
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 320,
    "hidden_size": 56, "intermediate_size": 103, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
}  # fmt: skip
"""Vectors of 56, matrices of 3,136 (below 4,096) and of 5,768 elements (no multiple of 128),
an embedding and a head of 17,920 = 70 · 256."""
TRACED = ("adamw", "sgd", "adafactor", "muon")
RULED = ("adamw-8bit", "paged-adamw-8bit", "adamw-8bit-torchao", "adamw-4bit", "lion")
CASES = {
    "fp32": {"precision": "fp32", "kernel": "efficient"},
    "bf16": {"precision": "bf16"},
    "bf16-mixed": {"precision": "bf16-mixed"},
    "lora": {"precision": "bf16-mixed", "task": "lora", "lora": [128, []]},
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Return (profile, bytes by optimizer) of one kind of training."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    spec = {
        "model": {"hf": str(folder / "config.json")}, "task": "full", "kernel": "flash",
        "channels_last": False, "checkpointing": "none", "quantization": "none",
        "lora": [8, []], "image_size": 0, "points": [[2, 64]], "optimizers": TRACED,
        "result_file": str(folder / "trace.json.gz"), "names": [*TRACED, *RULED],
    } | CASES[request.param]  # fmt: skip
    client.run("trace", spec, timeout_s=300)
    with gzip.open(spec["result_file"], "rt", encoding="utf-8") as file:
        profile = fit(trace.parse(json.load(file)))
    done = subprocess.run(
        [sys.executable, str(RUNS), str(client.PROGRAMS)],
        input=json.dumps(spec), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return profile, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("bitsandbytes") is None or find_spec("torchao") is None,
    reason="needs bitsandbytes and torchao",
)
@pytest.mark.parametrize("optimizer", [*TRACED, *RULED])
def test_state_is_what_the_library_keeps(case, make_gpu, make_settings, optimizer):
    profile, kept = case
    chosen = make_settings(optimizer=optimizer)
    estimate = estimate_memory(Asked(profile, make_gpu(), chosen, batch=2, sequence=64))
    ours = sum(part.value for part in estimate.terms if part.role == "optimizer")
    print(f"{optimizer}: {kept[optimizer]:,} B by the library, {ours:,} B estimated")
    assert ours == kept[optimizer]
