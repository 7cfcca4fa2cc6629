"""From the drive to the GPU: how many samples a second each stage passes on, and what would help.

Loading, decoding and the hand-over run beside the GPU where there are workers, and one after the
other in the training process where there are none. The copy to the GPU waits for the kernels
before it, and those after it for the copy: all are on one stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.catalog import DriveRecord
from trainwright.estimate.input.drives import Reading, from_drive, read_from_cache, read_from_drive
from trainwright.estimate.input.loader import (
    IMAGES,
    Host,
    Work,
    decode_seconds,
    hand_over_seconds,
    handed_over,
    lock_wait,
    soft_minimum,
    start_method,
)
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration
from trainwright.explain import Quantity

StageName = Literal["load", "decode", "handover", "transfer", "gpu"]


@dataclass(frozen=True, slots=True)
class Feeding:
    """What feeds the GPUs of one machine; None where nobody says."""

    work: Work
    host: Host
    layout: str
    """``files``, ``shards`` or ``memory``."""
    dataset_bytes: float | None
    epochs: float
    gpus: int
    link_bytes_per_s: float
    """Of the copy to each GPU, pinned or not."""
    workers: int
    """Of each GPU's training process; 0: that process does it all itself."""
    prefetch: int = 2
    persistent: bool = True
    trains: bool = True
    """Whether each training process keeps a core busy."""
    link: Quantity | None = None
    """The copy to a GPU as it was measured."""

    @property
    def readers(self) -> int:
        """Processes that read at once."""
        return self.gpus * max(self.workers, 1)

    @property
    def waiting_bytes(self) -> float:
        """Bytes of batches that are ready or being made, in /dev/shm where there are workers."""
        ready = self.workers * self.prefetch if self.workers else 0
        return self.gpus * ready * self.work.batch * self.work.output_bytes

    def host_bytes(self, calibration: PipelineCalibration) -> float:
        """Return the system memory that workers and their batches take."""
        private = calibration.workers.private_bytes[start_method(self.host.system)].value
        return self.gpus * self.workers * private + self.waiting_bytes


@dataclass(frozen=True, slots=True)
class Flow:
    """Seconds that one sample takes of the whole machine, stage by stage; None: cannot tell."""

    load: float | None
    """Mean over the run."""
    decode: float | None
    handover: float
    transfer: float
    whole: tuple[tuple[float, float], ...]
    """(share of the run, seconds a sample of all that the GPU waits for) - cold and warm."""

    @property
    def mean(self) -> float:
        """Seconds a sample of loading, decoding and hand-over together, over the run."""
        return sum(share * seconds for share, seconds in self.whole)

    def stages(self) -> dict[StageName, float | None]:
        """Return what each stage of the input takes."""
        return {
            "load": self.load,
            "decode": self.decode,
            "handover": self.handover,
            "transfer": self.transfer,
        }


def flow(feeding: Feeding, calibration: PipelineCalibration) -> Flow:
    """Return how fast samples can come."""
    each = _seconds_on_cpu(feeding, calibration)
    readings = _readings(feeding, calibration)
    transfer = feeding.work.output_bytes / (feeding.link_bytes_per_s * feeding.gpus)
    if readings is None:
        epochs: tuple[tuple[float, Reading], ...] = ((1.0, Reading(0.0, 0.0)),)
        load = None
    else:
        epochs = readings
        load = sum(share * _reading_rate(feeding, one) for share, one in readings)
    if each is None:
        whole = tuple((share, _reading_rate(feeding, one)) for share, one in epochs)
        return Flow(load, None, 0.0, transfer, whole)
    whole = tuple((share, _together(feeding, one, each, calibration)) for share, one in epochs)
    decode, handover = _cpu_stages(feeding, each)
    return Flow(load, decode, handover, transfer, whole)


