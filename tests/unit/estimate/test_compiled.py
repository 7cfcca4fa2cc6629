"""What torch.compile saves lies between the bounds, by torch's own partitioner."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainwright.estimate.cuda import Device
from trainwright.estimate.memory.layout import TERM, Training
from trainwright.profile import trace
from trainwright.profile.fit import fit
from trainwright.profile.profile import PHASES
from trainwright.worker import client

RUNS = Path(__file__).parent / "compiled_runs.py"
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 100,
    "hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
GPT = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 100, "n_embd": 128,
    "n_layer": 4, "n_head": 4, "n_positions": 128, "attn_pdrop": 0, "embd_pdrop": 0,
    "resid_pdrop": 0,
}  # fmt: skip
SAVED = ("activations", "casts", "logits")


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Return {model: (profile, bytes saved)} of fp32 training at 4 x 96 tokens."""
    specs = {}
    for name, config in (("llama", LLAMA), ("gpt", GPT)):
        folder = tmp_path_factory.mktemp(name)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        specs[name] = {
            "model": {"hf": str(folder / "config.json")}, "task": "full", "precision": "fp32",
            "kernel": "eager", "channels_last": False, "checkpointing": "none",
            "quantization": "none", "lora": [8, []], "image_size": 0, "points": [[4, 96]],
            "optimizers": ["adamw"], "result_file": str(folder / "trace.json.gz"),
        }  # fmt: skip
    profiles = {}
    for name, spec in specs.items():
        client.run("trace", spec, timeout_s=300)
        with gzip.open(spec["result_file"], "rt", encoding="utf-8") as file:
            profiles[name] = fit(trace.parse(json.load(file)))
    done = subprocess.run(
        [sys.executable, str(RUNS), str(client.PROGRAMS)],
        input=json.dumps(specs), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    saved = json.loads(done.stdout)
    return {name: (profiles[name], saved[name]) for name in specs}


def saved_at_backward(profile, kept):
    """Return the bytes of activations that are alive when the last backward begins."""
    layout = Training(
        profile, Device("NVIDIA", 8), accumulation=1, checkpointing="none", optimizer="adamw",
        kept=kept,
    ).layout()  # fmt: skip
    sizes = layout.bytes_of(4, 96)[layout.size]
    backward = np.flatnonzero(layout.phase == PHASES.index("backward"))
    begin = int(backward[backward >= layout.steady][0])
    ours = np.isin(layout.term, [TERM[name] for name in SAVED])
    signed = np.where(ours, np.sign(layout.storage) * sizes, 0)
    return int(signed[:begin].sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "gpt"])
def test_the_partitioners_choice_is_between_the_bounds(cases, name):
    profile, saved = cases[name]
    least, middle, most = (saved_at_backward(profile, kept) for kept in (0.0, 0.5, 1.0))
    print(f"{name}: eager {saved['eager']:,} B, compiled {saved['compiled']:,} B;")
    print(f"  between {least:,} B and {most:,} B, middle {middle:,} B")
    assert least <= saved["compiled"] <= most
    assert most - least <= 0.4 * most, "what products read is saved"
