"""The input pipeline of a plan: built for the clock, and told for the report."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from trainwright.estimate.input.loader import Host, Work
from trainwright.estimate.input.pipeline import (
    Feeding,
    Flow,
    LoaderChoice,
    Remedy,
    StageName,
    choice_of,
    flow,
    recommended,
    remedies,
)
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration
from trainwright.explain import Quantity
from trainwright.explain.quantity import Interval, Kind, Unit
from trainwright.machine.measured import MeasuredGpu
from trainwright.messages import Message
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import Profile, evaluate
from trainwright.profile.trace import ALLOC
from trainwright.workload import Dataset, FullSettings, Workload

_SOURCE = "resources/calibration/pipeline.json"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What each stage passes on, what limits, and what to do."""

    feeding: Feeding
    stages: tuple[tuple[StageName, Quantity | None], ...]
    """Samples a second over all GPUs; None where that cannot be told. The GPU is the last."""
    bottleneck: StageName
    """The slowest of the stages that are known."""
    loader: LoaderChoice
    """The settings as they are, and what they take."""
    recommended: LoaderChoice | None
    """None where the cores are not known."""
    remedies: tuple[tuple[Remedy, Message], ...]
    notes: tuple[Message, ...]
    """What cannot be checked, and what was assumed instead."""


def feeding(
    dataset: Dataset,
    workload: Workload,
    settings: FullSettings,
    host: Host,
    calibration: PipelineCalibration,
    *,
    gpus: int,
    batch: int,
    batch_bytes: float,
    link_bytes_per_s: float,
    measured: MeasuredGpu | None = None,
) -> Feeding:
    """Return what feeds the GPUs of a training.

    ``batch_bytes`` are those of a micro-batch as it goes to the GPU, ``link_bytes_per_s`` what
    the data sheet gives its link.
    """
    rows = workload.inputs.samples_a_row
    each = dataset.sample_kib * 1024 if dataset.sample_kib is not None else None
    known = each is not None and workload.samples is not None
    pinned, shares = settings.pin_memory, calibration.transfers
    share = shares.pinned_share if pinned else shares.pageable_share
    work = Work(
        decode=dataset.decode,
        library=dataset.decoder or "pillow",
        sample_bytes=each,
        output_bytes=batch_bytes / (batch * rows),
        batch=max(1, round(batch * rows)),
        pinned=pinned,
    )
    return Feeding(
        work=work,
        host=host,
        layout=dataset.layout,
        dataset_bytes=(each or 0.0) * (workload.samples or 0) if known else None,
        epochs=workload.epochs or 1,
        gpus=gpus,
        link_bytes_per_s=link_bytes_per_s * share.value,
        workers=settings.num_workers,
        prefetch=settings.prefetch_factor,
        persistent=settings.persistent_workers,
        link=None if measured is None else measured.pinned if pinned else measured.pageable,
    )


def described(
    found: Feeding,
    samples: float,
    device: float,
    calibration: PipelineCalibration,
    image_size: int | None,
) -> Pipeline:
    """Return the pipeline of a step of ``samples`` that keeps the GPUs busy for ``device``.

    ``device`` is in seconds, without the copy of the samples.
    """
    flowing = flow(found, calibration)
    seconds = flowing.stages() | {"gpu": device / samples}
    better = recommended(found, samples / device, calibration)
    changes = remedies(found, samples, device, calibration, better, image_size)
    told = tuple(
        (name, _rate(name, value, found, calibration))
        for name, value in seconds.items()
        if value is None or value > 0
    )
    return Pipeline(
        feeding=found,
        stages=told,
        bottleneck=max(seconds, key=lambda name: seconds[name] or 0.0),
        loader=choice_of(found, calibration),
        recommended=better,
        remedies=tuple((remedy, _remedy(remedy, found, better)) for remedy in changes),
        notes=tuple(_notes(found, flowing, calibration)),
    )


