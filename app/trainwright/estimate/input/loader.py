"""Loader processes: how they share the cores, how fast they decode, what they take."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.catalog import CpuRecord, DriveRecord
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration
from trainwright.machine.machine import Machine, System
from trainwright.machine.measured import MeasuredHost

Transport = Literal["shared", "pipe"]
"""How samples reach the training process: tensors in shared memory, other objects by pipe."""

IMAGES = ("jpeg", "png", "webp")


@dataclass(frozen=True, slots=True)
class Processor:
    """What loader processes may use of a CPU."""

    core_rate: float
    """Bytes of JPEG that one core decodes in a second, with Pillow."""
    cores: int
    """Physical, of both kinds."""
    threads: int
    slow: int = 0
    """Of the cores, the efficient ones."""
    architecture: str = ""
    known: bool = True
    """Whether the catalog has the processor: else a core of the mean speed stands in."""

    def capacity(self, busy: int, calibration: PipelineCalibration) -> float:
        """Return what so many busy processes get done, in fast cores."""
        constants = calibration.workers
        fast = self.cores - self.slow
        slow = min(max(busy - fast, 0), self.slow) * constants.efficient_core.value
        seconds = min(max(busy - self.cores, 0), self.threads - self.cores)
        return min(busy, fast) + slow + seconds * constants.smt_gain.value


@dataclass(frozen=True, slots=True)
class Host:
    """The computer around the GPUs; None where nobody says."""

    processor: Processor | None = None
    memory_bytes: int | None = None
    system: System = "linux"
    drive: DriveRecord | None = None
    """Where the samples are: the first of the machine's drives, or the one that was measured."""
    measured: MeasuredHost | None = None


def host_of(machine: Machine, calibration: PipelineCalibration) -> Host:
    """Return the computer around a machine's GPUs."""
    cpu = processor(machine.processor, machine.cores, calibration, probed=machine.local)
    if cpu is not None and machine.cloud is not None:
        cpu = replace(cpu, threads=machine.cloud.vcpus)
    drive = machine.storage[0] if machine.storage else None
    seen = machine.measured
    if seen is not None and seen.core is not None and cpu is not None:
        cpu = replace(cpu, core_rate=seen.core.value, known=True)
    if seen is not None and seen.drive is not None:
        drive = seen.drive.record()
    return Host(cpu, machine.memory_bytes, machine.system, drive, seen)


def processor(
    record: CpuRecord | None,
    cores: int | None,
    calibration: PipelineCalibration,
    *,
    probed: bool = False,
) -> Processor | None:
    """Return what loaders may use of a CPU, by its record or its cores alone; None without.

    A probed computer tells the threads that this process may use; a catalogued one has all.
    """
    rate = calibration.core_rate(record)
    if record is None:
        return None if cores is None else Processor(rate, cores, cores, known=False)
    threads = min(record.threads, cores) if probed and cores else record.threads
    whole = min(record.cores, threads)
    slow = record.efficient_cores if whole == record.cores else 0
    return Processor(rate, whole, threads, slow, record.architecture)


@dataclass(frozen=True, slots=True)
class Work:
    """What samples cost the CPU."""

    decode: str
    library: str
    sample_bytes: float | None
    """Compressed; None where nobody says."""
    output_bytes: float
    """As they go to the GPU."""
    batch: int
    """Samples that are handed over at once."""
    transport: Transport = "shared"
    transforms: bool = True
    """Whether pictures are cropped, resized and normalised."""
    pinned: bool = False


def decode_seconds(work: Work, cpu: Processor, calibration: PipelineCalibration) -> float:
    """Return the seconds in which one core makes one sample."""
    constants = calibration.decoding
    seconds = 0.0
    if work.decode != "none" and work.sample_bytes is not None:
        rate = cpu.core_rate * constants.formats[work.decode].value
        if work.decode == "jpeg":
            rate *= constants.libraries[work.library].value
        seconds = work.sample_bytes / rate
    if work.decode in IMAGES and work.transforms:
        values = work.output_bytes / 4
        slowness = calibration.reference_core / cpu.core_rate
        seconds += values * constants.transform_s_per_value.value * slowness
    return seconds


def hand_over_seconds(
    work: Work, cpu: Processor, system: System, workers: int, calibration: PipelineCalibration
) -> tuple[float, float]:
    """Return what one sample costs a worker, and the training process, to change hands."""
    slowness = calibration.reference_core / cpu.core_rate
    if work.transport == "pipe":
        return _by_pipe(work, cpu, system, workers, calibration, slowness)
    costs = calibration.shared
    worker = costs.worker_s_per_batch.value / work.batch
    main = costs.main_s_per_batch.value / work.batch
    pinning = calibration.workers.pin_s_per_byte.value if work.pinned else 0.0
    worker += costs.worker_s_per_byte.value * work.output_bytes
    main += (costs.main_s_per_byte.value + pinning) * work.output_bytes
    return worker * slowness, main * slowness


def _by_pipe(
    work: Work,
    cpu: Processor,
    system: System,
    workers: int,
    calibration: PipelineCalibration,
    slowness: float,
) -> tuple[float, float]:
    pipes = calibration.pipes
    family = "arm" if cpu.architecture.startswith(("Neoverse", "Apple")) else "x86"
    each = pipes.main_s_per_byte.get(cpu.architecture) or pipes.main_s_per_byte[family]
    main = each.value * work.output_bytes * slowness
    crowding = pipes.crowding[system].value if system in pipes.crowding else 0.0
    return pipes.worker_share.value * main, main * (1 + crowding * (workers - 1))


def lock_wait(work: Work, make: float, calibration: PipelineCalibration) -> float:
    """Return the seconds, for one sample, that a busy worker keeps the queue waiting.

    A large array goes through a pipe in two pieces, and whoever sends it holds the queue between
    them. A decoder that keeps the interpreter's lock gets it back first: the sending thread asks
    for it after a while, and has it at the end of the sample that is then being made.
    """
    waits = calibration.decoding.lock_waits.get(work.library)
    if waits is None or work.decode != "jpeg" or work.transport == "shared":
        return 0.0
    return waits.value * (calibration.workers.switch_s.value + make / 2) / work.batch


def handed_over(main: float, wait: float, making: float) -> float:
    """Return samples a second through one queue whose every sample takes ``main``.

    ``wait`` comes on top while its worker is busy, which of the workers is the share
    rate * ``making`` of the time: rate * (main + wait * rate * making) = 1.
    """
    if wait == 0:
        return 1 / main
    slope = 4 * wait * making
    rate = (math.sqrt(main * main + slope) - main) / (slope / 2)
    return rate if rate * making < 1 else 1 / (main + wait)


def soft_minimum(first: float, second: float, softness: float) -> float:
    """Return a little less than the smaller rate: queues between stages run empty and full."""
    return float((first**-softness + second**-softness) ** (-1 / softness))


def start_method(system: System) -> str:
    """Return how Python starts workers: ``fork`` on Linux (up to 3.13), else ``spawn``."""
    return "fork" if system == "linux" else "spawn"
