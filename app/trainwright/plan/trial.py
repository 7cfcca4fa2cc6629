"""A plan's step made ready to be run on this computer, with what is expected of it.

On a GPU the step is run as the plan says. On the CPU it is run in fp32, without torch.compile
and without moving activations: autocast has other lists of operators there, and there is nowhere to
move to. What is compared is the prediction of that very step.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.catalog import Fact, GpuRecord
from trainwright.estimate import correction
from trainwright.estimate.correction import Correction
from trainwright.estimate.memory.livebytes import live_peak_bytes
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.messages import Message, UserError
from trainwright.plan.effective import in_force
from trainwright.plan.evaluate import Facts, evaluate, resolve, stored
from trainwright.plan.schema import MachineChoice, Plan
from trainwright.plan.trace_request import question
from trainwright.profile import interpreter, store
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec
from trainwright.worker import client
from trainwright.workload import FullSettings, Inputs
from trainwright.workload.defaults import filled
from trainwright.workload.settings import Loader

Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]
Device = Literal["cpu", "cuda"]
STEPS = 10
"""Timed steps unless another number is asked for; assumed."""
SECONDS = 900.0
"""Time limit unless another is given; assumed."""
MOST_MICRO_BATCHES: dict[Device, int] = {"cpu": 2, "cuda": 16}
"""Micro-batches that are run of a step; the others repeat the second. Assumed: patience."""
LOOK_S = 120.0
"""Seconds until the interpreter must have said what there is to run on; assumed."""
LIVE_SPREAD = 0.02
"""Half of the interval of living bytes on a CPU, relative: what its kernels take for themselves;
assumed, and checked by tests/accuracy/test_verify.py."""
PROCESS = (300 << 20, 500 << 20, 1400 << 20)
"""What a training process holds beside its tensors: low, middle, high; assumed."""
OF_STEP = ("adamw", "sgd", "adafactor", "muon")
"""Optimizers that run on a CPU; the others are of libraries with CUDA kernels alone."""
BARE = GpuRecord(
    id="cpu",
    name="CPU",
    vendor="Intel",
    segment="consumer",
    architecture="",
    memory_bytes=Fact(value=0, source="none", confidence="low"),
    bandwidth_bytes_per_s=Fact(value=0, source="none", confidence="low"),
)
"""Stands where the record of a GPU would; nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Here:
    """What this computer runs a step on, in the chosen interpreter."""

    device: Device
    name: str
    available_bytes: int | None
    """Of the system's memory, free now; None where nobody says."""
    torch: str
    driver: str
    total_bytes: int | None = None
    """Of the GPU's memory."""

    @property
    def id(self) -> str:
        """The name under which corrections are kept."""
        return self.name if self.device == "cuda" else f"cpu {self.name}".strip()