def _rate(
    name: StageName, seconds: float | None, found: Feeding, calibration: PipelineCalibration
) -> Quantity | None:
    """Return a stage's samples a second, with how well it is known."""
    if seconds is None:
        return None
    rate = 1 / seconds
    cpu = found.host.processor
    guessed = name in ("decode", "handover") and cpu is not None and not cpu.known
    factor = calibration.unknown_factor if guessed else calibration.interval_factor
    own = name != "gpu"  # the GPU's interval is the step's
    return Quantity(
        Message.of(f"pipeline.stage.{name}"),
        rate,
        Unit.SAMPLES_PER_SECOND,
        Kind.ASSUMED if guessed else Kind.ESTIMATED,
        formula=_FORMULAS[name],
        parts=tuple(_parts(name, found)),
        source=_SOURCE if own else "",
        interval=Interval(rate / factor.value, rate * factor.value) if own else None,
        role=name,
    )


_FORMULAS: dict[StageName, str] = {
    "load": "max((open + latency + bytes / rate) / readers, bytes / rate, requests / IOPS)",
    "decode": "cores · clock · bytes/cycle / bytes + transforms",
    "handover": "n / (batch overhead + bytes · copy)",
    "transfer": "n · link · share / bytes",
    "gpu": "samples / step",
}


def _parts(name: StageName, found: Feeding) -> Iterator[Quantity]:
    """Yield what a stage's rate was made from."""
    if name in ("load", "decode") and found.work.sample_bytes is not None:
        size = found.work.sample_bytes
        yield Quantity(Message.of("pipeline.sample-bytes"), size, Unit.BYTES, Kind.YOURS)
    if name in ("handover", "transfer"):
        size = found.work.output_bytes
        yield Quantity(Message.of("pipeline.output-bytes"), size, Unit.BYTES, Kind.ESTIMATED)
    if name == "transfer" and found.link is not None:
        yield found.link
    drive, seen = found.host.drive, found.host.measured
    if name == "load" and seen is not None and seen.drive is not None:
        yield from (seen.drive.sequential, seen.drive.requests, seen.drive.alone)
    elif name == "load" and drive is not None:
        each = drive.read_mb_s * 1e6
        yield Quantity(
            Message.of("pipeline.drive", name=drive.name),
            each,
            Unit.BYTES_PER_SECOND,
            Kind.QUOTED,
            source=drive.source,
        )
    cpu = found.host.processor
    if name == "decode" and cpu is not None:
        kind = Kind.ESTIMATED if cpu.known else Kind.ASSUMED
        core = Quantity(
            Message.of("pipeline.core"), cpu.core_rate, Unit.BYTES_PER_SECOND, kind, source=_SOURCE
        )
        yield (seen and seen.core) or core
        yield Quantity(Message.of("pipeline.cores"), cpu.cores, Unit.COUNT, Kind.QUOTED)


def _remedy(remedy: Remedy, found: Feeding, better: LoaderChoice | None) -> Message:
    """Return the remedy as a sentence."""
    most = "at-most" if remedy.at_most else "about"
    values: dict[str, object] = {"gain": remedy.gain, "rate": remedy.samples_per_second}
    if remedy.name == "workers" and better is not None:
        values["count"] = better.num_workers
    if remedy.name == "memory":
        values["need"] = found.dataset_bytes or 0.0
    return Message.of(f"pipeline.remedy.{remedy.name}.{most}", **values)


def _notes(found: Feeding, flowing: Flow, calibration: PipelineCalibration) -> Iterator[Message]:
    """Yield what cannot be checked, and what follows from the sizes of things."""
    cpu, drive, memory = found.host.processor, found.host.drive, found.host.memory_bytes
    decodes = found.work.decode != "none"
    if found.work.sample_bytes is None and (decodes or found.layout != "memory"):
        yield Message.of("pipeline.note.sample-size")
    elif flowing.load is None and drive is None:
        yield Message.of("pipeline.note.drive-unknown")
    if cpu is None and decodes:
        yield Message.of("time.note.cores-unknown")
    elif cpu is not None and not cpu.known and decodes:
        yield Message.of("pipeline.note.cpu-unknown", factor=calibration.unknown_factor.value)
    size = found.dataset_bytes
    if size is None or memory is None or (found.layout == "memory" and size <= memory):
        return
    if found.layout == "memory":
        yield Message.of("pipeline.note.not-in-memory", size=size, memory=memory)
    elif size > memory and found.epochs > 1:
        yield Message.of("pipeline.note.every-epoch", size=size, memory=memory)


