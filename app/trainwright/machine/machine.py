"""The machine that a plan runs on: the same type for a probed computer and a build."""

from dataclasses import dataclass

from trainwright.catalog import CpuRecord, DriveRecord, GpuRecord
from trainwright.catalog.instances import Instance
from trainwright.explain import Quantity
from trainwright.machine.build import Build, System
from trainwright.machine.measured import MeasuredGpu, MeasuredHost
from trainwright.machine.network import Cluster, Network
from trainwright.machine.wiring import Lanes

__all__ = ["Gpu", "Machine", "System"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU in the machine."""

    record: GpuRecord
    count: int
    total: Quantity
    """Bytes that CUDA offers a process: read off such a card, here or elsewhere, or by rule."""
    held: Quantity
    """Bytes that the display and other programs hold."""
    power_limit_w: float | None = None
    measured: MeasuredGpu | None = None
    """What it was seen to reach here."""
    link_read: bool = False
    """Whether the record's PCIe link is the one that this computer gives the card."""
    slots: tuple[Lanes, ...] = ()
    """What the slowest card gets on the board that the plan names: with one card, with two, ...;
    empty where no board is named, or its lanes are not known."""
    bridged: bool = False
    """Whether an NVLink bridge was seen at work, or a plan names one."""
    context: Quantity | None = None
    """Bytes outside torch's allocator; measured on this computer, None where nobody did."""
    workspace: Quantity | None = None
    """Bytes of one cuBLAS workspace; likewise."""
    slowness: Quantity | None = None
    """What kernels take here, over what is estimated of them; likewise."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Resolved hardware; ids are looked up, quantities carry their sources."""

    gpus: tuple[Gpu, ...]
    cpu: str | None
    cores: int | None
    """That a program may use: physical ones of a catalogued processor or a cloud's computer,
    logical ones of a probed one."""
    memory_bytes: int | None
    drives: tuple[str, ...]
    system: System
    local: bool
    """Whether it is the computer that the program runs on."""
    processor: CpuRecord | None = None
    """None where the catalog does not know it."""
    storage: tuple[DriveRecord | None, ...] = ()
    """One for each of ``drives``; None where the catalog does not know it."""
    parts: Build | None = None
    """With board, power supply, case or cooler; None where the plan names none of them."""
    measured: MeasuredHost | None = None
    """What the computer around the GPUs was seen to reach."""
    nodes: int = 1
    """Computers alike; all but ``gpu_count`` is of one of them."""
    network: Network | None = None
    cloud: Instance | None = None
    """What its owner rents it out as; None for a computer of one's own."""

    @property
    def gpu(self) -> Gpu:
        """The GPU that an estimate is for: with the least memory, which decides what fits."""
        return min(self.gpus, key=lambda gpu: gpu.total.value - gpu.held.value)

    @property
    def gpus_each(self) -> int:
        """GPUs of one computer."""
        return sum(gpu.count for gpu in self.gpus)

    @property
    def gpu_count(self) -> int:
        """GPUs in all, of all computers."""
        return self.nodes * self.gpus_each

    @property
    def named(self) -> str:
        """The GPUs by name, of all computers: ``2 × (8 × H100)``."""
        cards = " + ".join(f"{gpu.count} × {gpu.record.name}" for gpu in self.gpus)
        return cards if self.nodes < 2 else f"{self.nodes} × ({cards})"

    @property
    def all_cores(self) -> int | None:
        """Cores of all computers."""
        return self.cores * self.nodes if self.cores is not None else None

    @property
    def cluster(self) -> Cluster | None:
        """The computers that train together; None where it is one."""
        if self.nodes < 2 or self.network is None:
            return None
        return Cluster(self.nodes, self.gpus_each, self.network)
