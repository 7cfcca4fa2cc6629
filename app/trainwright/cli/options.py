"""Options that every command has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainwright import saving
from trainwright.cli.parsing import NamedPath, option, terminal_of
from trainwright.messages import LANGUAGES, UserError


def _set_json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        terminal_of(context).json = True


def _set_language(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    known = {language: language for language in LANGUAGES}
    if value not in known:
        raise UserError.of("cli.no-such-language", name=value, known=LANGUAGES)
    terminal_of(context).language = known[value]


def _set_python(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from trainwright.profile import interpreter  # loads what other commands do not need

    interpreter.checked(value)
    interpreter.ask_for(value)
    context.call_on_close(lambda: interpreter.ask_for(None))


def _checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        saving.check(path)
    return path


def out_file(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds ``--out``: a file to write, refused before the work where it cannot be."""
    kind = NamedPath()
    return option("-o", "--out", type=kind, metavar="OUT", callback=_checked, help=help)


def tracing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--python``, to commands that may trace."""
    declared: Callable[..., Any] = option(
        "--python",
        "--interpreter",
        "python",
        metavar="PATH",
        expose_value=False,
        callback=_set_python,
        help="cli.option.python",
    )(function)
    return declared


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--json`` and ``--lang``, which stand before or after the sub-command's name."""
    with_language: Callable[..., Any] = option(
        "--lang",
        metavar="en|ko",
        expose_value=False,
        is_eager=True,
        callback=_set_language,
        help="cli.option.lang",
    )(function)
    with_json: Callable[..., Any] = option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_set_json,
        help="cli.option.json",
    )(with_language)
    return with_json
