"""``estimate --stdin`` and ``--watch``: an answer for each line, and for each save of the plan."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainwright import api, reading
from trainwright.cli import planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal, silence, standard_output
from trainwright.messages import UserError, render
from trainwright.plan import file
from trainwright.plan.overrides import changes_of
from trainwright.quoting import json_text
from trainwright.yamltext import MAX_BYTES, parse

LOOK_S = 0.2
"""Seconds between looks at a watched file; assumed: a person does not notice so short a wait."""


def answer_lines(source: PlanSource, terminal: Terminal) -> Exit:
    """Answer each line of standard input with one line of JSON, until the input ends.

    A line is a JSON object: values by dotted key where PLAN is given, else a whole plan. Its
    ``id`` comes back with the answer. A line that is refused gets ``{"error": ...}``.

    Raises:
        UserError: PLAN is not valid, or a standard stream is closed.
        BrokenPipeError: the reader of standard output went away.
    """
    if sys.stdin is None:
        raise UserError.of("cli.input-closed")
    stream, base = standard_output(), _base(source)
    for number, line in enumerate(_lines(), 1):
        if not line.strip():
            continue
        answer = _answer(line, f"{reading.STDIN}:{number}", base, source, terminal)
        try:
            stream.write(json_text(answer) + "\n")
            stream.flush()
        except BrokenPipeError:
            silence(stream)
            raise
    return Exit.DONE


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input; one that is too long for a plan comes cut."""
    while line := sys.stdin.buffer.readline(MAX_BYTES + 1):
        yield line
        while not line.endswith(b"\n") and (line := sys.stdin.buffer.readline(MAX_BYTES + 1)):
            pass  # the rest of a line that was cut


def _base(source: PlanSource) -> dict[str, Any] | None:
    """Return PLAN's data, which each line changes; None where lines are whole plans."""
    if not source.plan:
        return None
    file.read(source.plan, source.overrides)  # refused here, where errors know the file's lines
    text = reading.text(source.plan, MAX_BYTES, source.plan)
    data: dict[str, Any] = parse(text, source.plan).data
    return data


def _answer(
    line: bytes, name: str, base: dict[str, Any] | None, source: PlanSource, terminal: Terminal
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    try:
        asked = _object(line, name)
        given = {"id": asked.pop("id")} if "id" in asked else {}
        data, folder, values = (asked, None, {})
        if base is not None:
            data, folder, values = base, Path(source.plan).parent, asked
        changes: file.Changes = [*source.overrides, *changes_of(values)]
        plan = file.from_data(data, name, folder=folder, changes=changes)
        planning.check_consent(plan.model, source.allow_code)
        found = api.answered(plan, name, allow_code=True)
        return {**given, **found.document}
    except UserError as error:
        return {**given, "error": render(error.message, terminal.language)}


def _object(line: bytes, name: str) -> dict[str, Any]:
    """Return the line's JSON object.

    Raises:
        UserError: it is none, or too long.
    """
    if len(line) > MAX_BYTES:
        raise UserError.of("reading.too-large", file=name, limit=MAX_BYTES)
    found = reading.json_object(line)
    if found is None:
        raise UserError.of("cli.estimate.not-an-object", where=name)
    return found


def watch(path: str, terminal: Terminal, answer: Callable[[], Answer]) -> Exit:
    """Print the answer now and at each save of the plan's file, until Ctrl+C.

    Raises:
        UserError: standard output cannot be written.
        BrokenPipeError: its reader went away.
    """
    seen: tuple[int, int] | None = None
    try:
        while True:
            if (now := _state(path)) != seen:
                seen = now
                try:
                    found = answer()
                except UserError as error:  # half-edited: the next save may be sound
                    terminal.complain(error.message)
                else:
                    terminal.deliver(found)
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return Exit.DONE


def _state(path: str) -> tuple[int, int] | None:
    """Return when the file was saved and its size; None while an editor replaces it."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
