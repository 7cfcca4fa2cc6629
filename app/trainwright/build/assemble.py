"""From chosen records to an answer: the plan on that computer, its figures, its parts' prices."""

from dataclasses import replace

from trainwright.advise import loading
from trainwright.advise.search import Search
from trainwright.advise.taking import with_settings
from trainwright.build.answer import Candidate, Done, Part
from trainwright.build.choosing import Outcome
from trainwright.build.offers import Market, Offer, Record, summed
from trainwright.build.reasons import reasons
from trainwright.build.request import Request
from trainwright.build.speeds import Speeds
from trainwright.build.works import Works, times_of
from trainwright.catalog import PartKind, PartRecord
from trainwright.machine.build import Build
from trainwright.machine.choice import Drive, GpuChoice, Kit, MachineChoice
from trainwright.machine.power import power
from trainwright.machine.resolve import catalogued
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan

Row = tuple[PartKind, Record, int]


def rows(build: Build) -> list[Row]:
    """Return the parts of a build with their kinds and counts, in the order of a shopping list."""
    found: list[Row] = [("gpu", gpu.record, gpu.count) for gpu in build.gpus]
    single: list[tuple[PartKind, PartRecord | None]] = [("cpu", build.cpu), ("board", build.board)]
    found += [(kind, record, 1) for kind, record in single if record is not None]
    found += [("memory", kit, count) for kit, count in build.memory]
    drives = {drive.id: drive for drive in build.drives}
    ids = [drive.id for drive in build.drives]
    found += [("storage", drive, ids.count(id)) for id, drive in drives.items()]
    single = [("psu", build.psu), ("case", build.case), ("cooler", build.cooler)]
    found += [(kind, record, 1) for kind, record in single if record is not None]
    return found


def chosen_machine(build: Build, plan: Plan) -> MachineChoice:
    """Return the build as a plan names it."""
    return MachineChoice(
        gpus=tuple(
            GpuChoice(id=gpu.record.id, count=gpu.count, power_limit_w=gpu.power_limit_w)
            for gpu in build.gpus
        ),
        cpu=build.cpu.id if build.cpu else None,
        board=build.board.id if build.board else None,
        psu=build.psu.id if build.psu else None,
        case=build.case.id if build.case else None,
        cooler=build.cooler.id if build.cooler else None,
        memory=tuple(Kit(id=kit.id, count=count) for kit, count in build.memory),
        drives=tuple(Drive(id=drive.id) for drive in build.drives),
        system=plan.machine.system,
    )


def facts_on(build: Build, plan: Plan, facts: Facts) -> Facts:
    """Return the plan's facts on the build, instead of on its cards alone."""
    return replace(facts, machine=catalogued(chosen_machine(build, plan)).machine)


def assembled(outcome: Outcome, works: Works, request: Request, market: Market) -> Candidate | None:
    """Return the computer with the settings that ``advise`` chooses for each workload.

    None where the replay of its memory shows that one does not fit after all.
    """
    build = outcome.build
    priced = [(kind, market.offer(kind, record), count) for kind, record, count in rows(build)]
    there = tuple(offer.record.id for _, offer, count in priced if offer.owned >= count)
    done = []
    for (speeds, _, _), times in zip(works.each, times_of(request), strict=True):
        found = _done(outcome, speeds, there, times)
        if found is None:
            return None
        done.append(found)
    plan, report = done[0].plan, done[0].report
    work = works.quick(outcome.cards)
    why = reasons(outcome, work.needs(), report) if work is not None else {}
    return Candidate(
        build=build,
        parts=tuple(_part(kind, offer, count, why.get(kind)) for kind, offer, count in priced),
        total=summed([(offer, count) for _, offer, count in priced], market.currency),
        plan=plan,
        settings=report.settings,
        report=report,
        checks=outcome.checks,
        dc_watts=power(build).sustained.value,
        wall_watts=outcome.watts,
        bottleneck=bottleneck(report),
        others=tuple(done[1:]),
    )


def _done(outcome: Outcome, speeds: Speeds, there: tuple[str, ...], times: float) -> Done | None:
    """Return one workload on the computer, ``there`` being the parts that are owned."""
    build, cards = outcome.build, outcome.cards
    facts = speeds.facts(cards)
    assert facts is not None, "only cards that do the work are built around"
    machine = chosen_machine(build, speeds.plan)
    if there:
        machine = machine.model_copy(update={"owned": there})
    plan = speeds.planned(cards).model_copy(update={"machine": machine})
    report = best_settings(plan, facts_on(build, plan, facts), speeds)
    return Done(with_settings(plan, report.settings), report, times) if report else None


def best_settings(plan: Plan, facts: Facts, speeds: Speeds) -> Report | None:
    """Return the report with the best settings; None where nothing fits."""
    known = loading.with_most_workers(plan, facts)
    search = Search(plan, known, speeds.sources)
    for timed, report in search.best(search.preferred):
        return loading.settled(search, timed, report)
    return None


def _part(kind: PartKind, offer: Offer[Record], count: int, why: Message | None) -> Part:
    record, owned = offer.record, min(offer.owned, count)
    said = Message.of("planner.why.owned") if owned == count else why
    return Part(kind, record.id, record.name, count, offer.price, owned, said)


def bottleneck(report: Report) -> Message:
    """Return what limits the work, in one sentence."""
    return Message.of(f"planner.bottleneck.{report.time.bottleneck or 'unknown'}")
