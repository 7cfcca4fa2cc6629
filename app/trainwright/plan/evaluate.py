"""The two steps on which app, command line, exporters and tests stand."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from trainwright import __version__
from trainwright.estimate import correction
from trainwright.estimate.input.loader import host_of
from trainwright.estimate.input.pipeline_calibration import load as load_pipeline
from trainwright.estimate.memory.device_memory import (
    Asked,
    MemoryEstimate,
    estimate_memory,
    runs_within,
)
from trainwright.estimate.serving.served import Served
from trainwright.estimate.support import support
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.roofpoints import Roofs, roofs
from trainwright.estimate.time.steptime import TimeEstimate, estimate_time
from trainwright.estimate.time.unrolled import refusal
from trainwright.machine.build import Check, Use, Way
from trainwright.machine.checks import checks
from trainwright.machine.machine import Machine
from trainwright.machine.network import with_ports
from trainwright.machine.resolve import Resolved, catalogued
from trainwright.messages import Message
from trainwright.plan import checkpoint, crosscheck, effective, judging, mixture, recipe, rollout
from trainwright.plan.loading import load_notes
from trainwright.plan.profiles import stored as stored
from trainwright.plan.report import FITTING, Report, Verdict
from trainwright.plan.schema import MachineChoice, Plan
from trainwright.plan.serving import (
    TENSOR_PARALLEL,
    Serving,
    holds,
    largest,
    offloads,
    policy_notes,
    refuses,
    room_for,
    serving_notes,
    serving_side,
    tensor_parallel,
    waits,
)
from trainwright.plan.serving_gpus import (
    as_needed,
    gpus_of,
    placed,
    served_on,
    split_degrees,
)
from trainwright.plan.staging import stage_memory
from trainwright.plan.trace_request import question
from trainwright.plan.tracenotes import trace_notes, update_notes
from trainwright.profile import interpreter
from trainwright.profile.profile import Profile
from trainwright.profile.rollout import Answers
from trainwright.profile.spec import TraceSpec
from trainwright.workload import FullSettings, Inputs
from trainwright.workload.weightfiles import Weights

READINGS_S = 5.0
"""How long a reading of this computer serves."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What ``resolve`` looked up: all that ``evaluate`` may know beside the plan."""

    machine: Machine
    settings: FullSettings
    profile: Profile
    inputs: Inputs
    """Every input that the model and the task have."""
    notes: tuple[Message, ...]
    config: str = ""
    """The text of the model's ``config.json``; empty where it has none."""
    longest: int | None = None
    """Positions that the model has; None where they have no end, or nobody says."""

    @property
    def serving(self) -> tuple[Machine, FullSettings, Profile, str]:
        """What says how a served model lies on the machine."""
        return self.machine, self.settings, self.profile, self.config


@dataclass(frozen=True, slots=True)
class Pending:
    """The profile is not at hand: this must be traced first."""

    machine: Machine
    settings: FullSettings
    spec: TraceSpec
    inputs: Inputs
    notes: tuple[Message, ...]
    config: str = ""
    longest: int | None = None
    weights: Weights | Message | None = None
    """What lies beside the model's config, or why it is refused."""
    answers: Answers | None = None
    """Those that the model writes before it is trained on them."""

    def answered(self, profile: Profile) -> Facts:
        """Return the facts that a traced profile completes.

        Raises:
            UserError: the engine's view needs what the model does not say.
        """
        profile = rollout.with_answers(profile, self.answers)
        facts = self._facts(profile)
        served = served_on(*facts.serving) if self.spec.task == "infer" else None
        mixed = mixture.notes(profile, self.spec, self.machine.gpu.record, served)
        update = update_notes(facts.settings, profile)
        stored = crosscheck.notes(self.weights, profile, self.spec, self.config)
        notes = [*self.notes, *mixed, *update, *trace_notes(profile), *stored]
        if served is not None:
            notes += serving_notes(served, beyond=bool(self.spec.beyond))
        return replace(facts, notes=tuple(notes))

    def _facts(self, profile: Profile) -> Facts:
        """Return the facts without notes; layers of a served model are split as they have to be."""
        place = (self.inputs, (), self.config, self.longest)
        facts = Facts(self.machine, self.settings, profile, *place)
        if self.spec.task != "infer":
            return facts

        def holds(settings: FullSettings, requests: int) -> bool:
            return _holds(replace(facts, settings=settings), requests)

        return replace(facts, settings=as_needed(*facts.serving, holds))

    @property
    def point(self) -> tuple[int, int]:
        """(batch, sequence) that is asked about: what to trace first."""
        return self.settings.micro_batch, _length(self.inputs)


