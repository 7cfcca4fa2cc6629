"""Why each part of a computer is this one: the need that it answers, in one line."""

from collections.abc import Iterator

from trainwright.build.answer import Candidate
from trainwright.build.choosing import Outcome
from trainwright.build.sites import slowest_link
from trainwright.build.sizing import GB, LEAST_GIB, Needs
from trainwright.catalog import PartKind
from trainwright.machine.placement import place
from trainwright.machine.power import power
from trainwright.messages import Message
from trainwright.plan.report import Report


def reasons(outcome: Outcome, needed: Needs, report: Report) -> dict[PartKind, Message]:
    """Return what each kind of part answers; nothing of what cannot be said.

    ``needed`` is the least that the work asks.
    """
    return dict(_reasons(outcome, needed, report))


def holding(report: Report, count: int) -> Message:
    """Return what the work takes of each card's memory."""
    memory = report.memory
    return Message.of(
        "planner.why.gpu",
        used=memory.device_used_p95.value,
        total=memory.device_total.value,
        count=count,
    )


def limited_said(one: Candidate) -> Message:
    """Return which power limit the cards of a computer have, and what it is for."""
    gpu = one.build.gpus[0]
    tdp = gpu.record.tdp_w.value if gpu.record.tdp_w else 0.0
    names = {"gpu": gpu.record.name, "count": gpu.count}
    return Message.of("planner.note.limited", limit=gpu.power_limit_w, tdp=tdp, **names)


def _reasons(outcome: Outcome, needed: Needs, report: Report) -> Iterator[tuple[PartKind, Message]]:
    build = outcome.build
    yield "gpu", holding(report, build.gpu_count)
    if build.cpu is not None:
        yield "cpu", Message.of("planner.why.cpu", cores=build.cpu.cores, need=needed.cores)
    link = slowest_link(place(build))
    if link is not None:
        values = {"generation": link.generation, "lanes": link.lanes}
        yield "board", Message.of("planner.why.board", count=build.gpu_count, **values)
    yield "memory", _memory(outcome, needed)
    yield "storage", _storage(outcome, needed)
    if build.psu is not None:
        drawn = power(build).sustained.value
        share = drawn / build.psu.watts
        yield "psu", Message.of("planner.why.psu", drawn=drawn, share=share, watts=build.psu.watts)
    yield from _housing(outcome)


def _memory(outcome: Outcome, needed: Needs) -> Message:
    gib = sum(kit.gib * count for kit, count in outcome.build.memory)
    asked = outcome.asked or needed
    if asked.memory_gib > needed.memory_gib:
        why = "more"
    elif needed.memory_gib <= LEAST_GIB:
        why = "least"
    else:
        why = "offload" if outcome.use.offloads else "cards"
    return Message.of(f"planner.why.memory-{why}", gib=gib, need=needed.memory_gib)


def _storage(outcome: Outcome, needed: Needs) -> Message:
    held = sum(drive.capacity_gb or 0.0 for drive in outcome.build.drives)
    asked, data = outcome.asked or needed, needed.dataset_bytes
    why = "more" if asked.drive_gb > needed.drive_gb else "system" if data is None else "data"
    values = {"need": needed.drive_gb, "data": (data or 0.0) / GB}
    return Message.of(f"planner.why.storage-{why}", gb=held, **values)


def _housing(outcome: Outcome) -> Iterator[tuple[PartKind, Message]]:
    """Yield what case and cooler answer, by the figures that their rules compared."""
    build = outcome.build
    for check in outcome.checks:
        if check.rule == "G1" and {"longest_mm", "room_mm"} <= set(check.values):
            yield "case", Message.of("planner.why.case", **check.values)
            break
    else:
        if build.board is not None:
            yield "case", Message.of("planner.why.case-board", form=build.board.form_factor)
    if build.cooler is None or build.cpu is None:
        return
    rated, watts = build.cooler.rated_w, build.cpu.max_power_w
    if rated is not None and watts is not None:
        yield "cooler", Message.of("planner.why.cooler", rated=rated, watts=watts)
    elif build.cpu.socket is not None:
        yield "cooler", Message.of("planner.why.cooler-mount", socket=build.cpu.socket)
