"""``trainwright review``: the files of other trainers, and what is wrong with them here."""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainwright.advise import near
from trainwright.advise.advice import what_becomes
from trainwright.advise.whatif import WhatIf, whatifs
from trainwright.catalog.instances import find_instance
from trainwright.catalog.query import find_gpu
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, option
from trainwright.cli.terminal import Terminal
from trainwright.machine.choice import MOST_PIECES
from trainwright.messages import Message, UserError
from trainwright.messages.units import gib, percent
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, evaluate
from trainwright.plan.limits import with_limits
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.quoting import dotted, json_text, one_line
from trainwright.review import Review, review, rules_memory, sources
from trainwright.review import reviewing as reviews
from trainwright.review.apply import write
from trainwright.review.finding import Change, Finding
from trainwright.review.machines import GPUS
from trainwright.review.planning import Asked
from trainwright.review.report import as_json
from trainwright.workload.settings import Effect

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

MARKS = {"error": "✗", "risk": "△"}
STYLES = {"error": "bold red", "risk": "bold yellow", "way": "bold", "gain": "green"}
_SECONDS, _LEAST, _WHOLE = 0.5, 0.2, 1.6
"""Seconds of computing for changes that are worth trying; for gains where the start was slow; and
of the process before its last change begins. Assumed, so that a review takes 2 s."""
_COUNTED = re.compile(r"(.+):(-?[0-9]+)", re.ASCII)


@click.command(cls=Command, help="cli.review.summary")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option(
    "--machine",
    default="local",
    metavar="local|CLOUD|GPU[:COUNT]",
    help="cli.option.review-machine",
)
@option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="cli.option.set")
@option("--take", "numbers", multiple=True, type=int, metavar="N", help="cli.option.review-take")
@option("--exact", is_flag=True, help="cli.option.review-exact")
@option("--write", "writes", is_flag=True, help="cli.option.review-write")
@options.out_file("cli.option.review-out")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    files: tuple[str, ...],
    machine: str,
    overrides: tuple[str, ...],
    numbers: tuple[int, ...],
    exact: bool,
    writes: bool,
    out: Path | None,
) -> Answer:
    """Read the files, say what is wrong with them, and change them where that is asked for."""
    run, named = sources(files), machine_named(machine)
    begun: list[Finding] | None = None
    """What was printed before the figures, which a trace lets wait."""

    def answer(plan: Plan) -> tuple[Facts, Report]:
        nonlocal begun
        facts = None if exact else near.resolved(plan)
        if not isinstance(facts, Facts):
            if not terminal.json:
                begun = _show_first(terminal, review(run, named, _later, changes=overrides))
            facts = planning.facts(plan, terminal, one_point=True)
        return facts, with_limits(plan, facts, evaluate(plan, facts))

    found = review(run, named, answer, changes=overrides, whatifs=_changes)
    if out is not None:
        if found.planned.plan is None:
            raise UserError.of("review.no-plan", why=found.unestimated or "")
        file.write(found.planned.plan, out)
    taken = reviews.taken(found, numbers)
    diff = reviews.diff(found, taken)
    written = write(reviews.texts(found, taken)) if writes else ()

    def show(screen: "Screen") -> None:
        show_review(screen, found, begun)
        if diff:
            screen.line()
            screen.say("cli.review.diff-written" if writes else "cli.review.diff", "bold")
            for line in diff.splitlines():
                screen.line(line)
        for path, backup in written:
            screen.say("cli.review.backup", file=str(path), backup=str(backup))

    document = as_json(found)
    document["diff"] = diff
    document["written"] = [{"file": str(path), "backup": str(copy)} for path, copy in written]
    return Answer(document, show, Exit.NO if found.errors or found.undecided else Exit.DONE)


def _later(_plan: Plan) -> NoReturn:
    """Give no figures yet, so that the rest of a review can be printed at once."""
    raise UserError.of("cli.review.follows")


def _show_first(terminal: Terminal, found: Review) -> list[Finding]:
    """Print at once what needs no figures, and return the findings of it."""
    first = [one for one in found.findings if one.level in ("error", "risk")]

    def show(screen: "Screen") -> None:
        _show_sources(screen, found)
        for level in ("error", "risk"):
            _show_findings(screen, level, first, trains=_trains(found))
        screen.line()
        screen.say("cli.review.follows")

    terminal.deliver(Answer({}, show))
    return first


def _changes(plan: Plan, facts: Facts, report: Report) -> tuple[tuple[WhatIf, ...], bool]:
    """Return ways out and gains, and whether a review had time for all of them."""
    begun = time.process_time()
    slow = report.fits and begun < _WHOLE  # of a process that goes on, the start is over
    until = begun + (min(_SECONDS, max(_LEAST, _WHOLE - begun)) if slow else _SECONDS)

    def wanted() -> bool:
        return time.process_time() < until

    answer, ways = near.answered, near.ways
    return whatifs(plan, facts, report, answer=answer, ways=ways, wanted=wanted), wanted()


def machine_named(text: str) -> Mapping[str, Any]:
    """Return the plan's section of ``local``, a cloud's computer or ``GPU[:COUNT]``.

    Raises:
        UserError: the count is not one that a machine may have.
    """
    if text == "local":
        return {"local": True}
    found = _COUNTED.fullmatch(text)
    if found is None:
        return _named(text)
    if found[2] not in map(str, range(1, MOST_PIECES + 1)):
        raise UserError.of("cli.review.machine-count", value=found[2], most=MOST_PIECES)
    return {"gpus": [{"id": found[1], "count": int(found[2])}]}


def _named(text: str) -> Mapping[str, Any]:
    try:
        find_gpu(text)
    except UserError:  # few name a cloud's computer: only then are their files read
        if (rented := find_instance(text)) is not None:
            return {"cloud": rented.name, "gpus": [{"id": rented.gpu, "count": rented.gpus}]}
    return {"gpus": [{"id": text}]}


