"""Settings of the application: look, language, and where things are kept."""

from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.build.cost import HOUSEHOLD_KWH, USD_PER_KWH
from trainwright.messages import Message
from trainwright.messages.units import MEMORY
from trainwright.profile import interpreter
from trainwright.ui import asking, tokens, usual
from trainwright.ui.i18n import tr
from trainwright.ui.names import gpu_name, search_gpus
from trainwright.ui.preferences import SCALES, Preferences
from trainwright.ui.screens.form import row_label
from trainwright.ui.screens.pricecard import RateCard
from trainwright.ui.tasks import Latest
from trainwright.ui.usual import DIGITS, GPU
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Decimal, Segmented
from trainwright.ui.widgets.picker import Picker


class SettingsScreen(Scroll):
    """Every change applies at once."""

    changed = Signal()
    python_changed = Signal()

    def __init__(self, preferences: Preferences) -> None:
        body = QWidget()
        super().__init__(body)
        self._preferences = preferences
        outer = QHBoxLayout(body)
        outer.setContentsMargins(tokens.XXL, tokens.XXL, tokens.XXL, tokens.XXL)
        inner = QWidget()
        inner.setMaximumWidth(760)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.L)
        column.addWidget(Label(Message.of("ui.place.settings"), px=tokens.DISPLAY, weight=600))
        column.addWidget(self._look())
        column.addWidget(self._usual())
        self.rate = RateCard()
        self.rate.refresh()
        column.addWidget(self.rate)
        column.addWidget(self._tracing())
        column.addWidget(self._places())
        self.reset = Button(Message.of("ui.settings.reset"), "secondary", "arrow-counter-clockwise")
        self.reset.clicked.connect(self._reset)
        column.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)

    def _look(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        card.column.addWidget(Heading(Message.of("ui.settings.look")))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(tokens.M)
        grid.setColumnStretch(2, 1)
        self.theme = self._choice(
            grid, 0, "theme", ("system", "light", "dark"), self._preferences.theme
        )
        self.language = self._choice(
            grid, 1, "language", ("system", "en", "ko"), self._preferences.language
        )
        scales = tuple((scale, f"{scale} %") for scale in SCALES)
        name = Message.of("ui.settings.scale")
        self.scale = Segmented(scales, str(self._preferences.scale), name=name)
        self.scale.chosen.connect(self._set_scale)
        self.scale_says = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        _line(grid, 2, name, self.scale)
        self.scale_says.hide()
        grid.addWidget(self.scale_says, 3, 1, 1, 2)
        self.theme.chosen.connect(self._set_theme)
        self.language.chosen.connect(self._set_language)
        card.column.addLayout(grid)
        return card

    def _choice(
        self, grid: QGridLayout, line: int, key: str, values: tuple[str, ...], value: str
    ) -> Segmented:
        name = Message.of(f"ui.settings.{key}")
        choices: Any = [(v, Message.of(f"ui.settings.{key}.{v}")) for v in values]
        control = Segmented(choices, value, name=name)
        _line(grid, line, name, control)
        return control

    def _usual(self) -> Surface:
        """What counts where a plan says nothing."""
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        title, note = Message.of("ui.settings.usual"), Message.of("ui.settings.usual.note")
        card.column.addWidget(Heading(title, note))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(tokens.M)
        grid.setColumnStretch(2, 1)
        known = self._preferences.usual
        self.gpu = Picker(search_gpus, name=Message.of("ui.settings.gpu"), icon="cpu",
                          hint=Message.of("ui.picker.gpu"))  # fmt: skip
        self.gpu.show_value(gpu_name(known.gpu or GPU)[0])
        self.gpu.chosen.connect(self._set_gpu)
        _line(grid, 0, Message.of("ui.settings.gpu"), self.gpu)
        self.currency = self._choice(
            grid, 1, "currency", ("language", "USD", "KRW"), known.currency or "language"
        )
        self.currency.chosen.connect(self._set_currency)
        samples = [(key, f"1{mark}234{mark}567") for key, mark in DIGITS.items()]
        name = Message.of("ui.settings.digits")
        self.digits = Segmented(samples, known.digits, name=name)
        self.digits.chosen.connect(partial(self._write, "digits"))
        _line(grid, 2, name, self.digits)
        name = Message.of("ui.settings.memory")
        self.memory = Segmented([(unit, unit) for unit in MEMORY], known.memory, name=name)
        self.memory.chosen.connect(partial(self._write, "memory"))
        _line(grid, 3, name, self.memory)
        assumed = {"usd_per_kwh": USD_PER_KWH, "household_kwh": HOUSEHOLD_KWH}
        for line, (key, value) in enumerate(assumed.items(), start=4):
            name = Message.of(f"ui.settings.{key}")
            absent = f"{value:g} ({tr('pc.cost.assumed')})"
            field = Decimal(name=name, absent=absent)
            field.show_value(getattr(known, key) or 0.0)
            field.chosen.connect(partial(self._set_energy, key))
            _line(grid, line, name, field)
        card.column.addLayout(grid)
        return card

    def _set_gpu(self, id: str) -> None:
        self.gpu.show_value(gpu_name(id)[0])
        self._keep(gpu=id)

    def _set_currency(self, value: str) -> None:
        self._keep(currency=None if value == "language" else value)

    def _write(self, what: str, value: str) -> None:
        """Take another way of writing numbers; every place shows some."""
        self._keep(**{what: value})
        self.changed.emit()

    def _set_energy(self, key: str, value: object) -> None:
        self._keep(**{key: value or None})

    def _keep(self, **what: Any) -> None:
        self._preferences.usual = replace(self._preferences.usual, **what)
        usual.use(self._preferences.usual)

    def _set_scale(self, value: str) -> None:
        self._preferences.scale = int(value)
        self.scale_says.tell(Message.of("ui.settings.scale.next"))
        self.scale_says.show()

    def _reset(self) -> None:
        self._preferences.reset()
        interpreter.prefer(None)
        self.python_changed.emit()
        self.changed.emit()

    def _tracing(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        card.column.addWidget(Heading(Message.of("ui.settings.tracing")))
        card.column.addWidget(Label(Message.of("ui.settings.python"), colour="text2", wrap=True))
        self.python = Label("", px=tokens.LABEL, mono=True, wrap=True)
        self.python_says = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        card.column.addWidget(self.python)
        card.column.addWidget(self.python_says)
        line = QHBoxLayout()
        self.choose_python = Button(Message.of("ui.settings.python.choose"), small=True)
        self.choose_python.clicked.connect(self._choose_python)
        self.own_python = Button(Message.of("ui.settings.python.own"), small=True)
        self.own_python.clicked.connect(lambda: self._use(None))
        line.addWidget(self.choose_python)
        line.addWidget(self.own_python)
        line.addStretch(1)
        card.column.addLayout(line)
        self._looking = Latest(self)
        self._looking.done.connect(self._python_found)
        self._looking.failed.connect(self.python_says.tell)
        self._show_python()
        return card

    def _choose_python(self) -> None:
        path = asking.interpreter_to_use(self)
        if path is not None:
            self.look_at(str(path))

    def look_at(self, path: str) -> None:
        """Take an interpreter, once it has shown that it can trace."""
        self.python_says.tell(Message.of("ui.settings.python.asking"))
        self._looking.submit(lambda: interpreter.checked(path))

    def _python_found(self, found: interpreter.Interpreter) -> None:
        self._use(None if found.own else found.path)
        libraries = [f"{name} {version}" for name, version in found.versions]
        self.python_says.tell(Message.of("ui.settings.python.has", libraries=libraries))

    def _use(self, path: str | None) -> None:
        self._preferences.python = path
        interpreter.prefer(path)
        self._show_python()
        self.python_changed.emit()

    def _show_python(self) -> None:
        self.python.setText(interpreter.chosen())
        self.python_says.setText("")
        self.own_python.setEnabled(self._preferences.python is not None)

    def _places(self) -> Surface:
        from trainwright.catalog.load import overlay_folder
        from trainwright.plan.recovery import folder

        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        card.column.addWidget(Heading(Message.of("ui.settings.places")))
        for key, path in (("overlay", overlay_folder()), ("recovery", folder())):
            card.column.addWidget(
                Label(Message.of(f"ui.settings.{key}"), colour="text2", wrap=True)
            )
            shown = Label(str(path), px=tokens.LABEL, mono=True, wrap=True)
            shown.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse
                | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            shown.setAccessibleName(f"{tr(f'ui.settings.{key}')}: {path}")
            card.column.addWidget(shown)
        return card

    def _set_theme(self, value: Any) -> None:
        self._preferences.theme = value
        self.changed.emit()

    def _set_language(self, value: Any) -> None:
        self._preferences.language = value
        self.changed.emit()


def _line(grid: QGridLayout, line: int, name: Message, control: QWidget) -> None:
    label = row_label(name)
    label.setBuddy(control)
    grid.addWidget(label, line, 0)
    grid.addWidget(control, line, 1)
