"""Models and GPUs written down by hand, and their time of a step."""

from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.catalog import Fact, GpuRecord
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.steptime import TimeEstimate, estimate_time
from trainwright.explain import Quantity
from trainwright.explain.quantity import Kind, Unit
from trainwright.machine.machine import Gpu
from trainwright.messages import Message
from trainwright.profile.profile import SCALE, OpTable, Profile, Segment
from trainwright.workload import FullSettings, Workload

GIB = 1 << 30


def fact(value: float) -> Fact:
    return Fact(value=value, source="test", confidence="high")


def record(name: str, bandwidth: float, segment: str = "consumer", **flops: float) -> GpuRecord:
    return GpuRecord.model_validate(
        {
            "id": name,
            "name": name,
            "vendor": "NVIDIA",
            "segment": segment,
            "architecture": "Ada" if segment == "consumer" else "Ampere",
            "memory_bytes": fact(24 * GIB),
            "bandwidth_bytes_per_s": fact(bandwidth),
            "pcie_generation": 4,
            "pcie_lanes": 16,
            "tdp_w": fact(450),
            "flops": {key: fact(value) for key, value in flops.items()},
        }
    )


RTX_4090 = record("rtx-4090", 1008e9, bf16_fp32=165.2e12, fp16_fp32=165.2e12, fp32=82.6e12)
A800 = record("a800", 2039e9, "datacenter", bf16_fp32=312e12, fp16_fp32=312e12, fp32=19.5e12)


def gpu(of: GpuRecord = RTX_4090, count: int = 1, power_limit_w: float | None = None) -> Gpu:
    total = Quantity(Message.of("test"), 24 * GIB, Unit.BYTES, Kind.QUOTED)
    return Gpu(of, count, total, replace(total, value=0), power_limit_w)


def row(name: str, phase: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "phase": phase, "region": -1, "dtype": "float16"} | fields


def product(m: int, n: int, k: int, phase: str = "forward") -> dict[str, Any]:
    """A matrix product whose rows grow with the batch: m for each sample."""
    return row(
        "aten.mm.default",
        phase,
        flops=(0, 2 * m * n * k),
        read=(2 * k * n, 2 * m * k),
        written=(0, 2 * m * n),
        dims=((1,), (0, m), (n,), (k,), (2 * k * n,)),
    )


def addition(elements: int, phase: str = "forward") -> dict[str, Any]:
    return row(
        "aten.add.Tensor",
        phase,
        read=(0, 4 * elements),
        written=(0, 2 * elements),
        dims=((0, elements),),
    )


def polynomial(coefficients: Any) -> list[int]:
    terms = list(coefficients or ())
    return [int(value * SCALE) for value in (*terms, *(0,) * (6 - len(terms)))]


def profile_of(*rows: dict[str, Any], repeat: int = 1, trainable: int = 0) -> Profile:
    """A model that runs each row ``repeat`` times a micro-batch, optimizer rows once a step."""
    dims = np.zeros((len(rows), 7, 6), dtype=np.int64)
    for index, fields in enumerate(rows):
        for place, coefficients in enumerate(fields.get("dims", ())):
            dims[index, place] = polynomial(coefficients)
    ops = OpTable(
        name=tuple(str(fields["name"]) for fields in rows),
        phase=tuple(str(fields["phase"]) for fields in rows),
        region=tuple(-1 for _ in rows),
        dtype=tuple(str(fields["dtype"]) for fields in rows),
        flops=np.array([polynomial(fields.get("flops")) for fields in rows]),
        bytes_read=np.array([polynomial(fields.get("read")) for fields in rows]),
        bytes_written=np.array([polynomial(fields.get("written")) for fields in rows]),
        dims=dims,
    )
    update = [n for n, fields in enumerate(rows) if fields["phase"] == "optimizer"]
    micro = [n for n in range(len(rows)) if n not in update] * repeat
    segments = {
        "setup": segment([]),
        "micro": segment(micro),
        "again": segment(micro),
        "optimizer:adamw": segment(update),
    }
    model = {"blocks": 0, "trainable": trainable}
    return Profile(
        np.zeros((1, 6), np.int64), segments, ops, {}, model, {}, {}, {}, True, ((2, 0),)
    )


def segment(ops: list[int]) -> Segment:
    empty = np.zeros(0, dtype=np.int32)
    return Segment(empty.astype(np.uint8), empty, empty, empty, np.array(ops, dtype=np.int32), ())


def full_settings(**changed: object) -> FullSettings:
    return FullSettings.model_validate(
        {
            "precision": "fp16-mixed",
            "quantization": "none",
            "kv_cache": "fp16",
            "micro_batch": 1,
            "accumulation": 1,
            "checkpointing": "none",
            "optimizer": "adamw",
            "attention": "sdpa",
            "compile": False,
            "channels_last": False,
            "allocator": "native",
            "strategy": "single",
            "learning_rate": None,
            "warmup": None,
            "num_workers": 4,
            "prefetch_factor": 2,
            "pin_memory": True,
            "persistent_workers": True,
        }
        | changed
    )


def workload(**changed: object) -> Workload:
    return Workload.model_validate({"task": "full", "effective_batch": 8} | changed)


def timed(profile: Profile, of: Gpu | None = None, **given: Any) -> TimeEstimate:
    """Return the estimate of settings, in a situation or with a clock."""
    job, batch, clock = (given.pop(key, None) for key in ("workload", "batch", "clock"))
    place = {key: given.pop(key) for key in ("gpu_count", "sequence", "cores") if key in given}
    there = {"gpu_count": 1, "workload": job or workload(), "sequence": 0} | place
    clock = clock or Clock(Situation(of or gpu(), **there))
    return estimate_time(profile, clock, full_settings(**given), batch or 1)
