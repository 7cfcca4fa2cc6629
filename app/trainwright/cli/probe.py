"""``trainwright probe``: this computer, every reading a value or a reason."""

from typing import TYPE_CHECKING, Any

import click

from trainwright.cli import benching, options
from trainwright.cli.answer import Answer
from trainwright.cli.parsing import Command, Fraction, option
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError
from trainwright.probe.document import as_document
from trainwright.probe.driver import PATIENCE_S
from trainwright.probe.privacy import from_home
from trainwright.probe.reading import Missing
from trainwright.probe.records import Draft, drafts, offer, write
from trainwright.probe.shown import Card, Row, cards
from trainwright.probe.snapshot import Snapshot, resolved, take
from trainwright.profile import interpreter

if TYPE_CHECKING:
    from trainwright.cli.screen import Cell, Screen


@click.command(cls=Command, help="cli.probe.summary")
@option("--identifiers", is_flag=True, help="cli.probe.identifiers")
@option("--keep-records", is_flag=True, help="cli.probe.keep-records")
@option("--no-torch", is_flag=True, help="cli.probe.no-torch")
@option(
    "--wait",
    type=Fraction(min=0.1, max=600),
    default=PATIENCE_S,
    metavar="SECONDS",
    help="cli.probe.wait",
)
@benching.bench_options
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    identifiers: bool,
    keep_records: bool,
    no_torch: bool,
    wait: float,
    bench: str | None,
    **asked: Any,
) -> Answer:
    """Read everything; change nothing but, where asked to, the person's own catalog."""
    if bench is not None:
        return benching.answer(terminal, *benching.chosen(bench, **asked))
    benching.without_bench(click.get_current_context())
    chosen = None if no_torch else interpreter.chosen()
    snapshot = take(identifiers=identifiers, interpreter=chosen, patience_s=wait)
    offered = drafts(snapshot)
    kept = offered if keep_records else ()
    for draft in kept:
        write(draft)
    document = as_document(snapshot) | {"kept": [from_home(draft.path) for draft in kept]}

    def show(screen: "Screen") -> None:
        for card in cards(snapshot):
            _show_card(screen, card)
        _show_machine(screen, snapshot)
        _show_drafts(screen, offered, kept)

    return Answer(document, show)


def _show_card(screen: "Screen", card: Card) -> None:
    title = Message.of(f"probe.part.{card.part}", name=card.title) if card.named else card.title
    rows = [*map(_cells, card.rows)]
    if card.reason is not None and not rows:
        screen.line(title, "bold")
        screen.indented(card.reason.reason)
        screen.line()
        return
    screen.table(rows, title=title)


def _cells(row: Row) -> "tuple[Cell, Cell]":
    """Return a row's cells; a reason stands in brackets, so that no value looks like one."""
    if isinstance(row.value, Missing):
        return row.label, Message.of("probe.absent", reason=row.value.reason)
    return row.label, row.value


def _show_machine(screen: "Screen", snapshot: Snapshot) -> None:
    try:
        found = resolved(snapshot)
    except UserError as error:
        screen.line(error.message)
        return
    gpus = [f"{gpu.count} × {gpu.record.name}" for gpu in found.machine.gpus]
    screen.say("cli.probe.plan", gpus=gpus)
    for note in found.notes:
        screen.line(note)


def _show_drafts(screen: "Screen", offered: tuple[Draft, ...], kept: tuple[Draft, ...]) -> None:
    for draft in offered:
        screen.line()
        screen.line(offer(draft), "bold")
        screen.indented(draft.text)
    for draft in kept:
        screen.say("probe.kept", path=from_home(draft.path))
    if offered and not kept:
        screen.say("probe.how-to-keep")
