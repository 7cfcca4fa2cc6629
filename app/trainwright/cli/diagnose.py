"""``trainwright diagnose``: why a run is slow, or why its memory ran out."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainwright import saving
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, option, terminal_of
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError
from trainwright.quoting import visible

if TYPE_CHECKING:
    from trainwright.diagnose import budget
    from trainwright.diagnose.evidence import Evidence
    from trainwright.diagnose.memory_remedies import Help
    from trainwright.diagnose.outofmemory import Explanation
    from trainwright.diagnose.readers.files import FileRead
    from trainwright.diagnose.running import Outcome
    from trainwright.estimate.time.steptime import TimeEstimate
    from trainwright.plan.evaluate import Facts

    Planned = tuple[Facts, TimeEstimate]

SECONDS = 10.0
"""Watched where nobody says for how long; assumed: tens of samples."""


class _FilesOrCommand(Command):
    """Words before ``--`` are files, those behind it a command, which click does not tell apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command's words from being read as options or files."""
        files, mark, words = args, "", list[str]()
        if "--" in args:
            at = args.index("--")
            files, mark, words = args[:at], "--", args[at + 1 :]
        ctx.meta[_COMMAND] = tuple(words) if mark else ()
        return super().parse_args(ctx, files)


_COMMAND = "trainwright.diagnose.command"


@click.command(cls=_FilesOrCommand, help="cli.diagnose.summary")
@option("--pid", type=click.IntRange(min=1), metavar="N", help="cli.diagnose.pid")
@option("--seconds", type=float, metavar="S", help="cli.diagnose.seconds")
@option("--try", "try_it", is_flag=True, help="cli.diagnose.try")
@option("--record", metavar="FILE", help="cli.diagnose.record")
@option("--traceback", metavar="FILE", help="cli.diagnose.traceback")
@option("--plan", metavar="PLAN", help="cli.diagnose.plan")
@options.common
@click.argument("files", nargs=-1, metavar="[FILE...] [-- COMMAND...]")
@click.pass_context
def command(
    context: click.Context,
    pid: int | None,
    seconds: float | None,
    try_it: bool,
    record: str | None,
    traceback: str | None,
    plan: str | None,
    files: tuple[str, ...],
) -> Answer:
    """Look at what was named, and say what holds the run back."""
    terminal = terminal_of(context)
    command: tuple[str, ...] = context.meta[_COMMAND]
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError.of("monitor.bad-seconds", value=seconds)
    if sum(each is not None and each != () for each in (pid, traceback, command or None)) > 1:
        raise UserError.of("diagnose.one-source")
    if traceback is not None and (record is not None or seconds is not None):
        raise UserError.of("diagnose.traceback-alone")
    if plan is not None and not (traceback or files or command or (record and pid is None)):
        raise UserError.of("diagnose.plan-alone")
    if try_it and not command:
        raise UserError.of("diagnose.try-needs-command")
    if files:
        if pid is not None or traceback is not None or seconds is not None or command:
            raise UserError.of("diagnose.files-alone")
        if len(files) == 1 and record is None:
            return _file(terminal, files[0], plan)
        return _files(terminal, files, record, plan)
    if traceback is not None:
        return _explained(terminal, traceback, plan)
    if command:
        return _run(terminal, command, seconds, record, plan, try_it=try_it)
    if record is not None and pid is None:
        if seconds is not None:
            raise UserError.of("diagnose.seconds-with-record")
        from trainwright.diagnose.record import read

        return _answer(read(record), planned=_planned(terminal, plan))
    return _live(terminal, pid, seconds or SECONDS, record)


def _file(terminal: Terminal, name: str, plan: str | None) -> Answer:
    """Return what one file says: why memory ran out, or what the run's time goes into."""
    from trainwright.diagnose.outofmemory import is_snapshot

    if is_snapshot(name):
        return _explained(terminal, name, plan)
    try:
        return _files(terminal, (name,), None, plan)
    except UserError as error:
        if error.message.id != "diagnose.file-is-error" or name == "-":  # it is read once
            raise
        return _explained(terminal, name, plan)


def _files(
    terminal: Terminal, names: tuple[str, ...], path: str | None, plan: str | None
) -> Answer:
    from trainwright.diagnose.gathering import gather

    _check_place(path)
    gathered = gather(names)
    planned = _planned(terminal, plan)
    _keep(terminal, gathered.evidence, path)
    return _answer(gathered.evidence, None, gathered.files, gathered.budget, planned)


def _planned(terminal: Terminal, path: str | None) -> "Planned | None":
    """Return the facts of a plan and the time that it predicts; None without a plan."""
    from trainwright.plan.evaluate import time_of

    if path is None:
        return None
    plan = planning.load(planning.PlanSource(path, (), False))
    facts = planning.facts(plan, terminal)
    return facts, time_of(plan, facts)


