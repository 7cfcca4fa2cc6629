"""The two ends of a run: standard streams, and the language of the person behind them."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from trainwright.cli.answer import Answer, Exit
from trainwright.messages import Language, Message, UserError, render
from trainwright.quoting import json_text, one_line

OpenWindow = Callable[[str | None], int]
"""Opens the desktop app, with a plan's path or without; returns the exit code."""


@dataclass(slots=True)
class Terminal:
    """What commands see of the outside; ``json`` and ``language`` come from the options."""

    language: Language
    open_window: OpenWindow
    json: bool = False

    def say(self, id: str, /, **values: object) -> str:
        """Return the sentence of a catalogue id in the language."""
        return render(Message.of(id, **values), self.language)

    def complain(self, message: Message) -> None:
        """Print one line on standard error, whatever the values in it hold.

        ``trainwright-gui`` has no console on Windows: there it is a message box.
        """
        line = one_line(render(message, self.language), None)
        if sys.stderr is not None:
            try:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
            except OSError:  # full, or its reader left: the exit code says it alone
                silence(sys.stderr)
        elif sys.platform == "win32":
            import ctypes

            ctypes.windll.user32.MessageBoxW(None, line, "Trainwright", 0x10)  # MB_ICONERROR

    def deliver(self, answer: Answer) -> Exit:
        """Print the answer on standard output.

        Raises:
            UserError: standard output cannot be written.
            BrokenPipeError: its reader went away.
        """
        stream = standard_output()
        try:
            if self.json:
                stream.write(json_text(answer.document) + "\n")
            else:
                from trainwright.cli.screen import Screen

                answer.show(Screen(stream, self.language))
            stream.flush()
        except BrokenPipeError:
            silence(stream)
            raise
        except OSError as error:
            silence(stream)
            raise UserError.of("cli.output", detail=error.strerror or str(error)) from None
        return answer.exit


def standard_output() -> TextIO:
    """Return standard output.

    Raises:
        UserError: it is closed.
    """
    if sys.stdout is None:
        raise UserError.of("cli.output-closed")
    return sys.stdout


def speak_utf8() -> None:
    """Write UTF-8 to any console or pipe; what it cannot hold is escaped, as JSON would."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def keep_for_answer() -> None:
    """Send what libraries print by themselves to standard error: a driver's print is not JSON."""
    stream = sys.stdout
    try:
        if stream.fileno() != 1:
            return
        stream.flush()
        ours = os.dup(1)
        os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):
        return  # no stream, no descriptor behind it, or no standard error
    sys.stdout = os.fdopen(ours, "w", encoding="utf-8")


def silence(stream: TextIO) -> None:
    """Point a stream that failed at nothing, so that the interpreter's exit stays quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, stream.fileno())
    except (OSError, ValueError):
        pass  # no descriptor behind it (a test's buffer), so nothing is written at exit
    finally:
        os.close(nothing)