def waits(
    stages: Mapping[str, float], slower: str, waiting: float, *, serial: bool
) -> Iterator[tuple[str, Quantity, bool, float | None]]:
    """Yield (stage, seconds that it adds, whether it is hidden, seconds that it works).

    Of loading and decoding only the ``slower`` can be waited for; a ``serial`` loader adds both.
    The copy to the GPU is on the kernels' stream: nothing hides it.
    """
    for name, seconds in stages.items():
        whole = _seconds(f"time.stage.{name}", seconds, name)
        if name == "transfer" or (serial and name != slower):
            yield name, whole, False, None
        elif serial:  # who waits for a busy drive, loads
            others = sum(stages.get(other, 0.0) for other in ("load", "decode") if other != name)
            yield name, _seconds(f"time.stage.{name}", waiting - others, name), False, None
        elif name == slower and waiting > 0:
            wait = _seconds(f"time.waiting.{name}", waiting, name)
            yield name, replace(wait, formula="T - GPU", parts=(whole,)), False, seconds
        else:
            yield name, whole, True, None


def _seconds(id: str, value: float, role: str) -> Quantity:
    return Quantity(Message.of(id), value, Unit.SECONDS, Kind.ESTIMATED, source=_SOURCE, role=role)


def as_json(pipeline: Pipeline) -> dict[str, object]:
    """Return the pipeline as plain data; what is not known is None."""
    better = pipeline.recommended
    return {
        "stages": [
            {"name": name, "samples_per_second": rate.value if rate is not None else None}
            for name, rate in pipeline.stages
        ],
        "bottleneck": pipeline.bottleneck,
        "loader": _loader(pipeline.loader),
        "recommended": _loader(better) if better is not None else None,
        "remedies": [
            {
                "name": remedy.name,
                "samples_per_second": remedy.samples_per_second,
                "gain": remedy.gain if math.isfinite(remedy.gain) else None,
                "at_most": remedy.at_most,
            }
            for remedy, _ in pipeline.remedies
        ],
    }


def _loader(choice: LoaderChoice) -> dict[str, object]:
    return {
        "num_workers": choice.num_workers,
        "prefetch_factor": choice.prefetch_factor,
        "pin_memory": choice.pin_memory,
        "persistent_workers": choice.persistent_workers,
        "host_bytes": round(choice.host_bytes),
        "shared_memory_bytes": round(choice.shared_memory_bytes),
        "start_seconds": choice.start_seconds,
    }


def batch_bytes(profile: Profile, batch: int, sequence: int) -> float:
    """Return the bytes of one micro-batch as it goes to the GPU."""
    return _bytes_at(_input_sizes(profile), batch, sequence)


@lru_cache(maxsize=4096)
def _bytes_at(sizes: tuple[tuple[int, ...], ...], batch: int, sequence: int) -> float:
    """Return the sum of sizes; its key is the few numbers, for a profile would live as long."""
    return float(evaluate(np.array(sizes), batch, sequence).sum()) if sizes else 0.0


@lru_cache(maxsize=KEPT)
def _input_sizes(profile: Profile) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of a micro-batch's inputs, as polynomials."""
    micro = profile.segments["micro"]
    born = micro.code == ALLOC
    return tuple(
        tuple(profile.sizes[size].tolist())
        for storage, size in zip(micro.a[born].tolist(), micro.b[born].tolist(), strict=True)
        if profile.category.get(storage) == "input"
    )
