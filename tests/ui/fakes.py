"""A core that answers at once with made-up figures, so that screens can be tried without profiles.

The plan's machine, defaults and edits are real; only profile, memory and time are invented.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from trainwright.advise.advice import Advice, Choice, Point, Reason, Relaxation
from trainwright.advise.whatif import whatifs
from trainwright.build.answer import Part, Step
from trainwright.data import resources
from trainwright.diagnose.memory_remedies import Help, help_for
from trainwright.diagnose.outofmemory import Explanation
from trainwright.estimate.memory.breakdown import Curve
from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.time.roofpoints import Peak, RoofPoint, Roofs
from trainwright.estimate.time.steptime import Stage, TimeEstimate
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.machine.resolve import catalogued
from trainwright.messages import Message, UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.effective import in_force
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.prices import Total
from trainwright.probe.benchmark import Choices, Cost, Name, Outcome
from trainwright.probe.host import Host
from trainwright.probe.measurements import Kept, Measurement
from trainwright.probe.reading import Missing
from trainwright.probe.sample import (
    Activity,
    GpuProcess,
    GpuSample,
    HostSample,
    Sample,
    SliceSample,
    Throttle,
)
from trainwright.probe.snapshot import Snapshot
from trainwright.profile.profile import OpTable, Profile
from trainwright.ui.columns import kind_of
from trainwright.ui.core import Core
from trainwright.ui.glance import Glance
from trainwright.ui.inspection import records_of
from trainwright.ui.measuring import Measuring
from trainwright.workload.defaults import filled

GIB = 1 << 30
LAYERS = 32
EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")


def core(state: str = "fits", *, failing: Message | None = None, **others: Any) -> Core:
    """Return a core whose answers have the wanted verdict for the plan as opened."""
    scale = {"fits": 1.0, "tight": 1.14, "no": 1.4}[state]

    def resolve(plan: Plan) -> Facts:
        if failing is not None:
            raise UserError(failing)
        machine = catalogued(plan.machine).machine
        settings = filled(in_force(plan), plan.workload, machine.gpu.record, machine.gpu_count)
        return Facts(machine, settings, _profile(), plan.workload.inputs, ())

    def evaluate(plan: Plan, facts: Facts) -> Report:
        return report(plan, facts, scale)

    def advise(plan: Plan, facts: Facts, *, alone: bool = False) -> Advice:
        return advice(plan, facts, evaluate)

    def what_if(plan: Plan, facts: Facts, before: Report, wanted: Callable[[], bool]) -> Any:
        def answer(changed: Plan) -> Report:
            return evaluate(changed, resolve(changed))

        return whatifs(plan, facts, before, answer=answer, wanted=wanted)

    def help(explanation: Explanation, plan: Plan) -> Help:
        def answer(changed: Plan) -> Report:
            return evaluate(changed, resolve(changed))

        return help_for(explanation, plan, resolve(plan), answer)

    wanted: dict[str, Any] = {
        "resolve": resolve,
        "evaluate": evaluate,
        "operators": lambda _plan, facts: operators(facts),
        "whatifs": what_if,
        "look": lambda plan, facts, _before: evaluate(plan, facts),
        "advise": advise,
        "help": help,
        "glances": glances,
        "builds": builds,
        "upgrades": lambda *_: SimpleNamespace(upgrades=(), before=True, notes=(), declined=()),
        "snapshot": snapshot,
        "framework": lambda: Missing(Message.of("probe.torch-cpu")),
        "examples": lambda: [EXAMPLE],
        "measuring": measuring,
        "reader": lambda: live,
    }
    return Core(**(wanted | others))


CARDS = (
    (2, "rtx-3090", 2_700_000, 40.0, 900.0),
    (1, "rtx-3090", 1_900_000, 66.0, 520.0),
    (1, "rtx-4060-ti-16gb", 1_500_000, 130.0, 310.0),
)
"""(count, card, won, hours, watts) of what a made-up planner finds; dollars are a thousandth."""


def builds(plan: Plan, budget: float, currency: str) -> Any:
    """Return builds within the budget, each around real parts."""
    unit = 1.0 if currency == "KRW" else 1e-3
    found = [_candidate(plan, card, currency, unit) for card in CARDS]
    within = [one for one in found if one.total.expected <= budget]
    front = [
        SimpleNamespace(gpu=id, count=count, price=won * unit, seconds=hours * 3600, watts=watts,
                        within=won * unit <= budget, candidate=one)
        for (count, id, won, hours, watts), one in zip(CARDS, found, strict=True)
    ]  # fmt: skip
    return SimpleNamespace(
        builds=tuple(within), front=tuple(front), cheapest=None if within else found[-1],
        currency=currency, notes=(Message.of("ui.fit.already"),), considered=12_345,
    )  # fmt: skip


def _candidate(plan: Plan, card: Any, currency: str, unit: float) -> Any:
    count, id, won, hours, watts = card
    machine = {
        "gpus": [{"id": id, "count": count}], "cpu": "ryzen-9-7950x",
        "memory": [{"id": "crucial-pro-ddr5-5600-cl46-2x32gb"}],
        "drives": [{"id": "samsung-990-pro-2tb"}], "psu": "be-quiet-straight-power-12-1200w",
    }  # fmt: skip
    choice = type(plan.machine).model_validate(machine)
    parts = [
        Part(kind_of(record), record.id, record.name, number, None,
             sum(record.id in text for text in plan.limits.wishes.owned))
        for record, number in records_of(choice)
    ]  # fmt: skip
    seconds = Quantity(Message.of("time.run"), hours * 3600, Unit.SECONDS, Kind.ESTIMATED)
    total_ = Total(currency, won * unit * 0.8, won * unit, won * unit * 1.4, ("some-case",))
    return SimpleNamespace(
        plan=plan.model_copy(update={"machine": choice}), parts=tuple(parts), total=total_,
        report=SimpleNamespace(time=SimpleNamespace(run_seconds=seconds)), checks=(), warnings=(),
        wall_watts=watts, bottleneck=Message.of("ui.fit.already"), rate=None,
        doubt=None, thrift=None, others=(), run=seconds,
        next_step=Step(Message.of("ui.fit.done"), more=8e5 * unit, price=35e5 * unit, gain=0.6),
    )  # fmt: skip


def glances(_plan: Plan, ids: Sequence[str]) -> Iterator[Glance]:
    """Every model takes a third of the card, but those of 8 B fill it."""
    for id in ids:
        if id == "llama-3.1-8b":
            yield Glance(id, Verdict.NO, 30 * GIB, 24 * GIB)
        else:
            yield Glance(id, Verdict.FITS, 8 * GIB, 24 * GIB)


def snapshot() -> Snapshot:
    host = Host("linux", "Debian 12", "AMD Ryzen 9 7950X", 32, 64 * GIB)
    return Snapshot(host, Missing(Message.of("probe.no-driver")))


DRIVE = Measurement(
    "drive.read.seq1m-q8t1", 7.1e9, Unit.BYTES_PER_SECOND, "Samsung SSD 990 PRO 2TB",
    "2026-03-01T10:20:30+00:00", versions={"fio": "3.36"},
)  # fmt: skip


def measuring(**others: Any) -> Measuring:
    """Nothing is measured; a drive was."""

    def cost(name: Name, _choices: Choices) -> Cost:
        return Cost(47.2, GIB if name == "disk" else 0, GIB)

    wanted: dict[str, Any] = {
        "cost": cost,
        "run": lambda *_: Outcome(()),
        "kept": lambda: Kept((DRIVE,)),
        "interpreter": lambda: "python",
        "home": Path("/data"),
    }
    return Measuring(**(wanted | others))


def live() -> Sample:
    """Return a moment of a computer with two GPUs, one of them divided and one too hot."""
    at = time.monotonic()
    unknown = Missing(Message.of("probe.not-supported"))
    common: dict[str, Any] = {
        "memory_used": 20 * GIB,
        "memory_total": 24 * GIB,
        "temperature_c": 71.0,
        "power_limit_w": 450.0,
        "sm_clock_mhz": 2610.0,
        "pcie_generation": 4,
        "pcie_width": 16,
        "processes": (GpuProcess(4242, "python", 19 * GIB), GpuProcess(7, unknown, unknown)),
    }
    hot: frozenset[Throttle] = frozenset({"thermal", "power-cap", "hardware-slowdown"})
    slices = (
        SliceSample(0, "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 8 * GIB, 39 * GIB, Activity(0.6)),
        SliceSample(2, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", unknown, unknown),
    )
    gpus = (
        GpuSample(0, "NVIDIA GeForce RTX 4090", 0.6, power_w=268.0, throttle=hot, **common),
        GpuSample(1, "NVIDIA H100 80GB HBM3", unknown, slices=slices, mig=True, **common),
    )
    host = HostSample(0.4, (0.4,) * 16, 41 * GIB, 64 * GIB, disk_read=3e8, pressure_io=0.02)
    return Sample(at, time.time(), host, gpus)


def _profile() -> Profile:
    none = np.zeros((0, 6), dtype=np.int64)
    table = OpTable((), (), (), (), none, none, none, np.zeros((0, 7, 6), dtype=np.int64))
    model = {"parameters": 8_030_261_248, "layers": LAYERS, "vocabulary": 128_256}
    fields = {
        "sizes": none,
        "segments": {},
        "ops": table,
        "category": {},
        "model": model,
        "assumptions": {},
        "kernels": {},
        "versions": {},
        "exact": True,
        "points": ((2, 2048),),
    }
    names = {name for name in Profile.__dataclass_fields__}
    return Profile(**{k: v for k, v in fields.items() if k in names})


def quantity(
    id: str, value: float, unit: Unit = Unit.BYTES, kind: Kind = Kind.ESTIMATED, **more: Any
) -> Quantity:
    return Quantity(Message.of(id), value, unit, kind, **more)


def report(plan: Plan, facts: Facts, scale: float) -> Report:
    memory = _memory(plan, facts, scale)
    used, limit = memory.device_used.value, memory.device_total.value
    if used > limit:
        verdict = Verdict.SPILLS if plan.machine.system == "windows" else Verdict.NO
    else:
        fits = memory.device_used_p95.value <= limit * 0.98
        verdict = Verdict.FITS if fits else Verdict.TIGHT
    notes = (
        Message.of("plan.note.mixed-gpus", gpu="Pro WS X570-ACE"),
        Message.of("plan.note.assumption", question="item = 0.5", times=2),
    )
    return Report(verdict, memory, _time(plan, facts), facts.settings, notes)


def _memory(plan: Plan, facts: Facts, scale: float) -> MemoryEstimate:
    settings = facts.settings
    length = plan.workload.inputs.sequence_length or 1024
    tokens = settings.micro_batch * length / 4096
    checkpointed = settings.checkpointing != "none"
    weights = 14.96 * (0.29 if plan.workload.task == "qlora" else 1.0) * scale
    names = {
        "parameters": weights,
        "logits": 2.93 * tokens,
        "activations": (1.0 if checkpointed else 9.0) * tokens,
        "temporaries": 0.35 * tokens,
        "workspaces": 0.31,
        "optimizer": 0.10,
        "gradients": 0.08,
        "rounding": 0.02,
    }
    terms = tuple(
        sorted((_term(name, gib * GIB) for name, gib in names.items()), key=lambda t: -t.value)
    )
    allocated = replace(
        total(Message.of("memory.allocated"), terms, role="allocated"),
        interval=Interval(0.97 * sum(t.value for t in terms), 1.03 * sum(t.value for t in terms)),
    )
    cached = quantity("memory.cached", 0.39 * GIB, role="cached")
    reserved = total(Message.of("memory.reserved"), (allocated, cached), role="reserved")
    context = quantity(
        "memory.context",
        0.49 * GIB,
        kind=Kind.ASSUMED,
        role="context",
        interval=Interval(0.42 * GIB, 0.6 * GIB),
    )
    used = total(
        Message.of("memory.used"), (reserved, context, facts.machine.gpu.held), role="used"
    )
    margin = quantity("memory.margin", 0.04 * used.value, kind=Kind.ASSUMED, role="margin")
    card = facts.machine.gpu.total
    return MemoryEstimate(
        allocated_peak=allocated,
        reserved_peak=reserved,
        device_used=used,
        device_used_p95=quantity(
            "memory.used-p95", used.value * 1.04, formula="use + 1.645·σ", parts=(used, margin)
        ),
        device_total=card,
        free=quantity(
            "memory.free",
            card.value - used.value,
            formula="total − use",
            parts=(card, used),
            role="free",
        ),
        out_of_memory=used.value > card.value,
        curve=_curve(terms),
        derivation=quantity("memory.allocated", allocated.value, parts=terms),
    )


def _term(name: str, value: float) -> Quantity:
    if name != "logits":
        return quantity(f"memory.term.{name}", value, formula="a + b·B", role=name)
    count = Unit.COUNT
    factors = (
        quantity("ui.key.micro_batch", 2, count, Kind.YOURS),
        quantity("ui.key.sequence_length", 2048, count, Kind.YOURS, source="plan"),
        quantity(
            "ui.form.parameters.vocabulary", 128_256, count, Kind.QUOTED, source="config.json"
        ),
    )
    halves = tuple(
        quantity(f"memory.term.{name}", value * share, formula=formula, parts=factors)
        for share, formula in ((0.25, "2·B·S·V"), (0.5, "4·B·S·V"), (0.25, "2·B·S·V"))
    )
    return quantity("memory.term.logits", value, parts=halves, formula="8·B·S·V", role=name)


def _curve(terms: tuple[Quantity, ...]) -> Curve:
    n, fwd, head = 3000, 1000, 1150
    t = np.arange(n)
    rise = np.clip(np.floor(t / (fwd / LAYERS)) / LAYERS, 0, 1)
    fall = np.clip(1 - np.floor((t - head) / ((n - 40 - head) / LAYERS)) / LAYERS, 0, 1)
    saw = (t % 60) / 60
    shapes = {
        "activations": np.where(t < fwd, rise, np.where(t < head, 1, fall)),
        "logits": np.select(
            [t < fwd, t < fwd + 30, t < fwd + 60, t < fwd + 90, t < head],
            [0, 0.25, 0.75, 1.0, 0.5],
            0.0,
        ),
        "temporaries": np.where(t < fwd, 0.4 * saw, np.where(t < head, 0.1, saw * 1.5)),
        "gradients": np.clip((t - head) / (n - head), 0, 1),
    }
    live = [term.value * shapes.get(term.role, np.ones(n)) for term in terms]
    phases = (("forward", 0, fwd), ("backward", fwd, n - 40), ("optimizer", n - 40, n))
    return Curve(
        t.astype(np.int64), np.stack(live).astype(np.int64), tuple(t.role for t in terms), phases
    )


def _time(plan: Plan, facts: Facts) -> TimeEstimate:
    settings = facts.settings
    samples = plan.workload.effective_batch or 1
    slow = 1.24 if plan.workload.task == "qlora" else 1.0
    each = {"forward": 0.264, "backward": 0.29, "optimizer": 0.0004}
    if settings.checkpointing != "none":
        each = {"forward": 0.264, "recompute": 0.26, "backward": 0.29, "optimizer": 0.0004}
    each |= {"load": 0.02, "decode": 0.106, "transfer": 0.004}
    stages = tuple(
        Stage(
            name,
            quantity(
                f"time.stage.{name}",
                seconds * samples * slow,
                Unit.SECONDS,
                role=name,
                formula="Σ n · max(FLOP / (peak · e), bytes / (bandwidth · m))",
            ),
            name in ("load", "decode", "transfer"),
        )
        for name, seconds in each.items()
    )
    step = sum(s.seconds.value for s in stages if not s.hidden)
    wide = Interval(0.75 * samples / step, 1.25 * samples / step)
    rate = quantity("time.samples", samples / step, Unit.SAMPLES_PER_SECOND, interval=wide)
    length = plan.workload.inputs.sequence_length
    run = epoch = None
    if plan.workload.samples:
        once = plan.workload.samples * step / samples
        epoch = quantity(
            "time.epoch", once, Unit.SECONDS, interval=Interval(once * 0.8, once * 1.3)
        )
    if plan.workload.samples and plan.workload.epochs:
        whole = plan.workload.samples * plan.workload.epochs / (samples / step)
        run = quantity("time.run", whole, Unit.SECONDS, interval=Interval(whole * 0.8, whole * 1.3))
    fields: dict[str, Any] = {
        "step_seconds": quantity(
            "time.step",
            step,
            Unit.SECONDS,
            parts=tuple(s.seconds for s in stages),
            interval=Interval(step * 0.8, step * 1.3),
        ),
        "samples_per_second": rate,
        "tokens_per_second": replace(rate, value=rate.value * length, unit=Unit.TOKENS_PER_SECOND)
        if length
        else None,
        "run_seconds": run,
        "epoch_seconds": epoch,
        "bottleneck": "gpu",
        "stages": stages,
        "notes": (),
    }
    known = TimeEstimate.__dataclass_fields__
    return TimeEstimate(**{k: v for k, v in fields.items() if k in known})


def operators(facts: Facts) -> Roofs | None:
    """Return operators of every bound, some without products; None of a GPU of unknown speed."""
    record = facts.machine.gpu.record
    if "fp32" not in record.flops:
        return None
    bandwidth, peak = record.bandwidth_bytes_per_s, next(iter(record.flops.values()))
    rows = (
        ("aten.mm.default", "gemm", "forward", 9e12, 2e10, 0.09, 64, "compute"),
        ("aten.mm.default", "gemm", "backward", 18e12, 5e10, 0.19, 128, "compute"),
        ("aten.bmm.default", "batched-gemm", "backward", 1e11, 4e9, 0.02, 64, "memory"),
        ("aten._scaled_dot_product_flash_attention.default", "attention", "forward",
         2e12, 9e9, 0.04, 32, "compute"),
        ("aten.convolution_backward.default", "convolution", "backward",
         4e11, 6e9, 0.03, 32, "compute"),
        ("aten.mul.Tensor", "pointwise", "forward", 0.0, 6e10, 0.07, 640, "memory"),
        ("aten._to_copy.default", "cast", "backward", 0.0, 4e10, 0.05, 700, "memory"),
        ("aten.native_layer_norm.default", "layer-norm", "forward", 0.0, 9e9, 0.01, 65, "memory"),
        ("aten._softmax.default", "softmax", "backward", 0.0, 7e9, 0.01, 3, "memory"),
        ("aten.sum.dim_IntList", "reduction", "backward", 0.0, 1e6, 0.004, 800, "launch"),
        ("aten._fused_adam_.default", "fused-optimizer", "optimizer", 0.0, 5e9, 0.006, 1, "memory"),
        ("aten.sort.default", "other", "forward", 0.0, 1e7, 0.002, 3, "launch"),
    )  # fmt: skip
    points = tuple(
        RoofPoint(
            *(name, row, group, stage, "bfloat16"),
            *((4096, 4096, 14336) if flops else (), flops, moved, seconds),
            compute=seconds if bound == "compute" else flops / peak.value,
            memory=moved / bandwidth.value,
            runs=runs,
            bound=bound,
        )
        for row, (name, group, stage, flops, moved, seconds, runs, bound) in enumerate(rows)
    )
    taken: dict[tuple[str, str], float] = {}
    for point in points:
        where = point.stage, point.group
        taken[where] = taken.get(where, 0.0) + point.seconds
    return Roofs(
        gpu=record.name,
        bandwidth=bandwidth,
        peaks={"bfloat16": Peak("bf16", peak), "float32": Peak("fp32", record.flops["fp32"])},
        floor=5e-6,
        points=points,
        rest=0.0,
        taken=taken,
        curves={"gemm": tuple((10.0**n, 1 - 0.8 ** (n - 5)) for n in range(6, 15))},
        source="made up",
        work=sum(point.flops for point in points) / peak.value,
    )


def advice(plan: Plan, facts: Facts, evaluate: Callable[[Plan, Facts], Report]) -> Advice:
    """Return two choices that fit, or the change that would."""
    batch = plan.workload.effective_batch or 1
    choices = []
    for micro, checkpointing in ((1, "full"), (1, "none")):
        settings = facts.settings.model_copy(
            update={"micro_batch": micro, "accumulation": batch, "checkpointing": checkpointing}
        )
        found = evaluate(plan, replace(facts, settings=settings))
        if found.fits:
            choices.append(Choice(settings, found, _reasons(settings)))
    points = tuple(
        Point(
            facts.settings.model_copy(update={"micro_batch": micro}),
            60 - 3 * micro,
            int((16 + 1.4 * micro) * GIB),
            micro < 5,
        )
        for micro in (1, 2, 4, 8)
    )
    smaller = with_keys(plan, {"workload.inputs.sequence_length": 512})
    relaxed = Relaxation(
        Message.of("advise.relax.task", task="lora", used=9 * GIB, total=24 * GIB), smaller
    )
    return Advice(
        choices=tuple(choices),
        pareto=points if choices else (),
        nothing_fits=() if choices else (relaxed,),
        notes=(Message.of("plan.note.mixed-gpus", gpu="Pro WS X570-ACE"),),
        considered=512,
        short_by_bytes=None if choices else 2.1 * GIB,
    )


def _reasons(settings: Any) -> tuple[Reason, ...]:
    because = Message.of("advise.micro.fastest", micro=settings.micro_batch, following=2)
    return (
        Reason("micro_batch", settings.micro_batch, because, "estimate", because),
        Reason("checkpointing", settings.checkpointing, because, "estimate"),
        Reason("optimizer", settings.optimizer, because, "estimate"),
    )


def file_in(folder: Path, text: str, name: str = "a.plan.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
