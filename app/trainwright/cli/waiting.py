"""``trainwright catalog prices waiting``: rows of lists that no part was known for."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from trainwright.cli import options
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, option
from trainwright.cli.prices import choice_of, row_json, show_rows
from trainwright.messages import UserError, render
from trainwright.prices import own_prices
from trainwright.prices.imports import Row, preview_rows, waiting

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

ALL = "all"


@click.command("waiting", cls=Command, help="cli.prices.waiting")
@option("--choose", "choices", multiple=True, metavar="LINE=ID", help="cli.prices.choose")
@option("--keep", is_flag=True, help="cli.prices.waiting.keep")
@option("--discard", multiple=True, metavar="LINE|all", help="cli.prices.waiting.discard")
@options.common
def waiting_command(choices: tuple[str, ...], keep: bool, discard: tuple[str, ...]) -> Answer:
    """Show the rows by number; keep those that match, discard those that nobody wants."""
    held = waiting.load()
    numbered = [replace(row, line=number) for number, row in enumerate(held.rows, start=1)]
    found = preview_rows(numbered, "waiting")
    found = found.chosen(dict(choice_of(found, text) for text in choices))
    goes = _goes(discard, held.rows)
    by_number = dict(enumerate(held.rows, start=1))
    placed = [by_number[row.line] for row in found.matched()] if keep else []
    if keep:
        seen = [
            replace(one, source=f"{row.origin}:{row.line}")
            for one, row in zip(found.observations(), placed, strict=True)
        ]
        own_prices.add(seen)
    gone = waiting.drop([*goes, *placed])
    left = len(held.rows) - gone

    def show(screen: "Screen") -> None:
        if held.note is not None:
            screen.line(held.note)
        if found.rows:
            show_rows(screen, found)
        if placed:
            screen.say("prices.kept", count=len(placed), known=0)
        if goes:
            screen.say("prices.waiting.discarded", count=len(goes))
        screen.say("prices.waiting.left" if left else "prices.waiting.none", count=left)

    document = {
        "rows": [row_json(row) for row in found.rows],
        "kept": len(placed),
        "discarded": len(goes),
        "waiting": left,
        "file": str(waiting.path()),
        "notes": [render(held.note, "en")] if held.note is not None else [],
    }
    return Answer(document, show, Exit.DONE)


def _goes(texts: tuple[str, ...], rows: tuple[Row, ...]) -> list[Row]:
    """Return the rows that are to be discarded.

    Raises:
        UserError: there is no row of a number.
    """
    if ALL in texts:
        return list(rows)
    found = []
    for text in texts:
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= len(rows)):
            raise UserError.of("prices.waiting.no-such", text=text[:40], count=len(rows))
        found.append(rows[int(text) - 1])
    return found
