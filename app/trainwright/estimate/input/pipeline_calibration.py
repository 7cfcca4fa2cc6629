"""What feeding a GPU costs CPU and drives: data with sources."""

import json
from functools import cache

from trainwright.catalog import CpuRecord
from trainwright.data import resources
from trainwright.estimate.calibration_file import Constant, Entry


class Decoding(Entry):
    """Speed of one core; JPEG read by Pillow is the unit that everything else is told in."""

    architectures: dict[str, Constant]
    """Compressed bytes that a core decodes in a clock cycle."""
    unknown_architecture: Constant
    unknown_core_bytes_per_s: Constant
    """Where not even the clock is known."""
    libraries: dict[str, Constant]
    """Speed of other libraries on JPEG, as a multiple of Pillow's."""
    lock_waits: dict[str, Constant]
    """Libraries that keep the interpreter's lock while they decode: how many times a batch waits
    for that lock on its way through a pipe, when no other batch may be sent."""
    formats: dict[str, Constant]
    """Compressed bytes of other formats in a second, as a multiple of JPEG's."""
    transform_s_per_value: Constant
    """Crop, resize, conversion and normalisation, for each number that leaves; reference core."""


class HandOver(Entry):
    """What it costs to bring a sample from a worker to the training process; reference core."""

    worker_s_per_batch: Constant
    worker_s_per_byte: Constant
    main_s_per_batch: Constant
    main_s_per_byte: Constant


class Pipes(Entry):
    """Hand-over of arrays through pipes, where samples are not tensors; reference core."""

    main_s_per_byte: dict[str, Constant]
    """By architecture, or by family of processors where no row tells."""
    worker_share: Constant
    """What the worker pays, of what the training process pays."""
    crowding: dict[str, Constant]
    """By system: how much each further worker slows the training process down."""


class Workers(Entry):
    """How worker processes share the cores, and what they take."""

    softness: Constant
    """Exponent of the smooth minimum of workers and training process."""
    smt_gain: Constant
    """What the second thread of a core adds."""
    efficient_core: Constant
    """Speed of a slow core, of a fast one."""
    switch_s: Constant
    """After which a thread of Python asks another one for the interpreter's lock."""
    pin_s_per_byte: Constant
    """Copy into pinned memory, by a thread of the training process; reference core."""
    collate_s_per_byte: Constant
    """Stacking of samples without workers; reference core."""
    start_s: dict[str, Constant]
    """By start method: seconds until a worker runs."""
    private_bytes: dict[str, Constant]
    """By start method: memory of a worker that it shares with nobody."""
    memory_share: Constant
    """Of the system's memory, at most, that a recommendation gives to workers."""
    headroom: Constant
    """How much faster than the GPU a recommendation makes the workers."""


class Drives(Entry):
    """How drives read."""

    open_s: Constant
    request_bytes: Constant
    """Read-ahead of Linux: what one request brings."""
    metadata_requests: Constant
    """Requests before the first of a file's data."""
    latency_s: dict[str, Constant]
    """By interface: until one request, alone, is answered."""
    requests_per_s: dict[str, Constant]
    """By interface: at a deep queue, where the maker states nothing."""
    stream_bytes_per_s: Constant
    """Through the page cache into a process."""
    chunk_bytes: Constant
    """What a hard disk reads between two seeks when several read at once."""
    lane_bytes_per_s: dict[str, Constant]
    """Of PCI Express, by generation; drives have four lanes."""
    held_bytes: Constant
    """Memory that system and programs keep from the page cache."""


class Transfers(Entry):
    """Copies to the GPU."""

    pinned_share: Constant
    pageable_share: Constant


class PipelineCalibration(Entry):
    """Everything that the input pipeline assumes beside the data sheets."""

    version: int
    stated: str
    interval_factor: Constant
    """The 90 % interval of a rate of known hardware is rate / factor to rate * factor."""
    unknown_factor: Constant
    """The same where the processor is not known."""
    decoding: Decoding
    shared: HandOver
    pipes: Pipes
    workers: Workers
    drives: Drives
    transfers: Transfers

    @property
    def reference_core(self) -> float:
        """Return the bytes of JPEG that the core of all costs decodes in a second."""
        return self.decoding.unknown_core_bytes_per_s.value

    def core_rate(self, cpu: CpuRecord | None) -> float:
        """Return the bytes of JPEG that one core decodes in a second, with Pillow."""
        if cpu is None:
            return self.decoding.unknown_core_bytes_per_s.value
        known = self.decoding.architectures.get(cpu.architecture)
        each = known or self.decoding.unknown_architecture
        return each.value * cpu.boost_ghz * 1e9


@cache
def load() -> PipelineCalibration:
    """Return the shipped calibration."""
    text = resources("calibration", "pipeline.json").read_text(encoding="utf-8")
    return PipelineCalibration.model_validate(json.loads(text))
