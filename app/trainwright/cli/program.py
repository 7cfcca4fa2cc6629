"""The program: sub-commands imported when they are called, and a plan's path in place of one."""

import gc
import sys
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType

import click

from trainwright import __version__
from trainwright.cli.options import common
from trainwright.cli.parsing import Group, Option
from trainwright.cli.terminal import Terminal
from trainwright.messages import UserError

COMMANDS = (
    "estimate",
    "advise",
    "review",
    "build",
    "upgrade",
    "export",
    "profile",
    "catalog",
    "probe",
    "monitor",
    "verify",
    "diagnose",
    "mig",
    "doctor",
)
"""Sub-commands; each is ``command`` in the module of its name."""


class Program(Group):
    """The whole program."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the sub-commands in the order of the work."""
        return list(COMMANDS)

    def summary(self, name: str) -> str:
        """Return the message id of a sub-command's one-line description."""
        return f"cli.{name}.summary"

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a sub-command and return it; None where there is none of the name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = _loaded(f"trainwright.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the sub-command; a first argument that looks like a path opens the window.

        Raises:
            UserError: it is neither.
        """
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        if any(mark in name for mark in "/\\."):
            return name, _open_window, args
        near = get_close_matches(name, COMMANDS, n=1)
        if near:
            raise UserError.of("cli.no-such-command-near", name=name, near=near[0])
        raise UserError.of("cli.no-such-command", name=name, known=COMMANDS)


def _loaded(name: str) -> ModuleType:
    """Return a module, loaded without looks for garbage.

    What is loaded stays, and the collector would go through it again and again: a tenth of the
    time of a short command.
    """
    collects = gc.isenabled() and name not in sys.modules
    if collects:
        gc.disable()
    try:
        return import_module(name)
    finally:
        if collects:
            gc.freeze()
            gc.enable()


@click.command(add_help_option=False)
@click.argument("path")
@common
@click.pass_obj
def _open_window(terminal: Terminal, path: str) -> int:
    return terminal.open_window(path)


@click.command(cls=Program, invoke_without_command=True, help="cli.program")
@click.version_option(
    __version__, message="trainwright %(version)s", cls=Option, help="cli.help.version"
)
@common
@click.pass_context
def program(context: click.Context) -> int:
    """Open the window where no sub-command is named."""
    if context.invoked_subcommand is not None:
        return 0
    terminal: Terminal = context.obj
    return terminal.open_window(None)
