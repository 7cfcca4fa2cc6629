"""What an evaluation answers: figures that open, a verdict, and notes."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainwright.estimate.input.inputs import as_json as pipeline_as_json
from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.support import Support
from trainwright.estimate.time.compiling import Compiling
from trainwright.estimate.time.roofpoints import Roofs
from trainwright.estimate.time.serving_time import ServingTime
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.estimate.time.timeline import lane_of
from trainwright.explain import Quantity
from trainwright.machine.build import Check
from trainwright.messages import Message, render
from trainwright.plan.rollout import Phases
from trainwright.plan.serving import Serving
from trainwright.workload import FullSettings

HEADROOM = 0.02
"""Share of memory that the p95 leaves free for a comfortable fit; assumed: desktops vary."""


class Verdict(StrEnum):
    """Decided on the p95 of device memory."""

    FITS = "fits"
    TIGHT = "tight"
    """It probably fits: the estimate does, its p95 does not or leaves next to nothing."""
    QUEUES = "queues"
    """It fits, and the engine's cache holds fewer requests at once than come at once."""
    SPILLS = "spills"
    """Windows: would spill into system memory and crawl."""
    NO = "no"
    CANNOT_CHECK = "cannot-check"


FITTING = (Verdict.FITS, Verdict.TIGHT, Verdict.QUEUES)
"""Verdicts of what is expected to run within the GPU's memory."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to a plan."""

    verdict: Verdict
    memory: MemoryEstimate
    time: TimeEstimate
    settings: FullSettings
    """What the estimate was made for: the plan's own settings and the defaults."""
    notes: tuple[Message, ...]
    """Assumptions and warnings, most important first."""
    host_total: int | None = None
    """System memory of the machine, in bytes; None where nobody says."""
    serving: Serving | None = None
    """None for training."""
    support: Support | None = None
    """Whether PyTorch, or the engine, runs on this GPU under this system."""
    likely_bytes: float | None = None
    """The most that a likely recipe takes of the device; None where the plan states one."""
    stages: tuple[Quantity, ...] = ()
    """The allocated peak of each pipeline stage; empty without stages."""
    phases: Phases | None = None
    """Of a step that begins with writing answers; None for others."""
    checks: tuple[Check, ...] = ()
    """Of the machine's parts, gravest first; empty where the plan names no board, power supply,
    case or cooler."""

    @property
    def runs(self) -> bool:
        """Whether anything can be expected to run there; so it is where nobody says."""
        return self.support is None or self.support.runs

    @property
    def roomy(self) -> bool:
        """Whether it fits, and the p95 leaves headroom."""
        return self._within(1 - HEADROOM)

    @property
    def fits(self) -> bool:
        """Whether even the p95 fits: what may be relied on."""
        return self._within(1)

    def _within(self, share: float) -> bool:
        """Return whether the p95 is within a share of the device's memory.

        An engine that queues is bounded by its own share: it runs fewer requests at once.
        """
        memory = self.memory
        bounded = self.serving is not None and self.serving.served.queues
        within = memory.device_used_p95.value <= share * memory.device_total.value
        return self.verdict in FITTING and (bounded or within)


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as plain data: the contract of ``estimate --json``.

    A figure that is not known is None, never 0; sentences are in English.
    """
    return {
        "fits": report.fits,
        "verdict": report.verdict.value,
        "memory": _memory(report.memory) | {"likely_recipes_bytes": _likely(report)},
        "time": _time(report.time, serves=report.serving is not None),
        "serving": _serving(report.serving) if report.serving is not None else None,
        **({"phases": _phases(report.phases)} if report.phases is not None else {}),
        **({"stages": [_bytes(stage) for stage in report.stages]} if report.stages else {}),
        "support": _support(report.support) if report.support is not None else None,
        "settings": report.settings.model_dump(mode="json"),
        "notes": [render(note, "en") for note in report.notes],
        "checks": [check_as_json(check) for check in report.checks],
    }


def check_as_json(check: Check) -> dict[str, Any]:
    """Return what one rule says as plain data."""
    return {
        "rule": check.rule,
        "verdict": check.verdict,
        "because": render(check.message, "en"),
        "remedy": render(check.remedy, "en") if check.remedy is not None else None,
        "missing": list(check.missing),
        "source": check.source,
    }


def roofs_as_json(roofs: Roofs) -> dict[str, Any]:
    """Return the operators of a step as plain data: ``time.roofline`` of ``estimate --json --ops``.

    FLOP, bytes and seconds are of all runs of an operator in one step on one GPU.
    """
    return {
        "gpu": roofs.gpu,
        "bandwidth_bytes_per_s": roofs.bandwidth.value,
        "peaks": {peak.name: peak.fact.value for peak in roofs.peaks.values()},
        "floor_seconds": roofs.floor,
        "classes": roofs.classes,
        "points": [
            {
                "name": point.name,
                "class": point.group,
                "stage": point.stage,
                "dtype": point.dtype,
                "shape": list(point.shape),
                "flops": point.flops,
                "bytes": point.bytes,
                "seconds": point.seconds,
                "runs": point.runs,
                "bound": point.bound,
            }
            for point in roofs.points
        ],
        "other_seconds": roofs.rest,
    }


def _phases(phases: Phases) -> dict[str, int | str]:
    """Return the highest allocated bytes of each phase of a step, and the phase of the peak."""
    figures = {f"{name}_bytes": getattr(phases, name) for name in ("write", "score", "update")}
    return {**figures, "peak": phases.highest}


def _support(support: Support) -> dict[str, str]:
    return {
        "state": support.state,
        "because": render(support.because, "en"),
        "source": support.source,
    }


def _likely(report: Report) -> list[int] | None:
    """Return the range of the device's use over the likely recipes."""
    if report.likely_bytes is None:
        return None
    return [round(report.memory.device_used.value), round(report.likely_bytes)]


