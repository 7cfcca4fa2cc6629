"""Steps of llm-foundry's MPT models: sharded over GPUs, on a stack of its own.

The kernels' constants are the shipped ones. Fitted here is what those rows have of their own:
the ceiling of the A100, their fused attention (the first FlashAttention, and Triton's), the
traffic that unpadding and its casts add to what moves, and how they shard. The ceiling ships.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from clockfit import ROBUST, Fitted, kernels_total
from clockrows import Block, Step, blocks, mpt_steps
from optables import ROWS
from scipy.optimize import least_squares

from trainwright.estimate.time.kernels import IS_PRODUCT, NUMBER
from trainwright.profile.profile import Floats

PRIOR = 0.05
NODE = 8
"""GPUs in a machine."""
BETWEEN_NODES = 100e9
"""Bytes/s a machine reaches of its 1600 Gbit/s (assumed: half)."""
UPDATE_BYTES = 30
"""A parameter in a sharded update: fp32 weight, gradient and two moments read, all but the
gradient written, the 16-bit copy written."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What the rows have of their own."""

    ceiling: float = 0.83
    traffic: float = 1.5
    """Bytes moved over those traced."""
    forward: float = 0.5
    """Share of the peak in fused attention."""
    backward: float = 0.4
    link: float = 0.3
    """Share of NVLink's one way."""
    exposed: float = 0.3
    """Of the shorter of computing and communicating."""
    update: float = 0.5
    """Share of the bandwidth."""


NAMES = tuple(Stack.__dataclass_fields__)


def predict(
    block: Block, fitted: Fitted, stack: Stack, ceiling: float = 1.0, attention: float = 1.0
) -> Floats:
    """Return seconds of each step; ``ceiling`` and ``attention`` are another GPU's, to A100's."""
    base = fitted.curves("channels_first")
    compute, memory, half = base.compute.copy(), base.memory.copy(), base.half.copy()
    reached = stack.ceiling * ceiling
    for name, share in (("attention", stack.forward), ("attention-backward", stack.backward)):
        compute[NUMBER[name]] = share * attention / reached * ceiling
        half[0, NUMBER[name]] = 64
    memory[~IS_PRODUCT] /= stack.traffic
    curves = replace(base, compute=compute, memory=memory, half=half)
    computing = kernels_total(block, curves, reached)
    return computing + _sharding(block, stack, computing)


def _sharding(block: Block, stack: Stack, computing: Floats) -> Floats:
    """Return seconds of gathers, scatters and the sharded update beyond computing."""
    gpu = block.situation.gpu
    assert gpu.nvlink_bytes_per_s is not None
    gpus = np.array([step.gpus for step in block.steps], dtype=np.float64)
    parameters = np.array([step.table.parameters for step in block.steps], dtype=np.float64)
    micro = np.array([step.accumulation for step in block.steps], dtype=np.float64)
    inside = gpu.nvlink_bytes_per_s.value / 2 * stack.link
    rate = np.where(gpus > NODE, min(BETWEEN_NODES, inside), inside)
    # Two gathers and a scatter of 16-bit values for each micro-batch.
    wire = micro * 3 * (gpus - 1) / gpus * parameters * 2 / rate
    shown = stack.exposed * np.minimum(wire, computing) + np.maximum(wire - computing, 0)
    update = parameters / gpus * UPDATE_BYTES / gpu.bandwidth_bytes_per_s.value / stack.update
    result: Floats = shown + update
    return result


def fit(steps: Iterable[Step], fitted: Fitted) -> Stack:
    """Return the stack with which the steps' log times deviate least, robustly."""
    known = blocks(steps)
    measured = np.log(np.concatenate([block.seconds for block in known]))
    prior = np.log([getattr(Stack(), name) for name in NAMES])

    def deviations(logs: Floats) -> Floats:
        stack = _stack(logs)
        predicted = [np.log(predict(block, fitted, stack)) for block in known]
        return np.concatenate([*predicted, np.sqrt(PRIOR) * (logs - prior)]) - np.concatenate(
            [measured, np.zeros(len(logs))]
        )

    return _stack(least_squares(deviations, prior, loss="soft_l1", f_scale=ROBUST).x)


def _stack(logs: Floats) -> Stack:
    return Stack(**dict(zip(NAMES, np.exp(logs).tolist(), strict=True)))


def fitted_steps() -> tuple[Step, ...]:
    """Return the steps on A100s whose model is not kept out."""
    out = held_out_models()
    return tuple(s for s in mpt_steps() if s.gpu.id in TRAINED_ON and s.model not in out)


def unseen_sizes() -> tuple[Step, ...]:
    """Return the steps on A100s of the models kept out."""
    out = held_out_models()
    return tuple(s for s in mpt_steps() if s.gpu.id in TRAINED_ON and s.model in out)


def unseen_gpu() -> tuple[Step, ...]:
    """Return the steps on H100s, which no fit sees."""
    return tuple(step for step in mpt_steps() if step.gpu.id == "h100-80gb-sxm")


TRAINED_ON = ("a100-40gb-sxm", "a100-80gb-sxm")
REACHED = {"Ampere datacenter": 86.9, "Hopper": 80.3, "Blackwell datacenter": 77.6, "CDNA": 51.4}
"""Percent of the peak in the best 16-bit product on A100, H100, B200 and MI300X: github.com/stas00/
ml-engineering, compute/accelerator, maximum achievable matmul FLOPS."""
H100_ATTENTION = 0.5
"""FlashAttention-2 uses 35 % of an H100 where it uses 70 % of an A100 (arXiv 2407.08608)."""


def ceilings(stack: Stack, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ceilings of what calculates in servers: A100's fitted, others by best product."""
    best = "that of the A100 times {} / 86.9, what the best product of stas00's table reaches"
    made = {
        name: {
            "value": round(stack.ceiling * reached / REACHED["Ampere datacenter"], 3),
            "source": best.format(reached),
        }
        for name, reached in REACHED.items()
    }
    made["Ampere datacenter"]["source"] = (
        "fitted, llm-foundry's MPT models on A100, over the compute shares of the RTX 3090"
    )
    return made


@cache
def held_out_models() -> frozenset[str]:
    """Return the models that ``rows/held_out.csv`` keeps out."""
    with (ROWS / "held_out.csv").open(encoding="utf-8", newline="") as file:
        return frozenset(row["name"] for row in csv.DictReader(file) if row["kind"] == "model")
