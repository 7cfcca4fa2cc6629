"""Printing for people: sentences in their language, tables and derivations."""

import shutil
from collections.abc import Iterable, Sequence
from typing import NoReturn, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from trainwright.explain import Quantity, figures
from trainwright.messages import Language, Message, render
from trainwright.messages.units import FORMATS
from trainwright.quoting import visible

_WIDTH_WITHOUT_TERMINAL = 110
"""Characters; wide enough for every table, so that files hold whole rows."""

Cell = str | Message | Quantity
Lines = tuple[Cell, ...]
"""A cell of a table that has several lines."""


class _Console(Console):
    """rich ends the program with 1 where its reader leaves; the run decides that itself."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


class Screen:
    """Standard output as people read it; loaded only where no JSON is asked for."""

    def __init__(self, stream: TextIO, language: Language) -> None:
        self.language = language
        terminal = stream.isatty()
        width = shutil.get_terminal_size().columns if terminal else _WIDTH_WITHOUT_TERMINAL
        self._console = _Console(
            file=stream, width=width, highlight=False, markup=False, emoji=False
        )

    def text(self, cell: Cell) -> str:
        """Return a cell as text in the language; whatever it holds, it is a line and no more."""
        match cell:
            case Message():
                return visible(render(cell, self.language))
            case Quantity():
                return figures.figure(cell, self.language)
            case _:
                return visible(cell)

    def interval(self, quantity: Quantity) -> str:
        """Return ``low – high``, or nothing where the quantity has no interval."""
        return figures.interval(quantity, self.language)

    def count(self, number: int) -> str:
        """Return a whole number, thousands apart."""
        return FORMATS["num"](number, self.language)

    def value(self, value: object) -> str:
        """Return a setting's value as it stands in a plan file."""
        if value is None:
            return "null"
        return str(value).lower() if isinstance(value, bool) else str(value)

    def line(self, cell: Cell = "", style: str = "") -> None:
        """Print one line."""
        self._console.print(Text(self.text(cell), style=style))

    def whole_line(self, text: str) -> None:
        """Print a line that is not broken where it is longer than the terminal is wide."""
        self._console.print(Text(visible(text)), soft_wrap=True)

    def flush(self) -> None:
        """Let a reader have what was printed so far."""
        self._console.file.flush()

    def live(self) -> Live:
        """Return a display that repaints in place when it is told to."""
        return Live(console=self._console, auto_refresh=False)

    def say(self, id: str, /, style: str = "", **values: object) -> None:
        """Print the sentence of a catalogue id."""
        self.line(Message.of(id, **values), style)

    def indented(self, cell: Cell, style: str = "") -> None:
        """Print a paragraph below a heading, every line of it indented."""
        self._console.print(Padding(Text(self.text(cell), style=style), (0, 0, 0, 4), expand=False))

    def bullets(self, cells: Iterable[Cell]) -> None:
        """Print sentences as a list, continuation lines indented."""
        grid = Table.grid(padding=(0, 1))
        for cell in cells:
            grid.add_row(" •", Text(self.text(cell), overflow="fold"))
        self._console.print(grid)

    def table(
        self,
        rows: Iterable[Sequence[Cell | Lines]],
        headings: Sequence[Cell | Lines] = (),
        title: Cell = "",
        numbers: Sequence[int] = (),
    ) -> None:
        """Print rows; the columns in ``numbers`` stand at the right."""
        table = self.made_table(rows, headings, numbers)
        if title:
            self.line(title, "bold")
        self._console.print(table)

    def made_table(
        self,
        rows: Iterable[Sequence[Cell | Lines]],
        headings: Sequence[Cell | Lines] = (),
        numbers: Sequence[int] = (),
    ) -> Table:
        """Return a table that is not printed yet."""
        rows = [tuple(row) for row in rows]
        table = Table(box=SIMPLE_HEAD, show_header=bool(headings), pad_edge=False)
        for column in range(max((len(row) for row in rows), default=len(headings))):
            heading = self._lines(headings[column]) if headings else ""
            justify = "right" if column in numbers else "left"
            table.add_column(Text(heading), justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*(Text(self._lines(cell)) for cell in row))
        return table

    def _lines(self, cell: Cell | Lines) -> str:
        return "\n".join(map(self.text, cell if isinstance(cell, tuple) else (cell,)))

    def derivation(self, quantity: Quantity) -> None:
        """Print a quantity and everything it was made from, as a tree."""
        self._console.print(self._branch(quantity))

    def _branch(self, quantity: Quantity) -> Tree:
        head = Text(f"{self.text(quantity.name)}  {self.text(quantity)}")
        for detail in (quantity.formula, figures.source(quantity.source, self.language)):
            if detail:
                head.append(f"  {visible(detail)}", "dim")
        if quantity.note is not None:
            head.append(f"  {self.text(quantity.note)}", "italic")
        tree = Tree(head, guide_style="dim")
        for part in quantity.parts:
            tree.children.append(self._branch(part))
        return tree
