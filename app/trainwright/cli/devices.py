"""What ``trainwright doctor`` finds of this computer: its GPUs, plans for it, room for loaders."""

from collections.abc import Iterator

from trainwright.cli.finding import Finding
from trainwright.messages import Message, UserError
from trainwright.probe.host import SharedMemory
from trainwright.probe.nvml import Nvidia
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, resolved

DOCKERS_OWN = 64 << 20
"""Bytes of ``/dev/shm`` that Docker gives where nobody asks for more (docker run, --shm-size)."""


def findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what works on the computer and why not."""
    yield _driver(snapshot.nvidia)
    yield _plans(snapshot)
    if isinstance(snapshot.host.shared_memory, SharedMemory):
        yield _loaders(snapshot.host.shared_memory)


def _driver(found: Nvidia | Missing) -> Finding:
    """Return whether every NVIDIA GPU answers."""
    if isinstance(found, Missing):
        return Finding("driver", False, found.reason)
    for gpu in found.gpus:
        for reading in (gpu.name, gpu.memory, gpu.compute_capability):
            if isinstance(reading, Missing):
                because = Message.of(
                    "cli.doctor.driver-some", index=gpu.index, reason=reading.reason
                )
                return Finding("driver", False, because)
    if not found.gpus:
        return Finding("driver", False, Message.of("probe.empty"))
    version = found.driver if isinstance(found.driver, str) else "?"
    names = [str(gpu.name) for gpu in found.gpus]
    return Finding(
        "driver", True, Message.of("cli.doctor.driver-found", gpus=names, version=version)
    )


def _plans(snapshot: Snapshot) -> Finding:
    """Return whether a plan with ``machine: {local: true}`` can be made here."""
    try:
        machine = resolved(snapshot).machine
    except UserError as error:
        return Finding("plans", False, error.message)
    gpus = [f"{gpu.count} × {gpu.record.name}" for gpu in machine.gpus]
    return Finding("plans", True, Message.of("cli.doctor.plans-for", gpus=gpus))


def _loaders(shared: SharedMemory) -> Finding:
    """Return whether loader processes have room to hand their batches over."""
    small = shared.total_bytes <= DOCKERS_OWN
    id = "cli.doctor.loaders-cramped" if small else "cli.doctor.loaders-have-room"
    return Finding("loaders", not small, Message.of(id, total=shared.total_bytes))
