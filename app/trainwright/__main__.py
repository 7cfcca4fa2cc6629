"""The two entry points: ``trainwright`` on the command line, ``trainwright-gui`` for menus."""

import gc
import signal
import sys
from types import FrameType

from trainwright.cli.run import run
from trainwright.messages import UserError


def main() -> int:
    """Run the command line; without a sub-command it opens the window."""
    signal.signal(signal.SIGTERM, _interrupt)
    return run(sys.argv[1:], open_window)


def gui() -> int:
    """Open the window, with the plan that a file manager passes."""
    return main()


def open_window(path: str | None) -> int:
    """Open the desktop app and return its exit code.

    Raises:
        UserError: there is no display, or a system library that Qt needs is missing.
    """
    from trainwright.cli import display, qt_libraries

    if not display.present():
        raise UserError.of("cli.no-display")
    if not qt_libraries.platform_loads():
        raise _lacks_libraries()
    gc.disable()  # modules stay; the window collects by itself (ui/garbage.py)
    try:
        from trainwright.ui.app import main as show
    except ImportError as error:
        if qt_libraries.missing():
            raise _lacks_libraries() from error
        raise
    return show(path)


def _lacks_libraries() -> UserError:
    from trainwright.cli import qt_libraries

    missing = qt_libraries.missing()
    if packages := qt_libraries.packages(missing):
        return UserError.of("cli.qt-packages", packages=" ".join(packages))
    return UserError.of("cli.qt-libraries", names=missing)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End like Ctrl-C does, so that children are stopped on the way out."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
