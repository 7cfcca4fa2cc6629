"""A computer made of catalog records, what it is for, and what a rule says of the two."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from trainwright.catalog import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    GpuRecord,
    MemoryRecord,
    PsuRecord,
)
from trainwright.messages import Message

System = Literal["linux", "windows", "macos"]

Way = Literal["single", "data-parallel", "sharded", "layer-split", "inference"]
"""How GPUs share the work: one alone (or each with work of its own), copies of the model, pieces
of every tensor (FSDP, ZeRO, tensor parallelism), layers one after the other, or serving."""

CircuitName = Literal[
    "us-120v-15a", "us-120v-20a", "kr-220v-16a", "eu-230v-16a", "uk-230v-13a",
    "us-240v-20a", "jp-100v-15a",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuildGpu:
    """Cards of one kind."""

    record: GpuRecord
    count: int = 1
    power_limit_w: float | None = None
    """Of each card; None: what it comes with."""

    @property
    def watts(self) -> float | None:
        """What one card draws for long; None where nobody says."""
        if self.power_limit_w is not None:
            return self.power_limit_w
        return self.record.tdp_w.value if self.record.tdp_w else None


@dataclass(frozen=True, slots=True)
class Build:
    """The parts of a computer; None or empty where nothing was chosen yet."""

    gpus: tuple[BuildGpu, ...] = ()
    cpu: CpuRecord | None = None
    board: BoardRecord | None = None
    memory: tuple[tuple[MemoryRecord, int], ...] = ()
    """Kits, and how many of each."""
    drives: tuple[DriveRecord, ...] = ()
    psu: PsuRecord | None = None
    case: CaseRecord | None = None
    cooler: CoolerRecord | None = None
    circuit: CircuitName | None = None
    """The wall outlet's."""
    risers: bool = False
    """Whether cards hang on riser cables: an open frame."""
    stated_memory_gib: float | None = None
    """What a person says instead of kits."""
    bridge_slots: int | None = None
    """Distance that an NVLink bridge spans, in slots; None without a bridge."""

    @property
    def gpu_count(self) -> int:
        """Cards in all."""
        return sum(gpu.count for gpu in self.gpus)

    @property
    def cards(self) -> tuple[GpuRecord, ...]:
        """Each card by itself."""
        return tuple(gpu.record for gpu in self.gpus for _ in range(gpu.count))

    @property
    def modules(self) -> int:
        """Memory modules in all."""
        return sum(kit.modules * count for kit, count in self.memory)

    @property
    def memory_gib(self) -> float:
        """Of all kits, or what a person says; 0 where nobody says."""
        return sum(kit.gib * count for kit, count in self.memory) or self.stated_memory_gib or 0.0


@dataclass(frozen=True, slots=True)
class Use:
    """What a computer is for, as far as rules ask."""

    way: Way = "single"
    offloads: bool = False
    """Whether optimizer state or activations wait in the system's memory."""
    written_gb_a_day: float | None = None
    """Checkpoints and prepared data; None where nobody says."""
    system: System = "linux"
    waits: float | None = None
    """Share of a step that the cards wait for one another over these lanes; None: not known."""
    mig_instances: int | None = None
    """Into how many each card is to be split."""


Verdict = Literal["ok", "note", "warning", "error", "unknown"]
"""``error``: it cannot work. ``unknown``: it cannot be checked, ``missing`` says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one rule says of a build."""

    rule: str
    """``C1`` to ``X1``."""
    verdict: Verdict
    message: Message
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """That were compared, units in the names: ``length_mm``."""
    source: str = ""
    """Of the threshold, or of the fact that decides."""
    remedy: Message | None = None
    missing: tuple[str, ...] = ()
    """Fields that nobody filled: ``case.gpu_length_mm``."""

    @property
    def title(self) -> Message:
        """What the rule looks at."""
        return Message.of(f"build.title.{self.rule.lower()}")
