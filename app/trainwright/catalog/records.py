"""Hardware records: facts with a source and a confidence."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Confidence = Literal["high", "medium", "low"]
Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple"]
Segment = Literal["consumer", "laptop", "workstation", "datacenter", "integrated"]


class Fact(BaseModel):
    """One value of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    value: float
    source: str
    """Key into ``hardware_db/SOURCES.md``, or a stated formula."""
    confidence: Confidence


class GpuRecord(BaseModel):
    """A graphics card or accelerator. Values in base units; a missing fact is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]
    name: str
    """As the vendor writes it: ``GeForce RTX 4090``."""
    vendor: Vendor
    segment: Segment
    architecture: str
    """Ada, Hopper, RDNA 3, Xe2, Apple M4."""
    aliases: tuple[str, ...] = ()
    """NVML names and what people type, Korean included."""
    compute_capability: tuple[int, int] | None = None
    """NVIDIA only."""
    memory_bytes: Fact
    """Nominal."""
    nvml_total_bytes: Fact | None = None
    """What the driver reports as total, where someone published it."""
    unified_memory: bool = False
    bandwidth_bytes_per_s: Fact
    l2_bytes: Fact | None = None
    sm_count: Fact | None = None
    flops: dict[str, Fact] = {}
    """Dense FLOP/s by ``dtype_accumulate``: fp32, tf32_fp32, fp16_fp32, fp16_fp16,
    bf16_fp32, fp8_fp32, fp8_fp16, int8_int32 (OP/s), fp16_vector."""
    tdp_w: Fact | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    nvlink_bytes_per_s: Fact | None = None
    ecc: bool | None = None
    mig: bool = False
    launch: str | None = None
    """ISO date or year."""
    msrp_usd: Fact | None = None
    notes: str = ""
