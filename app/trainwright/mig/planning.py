"""From the jobs that people name to instances: what fits where, how fast, and against what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import GIB, MigTable, Profile
from trainwright.estimate.steptime import TimeEstimate
from trainwright.machine.capacity import nominal_total
from trainwright.machine.choice import GpuChoice
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
    current: Layout = (),
    goal: Goal = "finish",
) -> Planned:
    """Return the best instances for the jobs on ``count`` GPUs, and the other ways to share.

    Raises:
        UserError: a plan cannot be read or evaluated, or there are too many jobs or GPUs.
    """
    profiles = [each for each in table.profiles if each.plain and each.starts]
    found = [_on(need, gpu, table, profiles, folder, facts_of) for need in needs]
    written = [need for need in needs for _ in range(need.count)]
    on = [one for need, one in zip(needs, found, strict=True) for _ in range(need.count)]
    boards = [Board(table, current if number == 0 else ()) for number in range(count)]
    packed = pack([_job(need, one) for need, one in zip(written, on, strict=True)], boards, goal)
    whole = [
        OnWhole(need.name, one[WHOLE].seconds, one[WHOLE].memory_bytes)
        for need, one in zip(written, on, strict=True)
    ]
    timed = all(one[WHOLE].seconds is not None for one in on)
    complete = packed.placed == len(written)
    ways = alternatives(
        whole,
        nominal_total(gpu).value,
        (complete, packed.finish if complete and timed else None),
        count,
    )
    notes = _notes(gpu, table, packed)
    return Planned(table, tuple(written), tuple(on), packed, ways, advice(ways), notes)


def _notes(gpu: GpuRecord, table: MigTable, packed: Packed) -> tuple[Message, ...]:
    """Return what is inferred of the instances that jobs got."""
    names = {instance.profile for layout in packed.layouts for instance in layout}
    used = [profile for profile in table.profiles if profile.name in names]
    return tuple(note for profile in used for note in slice_of(gpu, table, profile).notes)


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
    need: Need,
    gpu: GpuRecord,
    table: MigTable,
    profiles: Sequence[Profile],
    folder: Path,
    facts_of: FactsOf,
) -> dict[str, OnProfile]:
    """Return what the job does on the whole GPU and on each kind of instance."""
    if need.plan is None:
        plain = {each.name: _plain(need, gpu, table, each) for each in profiles}
        return plain | {WHOLE: _plain(need, gpu, table, None)}
    path = folder / need.plan
    with file.naming(path):
        plan = file.read(str(path), ())
        choices = {each.name: GpuChoice(id=gpu.id, mig=each.name) for each in profiles}
        return {
            name: _estimated(plan, choice, facts_of)
            for name, choice in (choices | {WHOLE: GpuChoice(id=gpu.id)}).items()
        }


def _estimated(plan: Plan, choice: GpuChoice, facts_of: FactsOf) -> OnProfile:
    """Return our own estimate of the plan on one instance."""
    machine = plan.machine.model_copy(update={"gpus": (choice,), "local": False, "board": None})
    here = plan.model_copy(update={"machine": machine})
    report = evaluate(here, facts_of(here))
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


def _plain(need: Need, gpu: GpuRecord, table: MigTable, profile: Profile | None) -> OnProfile:
    """Return a job that states its needs; its time grows as processors shrink, assumed."""
    there = gpu if profile is None else slice_of(gpu, table, profile).record
    total = nominal_total(there).value
    memory = (need.memory_gib or 0.0) * GIB
    hours = need.hours
    share = there.sm_count.value / gpu.sm_count.value if there.sm_count and gpu.sm_count else 1.0
    seconds = None if hours is None else hours * 3600 / share
    return OnProfile(memory <= total, memory, seconds, 1 / seconds if seconds else None)
