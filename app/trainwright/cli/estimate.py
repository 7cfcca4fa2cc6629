"""``trainwright estimate``: memory and time of a plan as it stands."""

from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwright import saving
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, NamedPath, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError
from trainwright.plan import file
from trainwright.plan.comparing import Answered
from trainwright.plan.evaluate import evaluate, operators_of
from trainwright.plan.limits import with_limits
from trainwright.plan.report import as_json, roofs_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.advise.whatif import WhatIf
    from trainwright.cli.screen import Screen

# Pages, comparisons and advice are imported where they are asked for: they load a third more.


@click.command(cls=Command, help="cli.estimate.summary")
@partial(planning.plan_argument, required=False)
@option("--explain", is_flag=True, help="cli.option.explain")
@option("--ops", is_flag=True, help="cli.option.ops")
@option("--what-if", "what_if", is_flag=True, help="cli.option.what-if")
@option("--compare", "others", multiple=True, metavar="PLAN", help="cli.option.compare")
@option("--page", type=NamedPath(), metavar="FILE.html", help="cli.option.page")
@option("--stdin", "lines", is_flag=True, help="cli.option.stdin")
@option("--watch", "watching", is_flag=True, help="cli.option.watch")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    source: PlanSource,
    explain: bool,
    ops: bool,
    what_if: bool,
    others: tuple[str, ...],
    page: Path | None,
    lines: bool,
    watching: bool,
) -> Answer | int:
    """Evaluate the plan, once or at each save; with others, side by side."""
    if lines:
        from trainwright.cli import streaming

        if others or page or ops or what_if or explain or watching:
            raise UserError.of("cli.estimate.stdin-alone")
        return streaming.answer_lines(source, terminal)
    if not source.plan:
        raise UserError.of("cli.missing", name="PLAN", command="trainwright estimate")

    def answer() -> Answer:
        if others:
            from trainwright.cli.comparing import compared

            sources = (source, *(replace(source, plan=other) for other in others))
            return compared(tuple(_answered(one, terminal) for one in sources))
        return _answer(source, terminal, explain=explain, ops=ops, what_if=what_if, page=page)

    if watching:
        from trainwright.cli import streaming

        return streaming.watch(source.plan, terminal, answer)
    return answer()


def _answer(
    source: PlanSource,
    terminal: Terminal,
    *,
    explain: bool,
    ops: bool,
    what_if: bool,
    page: Path | None,
) -> Answer:
    answered = _answered(source, terminal)
    plan, facts, report = answered.plan, answered.facts, answered.report
    if page is not None:
        from trainwright.export.page import page as written_page

        saving.write(page, written_page(plan, facts, report, terminal.language, date.today()))
    operators = operators_of(plan, facts) if ops else None
    changes: Sequence[WhatIf] = ()
    if what_if:
        from trainwright.advise import ways_out, whatif

        changes = whatif.whatifs(plan, facts, report, ways=ways_out)

    def show(screen: "Screen") -> None:
        from trainwright.cli import estimateview as view

        view.show_report(screen, plan, facts, report)
        if operators is not None:
            view.show_operators(screen, operators)
        elif ops:
            refused = report.time.refusal
            screen.line(refused if refused is not None else Message.of("cli.ops.none"))
        if what_if:
            view.show_whatifs(screen, changes)
        if explain:
            view.show_derivations(screen, report)

    document: dict[str, Any] = as_json(report)
    if ops:
        document["time"]["roofline"] = operators and roofs_as_json(operators)
    if what_if:
        document["what_if"] = whatif.as_json(changes)
    good = report.fits and report.runs
    return Answer(document, show, Exit.DONE if good else Exit.NO)


def _answered(source: PlanSource, terminal: Terminal) -> Answered:
    with file.naming(source.plan):
        plan = planning.load(source, terminal)
        facts = planning.facts(plan, terminal, one_point=True)
        return Answered(plan, facts, with_limits(plan, facts, evaluate(plan, facts)))
