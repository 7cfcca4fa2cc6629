"""Weights shared out over computers: throughput of each GPU against that on one computer.

Rows of llm-foundry (scripts/train/benchmarking/README.md: MPT in bf16, FSDP FULL_SHARD, 2,048
tokens, computers of eight A100 40 GB with 1,600 Gbit/s between them). No constant was fitted to
them. MPT's code has a kernel of its own: GPT-2 of the same sizes stands for it.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store

MODELS = {  # width, layers, heads, checkpointing
    "MPT-125m": (768, 12, 12, "none"),
    "MPT-350m": (1024, 24, 16, "none"),
    "MPT-760m": (1536, 24, 12, "none"),
    "MPT-1b": (2048, 24, 16, "none"),
    "MPT-3b": (2560, 32, 20, "none"),
    "MPT-7b": (4096, 32, 32, "full"),
}
ROWS = {  # GPUs -> (samples a GPU, accumulation, tokens/s of each GPU)
    "MPT-125m": {8: (26, 3, 136334), 16: (26, 1, 130535), 32: (26, 1, 127122),
                 64: (26, 1, 125234), 128: (26, 1, 123936)},
    "MPT-350m": {8: (16, 4, 55995), 16: (18, 1, 55413), 32: (18, 1, 53811),
                 64: (18, 1, 52689), 128: (18, 1, 51934)},
    "MPT-760m": {8: (12, 4, 30173), 16: (12, 1, 29607), 32: (12, 1, 29648),
                 64: (12, 1, 29344), 128: (12, 1, 28940)},
    "MPT-1b": {8: (8, 8, 19271), 16: (8, 1, 19085), 64: (10, 1, 19001), 128: (10, 1, 18647)},
    "MPT-3b": {8: (5, 8, 10065), 16: (5, 1, 9750), 32: (6, 1, 9914), 64: (6, 1, 9736),
               128: (6, 1, 9538)},
    "MPT-7b": {8: (12, 4, 3679), 16: (16, 1, 3645), 32: (18, 1, 3725), 64: (18, 1, 3665),
               128: (18, 1, 3623)},
}  # fmt: skip
"""Left out: the 1b on 32 GPUs, 18 % slower than on 16 and on 64, which no plan can state."""
LENGTH = 2048
POINTS = 5.0
"""Of efficiency, that the median may be off: the issue's aim for published rows."""


def plan(config: Path, gpus: int, batch: int, accumulation: int, checkpointing: str) -> Plan:
    machine: dict[str, Any] = {"gpus": [{"id": "a100-40gb-sxm", "count": 8}]}
    if gpus > 8:
        network = {"kind": "ethernet-200g", "ports": 8}
        machine |= {"nodes": gpus // 8, "network": network}
    return Plan.model_validate(
        {
            "model": {"hf": str(config)},
            "workload": {
                "task": "pretrain",
                "inputs": {"sequence_length": LENGTH},
                "effective_batch": gpus * batch * accumulation,
            },
            "machine": machine,
            "settings": {
                "precision": "bf16",
                "strategy": "fsdp2",
                "micro_batch": batch,
                "accumulation": accumulation,
                "checkpointing": checkpointing,
            },
        }
    )


def tokens_per_s(asked: Plan, gpus: int) -> float:
    """Return what each GPU trains on in a second."""
    found = resolve(asked)
    if isinstance(found, Pending):
        found = found.answered(store.trace(found.spec))
    assert isinstance(found, Facts)
    rate = evaluate(asked, found).time.tokens_per_second
    assert rate is not None
    return rate.value / gpus


@pytest.mark.slow
def test_each_gpu_keeps_its_share_of_the_throughput(tmp_path: Path) -> None:
    errors = []
    for name, (width, layers, heads, checkpointing) in MODELS.items():
        config = tmp_path / name / "config.json"
        config.parent.mkdir()
        config.write_text(json.dumps({
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": width,
            "n_layer": layers, "n_head": heads, "n_positions": LENGTH, "vocab_size": 50368,
        }))  # fmt: skip
        rows = ROWS[name]
        said = {
            gpus: tokens_per_s(plan(config, gpus, batch, steps, checkpointing), gpus)
            for gpus, (batch, steps, _) in rows.items()
        }
        for gpus in [count for count in rows if count > 8]:
            real, ours = rows[gpus][2] / rows[8][2], said[gpus] / said[8]
            errors.append(100 * (ours - real))
            print(f"{name:9} {gpus:4} GPUs  measured {real:6.1%}  said {ours:6.1%}  "
                  f"{errors[-1]:+5.1f} points")  # fmt: skip
        print(f"{name:9} on 8: measured {rows[8][2]:,} tokens/s, said {said[8]:,.0f}")
    middle = median(abs(error) for error in errors)
    print(f"{len(errors)} rows: median {middle:.1f} points, largest {max(errors, key=abs):+.1f}")
    assert middle <= POINTS
