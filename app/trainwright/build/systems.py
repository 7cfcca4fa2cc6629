"""Complete computers whose processor and GPU share one memory, bought as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from trainwright.advise.taking import with_settings
from trainwright.build.answer import Candidate, Done, Part
from trainwright.build.assemble import best_settings, bottleneck
from trainwright.build.doubt import counted
from trainwright.build.offers import Market
from trainwright.build.reasons import holding
from trainwright.build.request import Request
from trainwright.build.sizing import dataset_bytes
from trainwright.build.speeds import Cards, Speeds
from trainwright.build.works import Works, times_of
from trainwright.catalog import GpuRecord, find_gpu
from trainwright.estimate.support import support
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.machine import System
from trainwright.messages import Message
from trainwright.prices import Item, Total, total

DRIVE_BYTES = 2e12
"""Of data that their drives hold next to a system; assumed, they are sold with 1 to 4 TB."""
LARGEST_CARD = 34 * 2**30
"""Bytes of the largest consumer card, with what makers round: what it holds needs no more of a
complete computer than any PC has. Source: the RTX 5090 has 32 GiB."""
EFFICIENCY = 0.88
"""Of small power supplies at their usual load; assumed, as 80 PLUS Gold and external bricks."""


@dataclass(frozen=True, slots=True)
class Complete:
    """A computer that is sold whole."""

    name: str
    gpu: str
    """Id of its GPU, whose assumed price is that of the computer."""
    memory_gib: float
    systems: tuple[System, ...]


SOLD = (
    Complete("DGX Spark 128 GB (GB10)", "gb10-dgx-spark", 128, ("linux",)),
    Complete("Ryzen AI Max+ 395, 128 GB", "radeon-8060s", 128, ("linux", "windows")),
    Complete("Mac Studio M3 Ultra, 96 GB", "apple-m3-ultra", 96, ("macos",)),
)
"""Usual ones for models that no single card holds: of those for one system the fastest first, by
FLOP/s and by bandwidth."""


def complete(request: Request, works: Works, market: Market) -> Iterator[Candidate]:
    """Yield the complete computers within the budget and the wishes that do all the work."""
    wishes, limit = request.wishes, request.budget.amount if request.budget else None
    needed = (dataset_bytes(speeds.plan) or 0.0 for speeds, _, _ in works.each)
    if wishes.owned or (wishes.gpus or 1) > 1 or sum(needed) > DRIVE_BYTES:
        return
    for one in SOLD:
        record = find_gpu(one.gpu).record
        price = market.offer("gpu", record).price
        if wishes.system not in one.systems or price is None or price.kind == "msrp":
            continue
        if limit is not None and price.expected > limit:
            continue
        watts = _watts(record)
        if wishes.wall_w is not None and watts > wishes.wall_w:
            continue
        done = _done(one, request, works)
        if done:
            part = Part("gpu", record.id, one.name, 1, price, why=holding(done[0].report, 1))
            cost = total([Item(record.id, 1, price)], market.currency)
            yield _candidate(record, done, part, cost, watts)


def beside(
    builds: Sequence[Candidate], request: Request, works: Works, market: Market
) -> list[Candidate]:
    """Return the fastest complete computer, where the work needs its memory.

    None where a build beats it in everything, or a single consumer card holds the work.
    """
    held = [one.build.gpus[0].record.memory_bytes.value * one.build.gpu_count for one in builds]
    if builds and (min(held) <= LARGEST_CARD or _held_alone(works, market)):
        return []
    fastest = islice(complete(request, works, market), 1)
    return [one for one in fastest if not any(_beats(other, one) for other in builds)]


def _held_alone(works: Works, market: Market) -> bool:
    small = (card for card in market.cards() if card.memory_bytes.value <= LARGEST_CARD)
    return any(works.quick(Cards(card, 1)) is not None for card in small)


def _beats(one: Candidate, system: Candidate) -> bool:
    return (
        counted(one) <= counted(system)
        and (one.total.expected or 0.0) <= (system.total.expected or 0.0)
        and one.wall_watts <= system.wall_watts
    )


def _candidate(
    record: GpuRecord, done: Sequence[Done], part: Part, cost: Total, watts: float
) -> Candidate:
    first = done[0]
    return Candidate(
        build=Build(gpus=(BuildGpu(record),)),
        parts=(part,),
        total=cost,
        plan=first.plan,
        settings=first.report.settings,
        report=first.report,
        checks=(),
        dc_watts=watts * EFFICIENCY,
        wall_watts=watts,
        bottleneck=bottleneck(first.report),
        doubt=Message.of("planner.complete"),
        others=tuple(done[1:]),
    )


def _done(one: Complete, request: Request, works: Works) -> list[Done]:
    """Return all workloads on the computer; empty where one does not run or fit on it."""
    found = []
    for (speeds, _, _), times in zip(works.each, times_of(request), strict=True):
        made = _single(one, speeds, times)
        if made is None:
            return []
        found.append(made)
    return found


def _single(one: Complete, speeds: Speeds, times: float) -> Done | None:
    machine = MachineChoice(
        gpus=(GpuChoice(id=one.gpu),), memory_gib=one.memory_gib, system=speeds.system
    )
    plan = speeds.plan.model_copy(update={"machine": machine})
    facts = speeds.sources.resolve(plan)
    if facts is None or not support(facts.machine.gpu.record, speeds.system, facts.settings).runs:
        return None
    report = best_settings(plan, facts, speeds)
    return Done(with_settings(plan, report.settings), report, times) if report else None


def _watts(record: GpuRecord) -> float:
    return (record.tdp_w.value if record.tdp_w is not None else 0.0) / EFFICIENCY
