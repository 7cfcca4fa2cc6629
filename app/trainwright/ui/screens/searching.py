"""While the search runs: for how long already, and a way to stop it."""

import time

from PySide6.QtCore import QTimer

from trainwright.messages import Message
from trainwright.ui.session import Session
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Strip


class SearchStrip(Strip):
    """Shows itself while the session searches."""

    def __init__(self, session: Session) -> None:
        super().__init__("spinner-gap", "na")
        self._session = session
        self._since = 0.0
        self._clock = QTimer(self, interval=500)
        self._clock.timeout.connect(self._tell)
        self.offer(Button(Message.of("ui.advise.cancel"), small=True), "cancel")
        self.answered.connect(self._cancel)
        session.advised.connect(self.refresh)
        self.hide()
        self.refresh()

    def refresh(self) -> None:
        """Appear with the search, and go with it."""
        on = self._session.advising
        if on and not self._clock.isActive():
            self._since = time.monotonic()
            self._clock.start()
        elif not on:
            self._clock.stop()
        self._tell()
        self.setVisible(on)

    def _tell(self) -> None:
        seconds = int(time.monotonic() - self._since) if self._clock.isActive() else 0
        self.label.tell(Message.of("ui.advise.running", seconds=seconds))

    def _cancel(self, _answer: str) -> None:
        self._session.cancel_advice()