def resolve(plan: Plan) -> Facts | Pending:
    """Look up the machine, the defaults and the profile: the only impure step.

    Raises:
        UserError: an id is unknown, a file is missing, the pieces do not go together.
    """
    found = _machine(plan.machine)
    machine, record = found.machine, found.machine.gpu.record
    plan, settled = checkpoint.honoured(plan)
    settings, dropped = effective.completed(plan, record, machine.gpu_count, machine.all_cores)
    asked = question(plan, settings, record)
    notes = (*found.notes, *settled, *asked.notes, *dropped, *_plan_notes(plan, machine, settings))
    pending = Pending(
        machine,
        settings,
        asked.spec,
        asked.inputs,
        notes,
        asked.config,
        asked.longest,
        crosscheck.looked_up(plan),
        rollout.answers_of(plan.workload, settings, asked.inputs, machine.gpu_count),
    )
    profile = stored(asked.spec)
    return pending if profile is None else pending.answered(profile)


def _machine(choice: MachineChoice) -> Resolved:
    if not choice.local:
        return _catalogued(choice)
    found = _local(int(time.monotonic() / READINGS_S))
    gpus = [(gpu.record, gpu.count) for gpu in found.machine.gpus]
    network, ports = with_ports(choice.network, choice.nodes, gpus)
    alike = replace(found.machine, nodes=choice.nodes, network=network)
    return replace(found, machine=alike, notes=(*found.notes, *ports))


@lru_cache(maxsize=1)
def _local(_period: int) -> Resolved:
    """Read this computer once in a while: an edit must not wait for its driver."""
    from trainwright.probe import measured, measurements, snapshot  # loads the drivers' libraries

    taken = snapshot.take(anew=False)
    found, known = snapshot.resolved(taken), measurements.load()
    runs, problem = correction.load()
    driver = getattr(taken.nvidia, "driver", None)
    machine = correction.applied(
        measured.on(found.machine, known),
        runs,
        driver if isinstance(driver, str) else "",
        interpreter.torch_version(),
        since=max((one.date for one in known.below("product")), default=""),
    )
    notes = (note for note in (known.note, problem) if note is not None)
    return Resolved(machine, (*found.notes, *notes))


def look_again() -> None:
    """Read this computer again when it is next asked about: a correction was kept or forgotten."""
    _local.cache_clear()


@lru_cache(maxsize=64)
def _catalogued(choice: MachineChoice) -> Resolved:
    """Look ids up once: the same machine is asked about at every edit."""
    return catalogued(choice)


def _plan_notes(plan: Plan, machine: Machine, settings: FullSettings) -> Iterator[Message]:
    """Yield what the report must say about the plan itself."""
    torch = interpreter.torch_version()
    for made, now in (("trainwright", __version__), ("torch", torch)):
        then = plan.made_with.get(made)
        if then is not None and then != now:
            yield Message.of("plan.note.made-with", name=made, then=then, now=now)
    yield from recipe.notes(plan, settings)
    if len(machine.gpus) > 1:
        yield Message.of("plan.note.mixed-gpus", gpu=machine.gpu.record.name)
    if plan.workload.trains and settings.strategy == "single" and machine.gpu_count > 1:
        yield Message.of("plan.note.idle-gpus", count=machine.gpu_count - 1)
    if settings.several and machine.system == "windows":
        # pytorch.org/docs, distributed: NCCL is built for Linux.
        yield Message.of("plan.note.no-nccl")
    if machine.gpu.record.vendor != "NVIDIA":
        yield Message.of("plan.note.other-maker", gpu=machine.gpu.record.name)
    if machine.gpu.slowness is not None and machine.gpu.slowness.note is not None:
        yield machine.gpu.slowness.note
    if machine.gpu.context is not None and machine.gpu.context.note is not None:
        yield machine.gpu.context.note
    if plan.workload.trains and settings.quantization == "int8":
        yield Message.of("plan.note.int8")


