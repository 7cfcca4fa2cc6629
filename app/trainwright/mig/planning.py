"""From the jobs that people name to instances: what fits where, how fast, and against what."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import GIB, MigTable
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.machine.capacity import capacity, held
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.machine import Gpu
from trainwright.machine.slice import slice_of
from trainwright.messages import Message
from trainwright.mig.jobs import Need
from trainwright.mig.layout import Layout
from trainwright.mig.packing import Board, Goal, Job, Packed, pack
from trainwright.mig.sharing import Alternative, OnWhole, advice, alternatives
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, evaluate
from trainwright.plan.schema import Plan

FactsOf = Callable[[Plan], Facts]
"""Looks everything up for a plan, and traces where nobody has."""


@dataclass(frozen=True, slots=True)
class OnProfile:
    """A job on one kind of instance, or on the whole GPU."""

    fits: bool
    memory_bytes: float
    seconds: float | None
    """Until it is finished; of a plan without samples, one optimizer step."""
    rate: float | None
    """Samples a second."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The answer for the jobs."""

    table: MigTable
    needs: tuple[Need, ...]
    """One for each job, those with a count written out."""
    on: tuple[Mapping[str, OnProfile], ...]
    """By profile, of each job."""
    packed: Packed
    alternatives: tuple[Alternative, ...]
    advice: Message | None
    notes: tuple[Message, ...]
    unplaced: tuple[Message, ...] = ()
    """Why jobs have no instance."""

    @property
    def complete(self) -> bool:
        """Whether every job has an instance."""
        return self.packed.placed == len(self.needs)


def plan_jobs(
    gpu: GpuRecord,
    table: MigTable,
    needs: Sequence[Need],
    folder: Path,
    facts_of: FactsOf,
    *,
    count: int = 1,
    current: Sequence[Layout] = (),
    goal: Goal = "finish",
    like: str | None = None,
) -> Planned:
    """Return the best instances for the jobs on ``count`` GPUs, and the other ways to share.

    Args:
        gpu: the card, once for all of them.
        table: what it can be cut into.
        needs: the jobs.
        folder: where their plans are.
        facts_of: looks up what a plan needs.
        count: how many such GPUs there are.
        current: what each of the first ones is cut into now.
        goal: what is to be best once all jobs fit.
        like: catalogued GPU by which plans are looked up where the catalog does not know this one.

    Raises:
        UserError: a plan cannot be read or evaluated, or there are too many jobs or GPUs.
    """
    profiles = [each for each in table.profiles if each.plain and each.starts]
    cards = {each.name: slice_of(gpu, table, each).record for each in profiles} | {WHOLE: gpu}
    found = [_on(need, cards, folder, facts_of, like or gpu.id) for need in needs]
    written = [need for need in needs for _ in range(need.count)]
    on = [one for need, one in zip(needs, found, strict=True) for _ in range(need.count)]
    now = dict(enumerate(current))
    boards = [Board(table, now.get(number, ())) for number in range(count)]
    packed = pack([_job(need, one) for need, one in zip(written, on, strict=True)], boards, goal)
    whole = [
        OnWhole(need.name, one[WHOLE].seconds, one[WHOLE].memory_bytes)
        for need, one in zip(written, on, strict=True)
    ]
    timed = all(one[WHOLE].seconds is not None for one in on)
    complete = packed.placed == len(written)
    ways = alternatives(
        whole,
        capacity(gpu, "linux").value,
        (complete, packed.finish if complete and timed else None),
        count,
    )
    notes = _notes(gpu, table, packed)
    told = tuple(dict.fromkeys(_unplaced(written, on, packed, cards)))
    return Planned(table, tuple(written), tuple(on), packed, ways, advice(ways), notes, told)


def _notes(gpu: GpuRecord, table: MigTable, packed: Packed) -> tuple[Message, ...]:
    """Return what is inferred of the instances that jobs got."""
    names = {instance.profile for layout in packed.layouts for instance in layout}
    used = [profile for profile in table.profiles if profile.name in names]
    return tuple(note for profile in used for note in slice_of(gpu, table, profile).notes)


