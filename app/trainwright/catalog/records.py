"""Hardware records: facts with a source and a confidence."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Confidence = Literal["high", "medium", "low"]
Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple"]
Segment = Literal["consumer", "laptop", "workstation", "datacenter", "integrated"]
FlopKey = Literal[
    "fp32",
    "fp32_matrix",
    "tf32_fp32",
    "fp16_fp32",
    "fp16_fp16",
    "bf16_fp32",
    "fp8_fp32",
    "fp8_fp16",
    "fp4_fp32",
    "int8_int32",
    "fp16_vector",
]
"""``dtype_accumulate`` of a matrix unit; ``fp32`` and ``fp16_vector`` are the ordinary cores.
``fp32_matrix``: AMD's first Instincts multiply matrices in fp32 twice as fast as the cores do."""


Cooling = Literal["open-air", "blower", "passive", "liquid"]
"""``open-air`` blows into the case, ``blower`` out of it, ``passive`` wants a server's fans."""
Plug = Literal["pcie_6", "pcie_8", "pcie_12", "pcie_16", "eps_8"]
"""``pcie_12`` is GeForce 30's small plug, ``pcie_16`` 12VHPWR and 12V-2x6."""
Form = Literal["card", "module", "soldered"]
"""A card for a slot; SXM, OAM and the like; part of a laptop or of the processor."""


class Fact(BaseModel):
    """One value of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    value: float
    source: str
    """Key into ``hardware_db/SOURCES.md``, or a stated formula."""
    confidence: Confidence


class Capacity(BaseModel):
    """What CUDA was seen to offer of a card's memory: ``total_memory`` of torch's properties."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bytes: float
    source: str
    seen: str = ""
    """ISO month of the newest software in the reading; empty where nobody read it off a card."""
    system: Literal["linux", "windows"] = "linux"
    """Who manages the memory: Windows does under WSL too."""
    ecc: bool | None = None
    """Given where somebody had changed it from what the card comes with."""


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
    chip: str | None = None
    """AD102, Navi 31."""
    aliases: tuple[str, ...] = ()
    """NVML names and what people type, beyond what the name itself gives."""
    shared_names: tuple[str, ...] = ()
    """Names that several records answer to: families, and NVML names of two memory sizes."""
    compute_capability: tuple[int, int] | None = None
    """NVIDIA only."""
    memory_bytes: Fact
    """Nominal."""
    nvml_total_bytes: Fact | None = None
    """What the driver reports as total, where someone published it."""
    capacities: tuple[Capacity, ...] = ()
    """Readings of what CUDA offers of it; drivers differ."""
    unified_memory: bool = False
    """Whether CPU and GPU share the computer's memory; ``memory_bytes`` is then the largest."""
    memory_sizes: tuple[float, ...] = ()
    """Bytes that computers with shared memory are sold with, smallest first."""
    free_at_boot_bytes: Fact | None = None
    """Bytes of shared memory that CUDA showed as free on a freshly started system."""
    bandwidth_bytes_per_s: Fact
    memory_bus_bits: Fact | None = None
    memory_bits_per_s: Fact | None = None
    """Data rate of one memory pin."""
    l2_bytes: Fact | None = None
    sm_count: Fact | None = None
    """Streaming multiprocessors, AMD's compute units, Intel's Xe cores, Apple's GPU cores."""
    cores: Fact | None = None
    """Shader cores: CUDA cores, stream processors, Xe FP32 lanes."""
    boost_hz: Fact | None = None
    flops: dict[FlopKey, Fact] = {}
    """Dense FLOP/s (OP/s for int8) by dtype and accumulate type, never with sparsity."""
    tdp_w: Fact | None = None
    """Board power; of a laptop part, the highest that makers may set."""
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    nvlink_bytes_per_s: Fact | None = None
    """Both directions together."""
    ecc: bool | None = None
    mig: bool = False
    form: Form | None = None
    length_mm: Fact | None = None
    """Of the maker's own card."""
    shortest_mm: Fact | None = None
    longest_mm: Fact | None = None
    """Of all makers' cards."""
    height_mm: Fact | None = None
    """From the slot's edge up, plugs not counted."""
    slot_width: Fact | None = None
    """In slots of 20.32 mm: the maker's own card."""
    thinnest_slots: Fact | None = None
    widest_slots: Fact | None = None
    """Of all makers' cards."""
    cooling: Cooling | None = None
    plugs: dict[Plug, int] | None = None
    """For power, by kind, of the maker's own card; empty: the slot is enough."""
    recommended_psu_w: Fact | None = None
    """By the maker, for a computer with one of them."""
    nvlink_bridge_slots: tuple[int, ...] | None = None
    """Distances of two cards, slot to slot, that bridges are made for."""
    launch: str | None = None
    """ISO date or year."""
    msrp_usd: Fact | None = None
    """Launch price; never a current one."""
    notes: str = ""
