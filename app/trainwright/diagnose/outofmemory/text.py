"""The text of an error as people have it: from logs, notebooks, terminals and PowerShell."""

import codecs
import re
from pathlib import Path

from trainwright import reading
from trainwright.messages import UserError

MAX_BYTES = 4 << 20
"""Longest text that is read; assumed, a log's end is enough."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[(?:[0-9]{1,3}(?:;[0-9]{1,3})*)m")
"""What terminals are told, also where the escape character was lost on the way."""
_PREFIX = re.compile(r"\[?\b(?:rank|Rank|RANK) ?[0-9]{1,5}\]?:[ \t]*")
"""What launchers put before each line of a process."""
_PICKLE = b"\x80"


def from_file(source: str) -> str:
    """Return the end of a log, or of standard input for ``-``, in UTF-8 or UTF-16.

    Raises:
        UserError: it cannot be read, or holds no text.
    """
    content = _end(source)
    if content.startswith(_PICKLE):
        raise UserError.of("diagnose.oom.pickle", file=source)
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    return content.decode("utf-8-sig", "replace")


def _end(source: str) -> bytes:
    path = Path(source)
    if source == "-" or not path.is_file():
        return reading.content(source, MAX_BYTES, or_stdin=True)
    with reading.opened(path, source) as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - MAX_BYTES) if size > MAX_BYTES else 0)
        return stream.read(MAX_BYTES)


def plain(text: str) -> str:
    """Return the end of a text in one line, without colours and the prefixes of launchers."""
    return " ".join(_PREFIX.sub("", _COLOURS.sub("", text[-MAX_BYTES:])).split())