@dataclass(frozen=True, slots=True)
class _Cpu:
    """Core-seconds of one sample."""

    make: float
    worker: float
    """For handing over."""
    queue: float
    """Seconds a sample of one queue: the training process's part, and waiting for senders."""
    cores: float
    """Fast cores' worth of work that can be done at once, by workers, or by whom it serves."""
    counted: float
    """Core-seconds that those cores spend."""


def _seconds_on_cpu(feeding: Feeding, calibration: PipelineCalibration) -> _Cpu | None:
    """Return what a sample costs; None where cores, or sizes, are not known."""
    cpu, work = feeding.host.processor, feeding.work
    if cpu is None or (work.decode != "none" and work.sample_bytes is None):
        return None
    make = decode_seconds(work, cpu, calibration)
    if feeding.workers == 0:
        if work.transport == "shared":
            slowness = calibration.reference_core / cpu.core_rate
            make += calibration.workers.collate_s_per_byte.value * work.output_bytes * slowness
        return _Cpu(make, 0.0, 0.0, cpu.capacity(feeding.gpus, calibration), make)
    system = feeding.host.system
    worker, main = hand_over_seconds(work, cpu, system, feeding.workers, calibration)
    wait = lock_wait(work, make, calibration)
    queue = 1 / handed_over(main, wait, make / feeding.workers)
    capacity = cpu.capacity(feeding.gpus * (feeding.workers + 1), calibration)
    if not feeding.trains:
        return _Cpu(make, worker, queue, capacity, make + worker + main)
    # Each training process keeps a core busy with launches, as far as the scheduler lets it.
    left = max(capacity - feeding.gpus, capacity / 2)
    return _Cpu(make, worker, queue, left, make + worker)


def _readings(
    feeding: Feeding, calibration: PipelineCalibration
) -> tuple[tuple[float, Reading], ...] | None:
    """Return (share of the run, seconds to read one sample); None where nobody can tell."""
    nbytes, drive = feeding.work.sample_bytes, feeding.host.drive
    if feeding.layout == "memory":
        return ((1.0, Reading(0.0, 0.0)),)
    if nbytes is None or drive is None:
        return None
    drives = calibration.drives
    free = None
    if feeding.host.memory_bytes is not None:
        taken = drives.held_bytes.value + feeding.host_bytes(calibration)
        free = feeding.host.memory_bytes - taken
    cached = read_from_cache(feeding.layout, nbytes, drives)
    shares = from_drive(feeding.dataset_bytes, free, feeding.epochs)
    cold = read_from_drive(drive, feeding.layout, nbytes, feeding.readers, drives)
    return tuple(
        (
            share,
            Reading(part * cold.alone + (1 - part) * cached.alone, part * cold.drive),
        )
        for share, part in shares
    )


def _reading_rate(feeding: Feeding, reading: Reading) -> float:
    """Return the seconds a sample of reading alone, by so many readers."""
    return max(reading.alone / feeding.readers, reading.drive)


def _cpu_stages(feeding: Feeding, each: _Cpu) -> tuple[float, float]:
    """Return the seconds a sample of decoding, and of the training processes' part."""
    busy = each.make + each.worker
    return max(busy / feeding.readers, each.counted / each.cores), each.queue / feeding.gpus


def _together(
    feeding: Feeding, reading: Reading, each: _Cpu, calibration: PipelineCalibration
) -> float:
    """Return the seconds a sample of everything before the copy."""
    # Who reads waits for the drive; the cores do not.
    waiting = (reading.alone + each.make + each.worker) / feeding.readers
    makers = max(waiting, each.counted / each.cores)
    if each.queue > 0 and makers > 0:
        softness = calibration.workers.softness.value
        makers = 1 / soft_minimum(1 / makers, feeding.gpus / each.queue, softness)
    return max(makers, reading.drive)


# What to do


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, and what the machine would do with it."""

    name: str
    """workers | shards | drive | memory | decoder | resized | decoded | gpu-decode | pinned"""
    samples_per_second: float
    gain: float
    """Share by which the step's rate grows."""
    at_most: bool = False
    """Whether it may gain less: something is left out of account."""


