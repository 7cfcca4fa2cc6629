"""A window that edits, saves and exports by a seeded script until somebody kills it.

``python killed.py FOLDER SEED`` prints each edit when it is done, with the computer's clock.
"""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import fakes
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from walk import spin

from trainwright.export import files, write
from trainwright.ui import asking
from trainwright.ui.app import prepared
from trainwright.ui.preferences import Preferences


class Script:
    """Edits plan and MIG board by counting, and now and then saves or exports them."""

    def __init__(self, window: Any, folder: Path, seed: int) -> None:
        self.window, self.folder = window, folder
        self.dice = random.Random(seed)
        self.number, self.parent = 0, os.getppid()
        self.screen = window.screen_named("mig")
        self.screen._choose_gpu("a100-40gb-pcie")
        self.timer = QTimer(window, interval=15)
        self.timer.timeout.connect(self.act)
        self.timer.start()

    def act(self) -> None:
        if os.getppid() != self.parent:
            os._exit(1)  # nobody is left to kill this program
        self.number += 1
        self.window.session.set_key("workload.effective_batch", self.number)
        self.screen.jobs.rows[0][0].setText(f"job {self.number}")
        self.screen.jobs._typed()
        print(self.number, time.monotonic(), flush=True)
        match self.dice.randrange(40):
            case 0:
                self.window.filing.save_plan()
            case 1:
                self.window.filing.save_board()
            case 2:
                self.export(self.folder / f"run-{self.number}")
            case 3:
                self.export(self.folder / "again")

    def export(self, folder: Path) -> None:
        session = self.window.session
        if session.settings is not None:
            made = files("plain", session.plan, session.settings, {}, "en")
            write(made, folder, overwrite=True)


def main(folder: Path, seed: int) -> None:
    os.environ["TRAINWRIGHT_STATE"] = str(folder / "state")
    app = QApplication([])
    asking.file_to_save = lambda *_: folder / "a.plan.yaml"  # type: ignore[assignment]
    asking.board_to_save = lambda *_: folder / "a.mig.yaml"  # type: ignore[assignment]
    window = prepared(app, fakes.core(), Preferences(folder / "window.ini"))
    window.show()
    while window.session is None:
        spin(10)
    window.start_with("example", fakes.EXAMPLE)
    script = Script(window, folder, seed)
    app.exec()
    del script


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