def _show_sources(screen: "Screen", found: Review) -> None:
    for line in dict.fromkeys(f"{source.name} · {source.tool}" for source in found.run.sources):
        screen.line(line, "bold")


def show_review(screen: "Screen", found: Review, begun: Sequence[Finding] | None = None) -> None:
    """Print a review: the files, the verdict, the findings, what is asked and not understood.

    ``begun`` are the findings that are on the screen already, with the files; None where
    nothing is.
    """
    if begun is None:
        _show_sources(screen, found)
    screen.line()
    if found.report is not None:
        from trainwright.cli.estimateview import MARKS as VERDICTS
        from trainwright.cli.estimateview import STYLES as COLOURS
        from trainwright.plan.sentences import verdict

        doubtful = found.undecided or found.wider
        if doubtful is None or found.report.verdict is Verdict.CANNOT_CHECK:
            mark, style = VERDICTS[found.report.verdict], COLOURS[found.report.verdict]
            screen.line(f"{mark} {screen.text(verdict(found.report))}", style)
        if (note := rules_memory.nearby(found.report)) is not None:
            screen.line(note)
    elif found.unestimated is not None:
        screen.say("cli.review.not-estimated", why=found.unestimated)
    for level in ("error", "risk"):
        others = [one for one in found.findings if one not in (begun or ())]
        _show_findings(screen, level, others, trains=_trains(found))
    if not found.errors:
        screen.line()
        ending = "-undecided" if found.undecided else "" if found.report else "-unestimated"
        screen.say(f"cli.review.no-errors{ending}")
    _show_offers(screen, found)
    if found.no_way is not None:
        screen.line()
        screen.line(found.no_way)
    _show_bullets(
        screen,
        "cli.review.asked",
        [_asked(one) for one in found.planned.asked],
    )
    _show_bullets(screen, "cli.review.not-planned", [*found.planned.not_planned, *found.run.absent])
    left = [
        Message.of("cli.review.key", where=_at(u.source.name, u.line), key=u.key)
        for u in found.computed
    ]
    _show_bullets(screen, "cli.review.computed", left)
    for id, unread in (("cli.review.own", found.own), ("cli.review.no-part", found.no_part)):
        if unread:
            screen.line()
            screen.say(id, count=len(unread), keys=[one_line(one.key) for one in unread])


def _at(name: str, line: int | None) -> str:
    return f"{name}:{line}" if line else name


def _asked(one: Asked) -> Message:
    key, taken, default_of = one.key, one.taken, one.default_of
    if taken is None:
        return Message.of("cli.review.asked-needed", key=key)
    if key == GPUS:
        return Message.of("cli.review.asked-gpus", count=taken)
    if taken == "preset":
        return Message.of("cli.review.asked-usual", key=key)
    if one.why is not None:
        return Message.of(f"cli.review.asked-{one.why}", key=key, value=str(taken))
    id = "cli.review.asked-ours" if default_of is None else "cli.review.asked-default"
    return Message.of(id, key=key, value=str(taken), tool=default_of or "")


def _show_bullets(screen: "Screen", title: str, lines: Sequence[Message]) -> None:
    if lines:
        screen.line()
        screen.say(title, "bold")
        screen.bullets(lines)


def _trains(found: Review) -> bool:
    return found.planned.plan is None or found.planned.plan.workload.trains


def _show_findings(screen: "Screen", level: str, among: Sequence[Finding], *, trains: bool) -> None:
    findings = [one for one in among if one.level == level]
    if not findings:
        return
    screen.line()
    screen.say(f"cli.review.{level}s", "bold", count=len(findings))
    for one in findings:
        where = f"{one.where}: " if one.file else ""
        screen.line(
            f"{MARKS[level]} {where}{screen.text(one.message)}"
            f"{_effect(screen, one, trains=trains)}",
            STYLES[level],
        )


def _show_offers(screen: "Screen", found: Review) -> None:
    """Print ways out and gains with their numbers, each with its lines of the files."""
    level = ""
    for number, one in enumerate(reviews.offers(found), 1):
        if one.level != level:
            level = one.level
            count = sum(other.level == level for other in found.findings)
            screen.line()
            screen.say(f"cli.review.{level}s", "bold", count=count)
        effect = _effect(screen, one, trains=_trains(found))
        screen.line(f"{number}. {screen.text(one.message)}{effect}", STYLES[level])
        for change in one.changes:
            _show_change(screen, found, change)
        if one.beyond:
            screen.say("cli.review.beyond", keys=list(one.beyond))


def _show_change(screen: "Screen", found: Review, change: Change) -> None:
    """Print the key of a file before and after a change."""
    source = next(source for source in found.run.sources if source.name == change.file)
    before: Any = source.document.data
    for key in change.place:
        before = before.get(key) if isinstance(before, dict) else None
    name = dotted(change.place)
    if before is not None:
        screen.line(f"   - {name}: {json_text(before)}")
    screen.line(f"   + {name}: {json_text(change.value)}")


def _effect(screen: "Screen", one: Finding, *, trains: bool) -> str:
    """Return what a gain does to speed, memory and result."""
    parts = []
    if one.gain is not None:
        parts.append(f"{'+' if one.gain >= 0 else '−'}{percent(abs(one.gain))}")
    if one.memory_bytes:
        parts.append(f"{'+' if one.memory_bytes >= 0 else '−'}{gib(abs(one.memory_bytes))}")
    if one.level in ("way", "gain") or one.effect is not Effect.SAME:
        parts.append(screen.text(what_becomes(one.effect, trains=trains)))
    return f" ({', '.join(parts)})" if parts else ""
