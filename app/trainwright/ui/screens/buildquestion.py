"""What is asked of the planner: the work, the money, and what a PC must keep to."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout

from trainwright.messages import Message, UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import model_name
from trainwright.prices import Currency
from trainwright.ui import plans, tokens
from trainwright.ui.buying import PRESETS, STEPS, amount_in, budget_of, nearest_step
from trainwright.ui.i18n import tr
from trainwright.ui.money import amount, currency_of, in_short
from trainwright.ui.names import search_models
from trainwright.ui.screens.buildwishes import WishRow, search_parts
from trainwright.ui.screens.choices import TASKS
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Heading, Label, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented
from trainwright.ui.widgets.entry import Entry
from trainwright.ui.widgets.picker import Picker, Popup
from trainwright.ui.widgets.slider import Slider

_AMOUNT_WIDTH = 150
"""Pixels: ₩10 000 000 000, the largest that is taken."""


class Question(Surface):
    """Every control but the way writes to the plan; undoable."""

    turned = Signal()
    """A new PC, or upgrades of the plan's: the other one is wanted."""
    asked = Signal(str)
    """What this part would bring to the plan's PC."""

    def __init__(self, session: Session) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.M)
        self._session = session
        head = QHBoxLayout()
        head.setSpacing(tokens.M)
        head.addWidget(Heading(Message.of("ui.place.build"), Message.of("pc.build.note")), 1)
        ways = [
            ("buy", Message.of("pc.build.way.buy")),
            ("upgrade", Message.of("pc.build.way.upgrade")),
        ]
        self.way = Segmented(ways, "buy", name=Message.of("pc.build.way"))
        self.way.chosen.connect(self._turn)
        self.ask = Button(Message.of("pc.upgrade.ask"), "ghost", "plus", small=True)
        self.ask.clicked.connect(self._open_parts)
        self.ask.hide()
        head.addWidget(self.ask)
        head.addWidget(self.way)
        self.column.addLayout(head)
        self.column.addLayout(self._grid())

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(tokens.S)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(3, 2)
        self.model = Picker(search_models, name=Message.of("ui.key.model"), icon="cube",
                            hint=Message.of("ui.picker.model"))  # fmt: skip
        self.model.chosen.connect(self._choose_model)
        tasks = [(task, Message.of(f"ui.task.{task}")) for task in TASKS]
        self.task = Combo(tasks, "lora", name=Message.of("ui.key.workload.task"))
        self.task.chosen.connect(self._choose_task)
        self._label(grid, 0, 0, Message.of("ui.key.model"))
        grid.addWidget(self.model, 0, 1)
        self._label(grid, 0, 2, Message.of("ui.key.workload.task"))
        grid.addWidget(self.task, 0, 3)
        self._label(grid, 1, 0, Message.of("pc.build.budget"))
        grid.addLayout(self._money(), 1, 1, 1, 3)
        wishes = Label(Message.of("pc.build.wishes"), px=tokens.LABEL, colour="text2")
        wishes.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.problem = Label("", px=tokens.LABEL, colour="no", wrap=True)
        self.problem.hide()
        grid.addWidget(self.problem, 2, 1, 1, 3)
        grid.addWidget(wishes, 3, 0, Qt.AlignmentFlag.AlignTop)
        self.wishes = WishRow(self._session)
        grid.addWidget(self.wishes, 3, 1, 1, 3)
        return grid

    def _label(self, grid: QGridLayout, row: int, column: int, text: Message) -> None:
        grid.addWidget(Label(text, px=tokens.LABEL, colour="text2"), row, column)

    def _money(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.currency = Segmented([("KRW", "₩ KRW"), ("USD", "$ USD")], "USD",
                                  name=Message.of("pc.build.currency"))  # fmt: skip
        self.currency.chosen.connect(self._choose_currency)
        line.addWidget(self.currency)
        self.slider = Slider(0, len(STEPS["KRW"]) - 1, 0, name=Message.of("pc.build.budget"))
        self.slider.valueChanged.connect(self._slid)
        line.addWidget(self.slider, 1)
        self.amount = Entry(name=Message.of("pc.build.budget"), least=_AMOUNT_WIDTH)
        self.amount.setFixedWidth(_AMOUNT_WIDTH)
        self.amount.editingFinished.connect(self._typed)
        line.addWidget(self.amount)
        self._presets = QHBoxLayout()
        self._presets.setSpacing(tokens.XS)
        line.addLayout(self._presets)
        self.presets: list[Button] = []
        return line

    @property
    def money(self) -> tuple[int, Currency]:
        """The budget that is asked for: the plan's, or a usual one."""
        plan = self._session.plan
        known = budget_of(plan) if plan is not None else None
        currency = currency_of(plan)
        return known if known is not None else (PRESETS[currency][1], currency)

    def show_plan(self, plan: Plan) -> None:
        """Show a plan's work, budget and wishes."""
        budget, currency = self.money
        self.model.show_value(model_name(plan))
        self.task.show_value(plan.workload.task)
        self.currency.show_value(currency)
        self.slider.setRange(0, len(STEPS[currency]) - 1)
        self.slider.show_value(nearest_step(budget, currency))
        if not self.amount.isModified():  # what is being typed stays
            self.amount.setText(amount(budget, currency))
            self.problem.hide()
        self._offer_presets(budget, currency)
        self.wishes.show_plan(plan)

    def _offer_presets(self, budget: int, currency: Currency) -> None:
        if [preset.property("amount") for preset in self.presets] == list(PRESETS[currency]):
            return
        clear(self._presets)
        self.presets = []
        for value in PRESETS[currency]:
            button = Button(in_short(value, currency), "secondary", small=True,
                            name=amount(value, currency))  # fmt: skip
            button.setProperty("amount", value)
            button.clicked.connect(self._preset)
            self._presets.addWidget(button)
            self.presets.append(button)

    def _open_parts(self) -> None:
        hint = tr("pc.wish.owned.hint")
        popup = Popup(search_parts, tr("pc.upgrade.ask"), hint, self.ask)
        popup.chosen.connect(self.asked)
        popup.resize(420, popup.height())
        popup.move(self.ask.mapToGlobal(self.ask.rect().bottomLeft()))
        popup.show()
        popup.field.setFocus()

    def _turn(self, _way: str) -> None:
        self.ask.setVisible(self.way.value == "upgrade")
        self.turned.emit()

    def _set_budget(self, value: int, currency: Currency, *, merge: bool = False) -> None:
        self.amount.setModified(False)
        self._session.set_key("limits.budget", f"{value} {currency}", merge=merge)

    def _typed(self) -> None:
        """Take what was typed as the budget, or say what is wrong with it."""
        if not self.amount.isModified():
            return
        try:
            found = amount_in(self.amount.text(), self.money[1])
        except UserError as error:
            self.problem.tell(error.message)
            self.problem.show()
            return
        self._set_budget(round(found.amount), found.currency)
        if (plan := self._session.plan) is not None:
            self.show_plan(plan)  # where it is the amount that was there already

    def _preset(self) -> None:
        self._set_budget(int(self.sender().property("amount")), self.money[1])

    def _slid(self, step: int) -> None:
        currency = self.money[1]
        self._set_budget(STEPS[currency][step], currency, merge=True)

    def _choose_currency(self, value: str) -> None:
        currency: Currency = "KRW" if value == "KRW" else "USD"
        self._set_budget(PRESETS[currency][1], currency)

    def _choose_model(self, key: str) -> None:
        from trainwright.profile.presets import presets

        plan = self._session.plan
        if plan is not None:
            preset = presets()[key]
            label = Message.of("ui.edit.model", value=preset.name)
            self._session.put(plans.for_preset(plan, preset), label)

    def _choose_task(self, task: str) -> None:
        plan = self._session.plan
        if plan is not None:
            label = plans.edit_label("workload.task", task)
            self._session.put(with_keys(plan, {"workload.task": task}), label)
