"""One run of the command line: parse, call, print, and turn every failure into one line."""

import errno
import os
import sys
from collections.abc import Sequence
from itertools import takewhile

import click

from trainwright.cli import language
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import explained
from trainwright.cli.program import program
from trainwright.cli.terminal import OpenWindow, Terminal, keep_for_answer, silence, speak_utf8
from trainwright.messages import Message, UserError


def run(arguments: Sequence[str], open_window: OpenWindow) -> int:
    """Run a command line and return its exit code; no exception leaves it.

    ``TRAINWRIGHT_DEBUG=1`` lets unexpected exceptions through, with their traceback.
    """
    own = takewhile(lambda word: word != "--", arguments)  # what follows is another program's
    if "--json" in own:
        keep_for_answer()
    speak_utf8()
    spoken = language.asked_for(arguments) or language.of_system()
    terminal = Terminal(spoken, open_window)
    try:
        return _call(terminal, arguments)
    except UserError as error:
        terminal.complain(error.message)
        return Exit.BAD_INPUT
    except BrokenPipeError:
        if sys.stdout is not None:
            silence(sys.stdout)
        return Exit.NO_READER
    except KeyboardInterrupt:
        terminal.complain(Message.of("cli.interrupted"))
        return Exit.INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            if sys.stdout is not None:
                silence(sys.stdout)
            terminal.complain(Message.of("cli.disk-full"))
            return Exit.BAD_INPUT
        if os.environ.get("TRAINWRIGHT_DEBUG") == "1":
            raise
        terminal.complain(_crash_message(error))
        return Exit.BAD_INPUT


def _call(terminal: Terminal, arguments: Sequence[str]) -> int:
    try:
        with program.make_context("trainwright", list(arguments), obj=terminal) as context:
            outcome = program.invoke(context)
    except click.exceptions.Exit as stop:  # --help and --version have printed
        outcome = stop.exit_code
    except click.UsageError as error:
        raise explained(error) from None
    if isinstance(outcome, Answer):
        return terminal.deliver(outcome)
    if sys.stdout is not None:
        sys.stdout.flush()
    return int(outcome)


def _crash_message(error: Exception) -> Message:
    from trainwright import crashes

    kind = type(error).__name__
    path = crashes.record(error)
    if path is None:
        return Message.of("cli.crash-unrecorded", kind=kind)
    return Message.of("cli.crash", kind=kind, path=str(path))