def _live(terminal: Terminal, pid: int | None, seconds: float, path: str | None) -> Answer:
    from trainwright.diagnose import watching

    _check_place(path)
    run = pid if pid is not None else watching.likely_run()
    watching.check_process(run)
    if not terminal.json:
        said = "diagnose.watching-run" if run is not None else "diagnose.watching-all"
        click.echo(terminal.say(said, pid=run or 0, seconds=seconds), err=True)
    evidence = watching.watched(run, seconds)
    _keep(terminal, evidence, path)
    return _answer(evidence)


def _run(
    terminal: Terminal,
    words: tuple[str, ...],
    seconds: float | None,
    path: str | None,
    plan: str | None,
    *,
    try_it: bool,
) -> Answer:
    from trainwright.diagnose import running, trying

    _check_place(path)
    planned = _planned(terminal, plan)
    if try_it:
        seconds = seconds or trying.SECONDS
    outcome = running.run(words, seconds=seconds, quiet=terminal.json)
    again = try_it and outcome.went_well
    trial = trying.trial_of(outcome.evidence) if again else None
    if trial is not None and seconds is not None:
        click.echo(visible(terminal.say("diagnose.trying", how=trial.how)), err=True)
        quiet, seen = terminal.json, outcome.evidence
        found = trying.tried(trial, seen, words, seconds=seconds, quiet=quiet)
        outcome = replace(outcome, evidence=found)
    elif again:
        click.echo(terminal.say("diagnose.nothing-to-try"), err=True)
    _keep(terminal, outcome.evidence, path)
    return _answer(outcome.evidence, outcome, planned=planned)


def _check_place(path: str | None) -> None:
    """Refuse a record's place before the run, not after the hours that it takes."""
    if path is not None:
        saving.check(Path(path))


def _keep(terminal: Terminal, evidence: "Evidence", path: str | None) -> None:
    """Say what the record holds and write it; on a full drive the verdict still follows."""
    if path is None:
        return
    from trainwright.diagnose.contents import contents
    from trainwright.diagnose.record import write

    click.echo(visible(terminal.say("diagnose.holds", path=path)), err=True)
    for part in contents(evidence):
        click.echo(f"  {visible(terminal.say(part.id, **part.values))}", err=True)
    try:
        write(evidence, Path(path))
    except UserError as error:
        terminal.complain(error.message)


def _answer(
    evidence: "Evidence",
    outcome: "Outcome | None" = None,
    files: "tuple[FileRead, ...]" = (),
    divided: "budget.Budget | None" = None,
    planned: "Planned | None" = None,
) -> Answer:
    from trainwright.cli import diagnosisview
    from trainwright.diagnose import budget, predicted
    from trainwright.diagnose.decide import judge
    from trainwright.diagnose.report import as_json
    from trainwright.diagnose.verdict import Cause

    diagnosis = judge(evidence)
    divided = divided or budget.of(evidence)
    beside = predicted.compared(divided, evidence, *planned) if planned is not None else None
    document = as_json(diagnosis, evidence, divided, files, beside)
    ended_well = outcome is None or outcome.exit_code == 0 or outcome.stopped
    if outcome is not None:
        document["command"] = {"exit": outcome.exit_code}
    known = diagnosis.first.cause is not Cause.UNKNOWN
    return Answer(
        document,
        lambda screen: diagnosisview.show(
            screen, diagnosis, evidence, _ending(outcome), files, divided, beside
        ),
        Exit.DONE if known and ended_well else Exit.NO,
    )


def _ending(outcome: "Outcome | None") -> Message | None:
    """Return how the command ended."""
    if outcome is None:
        return None
    if outcome.stopped:
        return Message.of("diagnose.command-stopped")
    if outcome.exit_code < 0:
        return Message.of("diagnose.command-signal", signal=-outcome.exit_code)
    return Message.of("diagnose.command-ended", code=outcome.exit_code)


def _explained(terminal: Terminal, source: str, plan: str | None) -> Answer:
    from trainwright.cli import diagnosisview
    from trainwright.diagnose import outofmemory
    from trainwright.diagnose.report import explanation_as_json

    explanation = outofmemory.explained_file(source)
    found = _help(terminal, explanation, plan)
    return Answer(
        explanation_as_json(explanation, found),
        lambda screen: diagnosisview.show_explanation(screen, explanation, found),
        Exit.NO if explanation.kind == "none" and explanation.timeline is None else Exit.DONE,
    )


def _help(terminal: Terminal, explanation: "Explanation", path: str | None) -> "Help":
    """Return what would help; a change that needs another trace of the model is traced."""
    from trainwright.diagnose.memory_remedies import help_for
    from trainwright.plan.evaluate import evaluate

    if path is None:
        return help_for(explanation)
    plan = planning.load(planning.PlanSource(path, (), False))
    facts = planning.facts(plan, terminal)
    return help_for(
        explanation,
        plan,
        facts,
        lambda changed: evaluate(changed, planning.facts(changed, terminal)),
    )
