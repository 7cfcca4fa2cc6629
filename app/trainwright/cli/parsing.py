"""click, speaking our catalogue: help texts are message ids, rendered when they are shown."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError


def terminal_of(context: click.Context) -> Terminal:
    """Return the run's terminal."""
    terminal = context.find_object(Terminal)
    assert terminal is not None, "every context is made with the run's terminal"
    return terminal


class Option(click.Option):
    """An option whose ``help`` is a message id."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's row of the help page in the reader's language."""
        shown = copy.copy(self)
        shown.help = terminal_of(ctx).say(self.help) if self.help else None
        return click.Option.get_help_record(shown, ctx)


class _Spoken(click.Command):
    """The help page, in the reader's language."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        prefix = terminal_of(ctx).say("cli.help.usage") + " "
        formatter.write_usage(ctx.command_path, pieces, prefix)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        if self.help:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(terminal_of(ctx).say(self.help))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the sub-commands of a group."""
        records = (each.get_help_record(ctx) for each in self.get_params(ctx))
        rows = [record for record in records if record is not None]
        with formatter.section(terminal_of(ctx).say("cli.help.options")):
            formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return ``--help``, explained in the reader's language."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = terminal_of(ctx).say("cli.help.help")
        return option


class Command(_Spoken):
    """A command whose ``help`` is a message id."""


class Group(_Spoken, click.Group):
    """Commands by name."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.no_args_is_help = False

    def summary(self, name: str) -> str:
        """Return the message id of a sub-command's one-line description."""
        return self.commands[name].help or ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands."""
        terminal = terminal_of(ctx)
        rows = [(name, terminal.say(self.summary(name))) for name in self.list_commands(ctx)]
        with formatter.section(terminal.say("cli.help.commands")):
            formatter.write_dl(rows)


class Fraction(click.FloatRange):
    """A number within a range; "nan" lies in none, though no comparison says so."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or let click complain."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not finite", param, ctx)
        return number


class NamedPath(click.Path):
    """A path; an empty text, as of an unset variable, is not the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or let click complain."""
        if value == "":
            self.fail("an empty name", param, ctx)
        return super().convert(value, param, ctx)


def option(*declarations: str, **attributes: Any) -> Callable[[Any], Any]:
    """Declare an option of ours; ``help`` is a message id."""
    return click.option(*declarations, cls=Option, **attributes)


def explained(error: click.UsageError) -> UserError:
    """Return click's complaint as one of our sentences."""
    command = error.ctx.command_path if error.ctx is not None else "trainwright"
    match error:
        case click.NoSuchOption(option_name=name, possibilities=[near, *_]):
            message = Message.of("cli.no-such-option-near", name=name, near=near)
        case click.NoSuchOption(option_name=name):
            message = Message.of("cli.no-such-option", name=name, command=command)
        case click.BadOptionUsage(option_name=name) if "requires an argument" in error.message:
            message = Message.of("cli.no-value", name=name, command=command)
        case click.UsageError(message=detail) if detail.startswith("Got unexpected extra"):
            words = detail.partition("(")[2].removesuffix(")")
            message = Message.of("cli.too-many", words=words, command=command)
        case click.MissingParameter(param=click.Parameter() as parameter):
            message = Message.of("cli.missing", name=_shown(parameter), command=command)
        case click.BadParameter(param=click.Parameter() as parameter):
            message = _bad_value(parameter, error.message)
        case click.UsageError(ctx=click.Context(command=click.Group() as group) as context):
            names = group.list_commands(context)
            message = Message.of("cli.which-command", command=command, known=names)
        case _:
            detail = error.format_message()
            message = Message.of("cli.usage", detail=detail, command=command)
    return UserError(message)


def _bad_value(parameter: click.Parameter, detail: str) -> Message:
    name = _shown(parameter)
    match parameter.type:
        case click.Choice(choices=choices):
            return Message.of("cli.bad-choice", name=name, choices=list(choices))
        case NamedPath():
            return Message.of("cli.empty-name", name=name)
        case click.IntRange(min=least) | click.FloatRange(min=least) if least is not None:
            most = parameter.type.max
            if most is not None:
                return Message.of("cli.bad-number-between", name=name, least=least, most=most)
            above = "-above" if parameter.type.min_open else ""
            return Message.of(f"cli.bad-number{above}", name=name, least=least)
    return Message.of("cli.bad-value", name=name, detail=detail)


def _shown(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name