@dataclass(frozen=True, slots=True)
class Limits:
    """What the child may take."""

    seconds: float = SECONDS
    memory_bytes: int | None = None
    """Of the system's memory; None for most of what is free."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks of a run."""

    steps: int = STEPS
    limits: Limits = Limits()
    folder: str | None = None
    """Where a trace goes; None for none."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected; None where nothing is, for the reason beside it."""

    allocated: Quantity
    device_used: Quantity
    reserved: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan's step, ready to be run here."""

    plan: Plan
    here: Here
    settings: FullSettings
    """Of the step that is run."""
    spec: TraceSpec
    inputs: Inputs
    predicted: Prediction
    notes: tuple[Message, ...]
    profile: Profile
    facts: Facts | None = None
    """On a GPU."""

    @property
    def length(self) -> int:
        """Tokens a sample; 0 where the model has no sequence."""
        return self.inputs.sequence_length or 0

    @property
    def micro_batches(self) -> int:
        """Micro-batches that are run of each step."""
        return min(self.settings.accumulation, MOST_MICRO_BATCHES[self.here.device])

    @property
    def digest(self) -> str:
        """What tells this step from others, not what it is called."""
        parts = [self.spec.document(), self.inputs.model_dump(), self.settings.model_dump()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def look(on: str = "auto") -> Here:
    """Return what there is to run on; ``on`` is auto, cpu or cuda.

    Raises:
        UserError: the interpreter has no torch that fits, or no GPU where one is asked for.
    """
    python = interpreter.tracing()
    found = client.run("verify", {"look": True}, interpreter=python.path, timeout_s=LOOK_S)
    device = found.get("device")
    if device not in ("cpu", "cuda") or (on == "cuda" and device == "cpu"):
        raise UserError.of("verify.no-cuda", interpreter=python.path)
    chosen: Device = "cpu" if on == "cpu" or device == "cpu" else "cuda"
    available = found.get("available_bytes")
    return Here(
        device=chosen,
        name=_name(chosen, str(found.get("name") or "")),
        available_bytes=available if isinstance(available, int) else None,
        torch=python.version("torch") or "",
        driver=_driver() if chosen == "cuda" else "",
        total_bytes=found.get("total_bytes") if chosen == "cuda" else None,
    )


def _name(device: Device, said: str) -> str:
    """Return the GPU's id in the catalog, or the processor's name."""
    from trainwright.catalog.query import find_gpu
    from trainwright.probe import host  # loads what estimates do without

    if device == "cuda":
        try:
            return find_gpu(said).record.id
        except UserError:
            return said
    cpu = host.read().cpu
    return cpu if isinstance(cpu, str) else ""


def _driver() -> str:
    from trainwright.probe import nvml

    driver = getattr(nvml.read(), "driver", "")
    return driver if isinstance(driver, str) else ""


def prepared(
    plan: Plan,
    here: Here,
    *,
    on_progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Trial:
    """Return the trial of a plan here, with its prediction; traces where it must.

    Raises:
        UserError: the plan is wrong, or names what cannot be run here.
    """
    if not plan.workload.trains:
        raise UserError.of("verify.only-training")
    settings, record = _as_planned(plan)
    if settings.quantization != "none":
        raise UserError.of("verify.quantized", value=settings.quantization)
    if (objective := plan.workload.objective) is not None:
        raise UserError.of("verify.objective", value=objective)
    if settings.cross_entropy in ("fused", "tiled"):
        raise UserError.of("verify.fused", value=settings.cross_entropy)
    make = _on_cpu if here.device == "cpu" else _on_gpu
    return make(plan, here, settings, record, on_progress, cancelled)


def _as_planned(plan: Plan) -> tuple[FullSettings, GpuRecord]:
    """Return the settings as the plan has them for its own machine."""
    try:
        found = resolve(plan)
    except UserError as error:
        if not (plan.machine.local and error.message.id == "probe.no-gpu"):
            raise
        fixed = in_force(plan).model_copy(update={"precision": plan.settings.precision or "fp32"})
        return filled(fixed, plan.workload, BARE), BARE
    return found.settings, found.machine.gpu.record


def _on_cpu(
    plan: Plan,
    here: Here,
    settings: FullSettings,
    record: GpuRecord,
    on_progress: Progress | None,
    cancelled: Cancelled | None,
) -> Trial:
    _refuse_cuda_alone(settings)
    here_settings = settings.model_copy(
        update={
            "precision": "fp32",
            "attention": "sdpa" if settings.attention == "flash" else settings.attention,
            "activation_offload": False,
            "compile": False,
            "strategy": "single",
            "tensor_degree": None,
            "pipeline_stages": None,
        }
    )
    asked = question(plan, here_settings, record)
    if asked.spec.kernel != "eager":
        asked = replace(asked, spec=replace(asked.spec, kernel="cpu"))
    batch, length = here_settings.micro_batch, asked.inputs.sequence_length or 0
    profile = stored(asked.spec)
    if profile is None or not profile.answers(batch, length):
        profile = store.trace(
            asked.spec, at=(batch, length), on_progress=on_progress, cancelled=cancelled
        )
    value = live_peak_bytes(profile, here_settings, batch, length)
    live = Quantity(
        Message.of("verify.row.allocated"),
        value,
        Unit.BYTES,
        Kind.ESTIMATED,
        source="trace of the step: births and deaths of its tensors",
        interval=Interval(value * (1 - LIVE_SPREAD), value * (1 + LIVE_SPREAD)),
        role="allocated",
    )
    return Trial(
        plan,
        here,
        here_settings,
        asked.spec,
        asked.inputs,
        Prediction(live, _process(live, _known(here))),
        tuple(_cpu_notes(settings, here_settings, profile)),
        profile,
    )


def _refuse_cuda_alone(settings: FullSettings) -> None:
    """Refuse what has kernels for CUDA alone.

    Raises:
        UserError: the settings name such a thing.
    """
    asked = (
        ("optimizer", settings.optimizer, "adamw", settings.optimizer in OF_STEP),
        ("optimizer_offload", settings.optimizer_offload, "none",
         settings.optimizer_offload == "none"),
    )  # fmt: skip
    for key, value, instead, runs in asked:
        if not runs:
            raise UserError.of(
                "verify.cuda-only", key=f"settings.{key}", value=value, instead=instead
            )


def _known(here: Here) -> Correction:
    runs, _ = correction.load()
    return correction.correction(runs, here.id, here.driver, here.torch)


def _process(live: Quantity, known: Correction) -> Quantity:
    """Return the memory of the whole process."""
    low, middle, high = PROCESS
    rest = known.context or Quantity(
        Message.of("verify.process"),
        middle,
        Unit.BYTES,
        Kind.ASSUMED,
        source="assumed: Python, torch and its libraries",
        interval=Interval(low, high),
    )
    whole = total(Message.of("verify.row.process"), (live, rest), role="used")
    spread = rest.interval or Interval(rest.value * 0.75, rest.value * 1.25)
    assert live.interval is not None
    interval = Interval(live.interval.low + spread.low, live.interval.high + spread.high)
    return replace(whole, interval=interval)


def _cpu_notes(planned: FullSettings, run: FullSettings, profile: Profile) -> list[Message]:
    """Return what differs from the plan, and what the prediction takes for granted."""
    notes = [Message.of("verify.note.cpu")]
    for key in ("precision", "attention", "activation_offload", "compile", "strategy"):
        before, after = getattr(planned, key), getattr(run, key)
        if before != after and (key, before) != ("precision", "tf32"):
            values = {"plan": _said(before), "run": _said(after)}
            notes.append(Message.of("verify.note.changed", key=f"settings.{key}", **values))
    return [*notes, *profile.stated]


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _on_gpu(
    plan: Plan,
    here: Here,
    settings: FullSettings,
    record: GpuRecord,
    on_progress: Progress | None,
    cancelled: Cancelled | None,
) -> Trial:
    """Return the trial of the step on one of this computer's GPUs."""
    local = plan_here(plan, settings)
    found = resolve(local)
    if not isinstance(found, Facts):
        traced = store.trace(
            found.spec, at=found.point, on_progress=on_progress, cancelled=cancelled
        )
        found = found.answered(traced)
    report = evaluate(local, found)
    asked = question(local, found.settings, found.machine.gpu.record)
    step = report.time.step_seconds
    timed = report.time.reason is None and step is not None and step.interval is not None
    notes = []
    if found.machine.gpu.record.id != record.id:
        here_name, there = found.machine.gpu.record.name, record.name
        notes.append(Message.of("verify.note.other-gpu", here=here_name, plan=there))
    if settings.several:
        notes.append(Message.of("verify.note.one-gpu"))
    return Trial(
        local,
        here,
        found.settings,
        asked.spec,
        found.inputs,
        Prediction(
            report.memory.allocated_peak,
            report.memory.device_used,
            report.memory.reserved_peak,
            report.time.step_seconds if timed else None,
        ),
        tuple(notes),
        found.profile,
        found,
    )


def plan_here(plan: Plan, settings: FullSettings) -> Plan:
    """Return the plan with the same step on one GPU of this computer."""
    effective = settings.micro_batch * settings.accumulation
    read = {name: getattr(settings, name) for name in Loader.model_fields}
    decided = {
        "precision": settings.precision,
        "micro_batch": settings.micro_batch,
        "accumulation": settings.accumulation,
        "loader": Loader(**read) if settings.num_workers else Loader(num_workers=0),
        "strategy": "single",
        **dict.fromkeys(("shard_degree", "shard_offload", "tensor_degree", "pipeline_stages")),
    }
    return plan.model_copy(
        update={
            "machine": MachineChoice(local=True),
            "settings": in_force(plan).model_copy(update=decided),
            "chosen": {},
            "workload": plan.workload.model_copy(
                update={"effective_batch": effective, "dataset": None}
            ),
        }
    )
