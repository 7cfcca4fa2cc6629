"""What creates the layout, to be copied; and the other ways to share, side by side."""

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout

from trainwright.messages import Message
from trainwright.messages.units import duration
from trainwright.mig import parted
from trainwright.mig.board import Sketch
from trainwright.mig.commands import Commands, commands, kubernetes, visible
from trainwright.mig.planning import Planned
from trainwright.mig.sharing import Alternative
from trainwright.ui import tokens
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.screens.computer import Glyph
from trainwright.ui.widgets.base import Hairline, Heading, Label, Surface, clear, row
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo
from trainwright.ui.widgets.entry import TextBox

KINDS = ("apply", "undo", "mig-parted", "kubernetes", "environment")


def texts(
    sketches: Sequence[Sketch], shells: Iterable[Commands], gpus: Sequence[int]
) -> dict[str, str]:
    """Return the text of each kind; empty where there is nothing to do."""
    shells, layouts = list(shells), [sketch.layout for sketch in sketches]
    cut = any(layouts)
    profiles = sorted({each.profile for layout in layouts for each in layout})
    seen = [
        visible(sketch.drawn.jobs.get(each, ""), each)
        for sketch in sketches
        for each in sketch.layout
    ]
    return {
        "apply": "\n".join(line for shell in shells for line in shell.apply),
        "undo": "\n".join(line for shell in shells for line in shell.undo),
        "mig-parted": parted.write(parted.of_layouts(layouts, gpus)) if cut else "",
        "kubernetes": "---\n".join(map(kubernetes, profiles)),
        "environment": "\n".join(seen),
    }


def shells_of(
    sketches: Sequence[Sketch], gpus: Sequence[int], on: Sequence[bool]
) -> Iterable[Commands]:
    """Return the commands of each GPU on which something is or was."""
    for sketch, gpu, already in zip(sketches, gpus, on, strict=True):
        if sketch.layout or sketch.current:
            current = sketch.current
            yield commands(sketch.table, sketch.layout, gpu=gpu, current=current, on=already)


class CommandsCard(Surface):
    """Warnings first, then the lines; the app runs none of them."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L), gap=tokens.S)
        self.column.addWidget(Heading(Message.of("ui.mig.commands")))
        self.column.addWidget(
            Label(Message.of("ui.mig.commands.lead"), px=tokens.LABEL, colour="text2", wrap=True)
        )
        self._warnings = QVBoxLayout()
        self._warnings.setSpacing(6)
        self.column.addLayout(self._warnings)
        self.kind = Combo(
            [(kind, Message.of(f"ui.mig.commands.{kind}")) for kind in KINDS], "apply",
            name=Message.of("ui.mig.commands.kind"),
        )  # fmt: skip
        self.copy = Button(Message.of("ui.mig.copy"), "secondary", "copy", small=True)
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(self.kind, 1)
        line.addWidget(self.copy)
        self.column.addLayout(line)
        self.box = TextBox(name=Message.of("ui.mig.commands"), height=116)
        self.box.field.setReadOnly(True)
        self.box.field.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.column.addWidget(self.box)
        self._texts: Mapping[str, str] = {}
        self.kind.chosen.connect(self._show_kind)
        self.copy.clicked.connect(self._copy)

    def show_sketches(
        self, sketches: Sequence[Sketch], gpus: Sequence[int], on: Sequence[bool]
    ) -> None:
        """Show what creates the layouts of GPUs by their indices; ``on``: those in MIG mode."""
        shells = list(shells_of(sketches, gpus, on))
        self._texts = texts(sketches, shells, gpus)
        clear(self._warnings)
        warnings = (warning for shell in shells if shell.apply for warning in shell.warnings)
        for warning in dict.fromkeys(warnings):
            self._warnings.addWidget(_warned(warning))
        self._show_kind(self.kind.currentData())

    def _show_kind(self, kind: str) -> None:
        text = self._texts.get(kind, "")
        self.copy.setEnabled(bool(text))
        self.box.field.setPlainText(text or tr("ui.mig.commands.none"))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._texts.get(self.kind.currentData(), ""))


def _warned(warning: Message) -> Surface:
    line = Surface("none", padding=(0, 0, 0, 0), gap=0)
    inner = QHBoxLayout()
    inner.setSpacing(tokens.S)
    inner.addWidget(Glyph("warning-fill", "tightFill", 14), 0, Qt.AlignmentFlag.AlignTop)
    inner.addWidget(Label(warning, px=tokens.LABEL, wrap=True), 1)
    line.column.addLayout(inner)
    return line


class WaysCard(Surface):
    """The ways to share for the jobs at hand."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L), gap=tokens.S)
        self.column.addWidget(Heading(Message.of("cli.mig.ways")))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(tokens.S)
        self.column.addLayout(self._rows)
        self.show_planned(None)

    def show_planned(self, planned: Planned | None) -> None:
        """Show the comparison for other jobs."""
        clear(self._rows)
        if planned is None:
            none = Label(Message.of("ui.mig.ways.none"), px=tokens.LABEL, colour="text2", wrap=True)
            self._rows.addWidget(none)
            return
        if planned.advice is not None:
            self._rows.addWidget(_warned(planned.advice))
        for number, way in enumerate(planned.alternatives):
            if number:
                self._rows.addWidget(Hairline())
            self._rows.addWidget(_way(way))


def _way(way: Alternative) -> Surface:
    fits = ("check-circle-fill", "fitsFill") if way.fits else ("x-circle-fill", "noFill")
    if way.way == "vgpu":
        fits = ("question-fill", "naFill")
    entry = Surface("none", padding=(0, 0, 0, 0), gap=2)
    name = Label(Message.of(f"mig.way.{way.way}"), px=tokens.LABEL, weight=600)
    time = Label(_span(way), px=tokens.LABEL, weight=500)
    entry.column.addWidget(row(Glyph(*fits, 14), name, None, time))
    entry.setAccessibleName(f"{say(Message.of(f'mig.way.{way.way}'))}: {_span(way)}")
    apart = Message.of("ui.mig.isolation", isolation=way.isolation)
    for text, ink in ((apart, "text2"), (way.because, "text3")):
        entry.column.addWidget(Label(text, px=tokens.LABEL, colour=ink, wrap=True))
    return entry


def _span(way: Alternative) -> str:
    if not way.fits and way.way != "vgpu":
        return tr("ui.mig.ways.not")
    if way.finish is None:
        return tr("ui.mig.ways.no-time")
    least, most = (f"~{duration(seconds, language())}" for seconds in way.finish)
    return least if least == most else f"{least} – {most}"
