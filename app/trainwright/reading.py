"""Files that people name: regular files only, and no more of them than is meant to be read.

A pipe has no end that anybody knows and a device may have none, so both are refused where a file
is meant. Standard input is read up to the same limit by the readers that take ``-``.
"""

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NoReturn

from trainwright.messages import UserError
from trainwright.quoting import dotted

STDIN = "stdin"
"""What errors call the standard input."""
_HANDED_OVER = re.compile(r"/dev/stdin|/dev/fd/[0-9]{1,9}|/proc/self/fd/[0-9]{1,9}")
"""What shells make of ``<(command)`` and of standard input by name."""


@contextmanager
def opened(path: Path, file: str) -> Iterator[BufferedReader]:
    """Open a regular file; ``file`` is what errors call it.

    Raises:
        UserError: it is not there or not a regular file, or cannot be opened or read.
    """
    # Not waited for, as a pipe without a writer would be, where it takes the file's place in time.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with _explained(file):
        _check(os.stat(path).st_mode)  # before: to open a device may already act on it
        with os.fdopen(os.open(path, flags), "rb") as stream:
            _check(os.fstat(stream.fileno()).st_mode)
            yield stream


def content(source: Path | str, limit: int, file: str = "", *, or_stdin: bool = False) -> bytes:
    """Return what a file holds, or standard input where ``or_stdin`` and the source is ``-``.

    Args:
        source: the file.
        limit: the most bytes that it may have.
        file: what errors call it; its path where nothing is given.
        or_stdin: also take ``-``, and what a shell hands over as ``<(command)``.

    Raises:
        UserError: as ``opened``, or it is longer than the limit.
    """
    if or_stdin and str(source) == "-":
        return _bounded(_standard_input(), limit, file or STDIN)
    file = file or str(source)
    if or_stdin and _HANDED_OVER.fullmatch(str(source)):
        with _explained(file), open(source, "rb") as stream:
            return _bounded(stream, limit, file)
    with opened(Path(source), file) as stream:
        return _bounded(stream, limit, file)


def text(source: Path | str, limit: int, file: str = "", *, or_stdin: bool = False) -> str:
    """Return the text of a file in UTF-8, with or without a mark, as ``content`` reads it.

    Raises:
        UserError: as ``content``, or it is not UTF-8.
    """
    found = content(source, limit, file, or_stdin=or_stdin)
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError:
        name = file or (STDIN if str(source) == "-" else str(source))
        raise UserError.of("reading.not-utf8", file=name) from None


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that a JSON text is.

    None where it is another thing, a key stands twice, or a number is not finite.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _not_finite(name: str) -> NoReturn:
    raise ValueError(name)


def odd_number(file: str, place: Sequence[str | int], value: float) -> UserError:
    """Return the complaint about a number that is not believed (``ranges``)."""
    return UserError.of(
        "reading.odd-number", file=file, key=dotted(place) or "?", value=str(value)[:40]
    )


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise UserError.of("cli.input-closed")
    return sys.stdin.buffer


def _bounded(stream: IO[bytes], limit: int, file: str) -> bytes:
    with _explained(file):
        found = stream.read(limit + 1)
        if found is None:  # a log of the kernel's that waits for more looks like a regular file
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    if len(found) > limit:
        raise UserError.of("reading.too-large", file=file, limit=limit)
    return found


def _check(mode: int) -> None:
    """Refuse what is not a regular file."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


@contextmanager
def _explained(file: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ValueError):  # a null character in the name
        raise UserError.of("reading.not-found", file=file) from None
    except IsADirectoryError:
        raise UserError.of("reading.folder", file=file) from None
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise UserError.of("reading.special", file=file) from None
        reason = error.strerror or type(error).__name__
        raise UserError.of("reading.unreadable", file=file, reason=reason) from None