def _unplaced(
    needs: Sequence[Need],
    on: Sequence[Mapping[str, OnProfile]],
    packed: Packed,
    cards: Mapping[str, GpuRecord],
) -> Iterator[Message]:
    """Yield why jobs have no instance: those too large for any first, then those without room."""
    sizes = {name: capacity(card, "linux").value for name, card in cards.items()}
    whole, largest = sizes.pop(WHOLE), max(sizes, key=lambda name: sizes[name], default=WHOLE)
    left: Counter[str] = Counter()
    for need, one, place in zip(needs, on, packed.jobs, strict=True):
        if place is not None:
            continue
        values = {"job": need.name, "needed": one[WHOLE].memory_bytes}
        if one[WHOLE].memory_bytes > whole:
            yield Message.of("mig.beyond-gpu", **values, gpu=cards[WHOLE].name, memory=whole)
        elif largest in one and one[largest].memory_bytes > sizes[largest]:
            size = sizes[largest]
            yield Message.of("mig.beyond-instances", **values, profile=largest, memory=size)
        else:
            left[need.name] += 1
    if left:
        names = ", ".join(name if n == 1 else f"{name} x{n}" for name, n in left.items())
        yield Message.of("mig.no-room", names=names)


WHOLE = ""
"""Stands for the GPU that is not cut, among the profiles."""


def _job(need: Need, on: Mapping[str, OnProfile]) -> Job:
    fits = {name: one for name, one in on.items() if name != WHOLE and one.fits}
    return Job(
        need.name,
        {name: one.seconds or 0.0 for name, one in fits.items()},
        {name: one.rate or 0.0 for name, one in fits.items()},
        need.priority,
    )


def _on(
    need: Need, cards: Mapping[str, GpuRecord], folder: Path, facts_of: FactsOf, like: str
) -> dict[str, OnProfile]:
    """Return what the job does on the whole GPU and on each kind of instance."""
    if need.plan is None:
        return {name: _plain(need, card, cards[WHOLE]) for name, card in cards.items()}
    path = folder / need.plan
    with file.naming(path):
        plan = file.read(str(path), ())
        here = plan.model_copy(update={"machine": _holding(like, plan.machine)})
        facts = facts_of(here)
        return {name: _estimated(here, facts, card) for name, card in cards.items()}


def _holding(gpu: str, own: MachineChoice) -> MachineChoice:
    """Return the computer of the GPU, of which nobody says the rest.

    What a plan names around its own card (processor, board, parts, nodes) is not there.
    """
    return MachineChoice(gpus=(GpuChoice(id=gpu),), memory_gib=own.memory_gib, system=own.system)


def _estimated(plan: Plan, facts: Facts, card: GpuRecord) -> OnProfile:
    """Return our own estimate of the plan on one instance."""
    system = facts.machine.system
    gpu = Gpu(card, 1, capacity(card, system), held(card, system, None), None)
    report = evaluate(plan, replace(facts, machine=replace(facts.machine, gpus=(gpu,))))
    time = report.time
    return OnProfile(
        fits=report.fits and report.runs,
        memory_bytes=report.memory.device_used_p95.value,
        seconds=_seconds(time),
        rate=time.samples_per_second.value if time.samples_per_second else None,
    )


def _seconds(time: TimeEstimate) -> float | None:
    quantity = time.run_seconds or time.step_seconds
    return quantity.value if quantity is not None else None


def _plain(need: Need, card: GpuRecord, whole: GpuRecord) -> OnProfile:
    """Return a job that states its needs; its time grows as processors shrink, assumed."""
    memory = (need.memory_gib or 0.0) * GIB
    counts = card.sm_count, whole.sm_count
    share = counts[0].value / counts[1].value if counts[0] and counts[1] else 1.0
    seconds = None if need.hours is None else need.hours * 3600 / share
    fits = memory <= capacity(card, "linux").value
    return OnProfile(fits, memory, seconds, 1 / seconds if seconds else None)