# Long: each verdict rests on those before it, which helpers would pass on by the dozen.
def evaluate(plan: Plan, facts: Facts) -> Report:
    """Return the report; pure."""
    machine = facts.machine
    of_all = memory_of(plan, facts)
    running, memory = at_once(plan, facts, of_all)
    clock = time_of(plan, running, requests=facts.settings.micro_batch)
    serving = None if plan.workload.trains else _serving(facts, running, memory, of_all)
    supported = support(machine.gpu.record, machine.system, facts.settings)
    room = judging.host_room(machine, memory)
    decided = judging.verdict(memory, machine.system, room, judging.loader_bytes(clock))
    refused = tuple(refuses(serving)) if serving and decided in FITTING else ()
    if refused:
        decided = Verdict.NO
    queue: tuple[Message, ...] = ()
    if serving is not None and not refused:
        queue = tuple(waits(serving, machine.gpu.record, memory, splits_of(plan, facts)))
    if queue and decided in FITTING:
        decided = Verdict.QUEUES
    whole = tensor_parallel(serving, memory, machine.gpu_count) if serving is not None else None
    if whole is not None and decided not in FITTING and whole.id == TENSOR_PARALLEL:
        decided = Verdict.CANNOT_CHECK
    answers = rollout.answers_of(plan.workload, facts.settings, facts.inputs, machine.gpu_count)
    phases = rollout.phases_of(memory) if answers is not None else None
    short = answers and rollout.share_short(
        written_in(plan, facts), facts.settings, answers, machine.gpu.total.value
    )
    decided = Verdict.NO if short and decided in FITTING else decided
    likely = recipe.likely_bytes(
        *(plan, facts.settings, facts.profile, memory, facts.config), machine.gpu_count
    )
    return Report(
        verdict=decided,
        memory=memory,
        time=clock,
        settings=facts.settings,
        notes=(
            *(() if supported.state == "supported" else (supported.because,)),
            *refused,
            *queue,
            *(offloads(serving) if serving and decided in (Verdict.NO, Verdict.SPILLS) else ()),
            *((short,) if short else ()),
            *(placed(serving, machine.gpu_count) if serving and decided in FITTING else ()),
            *((whole,) if whole is not None else ()),
            *judging.open_notes(plan, facts.settings, decided),
            *(rollout.notes(facts.settings, phases, answers.rows) if answers and phases else ()),
            *recipe.note_of(likely, memory),
            *judging.larger_notes(machine, memory, decided),
            *judging.host_notes(memory, room),
            *judging.ways_notes(plan, decided),
            *load_notes(machine, facts.profile, facts.settings),
            *judging.loader_notes(memory, clock, room),
            *facts.notes,
            *(policy_notes(serving, memory) if serving else ()),
            *judging.time_notes(clock, machine, decided),
        ),
        host_total=room,
        serving=serving,
        support=supported,
        likely_bytes=likely,
        stages=stage_memory(asked_of(plan, facts), memory.allocated_peak),
        checks=_checks(plan, facts, clock),
        phases=phases,
    )


def _checks(plan: Plan, facts: Facts, clock: TimeEstimate) -> tuple[Check, ...]:
    """Return what the rules say of the machine's parts; nothing where the plan names none."""
    parts, settings = facts.machine.parts, facts.settings
    if parts is None:
        return ()
    trains = plan.workload.trains
    way: Way = "data-parallel" if settings.several else "single"
    offloads = settings.optimizer_offload == "cpu" or settings.activation_offload
    use = Use(
        way=way if trains else "inference",
        offloads=offloads,
        system=facts.machine.system,
        waits=judging.waiting_share(clock),
    )
    return checks(parts, use)


def _serving(
    facts: Facts, running: Facts, memory: MemoryEstimate, of_all: MemoryEstimate
) -> Serving:
    return serving_side(
        served_on(*facts.serving),
        memory,
        of_all,
        concurrent=facts.settings.micro_batch,
        running=running.settings.micro_batch,
        context=_context(facts.inputs),
    )


def _context(inputs: Inputs) -> int:
    """Return the tokens of a request at its end."""
    return _length(inputs) + (inputs.new_tokens or 1)


def at_once(plan: Plan, facts: Facts, of_all: MemoryEstimate) -> tuple[Facts, MemoryEstimate]:
    """Return the facts with the requests that run at once, and the memory of those.

    Engines that take a share of the memory run as many as their cache holds. Those that do not
    start, for it does not hold one, are answered for all.
    ``of_all`` is the memory of all requests.
    """
    served = served_in(plan, facts)
    asked, context = facts.settings.micro_batch, _context(facts.inputs)
    if served is None or asked == 1 or holds(served, of_all, asked, context):
        return facts, of_all

    def running(count: int) -> Facts:
        settings = facts.settings.model_copy(update={"micro_batch": count})
        return replace(facts, settings=settings)

    def all_held(count: int) -> bool:
        return holds(served, memory_of(plan, running(count)), count, context)

    most = largest(all_held, asked - 1, guess=room_for(served, of_all, context))
    if most is None:
        return facts, of_all
    return running(most), memory_of(plan, running(most))


