"""What was measured on the machine itself, in place of what data sheets and others' runs say."""

from dataclasses import dataclass, field
from typing import Literal

from trainwright.catalog import DriveRecord
from trainwright.explain import Quantity

SLOW_S, QUICK_S = 2e-3, 0.25e-3
"""What one request takes alone: heads that move take 5 ms and more, SATA's protocol 0.1 to 0.3 ms,
NVMe 0.1 ms and less (drives' data sheets)."""


@dataclass(frozen=True, slots=True)
class Product:
    """The rate of a large product of matrices."""

    dtype: str
    """``bfloat16``, ``float16``, ``tf32`` or ``float32``."""
    shape: tuple[int, int, int]
    """Rows, columns, depth."""
    rate: Quantity
    """FLOP/s."""


@dataclass(frozen=True, slots=True)
class MeasuredGpu:
    """Of a GPU and its link; None where nothing was measured."""

    products: tuple[Product, ...] = ()
    copy: Quantity | None = None
    """Bytes/s within its memory, read and written."""
    pinned: Quantity | None = None
    """Bytes/s from system memory, pinned or not."""
    pageable: Quantity | None = None


@dataclass(frozen=True, slots=True)
class MeasuredDrive:
    """Of the drive that the samples are on."""

    name: str
    sequential: Quantity
    """Bytes/s at a deep queue."""
    requests: Quantity
    """Of 4 KiB, a second, at a deep queue."""
    alone: Quantity
    """The same, one at a time."""
    interface: Literal["nvme", "sata", "hdd"] | None = None

    @property
    def latency_s(self) -> float:
        """Seconds until one request, alone, is answered."""
        return 1 / self.alone.value

    def record(self) -> DriveRecord:
        """Return the drive as the catalog would have it; the nearest kind where it is another."""
        return DriveRecord(
            id="measured",
            name=self.name,
            source=self.sequential.source,
            confidence="high",
            interface=self.interface or self._kind(),
            read_mb_s=self.sequential.value / 1e6,
            random_read_kiops=self.requests.value / 1e3,
        )

    def _kind(self) -> Literal["nvme", "sata", "hdd"]:
        if self.latency_s > SLOW_S:
            return "hdd"
        return "sata" if self.latency_s > QUICK_S else "nvme"


@dataclass(frozen=True, slots=True)
class MeasuredHost:
    """Of the computer around the GPUs; None where nothing was measured."""

    core: Quantity | None = None
    """Bytes/s of JPEG that one core decodes, with Pillow."""
    libraries: tuple[tuple[str, Quantity], ...] = field(default=())
    """The same with others, by their name in a plan."""
    drive: MeasuredDrive | None = None