def _memory(memory: MemoryEstimate) -> dict[str, Any]:
    figures = {
        "allocated_peak_bytes": memory.allocated_peak,
        "reserved_peak_bytes": memory.reserved_peak,
        "device_used_bytes": memory.device_used,
        "device_used_p95_bytes": memory.device_used_p95,
        "device_total_bytes": memory.device_total,
        "free_bytes": memory.free,
    }
    return {
        **{name: _bytes(quantity) for name, quantity in figures.items()},
        "out_of_memory": memory.out_of_memory,
        "host_bytes": _bytes(memory.host) if memory.host is not None else None,
        "terms": _terms(memory),
        "kinds": {name: quantity.kind.value for name, quantity in figures.items()},
    }


def _serving(serving: Serving) -> dict[str, Any]:
    served, limits = serving.served, serving.limits
    shape, weights = served.shape, served.weights
    return {
        "engine": served.engine.id,
        "gpus": served.split.gpus if served.split is not None else 1,
        "tensor_degree": served.tensor.gpus if served.tensor is not None else None,
        "copies": served.copies,
        "kv_cache": served.dtype,
        "context": serving.context,
        "concurrent": serving.concurrent,
        "attention": shape.attention if shape else None,
        "layers": shape.counted() if shape else None,
        "windows": list(shape.windows) if shape else None,
        "kv_bytes_per_token": served.token_bytes,
        "kv_bytes_per_token_beyond_windows": served.lasting_token_bytes,
        "kv_bytes": serving.cache_bytes,
        "kv_bytes_by_engine": serving.views,
        "weight_bytes": weights.nbytes if weights else None,
        "bits_per_weight": weights.bits_each if weights else None,
        "prefill_peak_bytes": serving.prefill_bytes,
        "decode_end_bytes": serving.decode_bytes,
        "running_at_once": serving.running,
        "taken_at_start_bytes": serving.taken_bytes,
        "kv_tokens_left": serving.tokens_left,
        "largest_context": limits.largest_context if limits else None,
        "most_concurrent": limits.most_concurrent if limits else None,
    }


def _terms(memory: MemoryEstimate) -> list[dict[str, Any]]:
    """Return the terms in whole bytes, which sum to the allocated peak."""
    return [{"name": part.role or part.name.id, "bytes": _bytes(part)} for part in memory.terms]


def _bytes(quantity: Quantity) -> int | None:
    return round(quantity.value) if math.isfinite(quantity.value) else None


def _time(time: TimeEstimate, *, serves: bool) -> dict[str, Any]:
    step, rate = time.step_seconds, time.samples_per_second
    interval = rate.interval if rate is not None else None
    return {
        "step_seconds": _number(step),
        "samples_per_second": _number(rate),
        "tokens_per_second": _number(time.tokens_per_second),
        "epoch_seconds": _number(time.epoch_seconds),
        "run_seconds": _number(time.run_seconds),
        "interval90": [interval.low, interval.high] if interval is not None else None,
        "bottleneck": time.bottleneck,
        "not_predicted": render(time.refusal, "en") if time.refusal is not None else None,
        "stages": [
            {
                "name": stage.name,
                "seconds": _number(stage.seconds),
                "hidden": stage.hidden,
                "busy_seconds": stage.works,
                "lane": lane_of(stage),
            }
            for stage in time.stages
        ],
        **(_speed(time.serving) if serves else {}),
        "scaling": [
            {
                "gpus": point.gpus,
                "samples_per_second": _number(point.samples_per_second),
                "efficiency": _number(point.efficiency),
                "effective_batch": point.effective_batch,
                "fits": point.fits,
            }
            for point in time.scaling
        ],
        "pipeline": pipeline_as_json(time.pipeline) if time.pipeline is not None else None,
        **(_compiling(time.compiling) if time.compiling is not None else {}),
        "kinds": {
            "step_seconds": step.kind.value if step is not None else None,
            "samples_per_second": rate.kind.value if rate is not None else None,
        },
    }


def _speed(serving: ServingTime | None) -> dict[str, Any]:
    """Return the figures of serving, each with its 90 % interval; None of all where no time is."""
    figures: dict[str, Quantity | None] = {
        "first_token_seconds": serving.first_token if serving else None,
        "first_token_all_seconds": serving.first_token_all if serving else None,
        "tokens_per_second_per_request": serving.per_request if serving else None,
        "decode_tokens_per_second": serving.together if serving else None,
    }
    intervals = {
        name: figure.interval for name, figure in figures.items() if figure and figure.interval
    }
    return {
        **{name: _number(figure) for name, figure in figures.items()},
        "serving_interval90": {name: [one.low, one.high] for name, one in intervals.items()},
        "decode_limit": serving.limit if serving else None,
    }


def _compiling(found: Compiling) -> dict[str, Any]:
    steps = found.steps
    return {
        "compile_seconds": _number(found.seconds),
        "compile_pays_back_steps": None if steps is None else math.ceil(steps),
    }


def _number(quantity: Quantity | None) -> float | None:
    if quantity is None or not math.isfinite(quantity.value):
        return None
    return float(quantity.value)
