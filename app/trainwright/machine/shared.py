"""Memory that the processor and the GPU share: what the computer has, and what the GPU gets."""

from trainwright.catalog import GpuRecord
from trainwright.explain import Kind, Quantity, Unit, total
from trainwright.machine.build import System
from trainwright.machine.capacity import GIB, Rule, capacity, held, readings
from trainwright.messages import Message

APPLE_SMALL = Rule(
    2 / 3,
    "macOS, default of iogpu.wired_limit_mb below 36 GiB: recommendedMaxWorkingSetSize is 21845 MiB"
    " of 32 GiB (github.com/ollama/ollama/issues/434)",
)
APPLE_LARGE = Rule(
    3 / 4,
    "macOS, default of iogpu.wired_limit_mb from 36 GiB: 73728 MiB of 96 GiB"
    " (github.com/ggml-org/llama.cpp/issues/3213); macOS 26 gives 107.5 of 128 GiB"
    " (github.com/antirez/ds4/pull/893)",
)
APPLE_LARGE_FROM = 36 * GIB
AMD = Rule(
    1 / 2,
    "default limit of the kernel's TTM: half of what Linux sees"
    " (github.com/superm1/amd-debug-tools, docs/amd-ttm.md: 62.82 of 125.65 GB)",
)
INTEL = Rule(
    0.8,
    "assumed: Intel's compute runtime offers 6.3 of 8 GB"
    " (github.com/intel/compute-runtime/issues/586)",
)
WINDOWS = Rule(
    1 / 2,
    "Windows, default of shared GPU memory: half of the system's; Intel's driver gives 18 of 32 GB"
    " (github.com/IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1536)",
)
WHOLE = Rule(1.0, "CUDA offers all that the system sees")
FIRMWARE = Rule(
    0.04, "assumed: Linux sees 122.8 to 125 of 128 GiB on Strix Halo, 122.8 of 128 on Jetson Thor"
)
NVIDIA_SYSTEM = Rule(
    6 * GIB, "assumed: 3 to 6 GB held by the system of a Jetson Thor after boot, as its owners say"
)


def sizes(record: GpuRecord) -> tuple[float, ...]:
    """Return the bytes of memory that the computer is sold with, smallest first."""
    return record.memory_sizes or (record.memory_bytes.value,)


def sold(record: GpuRecord) -> list[str]:
    """Return the sizes that the computer is sold with, in GiB, as text."""
    return [f"{size / GIB:g}" for size in sizes(record)]


def installed(record: GpuRecord, stated: float | None) -> Quantity:
    """Return the computer's memory in bytes: as stated, or else the smallest that is sold."""
    name = Message.of("machine.installed")
    if stated is not None:
        return Quantity(name, stated, Unit.BYTES, Kind.YOURS)
    return Quantity(
        name,
        sizes(record)[0],
        Unit.BYTES,
        Kind.ASSUMED,
        source="assumed: the smallest configuration that is sold",
    )


def seen_bytes(record: GpuRecord, system: System, memory: float) -> float:
    """Return the bytes that the system sees of the computer's memory.

    Of a size as it is sold firmware keeps a part, but not on a Mac; any other figure was read
    off the system itself.
    """
    read = readings(record, system)
    if read and memory >= read[-1].bytes:
        return read[-1].bytes
    sold_so = memory in sizes(record) and record.vendor != "Apple"
    return memory * (1 - FIRMWARE.value) if sold_so else memory


def offered(record: GpuRecord, system: System, memory: Quantity) -> Quantity:
    """Return the bytes of the computer's memory that a program may take on the GPU.

    Read off such a computer, or else by the default limit of its driver.
    """
    read = readings(record, system)
    if read and memory.value >= read[-1].bytes:
        return capacity(record, system)
    rule = _limit(record, system, memory.value)
    kept = Quantity(
        Message.of("machine.reserve-shared"),
        memory.value - seen_bytes(record, system, memory.value) * rule.value,
        Unit.BYTES,
        Kind.ASSUMED,
        source=rule.source,
    )
    return Quantity(
        Message.of("machine.total"),
        memory.value - kept.value,
        Unit.BYTES,
        Kind.ASSUMED,
        formula="installed − kept",
        parts=(memory, kept),
        role="total",
    )


def _limit(record: GpuRecord, system: System, memory: float) -> Rule:
    """Return the share that the driver lets the GPU map where nobody changed the default."""
    if record.vendor == "Apple":
        return APPLE_LARGE if memory >= APPLE_LARGE_FROM else APPLE_SMALL
    if record.vendor == "NVIDIA":
        return WHOLE
    if system == "windows":
        return WINDOWS
    return AMD if record.vendor == "AMD" else INTEL


def shared(
    record: GpuRecord, system: System, memory: Quantity, reserved_mib: float | None
) -> tuple[Quantity, Quantity]:
    """Return the bytes that the GPU is offered of the computer's memory, and what others hold.

    ``reserved_mib`` is what the user says that display and other programs hold.
    """
    offer = offered(record, system, memory)
    if record.vendor != "NVIDIA" or reserved_mib is not None:
        return offer, held(record, system, reserved_mib)
    kept = _kept_at_boot(record, system, offer)
    return offer, total(Message.of("machine.held"), [kept], role="held")


def _kept_at_boot(record: GpuRecord, system: System, offer: Quantity) -> Quantity:
    """Return what a freshly started system holds of the memory, all of which CUDA offers.

    Elsewhere the system lives in the part that the driver's limit keeps from the GPU.
    """
    free, read = record.free_at_boot_bytes, readings(record, system)
    quoted = free is not None and bool(read)
    kept = read[-1].bytes - free.value if free is not None and read else NVIDIA_SYSTEM.value
    return Quantity(
        Message.of("machine.held.others"),
        min(kept, offer.value),
        Unit.BYTES,
        Kind.QUOTED if quoted else Kind.ASSUMED,
        source=free.source if free is not None and read else NVIDIA_SYSTEM.source,
    )
