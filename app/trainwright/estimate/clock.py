"""Plain seconds of one optimizer step, by stage: what estimates and the search share."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trainwright.catalog import GpuRecord
from trainwright.estimate.efficiency import Efficiency, load
from trainwright.estimate.offload import offloaded_bytes
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.roofline import OpTimes, Rates, classify, op_times, rates
from trainwright.estimate.serving import Served
from trainwright.estimate.serving_clock import round_of
from trainwright.estimate.serving_time import Round
from trainwright.estimate.traffic import served_table
from trainwright.machine.machine import Gpu
from trainwright.profile.expand import op_counts
from trainwright.profile.profile import Floats, Profile, evaluate
from trainwright.profile.trace import ALLOC
from trainwright.workload import Dataset, FullSettings, Workload

Bottleneck = Literal["gpu", "launch", "storage", "decode", "transfer", "communication"]


@dataclass(frozen=True, slots=True)
class Link:
    """What gradients travel over between the GPUs of one machine."""

    name: Literal["nvlink", "pcie"]
    bytes_per_s: float
    """Bus bandwidth that an all-reduce reaches; the rate assumed for it is in ``share``."""
    share: float
    assumed: bool
    """Whether the data sheet names no bus, so that PCIe 4.0 x16 stands in."""


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


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Seconds of one optimizer step on each GPU, before they are laid side by side."""

    gpu: dict[str, float]
    """Stage -> seconds that its kernels take."""
    host: float
    """Seconds that the CPU takes to launch them all."""
    communication: float
    exposed: float
    """Of the communication: what backward does not hide."""
    input: dict[str, float]
    """load, decode, transfer -> seconds for the samples of one step."""
    workers: int
    """0: the training process itself loads and decodes."""

    @property
    def device(self) -> float:
        """Seconds until the GPUs have done the step, were the input always there."""
        return max(sum(self.gpu.values()), self.host) + self.exposed

    @property
    def waiting(self) -> float:
        """Seconds that the GPUs wait for input."""
        if not self.input:
            return 0.0
        if self.workers == 0:
            return sum(self.input.values())
        return max(0.0, max(self.input.values()) - self.device)

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return self.device + self.waiting

    @property
    def bottleneck(self) -> Bottleneck:
        """What takes the largest share of the step."""
        kernels = sum(self.gpu.values())
        if self.waiting > kernels or (self.workers and self.waiting > 0):
            slowest = max(self.input, key=self.input.__getitem__)
            return {"load": "storage", "decode": "decode"}.get(slowest, "transfer")  # type: ignore[return-value]
        if self.exposed > max(kernels, self.host):
            return "communication"
        return "launch" if self.host > kernels else "gpu"


_PASSES = {"adamw": 7, "sgd": 5}
"""Reads and writes of something as large as the parameters: weights, gradients, moments."""


