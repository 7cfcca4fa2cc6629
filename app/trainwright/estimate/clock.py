"""Plain seconds of one optimizer step, by stage: what estimates and the search share."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import CpuRecord
from trainwright.estimate import stagetime
from trainwright.estimate.communication import (
    NOTHING,
    Exchange,
    Link,
    between_copies,
    exchange,
    gradient_bytes,
    host_link,
    link_between,
    over_network,
)
from trainwright.estimate.efficiency import Efficiency, load
from trainwright.estimate.inputs import batch_bytes, feeding
from trainwright.estimate.loader import Host, processor
from trainwright.estimate.measured import corrected, localized, usable
from trainwright.estimate.offload import offloaded_bytes
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.pipeline import Feeding, Flow, flow
from trainwright.estimate.pipeline_calibration import load as load_pipeline
from trainwright.estimate.roofline import CLASSES, OpTimes, Rates, classify, op_times, rates
from trainwright.estimate.serving import Served
from trainwright.estimate.serving_clock import round_of
from trainwright.estimate.serving_time import Round
from trainwright.estimate.sharing import Mesh, Passes, joining, sharing, volume_of
from trainwright.estimate.spread import Factor, factor
from trainwright.estimate.stepterms import StepTerms
from trainwright.estimate.traffic import served_table
from trainwright.estimate.writing import writing_seconds
from trainwright.explain import Quantity
from trainwright.machine.machine import Gpu
from trainwright.machine.network import Cluster
from trainwright.profile.expand import op_counts
from trainwright.profile.kept import KEPT, with_profile
from trainwright.profile.profile import Floats, Profile
from trainwright.workload import Dataset, FullSettings, Workload


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


_PASSES = {"adamw": 7, "sgd": 5}
"""Reads and writes of something as large as the parameters: weights, gradients, moments."""


def _slot(situation: Situation, count: int) -> Link:
    """Return what joins each of so many GPUs and the computer around it."""
    gpu = situation.gpu
    cpu = situation.cpu
    return host_link(gpu.record, count, processor=cpu, read=gpu.link_read, slots=gpu.slots)


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


class Clock:  # Long: all that is timed in one situation, each value worked out once.
    """Times steps in one situation; keeps the seconds of operators that it has worked out."""

    def __init__(self, situation: Situation, efficiency: Efficiency | None = None) -> None:
        self.situation = situation
        self.efficiency = efficiency or load()
        one = _slot(situation, 1).bytes_per_s
        seen = situation.gpu.measured
        self.pipeline = localized(load_pipeline(), seen, situation.around, one)
        self._rates: dict[str, Rates] = {}
        self._times: dict[tuple[object, ...], OpTimes] = {}
        self._terms: dict[tuple[object, ...], StepTerms] = {}
        self._flows: dict[tuple[object, ...], Flow] = {}
        self._others: dict[int, Clock] = {}

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

    def terms(self, profile: Profile, settings: FullSettings, batch: int) -> StepTerms:
        """Return the seconds of a step with ``batch`` samples a micro-batch.

        Raises:
            KeyError: the optimizer is not in the profile.
        """
        key = (
            *(profile, batch, settings.accumulation, settings.precision, settings.recomputing),
            *(settings.update, settings.channels_last, settings.compile),
            *(settings.num_workers, settings.pin_memory, settings.optimizer_offload),
            *(settings.prefetch_factor, settings.framework, settings.strategy),
            *(settings.reshard_after_forward, settings.shard_offload, settings.shard_degree),
            settings.together,
        )
        if key not in self._terms:
            self._terms[key] = self._step(profile, settings, batch)
        return self._terms[key]

    def round(self, profile: Profile, settings: FullSettings, batch: int) -> Round:
        """Return a round of requests; of serving only."""
        served = self.situation.served
        assert served is not None, "asked for serving only"
        return round_of(self, profile, settings, batch, served)

    def _step(self, profile: Profile, settings: FullSettings, batch: int) -> StepTerms:
        if self.situation.served is not None:
            found = self.round(profile, settings, batch)
            kernels = {"prefill": found.prefill.kernels, "generate": found.decode.kernels}
            stages = {name: seconds for name, seconds in kernels.items() if seconds}
            return StepTerms(stages, found.host, 0.0, 0.0, {}, settings.num_workers)
        gpu = writing_seconds(self, profile, settings, batch)
        launches = 0.0
        for names, times, counts in self._counted(profile, settings, batch):
            gpu |= zip(names, (counts @ times.seconds).tolist(), strict=True)
            launches += float((counts @ times.launches).sum())
        if settings.optimizer_offload == "cpu" or settings.shard_offload:
            gpu["optimizer"] = self.offloaded(profile, settings)
        if settings.activation_offload:
            gpu["offload"] = self.moving(profile, settings, batch)
        if settings.compile:
            launches *= self.efficiency.compile_launches.value
        prepared, feeds = self._input(profile, settings, batch)
        alone = StepTerms(
            gpu=gpu,
            host=launches * self.efficiency.host_s_per_kernel.value,
            communication=0.0,
            exposed=0.0,
            input=prepared,
            workers=settings.num_workers,
            feeds=feeds,
        )
        cost = self.exchange_of(profile, settings, alone)
        return replace(alone, communication=cost.works, exposed=cost.exposed)

    def factor(self, profile: Profile, settings: FullSettings, batch: int) -> Factor:
        """Return how far a real step may lie from its time, either way."""
        by_class = np.zeros(len(CLASSES))
        for _, times, counts in self.stages(profile, settings, batch):
            seconds = counts * times.seconds
            by_class += np.bincount(times.group, weights=seconds, minlength=len(CLASSES))
        return factor(by_class, self.situation.gpu.record, self.efficiency.spread)

    def margin(self, profile: Profile, settings: FullSettings, batch: int) -> float:
        """Return the factor of the 90 % interval of a step, or of a round of requests."""
        served = self.situation.served is not None
        known = self.round(profile, settings, batch).factor if served else None
        return known or self.factor(profile, settings, batch).value

    def stages(
        self, profile: Profile, settings: FullSettings, batch: int
    ) -> list[tuple[str, OpTimes, Floats]]:
        """Return (stage, seconds of operators, how often each runs) of one step.

        Serving has two: ``prefill`` of the prompts, and ``generate``, whose tokens are all
        timed at the mean length of their context.
        """
        return [
            (name, times, row)
            for names, times, counts in self._counted(profile, settings, batch)
            for name, row in zip(names, counts, strict=True)
        ]

    def _counted(
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

    def offloaded(self, profile: Profile, settings: FullSettings) -> float:
        """Return the seconds in which the CPU updates its copies and sends them back.

        Gradients leave during backward, and a parameter is on its way back while the next is
        updated. Parameters, gradients and moments are read once, parameters and moments
        written once. Shares of weights go back only when they are gathered.
        """
        adapts = self.situation.workload.adapts
        nbytes = gradient_bytes(profile, settings, adapts=adapts)
        updated = (
            _PASSES[settings.optimizer] * nbytes / self.efficiency.host_memory_bytes_per_s.value
        )
        return updated if settings.shard_offload else max(nbytes / self.bus, updated)

    def moving(self, profile: Profile, settings: FullSettings, batch: int) -> float:
        """Return the seconds in which blocks' inputs travel to system memory and back.

        ``torch.autograd.graph.save_on_cpu`` copies on the stream that computes: nothing hides it.
        """
        sizes = offloaded_bytes(profile, settings.recomputing, batch, self.situation.sequence)
        return 2 * float(sizes.sum()) * settings.accumulation / self.bus

    @cached_property
    def bus(self) -> float:
        """Bytes/s that a copy between a GPU and pinned system memory reaches."""
        return self.slot.bytes_per_s * self.pipeline.transfers.pinned_share.value

    def of(self, gpu_count: int) -> "Clock":
        """Return the clock of the same situation with so many GPUs."""
        if gpu_count == self.situation.gpu_count:
            return self
        if gpu_count not in self._others:
            other = Clock(replace(self.situation, gpu_count=gpu_count), self.efficiency)
            other.share(self)
            self._others[gpu_count] = other
        return self._others[gpu_count]

    def share(self, other: "Clock") -> None:
        """Take over what one GPU's operators take from the clock of a like GPU.

        That is the same with more of them, and with other links.
        """
        self._times = other._times

    @cached_property
    def inside(self) -> Link:
        """What joins the GPUs of one computer."""
        situation = self.situation
        gpu = situation.gpu
        return link_between(
            gpu.record,
            situation.here,
            bridged=gpu.bridged,
            processor=situation.cpu,
            read=gpu.link_read,
            slots=gpu.slots,
        )

    @cached_property
    def link(self) -> Link:
        """What joins the machine's GPUs."""
        return self._joining(self.situation.gpu_count)

    def _joining(self, gpus: int) -> Link:
        cluster = self.situation.cluster
        return self.inside if cluster is None else over_network(self.inside, gpus, cluster)

    def mesh(self, settings: FullSettings) -> Mesh:
        """Return which GPUs share one copy of what is shared out, and what joins them."""
        count = self.situation.gpu_count
        shards = settings.shards_of(count)
        if (parts := settings.tensor_degree) is not None:  # the GPUs of a layer lie side by side
            cluster = self.situation.cluster
            return Mesh(shards, between_copies(self.inside, parts, shards, cluster))
        copies, link = count // shards, self._joining(shards)
        if copies < 2:
            return Mesh(shards, link)
        between = between_copies(self.inside, shards, copies, self.situation.cluster)
        return Mesh(shards, link, copies, between)

    @cached_property
    def slot(self) -> Link:
        """What joins each GPU and the computer around it."""
        return _slot(self.situation, self.situation.here)

    def exchange_of(
        self,
        profile: Profile,
        settings: FullSettings,
        terms: StepTerms,
        *,
        link: Link | None = None,
        share: float = 1.0,
    ) -> Exchange:
        """Return the exchange of gradients in a step, over the machine's link or another.

        ``share`` is what is sent of the gradients' bytes.
        """
        situation = self.situation
        if situation.gpu_count < 2 or not situation.workload.trains:
            return NOTHING
        record, kernels = situation.gpu.record, sum(terms.gpu.values())
        # Blocks are computed again in the middle of the backward pass; where the CPU launches
        # kernels more slowly than they run, that pass is longer by the same factor.
        backward = terms.gpu.get("backward", 0.0) + terms.gpu.get("recompute", 0.0)
        stretch = terms.computing / kernels if kernels else 1.0
        adapts = situation.workload.adapts
        share_of = stretch / settings.accumulation
        bandwidth = record.bandwidth_bytes_per_s.value
        if settings.pipeline_stages:
            length = situation.sequence
            times = self.operators(profile, settings, settings.micro_batch, length)
            each = stretch * stagetime.passes(profile, settings, times.seconds)
            return stagetime.waiting(profile, settings, self.chain(settings), each, length)
        if settings.shards:
            seconds = Passes(
                terms.computing, share_of * terms.gpu.get("forward", 0.0), share_of * backward
            )
            volume = volume_of(profile, settings, adapts=adapts)
            cost = sharing(volume, self.mesh(settings), settings, seconds, bandwidth, self.bus)
            _, parts = self.joined(profile, settings)
            return replace(cost, wire=cost.wire + parts, parts=parts)
        return exchange(
            share * gradient_bytes(profile, settings, adapts=adapts),
            situation.gpu_count,
            link or self.link,
            step=terms.computing,
            backward=share_of * backward,
            bandwidth=bandwidth,
            buffers=float(profile.model.get("buffers", 0)),
        )

    def chain(self, settings: FullSettings) -> stagetime.Chain:
        """Return how pipeline stages and their copies lie on the GPUs, and what joins them."""
        situation = self.situation
        return stagetime.chain(settings, situation.gpu_count, self.inside, situation.cluster)

    def joined(self, profile: Profile, settings: FullSettings) -> tuple[float, float]:
        """Return the bytes of a step that split layers join, and the seconds on their link."""
        if (degree := settings.tensor_degree) is None:
            return 0.0, 0.0
        batch, length = settings.micro_batch, self.situation.sequence
        counts = np.sum([row for _, _, row in self.stages(profile, settings, batch)], axis=0)
        return joining(profile, counts, batch, length, degree, self.inside)

    def feeding(self, profile: Profile, settings: FullSettings, batch: int) -> Feeding | None:
        """Return what feeds the GPUs; None without a data set, and where nothing is trained."""
        situation = self.situation
        dataset = situation.workload.dataset
        if not isinstance(dataset, Dataset) or not situation.workload.trains:
            return None
        return feeding(
            dataset,
            situation.workload,
            settings,
            situation.around,
            self.pipeline,
            gpus=situation.here,
            batch=batch,
            batch_bytes=batch_bytes(profile, batch, situation.sequence),
            link_bytes_per_s=self.slot.bytes_per_s,
            measured=situation.gpu.measured,
        )

    def _flow(self, source: Feeding) -> Flow:
        """Return how fast samples come; the same for most settings of a search."""
        work = source.work
        loader = (source.workers, source.prefetch, work.pinned)
        key = (work.batch, work.output_bytes, *loader)
        if key not in self._flows:
            self._flows[key] = flow(source, self.pipeline)
        return self._flows[key]

    def samples(self, settings: FullSettings, batch: int) -> float:
        """Return the samples that one computer prepares for a step; packed rows hold several."""
        situation = self.situation
        rows = batch * settings.accumulation * situation.here
        return rows * situation.workload.inputs.samples_a_row

    def _input(
        self, profile: Profile, settings: FullSettings, batch: int
    ) -> tuple[dict[str, float], tuple[tuple[float, float], ...]]:
        """Return seconds of a step's input by stage, and until all of it is ready."""
        source = self.feeding(profile, settings, batch)
        if source is None:
            return {}, ()
        found, samples = self._flow(source), self.samples(settings, batch)
        # The hand-over to the training process is told as a part of decoding.
        decode = None if found.decode is None else max(found.decode, found.handover)
        each = {"load": found.load, "decode": decode, "transfer": found.transfer}
        stages = {name: seconds * samples for name, seconds in each.items() if seconds}
        return stages, tuple((share, seconds * samples) for share, seconds in found.whole)


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
