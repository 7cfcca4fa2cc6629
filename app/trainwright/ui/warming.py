"""Loads what other places need while a person looks at the first one.

One module a turn of the event loop, on the window's thread. In a thread of its own it would meet a
click that loads the same package from the other end, and Python then hands out half a module.
"""

import gc
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

from PySide6.QtCore import QObject, QTimer

_PACKAGES = (
    "diagnose.readers", "diagnose.measures", "diagnose.causes", "diagnose.outofmemory",
    "mig", "prices", "review", "export", "build", "ui.widgets", "ui.screens",
)  # fmt: skip
"""What the screens stand on before the screens: then no turn loads much."""
_PAUSE_MS = 20
"""Between two turns; assumed: a click comes in between."""


def warm(parent: QObject) -> None:
    """Load the modules of all places, one by one."""
    steps = _steps()
    timer = QTimer(parent, interval=_PAUSE_MS)
    timer.timeout.connect(partial(_step, timer, steps))
    timer.start()


def _step(timer: QTimer, steps: Iterator[None]) -> None:
    if next(steps, steps) is steps:
        timer.stop()
        timer.deleteLater()
        # Modules stay, so the collector need not look at their objects each time: 0.1 s.
        gc.freeze()


def _steps() -> Iterator[None]:
    from trainwright.ui.licences import parts

    for package in _PACKAGES:
        name = f"trainwright.{package}"
        found = import_module(name)
        yield
        for module in iter_modules(found.__path__, f"{name}."):
            if not module.ispkg:
                import_module(module.name)
                yield
    parts()
    yield
    from trainwright.catalog import list_parts
    from trainwright.catalog.instances import instances
    from trainwright.ui.screens.catalog import KINDS

    instances()
    yield
    for kind in KINDS:
        list_parts(kind)
        yield