class Clock:
    """Times steps in one situation; keeps the seconds of operators that it has worked out."""

    def __init__(self, situation: Situation, efficiency: Efficiency | None = None) -> None:
        self.situation = situation
        self.efficiency = efficiency or load()
        self._times: dict[tuple[object, ...], OpTimes] = {}
        self._terms: dict[tuple[object, ...], StepTerms] = {}

    def rates(self, precision: str) -> Rates:
        """Return what the GPU offers in the precision.

        With bf16-mixed, what stays in fp32 (grouped products of experts) may use TF32: the
        exports allow it there.
        """
        gpu = self.situation.gpu
        tf32 = precision in ("tf32", "bf16-mixed")
        return rates(gpu.record, self.efficiency, tf32=tf32, power_limit_w=gpu.power_limit_w)

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
        layout, compiled = settings.channels_last, settings.compile
        key = (profile, settings.precision, layout, compiled, batch, sequence, generates)
        if key not in self._times:
            table, served = classify(profile), self.situation.served
            if served is not None:
                table = served_table(table, profile, served, batch, sequence, generates=generates)
            self._times[key] = op_times(
                table,
                self.rates(settings.precision),
                self.efficiency,
                batch=batch,
                sequence=sequence,
                channels_last=layout,
                compiled=compiled,
            )
        return self._times[key]

    def terms(self, profile: Profile, settings: FullSettings, batch: int) -> StepTerms:
        """Return the seconds of a step with ``batch`` samples a micro-batch.

        Raises:
            KeyError: the optimizer is not in the profile.
        """
        key = (
            *(profile, batch, settings.accumulation, settings.precision, settings.recomputing),
            *(settings.optimizer, settings.channels_last, settings.compile),
            *(settings.num_workers, settings.pin_memory, settings.optimizer_offload),
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
        gpu: dict[str, float] = {}
        launches = 0.0
        for names, times, counts in self._counted(profile, settings, batch):
            gpu |= zip(names, (counts @ times.seconds).tolist(), strict=True)
            launches += float((counts @ times.launches).sum())
        if settings.optimizer_offload == "cpu":
            gpu["optimizer"] = self.offloaded(profile, settings)
        if settings.activation_offload:
            gpu["offload"] = self.moving(profile, settings, batch)
        if settings.compile:
            launches *= self.efficiency.compile_launches.value
        communication = self._communication(profile, settings)
        overlapped = gpu.get("backward", 0.0) / settings.accumulation
        return StepTerms(
            gpu=gpu,
            host=launches * self.efficiency.host_s_per_kernel.value,
            communication=communication,
            exposed=self._exposed(communication, overlapped),
            input=self._input(profile, settings, batch),
            workers=settings.num_workers,
        )

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
            optimizer = traced_name(profile, settings.optimizer)
            names, first, again = _training_counts(profile, settings.checkpointing, optimizer)
            return [(names, times, first + (settings.accumulation - 1) * again)]
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

    def gradient_bytes(self, profile: Profile, settings: FullSettings) -> float:
        """Return the bytes of gradients that one GPU sends round."""
        adapters = self.situation.workload.adapts
        size = 2 if settings.precision == "bf16" and not adapters else 4
        return float(profile.model.get("trainable", profile.model.get("parameters", 0)) * size)

    def offloaded(self, profile: Profile, settings: FullSettings) -> float:
        """Return the seconds in which the CPU updates its copies and sends them back.

        Gradients leave during backward, and a parameter is on its way back while the next is
        updated. Parameters, gradients and moments are read once, parameters and moments
        written once.
        """
        nbytes = self.gradient_bytes(profile, settings)
        link = host_link(self.situation.gpu.record, self.efficiency)
        bus = link.bytes_per_s * self.efficiency.transfer_share.value
        passes = _PASSES[settings.optimizer]
        memory = self.efficiency.host_memory_bytes_per_s.value
        return max(nbytes / bus, passes * nbytes / memory)

    def moving(self, profile: Profile, settings: FullSettings, batch: int) -> float:
        """Return the seconds in which blocks' inputs travel to system memory and back.

        ``torch.autograd.graph.save_on_cpu`` copies on the stream that computes: nothing hides it.
        """
        sizes = offloaded_bytes(profile, settings.recomputing, batch, self.situation.sequence)
        link = host_link(self.situation.gpu.record, self.efficiency)
        bus = link.bytes_per_s * self.efficiency.transfer_share.value
        return 2 * float(sizes.sum()) * settings.accumulation / bus

    def _communication(self, profile: Profile, settings: FullSettings) -> float:
        """Return the seconds of a ring all-reduce: 2 (n - 1) / n of the gradients."""
        count = self.situation.gpu_count
        if count < 2 or not self.situation.workload.trains:
            return 0.0
        link = link_between(self.situation.gpu.record, self.efficiency)
        volume = 2 * (count - 1) / count * self.gradient_bytes(profile, settings)
        return volume / (link.bytes_per_s * link.share)

    def _exposed(self, communication: float, backward: float) -> float:
        """Return what the last micro-batch's backward does not hide of the all-reduce."""
        leak = self.efficiency.communication_exposed.value * min(communication, backward)
        return leak + max(0.0, communication - backward)

    def _input(self, profile: Profile, settings: FullSettings, batch: int) -> dict[str, float]:
        dataset = self.situation.workload.dataset
        if not isinstance(dataset, Dataset) or not self.situation.workload.trains:
            return {}
        samples = batch * settings.accumulation * self.situation.workload.inputs.samples_a_row
        every_gpu = samples * self.situation.gpu_count
        seconds: dict[str, float] = {}
        nbytes = (dataset.sample_kib or 0) * 1024 * every_gpu
        if nbytes and dataset.layout != "memory":
            seconds["load"] = nbytes / self.efficiency.storage_bytes_per_s[dataset.layout].value
        if nbytes and dataset.decode != "none" and self.situation.cores is not None:
            seconds["decode"] = nbytes / self._decoding_rate(dataset.decode, settings.num_workers)
        link = host_link(self.situation.gpu.record, self.efficiency)
        share = self.efficiency.transfer_share.value
        if not settings.pin_memory:
            share *= self.efficiency.pageable_share.value
        seconds["transfer"] = _input_bytes(profile, batch, self.situation.sequence) * (
            settings.accumulation / (link.bytes_per_s * share)
        )
        return seconds

    def _decoding_rate(self, decode: str, workers: int) -> float:
        """Return the bytes that all workers of all GPUs decode in a second."""
        core = self.efficiency.decode_bytes_per_s_per_core[decode].value
        if workers == 0:
            return core * self.situation.gpu_count
        assert self.situation.cores is not None
        busy = min(workers * self.situation.gpu_count, self.situation.cores)
        return core * max(1.0, busy * self.efficiency.worker_efficiency.value)


def host_link(record: GpuRecord, efficiency: Efficiency) -> Link:
    """Return the PCIe link of a card: bytes/s of its generation and lanes."""
    known = record.pcie_generation is not None and record.pcie_lanes is not None
    generation = str(min(max(record.pcie_generation or 4, 3), 5))
    lane = efficiency.pcie_bytes_per_s_per_lane[generation].value
    rate = lane * (record.pcie_lanes or 16)
    return Link("pcie", rate, efficiency.links["pcie"].value, assumed=not known)


def link_between(record: GpuRecord, efficiency: Efficiency) -> Link:
    """Return what joins several such cards: NVLink in servers, else PCIe without bridges."""
    if record.nvlink_bytes_per_s is not None and record.segment == "datacenter":
        share = efficiency.links["nvlink"].value
        return Link("nvlink", record.nvlink_bytes_per_s.value, share, assumed=False)
    return host_link(record, efficiency)


@lru_cache(maxsize=256)
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


@lru_cache(maxsize=64)
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


def _input_bytes(profile: Profile, batch: int, sequence: int) -> float:
    """Return the bytes of one micro-batch as it goes to the GPU."""
    micro = profile.segments["micro"]
    born = micro.code == ALLOC
    inputs = [
        size
        for storage, size in zip(micro.a[born].tolist(), micro.b[born].tolist(), strict=True)
        if profile.category.get(storage) == "input"
    ]
    if not inputs:
        return 0.0
    return float(evaluate(profile.sizes[inputs], batch, sequence).sum())
