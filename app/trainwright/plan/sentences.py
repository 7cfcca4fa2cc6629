"""The answer to a plan in sentences and rows, for whoever prints it."""

from collections.abc import Iterator
from pathlib import Path

from trainwright.estimate.input.inputs import Pipeline
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.messages.keys import key_name, value_name
from trainwright.plan.evaluate import Facts
from trainwright.plan.judging import loader_bytes
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.plan.serving import SHARE_SMALL
from trainwright.profile.presets import presets
from trainwright.workload.meaning import meaningful


def verdict(report: Report) -> Message:
    """Return the verdict as a sentence with its figures."""
    memory = report.memory
    if memory.host is not None and memory.host.value > (report.host_total or float("inf")):
        return Message.of("cli.verdict.no-host", need=memory.host.value, has=report.host_total)
    need = loader_bytes(report.time) + (memory.host.value if memory.host is not None else 0.0)
    if need > (report.host_total or float("inf")):
        return Message.of("cli.verdict.no-loader", need=need, has=report.host_total)
    refused = next((note for note in report.notes if note.id == SHARE_SMALL), None)
    if refused is not None and report.verdict is Verdict.NO:
        total, used = memory.device_total.value, memory.device_used.value
        values = {name: refused.values[name] for name in ("engine", "share")}
        return Message.of("cli.verdict.no-share", used=used, total=total, **values)
    serving = report.serving
    if serving is not None and report.verdict is Verdict.QUEUES:
        values = {"running": serving.running, "requests": serving.concurrent}
        engine, total = serving.served.engine.id, memory.device_total.value
        taken = serving.taken_bytes
        return Message.of("cli.verdict.queues", engine=engine, taken=taken, total=total, **values)
    left = memory.device_total.value - memory.device_used_p95.value
    over = "-over" if report.verdict is Verdict.TIGHT and left < 0 else ""
    return Message.of(
        f"cli.verdict.{report.verdict.value}{over}",
        used=memory.device_used.value,
        p95=memory.device_used_p95.value,
        total=memory.device_total.value,
        left=abs(left),
    )


def memory_totals(report: Report) -> tuple[Quantity, ...]:
    """Return what is allocated, reserved and used, and what the device and the host have."""
    memory = report.memory
    device = (memory.device_used, memory.device_used_p95, memory.device_total)
    host = (memory.host,) if memory.host is not None else ()
    return (memory.allocated_peak, memory.reserved_peak, *device, *host)


def times(report: Report) -> tuple[Quantity, ...]:
    """Return a step, rates, an epoch and a run, as far as they are known."""
    time = report.time
    rates = (time.step_seconds, time.samples_per_second, time.tokens_per_second)
    found = (*rates, time.epoch_seconds, time.run_seconds)
    return tuple(each for each in found if each is not None)


def unpredicted_notes(report: Report) -> tuple[Message, ...]:
    """Return the notes, less the one on the time that stands in the time's place."""
    return tuple(note for note in report.notes if note != report.time.refusal)


def scaling_rows(
    report: Report,
) -> tuple[tuple[tuple[Quantity, Quantity, Quantity, Quantity], Message | str], ...]:
    """Return (GPUs, effective batch, rate, efficiency) and what is wrong, of 1 to all GPUs."""
    return tuple(
        (
            (
                *(_count("gpus", each.gpus), _count("batch", each.effective_batch)),
                *(each.samples_per_second, each.efficiency),
            ),
            "" if each.fits else Message.of("cli.scaling.too-few"),
        )
        for each in report.time.scaling
    )


def _count(name: str, value: int) -> Quantity:
    return Quantity(Message.of(f"cli.scaling.{name}"), value, Unit.COUNT, Kind.YOURS)


def pipeline_rows(pipeline: Pipeline) -> Iterator[tuple[Message, Message | Quantity]]:
    """Yield what each stage of the input passes on, the slowest, and what would help."""
    for name, rate in pipeline.stages:
        stage = Message.of(f"pipeline.stage.{name}")
        yield stage, rate if rate is not None else Message.of("pipeline.cannot-check")
    slowest = Message.of(f"pipeline.stage.{pipeline.bottleneck}")
    yield Message.of("cli.estimate.input-limit"), slowest
    if (loader := pipeline.recommended) is not None:
        value = Message.of("cli.estimate.loader-value", workers=loader.num_workers,
                           prefetch=loader.prefetch_factor, memory=loader.host_bytes)  # fmt: skip
        yield Message.of("cli.estimate.loader"), value


def bottleneck(report: Report) -> Message:
    """Return what limits the speed."""
    name = report.time.bottleneck
    return Message.of(f"cli.bottleneck.{name}" if name is not None else "time.not-predicted")


def about(plan: Plan, facts: Facts) -> tuple[str | Message, ...]:
    """Return what a plan is about: model, task, length of a sample where it has one, GPUs."""
    tokens = facts.inputs.sequence_length
    length = (Message.of("export.page.tokens", count=tokens),) if tokens else ()
    return model_name(plan), value_name("task", plan.workload.task), *length, facts.machine.named


def settings_of(plan: Plan, report: Report) -> tuple[tuple[str, str | Message, str | Message], ...]:
    """Return (key, what it is called, its value) of the settings that mean something here."""
    return tuple(
        (key, key_name(key) or key, _said(value_name(key, value)))
        for key, value in meaningful(report.settings, plan.workload).items()
        if value is not None
    )


def _said(value: object) -> str | Message:
    return value if isinstance(value, Message) else str(value)


def model_name(plan: Plan) -> str:
    """Return what the plan's model is called."""
    source = plan.model
    if source.preset is not None:
        known = presets().get(source.preset)
        return known.name if known else source.preset
    if source.hf is not None:
        parts = source.hf.replace("\\", "/").split("/")
        folders = [part for part in parts if part != "config.json" and ".safetensors" not in part]
        return folders[-1] if folders else source.hf
    if source.pt2 is not None:
        return Path(source.pt2).name
    return source.timm or (source.python.factory if source.python else "")
