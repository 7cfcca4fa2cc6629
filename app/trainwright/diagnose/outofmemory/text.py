"""The text of an error as people have it: from logs, notebooks, terminals and PowerShell."""

import re
from pathlib import Path

from trainwright import reading
from trainwright.diagnose.outofmemory.snapshot import MARK
from trainwright.diagnose.readers import texts
from trainwright.messages import UserError

MAX_BYTES = 1 << 20
"""Longest text that is read; assumed, a log's end is enough."""
MOST_ODD = 0.1
"""Share of characters that no text has from which a file is not one; assumed: a log with some
broken bytes has less, a picture or packed weights have a third."""
_ODD = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_COLOURS = re.compile(r"(?:\\u001b|\\x1b|\\033)\[[0-9;]*m|\[(?:[0-9]{1,3}(?:;[0-9]{1,3})*)m")
"""Colours as a notebook's file has them, and where the escape character was lost on the way."""
_BEFORE_LINES = re.compile(r"^[ \t]{0,80}[│┃║╎][ \t]?|[│┃║╎][ \t]{0,80}$|\\n", re.MULTILINE)
"""Boxes that rich draws around a traceback, and line ends within a notebook's file."""
_RANK = re.compile(
    rf"\[[Rr]ank:? ?[0-9]{{1,5}}\]:?{texts.NOT_WATCHDOG}[ \t]*"
    r"|\b(?:rank|Rank|RANK) ?[0-9]{1,5}:[ \t]*"
)
"""What launchers put before a process's lines, also behind a time."""


def from_file(source: str) -> str:
    """Return the end of a log, or of standard input for ``-``.

    Raises:
        UserError: it cannot be read, or holds no text.
    """
    content = _end(source)
    if content.startswith(MARK):
        raise UserError.of("diagnose.oom.pickle", file=source)
    text = texts.decoded(content)
    if sum(1 for _ in _ODD.finditer(text)) > MOST_ODD * len(text):
        raise UserError.of("diagnose.oom.not-text", file=source)
    return text


def _end(source: str) -> bytes:
    path = Path(source)
    if source == "-" or not path.is_file():
        return reading.content(source, MAX_BYTES, or_stdin=True)
    with reading.opened(path, source) as stream:
        start = max(0, stream.seek(0, 2) - MAX_BYTES)
        stream.seek(start - start % 2)  # UTF-16 has two bytes a character
        return stream.read(MAX_BYTES + 1)


def lines(text: str) -> list[str]:
    """Return the lines at the end of a text, without colours, boxes and launchers' prefixes."""
    plain = _COLOURS.sub("", texts.plain(text[-MAX_BYTES:]))
    return _RANK.sub("", _BEFORE_LINES.sub(" ", plain)).splitlines()