def memory_of(plan: Plan, facts: Facts) -> MemoryEstimate:
    """Return the memory side of the report."""
    return estimate_memory(asked_of(plan, facts))


def asked_of(plan: Plan, facts: Facts) -> Asked:
    """Return what the memory side is asked of."""
    return _asked(facts, infers=not plan.workload.trains)


def _asked(facts: Facts, *, infers: bool) -> Asked:
    machine, settings = facts.machine, facts.settings
    return Asked(
        facts.profile,
        machine.gpu,
        settings,
        batch=settings.micro_batch,
        sequence=_length(facts.inputs),
        new_tokens=(facts.inputs.new_tokens or 1) if infers else None,
        gpu_count=_gpus_together(facts, infers=infers),
        nodes=machine.nodes if settings.several else 1,
        system=machine.system,
        served=served_on(*facts.serving) if infers else None,
    )


def _holds(facts: Facts, requests: int) -> bool:
    """Return whether an engine's share of the memory holds so many requests."""
    part = replace(facts, settings=facts.settings.model_copy(update={"micro_batch": requests}))
    memory = estimate_memory(_asked(part, infers=True))
    return holds(served_on(*part.serving), memory, requests, _context(part.inputs))


def runs_out(plan: Plan, facts: Facts, *, gpus: int | None = None) -> bool:
    """Return whether PyTorch runs out of memory, on so many GPUs, without the rest of a report.

    An engine with a share of the memory runs as soon as that holds one request.
    """
    served = served_in(plan, facts)
    if served is not None and served.queues:
        settings = facts.settings.model_copy(update={"micro_batch": 1})
        facts = replace(facts, settings=settings)
    asked = asked_of(plan, facts)
    return not runs_within(asked if gpus is None else replace(asked, gpu_count=gpus))


def served_in(plan: Plan, facts: Facts) -> Served | None:
    """Return the model as its engine holds it; None for training."""
    if plan.workload.trains:
        return None
    return served_on(*facts.serving)


def splits_of(plan: Plan, facts: Facts) -> tuple[int, ...]:
    """Return over how many GPUs an engine can split each layer; nothing for training."""
    served = served_in(plan, facts)
    if served is None:
        return ()
    return tuple(split_degrees(facts.machine, facts.settings, served))


def written_in(plan: Plan, facts: Facts) -> Served | None:
    """Return the engine that writes the answers of a training; None where none does."""
    return rollout.written_by(plan.workload, facts.settings, facts.profile, facts.config)


def time_of(plan: Plan, facts: Facts, *, requests: int | None = None) -> TimeEstimate:
    """Return the time side of the report; ``requests`` come at once where fewer run at once."""
    settings, clock = facts.settings, Clock(situation_of(plan, facts))
    return estimate_time(facts.profile, clock, settings, settings.micro_batch, requests)


def situation_of(plan: Plan, facts: Facts) -> Situation:
    """Return what the time side depends on besides profile and settings."""
    machine = facts.machine
    return Situation(
        machine.gpu,
        _gpus_together(facts, infers=not plan.workload.trains),
        plan.workload.model_copy(update={"inputs": facts.inputs}),
        _length(facts.inputs),
        machine.cores,
        served_in(plan, facts),
        host_of(machine, load_pipeline()),
        machine.processor,
        machine.cluster if facts.settings.several else None,
        written_in(plan, facts),
    )


def operators_of(plan: Plan, facts: Facts) -> Roofs | None:
    """Return the operators of a step against the roofs of the GPU.

    None for a serving engine whose time is that of its own passes, not of the traced operators,
    and where no time is predicted.
    """
    settings, clock = facts.settings, Clock(situation_of(plan, facts))
    batch = settings.micro_batch
    if not plan.workload.trains and clock.round(facts.profile, settings, batch).pass_ is not None:
        return None
    if refusal(facts.profile, clock, settings, batch) is not None:
        return None
    return roofs(facts.profile, clock, settings, batch)


def _gpus_together(facts: Facts, *, infers: bool) -> int:
    """Return the GPUs that exchange what they compute; layers on several GPUs work in turn."""
    settings, machine = facts.settings, facts.machine
    if infers and settings.tensor_degree is not None:
        return settings.tensor_degree
    in_turn = infers and gpus_of(settings, machine) > 1
    return machine.gpu_count if settings.several and not in_turn else 1


def _length(inputs: Inputs) -> int:
    """Return the tokens of a sample or a prompt; 0 where the model has no sequence."""
    return inputs.sequence_length or inputs.prompt_tokens or 0