@dataclass(frozen=True, slots=True)
class LoaderChoice:
    """Loader settings, and what they take."""

    num_workers: int
    prefetch_factor: int
    pin_memory: bool
    persistent_workers: bool
    host_bytes: float
    shared_memory_bytes: float
    start_seconds: float
    """Until the workers run; every epoch where they do not stay."""


def step_seconds(found: Flow, samples: float, device: float, *, serial: bool) -> float:
    """Return the seconds of a step of ``samples`` that keeps the GPUs busy for ``device``.

    ``device`` is without the copy of the samples.
    """
    computing = device + found.transfer * samples
    return sum(
        share * (computing + seconds * samples if serial else max(computing, seconds * samples))
        for share, seconds in found.whole
    )


def rate_with(
    feeding: Feeding, samples: float, device: float, calibration: PipelineCalibration
) -> float:
    """Return the samples a second of the whole step."""
    found = flow(feeding, calibration)
    return samples / step_seconds(found, samples, device, serial=feeding.workers == 0)


ENOUGH = 0.995
"""Share of the best rate at which fewer workers are preferred: of 0.9 to 1 the one at which most
of the sweeps that calibrate loaders (tests/accuracy/test_pipeline.py) come within 5 % of their
best, 42 of 43. The top is flat: 0.97 stops where two more workers still give 5 to 10 %."""
_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96)
"""Workers worth telling apart."""


