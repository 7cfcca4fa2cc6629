"""What other settings and parts would do: looked for when an answer has come."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from trainwright.advise.whatif import WhatIf
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui.core import Core
from trainwright.ui.tasks import Latest

_PAUSE_MS = 250
"""Pause after an answer before a dozen other plans are evaluated: they would slow the next edit."""


class WhatIfs(QObject):
    """Evaluates the plan's neighbours off the UI thread, until the plan changes."""

    found = Signal(object)
    """A sequence of ``WhatIf``."""

    def __init__(self, core: Core, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._work = Latest(self)
        self._work.done.connect(self.found)
        self._ready: Callable[[], list[WhatIf]] | None = None
        self._timer = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._timer.timeout.connect(self._look)

    @property
    def busy(self) -> bool:
        """Whether something is looked for, or will be."""
        return self._timer.isActive() or self._work.busy

    def look(
        self, plan: Plan, facts: Facts, report: Report, wanted: Callable[[Plan], bool]
    ) -> None:
        """Look for what would change an answer, as long as its plan is wanted."""
        self._ready = lambda: list(self._core.whatifs(plan, facts, report, lambda: wanted(plan)))
        self._timer.start()

    def stop(self) -> None:
        """Look no longer."""
        self._timer.stop()
        self._work.forget()

    def _look(self) -> None:
        if self._ready is not None:
            self._work.submit(self._ready)
