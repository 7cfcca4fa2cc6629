"""The events of a trace, one by one: a file of any size is read in little memory."""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from trainwright.messages import UserError

CHUNK = 1 << 20
LIMIT = 4 << 30
"""Most bytes of a trace, unpacked, that are read; assumed: ten minutes of profiling."""
MOST_HEAD = 8 << 20
"""Most characters before the events; assumed, kineto's are below 10 KB."""
MOST_EVENT = 4 << 20
"""Most characters of one event; assumed, with stacks and shapes they stay below 100 KB."""
_BEFORE = re.compile(r"[\s,]*")
_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')


@dataclass(slots=True)
class Stream:
    """A trace under way: ``head`` is there after the first event, ``cut_off`` at the end."""

    chunks: Iterator[str]
    head: str = ""
    """What stands before the events."""
    cut_off: bool = False
    """Whether the file ends before its list of events does."""
    _text: str = field(default="", init=False)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events.

        Raises:
            UserError: there is no list of events, or what stands in it is not JSON.
        """
        at = self._start()
        decode = json.JSONDecoder().raw_decode
        while True:
            at = _BEFORE.match(self._text, at).end()  # type: ignore[union-attr]
            if at < len(self._text) and self._text[at] == "]":
                return
            try:
                event, end = decode(self._text, at)
            except (json.JSONDecodeError, RecursionError):
                if not self._more(at):
                    self.cut_off = True
                    return
                at = 0
                continue
            if isinstance(event, dict):
                yield event
            at = end

    def _start(self) -> int:
        """Read up to the first event, and return where it begins."""
        while True:
            text = self._text
            if text.lstrip()[:1] == "[":
                return text.index("[") + 1
            if (found := _EVENTS.search(text)) is not None:
                self.head = text[: found.start()]
                return found.end()
            if len(text) > MOST_HEAD or not self._more(0):
                raise UserError.of("diagnose.file.no-events")

    def _more(self, at: int) -> bool:
        """Read on behind what is left from ``at``; False at the end of the file.

        Raises:
            UserError: what is left is not an event that could still end.
        """
        rest = self._text[at:]
        if len(rest) > MOST_EVENT + MOST_HEAD:
            raise UserError.of("diagnose.file.broken-json", format="chrome trace")
        chunk = next(self.chunks, "")
        self._text = rest + chunk
        return bool(chunk)


def texts(stream: IO[bytes], limit: int = LIMIT) -> Iterator[str]:
    """Yield the text of a file piece by piece, unpacked where it is a gzip file.

    Raises:
        UserError: it unpacks to more than the limit, or is damaged.
    """
    start = stream.read(2)
    stream.seek(0)
    source: IO[bytes] = gzip.GzipFile(fileobj=stream) if start == b"\x1f\x8b" else stream  # type: ignore[assignment]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    total = 0
    while True:
        try:
            piece = source.read(CHUNK)
        except (EOFError, OSError, zlib.error):
            raise UserError.of("diagnose.file.broken-gzip") from None
        total += len(piece)
        if total > limit:
            raise UserError.of("diagnose.file.too-long", limit=limit)
        if not piece:
            return
        yield decoder.decode(piece)