def recommended(
    feeding: Feeding, demand: float, calibration: PipelineCalibration
) -> LoaderChoice | None:
    """Return loader settings for GPUs that take ``demand`` samples a second.

    The fewest workers that feed them with some headroom, or, where none do, the fewest that
    come near the best rate; none where handing over is all they would do. None where the cores
    are not known.
    """
    cpu = feeding.host.processor
    if cpu is None:
        return None
    # Each training process has launches to do.
    most = max(1, cpu.threads // feeding.gpus - (1 if feeding.trains else 0))
    steady = replace(feeding, persistent=True)
    wanted = demand * calibration.workers.headroom.value
    rates: dict[int, float] = {}
    for count in _COUNTS:
        tried = replace(steady, workers=count)
        if rates and (count > most or not _affordable(tried, calibration)):
            break
        rates[count] = 1 / max(flow(tried, calibration).mean, 1e-12)
        if rates[count] >= wanted:
            break
    goal = min(wanted, ENOUGH * max(rates.values()))
    count = next(workers for workers, rate in rates.items() if rate >= goal)
    # Tiny samples change hands more slowly than the training process makes them itself.
    alone = 1 / demand + flow(replace(feeding, workers=0), calibration).mean
    if alone < max(1 / demand, 1 / rates[count]):
        count = 0
    return choice_of(replace(steady, workers=count), calibration)


def choice_of(feeding: Feeding, calibration: PipelineCalibration) -> LoaderChoice:
    """Return what the loader settings take."""
    start = calibration.workers.start_s[start_method(feeding.host.system)].value
    return LoaderChoice(
        num_workers=feeding.workers,
        prefetch_factor=feeding.prefetch,
        pin_memory=feeding.work.pinned,
        persistent_workers=feeding.persistent and feeding.workers > 0,
        host_bytes=feeding.host_bytes(calibration),
        shared_memory_bytes=feeding.waiting_bytes,
        start_seconds=start * feeding.workers * feeding.gpus,
    )


def _affordable(feeding: Feeding, calibration: PipelineCalibration) -> bool:
    memory = feeding.host.memory_bytes
    share = calibration.workers.memory_share.value
    return memory is None or feeding.host_bytes(calibration) <= share * memory


WORTH = 0.03
"""Gain below which a remedy is not told; assumed."""


def remedies(
    feeding: Feeding,
    samples: float,
    device: float,
    calibration: PipelineCalibration,
    better: LoaderChoice | None = None,
    image_size: int | None = None,
) -> tuple[Remedy, ...]:
    """Return the changes that would make the step faster, the best first.

    ``better`` are recommended loader settings, ``image_size`` the side of what the model sees.
    """
    now = rate_with(feeding, samples, device, calibration)
    found = []
    for name, changed, at_most in _changes(feeding, better, calibration, image_size):
        rate = rate_with(changed, samples, device, calibration)
        if rate > (1 + WORTH) * now:
            found.append(Remedy(name, rate, rate / now - 1, at_most))
    return tuple(sorted(found, key=lambda remedy: -remedy.gain))


BITS_PER_PIXEL = 4.9
"""Of photographs as JPEG: ImageNet's mean file, 110 KB, for its mean picture, 469 x 387."""
RESIZED = 256 / 224
"""Side that pictures are stored at for random crops, in image sizes; usual for ImageNet."""


def _changes(
    feeding: Feeding,
    better: LoaderChoice | None,
    calibration: PipelineCalibration,
    image_size: int | None,
) -> Iterator[tuple[str, Feeding, bool]]:
    """Yield (name, what would feed then, whether the gain is an upper bound)."""
    work, host = feeding.work, feeding.host
    if better is not None and better.num_workers > feeding.workers:
        yield "workers", replace(feeding, workers=better.num_workers), False
    if not work.pinned:
        yield "pinned", _pinned(feeding, calibration), False
    if feeding.layout == "files" and host.drive is not None:
        yield "shards", replace(feeding, layout="shards"), False
    if feeding.layout != "memory" and host.drive is not None:
        yield "drive", replace(feeding, host=replace(host, drive=FAST_DRIVE)), False
        if host.memory_bytes is not None and feeding.dataset_bytes is not None:
            need = feeding.dataset_bytes + calibration.drives.held_bytes.value
            more = round(need + feeding.host_bytes(calibration))
            if more > host.memory_bytes:
                yield "memory", replace(feeding, host=replace(host, memory_bytes=more)), False
    if host.processor is None or work.decode not in IMAGES or work.sample_bytes is None:
        return
    if work.decode == "jpeg" and work.library == "pillow":
        yield "decoder", replace(feeding, work=replace(work, library="simplejpeg")), False
    if image_size is not None:
        side = image_size * RESIZED
        small = side * side * BITS_PER_PIXEL / 8
        if work.decode == "jpeg" and small < work.sample_bytes:
            yield "resized", _with_bytes(feeding, small), False
        raw = replace(_with_bytes(feeding, 3 * side * side), layout="shards")
        yield "decoded", replace(raw, work=replace(raw.work, decode="none")), True
    # Pictures go to the GPU compressed; what decoding takes of the GPU is left out of account.
    on_gpu = replace(work, decode="none", output_bytes=work.sample_bytes)
    yield "gpu-decode", replace(feeding, work=on_gpu), True


FAST_DRIVE = DriveRecord(
    id="fast-nvme",
    name="NVMe, PCIe 4.0",
    source="as the drives of that kind in the catalog",
    confidence="medium",
    interface="nvme",
    pcie_generation=4,
    read_mb_s=7000,
    random_read_kiops=1000,
)


def _with_bytes(feeding: Feeding, nbytes: float) -> Feeding:
    """Return the same data set with samples of another size."""
    whole, each = feeding.dataset_bytes, feeding.work.sample_bytes
    if whole is not None and each is not None:
        whole *= nbytes / each
    return replace(feeding, work=replace(feeding.work, sample_bytes=nbytes), dataset_bytes=whole)


def _pinned(feeding: Feeding, calibration: PipelineCalibration) -> Feeding:
    shares = calibration.transfers
    faster = feeding.link_bytes_per_s * shares.pinned_share.value / shares.pageable_share.value
    return replace(feeding, work=replace(feeding.work, pinned=True), link_bytes_per_s=faster)
