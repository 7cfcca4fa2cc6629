"""Plain seconds of one optimizer step, by stage: what estimates and the search share."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from trainwright.estimate.input.inputs import batch_bytes, feeding
from trainwright.estimate.input.pipeline import Feeding, Flow, flow
from trainwright.estimate.input.pipeline_calibration import load as load_pipeline
from trainwright.estimate.parallel import stagetime
from trainwright.estimate.parallel.communication import (
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
from trainwright.estimate.parallel.shardtime import Mesh, Passes, joining, sharing, volume_of
from trainwright.estimate.pinned_memory import offloaded_bytes
from trainwright.estimate.time.efficiency import Efficiency
from trainwright.estimate.time.measured import localized
from trainwright.estimate.time.operator_clock import OperatorClock, Situation
from trainwright.estimate.time.roofline import CLASSES
from trainwright.estimate.time.serving_time import Round, round_of
from trainwright.estimate.time.spread import Factor, factor
from trainwright.estimate.time.stepterms import StepTerms
from trainwright.estimate.time.writing import writing_seconds
from trainwright.profile.profile import Profile
from trainwright.workload import Dataset, FullSettings

_PASSES = {"adamw": 7, "sgd": 5}
"""Reads and writes of something as large as the parameters: weights, gradients, moments."""


def _slot(situation: Situation, count: int) -> Link:
    """Return what joins each of so many GPUs and the computer around it."""
    gpu = situation.gpu
    cpu = situation.cpu
    return host_link(gpu.record, count, processor=cpu, read=gpu.link_read, slots=gpu.slots)


class Clock(OperatorClock):
    """Times steps in one situation; keeps the seconds that it has worked out."""

    def __init__(self, situation: Situation, efficiency: Efficiency | None = None) -> None:
        super().__init__(situation, efficiency)
        one = _slot(situation, 1).bytes_per_s
        seen = situation.gpu.measured
        self.pipeline = localized(load_pipeline(), seen, situation.around, one)
        self._terms: dict[tuple[object, ...], StepTerms] = {}
        self._flows: dict[tuple[object, ...], Flow] = {}
        self._others: dict[int, Clock] = {}

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
        for names, times, counts in self.counted(profile, settings, batch):
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
