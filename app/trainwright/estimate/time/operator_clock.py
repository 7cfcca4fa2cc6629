"""Seconds of operators in one situation: what steps, requests and answers are timed with."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import CpuRecord
from trainwright.estimate.input.loader import Host, processor
from trainwright.estimate.input.pipeline_calibration import load as load_pipeline
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.parallel import stagetime
from trainwright.estimate.serving.served import Served
from trainwright.estimate.time.efficiency import Efficiency, load
from trainwright.estimate.time.measured import corrected, usable
from trainwright.estimate.time.roofline import OpTimes, Rates, classify, op_times, rates
from trainwright.estimate.time.traffic import served_table
from trainwright.explain import Quantity
from trainwright.machine.machine import Gpu
from trainwright.machine.network import Cluster
from trainwright.profile.expand import op_counts
from trainwright.profile.memo import KEPT, with_profile
from trainwright.profile.profile import Floats, Profile
from trainwright.workload import FullSettings, Workload


@dataclass(frozen=True, slots=True)
class Situation:
    """What the time of a step depends on beside profile, settings and batch."""

    gpu: Gpu
    gpu_count: int
    workload: Workload
    sequence: int
    cores: int | None = None
    """Physical cores of the CPU; None where it is not known."""
    served: Served | None = None
    """By which engine; None for training."""
    host: Host | None = None
    """The computer around the GPUs. Default: as many cores, and nothing else known."""
    cpu: CpuRecord | None = None
    """Whose lanes the GPUs' slots share; None where the catalog does not know it."""
    cluster: Cluster | None = None
    """The computers that ``gpu_count`` is spread over; None where it is one."""
    written: Served | None = None
    """By which engine the answers that are trained on are written; None where the model itself
    writes them, or what the engine does is not known."""

    @property
    def here(self) -> int:
        """GPUs of one computer."""
        return min(self.gpu_count, self.cluster.each) if self.cluster else self.gpu_count

    @property
    def around(self) -> Host:
        """Return the computer around the GPUs."""
        return self.host or Host(processor(None, self.cores, load_pipeline()))


def slowed(times: OpTimes, slowness: Quantity | None) -> OpTimes:
    """Return the times with what was measured on this computer, if anything was."""
    if slowness is None:
        return times
    factor = slowness.value
    return replace(
        times,
        seconds=times.seconds * factor,
        compute=times.compute * factor,
        memory=times.memory * factor,
    )


class OperatorClock:
    """Times operators in one situation; keeps the seconds that it has worked out."""

    def __init__(self, situation: Situation, efficiency: Efficiency | None = None) -> None:
        self.situation = situation
        self.efficiency = efficiency or load()
        self._rates: dict[str, Rates] = {}
        self._times: dict[tuple[object, ...], OpTimes] = {}

    def rates(self, precision: str) -> Rates:
        """Return what the GPU offers in the precision.

        With bf16-mixed, what stays in fp32 (grouped products of experts) may use TF32: the
        exports allow it there.
        """
        if precision not in self._rates:
            gpu = self.situation.gpu
            tf32 = precision in ("tf32", "bf16-mixed")
            stated = rates(gpu.record, self.efficiency, tf32=tf32, power_limit_w=gpu.power_limit_w)
            measured = usable(gpu.measured, precision)
            self._rates[precision] = corrected(stated, measured, self.efficiency)
        return self._rates[precision]

    def operators(
        self,
        profile: Profile,
        settings: FullSettings,
        batch: int,
        sequence: int,
        *,
        generates: bool = False,
    ) -> OpTimes:
        """Return the seconds of each operator row, run once."""
        layout, compiled, framework = settings.channels_last, settings.compile, settings.framework
        key = (profile, settings.precision, layout, compiled, framework, batch, sequence, generates)
        if key not in self._times:
            table, served = classify(profile), self.situation.served
            if served is not None:
                table = served_table(table, profile, served, batch, sequence, generates=generates)
            times = op_times(
                table,
                self.rates(settings.precision),
                self.efficiency,
                batch=batch,
                sequence=sequence,
                channels_last=layout,
                compiled=compiled,
                framework=framework,
            )
            self._times[key] = slowed(times, self.situation.gpu.slowness)
        return self._times[key]

    def stages(
        self, profile: Profile, settings: FullSettings, batch: int
    ) -> list[tuple[str, OpTimes, Floats]]:
        """Return (stage, seconds of operators, how often each runs) of one step.

        Serving has two: ``prefill`` of the prompts, and ``generate``, whose tokens are all
        timed at the mean length of their context.
        """
        return [
            (name, times, row)
            for names, times, counts in self.counted(profile, settings, batch)
            for name, row in zip(names, counts, strict=True)
        ]

    def counted(
        self, profile: Profile, settings: FullSettings, batch: int
    ) -> list[tuple[tuple[str, ...], OpTimes, Floats]]:
        """Return stages that share operator times, with counts of shape (stages, rows)."""
        length = self.situation.sequence
        times = self.operators(profile, settings, batch, length)
        if self.situation.workload.trains:
            optimizer = traced_name(profile, settings.update)
            names, first, again = _training_counts(profile, settings.checkpointing, optimizer)
            counts = first + (settings.accumulation - 1) * again
            if settings.shards:  # each GPU updates its share alone
                updates = np.array([name == "optimizer" for name in names])
                shards = settings.shards_of(self.situation.gpu_count)
                counts = np.where(updates[:, None], counts / shards, counts)
            if settings.pipeline_stages:
                counts = stagetime.slowest(profile, settings, names, counts, times.seconds)
            return [(names, times, counts)]
        tokens = self.new_tokens
        context = length + tokens // 2
        later = self.operators(profile, settings, batch, context, generates=True)
        found: list[tuple[tuple[str, ...], OpTimes, Floats]] = [
            (("prefill",), times, _runs(profile, "prefill")[None])
        ]
        if tokens > 1 and "decode" in profile.segments:
            found.append((("generate",), later, (tokens - 1) * _runs(profile, "decode")[None]))
        return found

    @property
    def new_tokens(self) -> int:
        """Tokens generated for each request; 1 where the workload names none."""
        return self.situation.workload.inputs.new_tokens or 1


@with_profile(8)
def _training_counts(
    profile: Profile, checkpointing: str, optimizer: str
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return stages, runs with one micro-batch, and runs that each further one adds."""
    once, twice = (
        op_counts(profile, accumulation=n, checkpointing=checkpointing, optimizer=optimizer)
        for n in (1, 2)
    )
    once["optimizer"] = np.where(_makes_state(profile), 0.0, once["optimizer"])
    twice["optimizer"] = once["optimizer"]
    stages = tuple(stage for stage in once if once[stage].any())
    first = np.stack([once[stage] for stage in stages])
    return stages, first, np.stack([twice[stage] for stage in stages]) - first


@lru_cache(maxsize=KEPT)
def _makes_state(profile: Profile) -> NDArray[np.bool_]:
    """Return which rows make optimizer state, which only the first step does."""
    rows = zip(profile.ops.name, profile.ops.phase, strict=True)
    return np.array(
        [phase == "optimizer" and name.startswith("aten.zeros") for name, phase in rows],
        dtype=np.bool_,
    )


def _runs(profile: Profile, segment: str) -> Floats:
    rows = len(profile.ops.name)
    return np.bincount(profile.segments[segment].ops, minlength=rows).astype(np.float64)
