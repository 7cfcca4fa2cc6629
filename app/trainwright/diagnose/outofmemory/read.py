"""From the text of a run to the error that ended it, and whether memory ran out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path

from trainwright import reading
from trainwright.diagnose import texts
from trainwright.diagnose.outofmemory import snapshot
from trainwright.diagnose.outofmemory.account import Account, Explanation, fix
from trainwright.diagnose.outofmemory.forms import FORMS, Form
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line

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
ONE_ERROR = 4000
"""Characters in which the lines of one error stand, a worker's traceback among them; assumed."""
STEPS_ON = 3
"""Lines of progress that show that the training went on after an error; assumed: tqdm draws one
more when an error ends it."""
LINES = 5000
"""From the end, in which Python's error is looked for; assumed."""
BROKEN = 500
"""Lines from the end that are read as if a terminal had broken them; assumed."""
NEAR = 4000
"""Characters around an error in which it shows what the program was doing; assumed."""
LAUNCHER = "diagnose.oom.other-launcher"
"""Says less than an error that Python raised."""
_PROGRESS = re.compile(
    r"(?<![0-9.])[0-9.]{1,12} ?(?:it/s|s/it)\b"
    r"|\b(?:step|epoch|iter(?:ation)?)\b[ :=\[]{0,4}\d",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"(?<![\w\"'`])[A-Z]\w{0,60}(?:Error|Exception): \S[^\n]{0,300}"
    r"|^(?:KeyboardInterrupt|AssertionError|SystemExit|NotImplementedError)$"
)
_LAUNCHERS = re.compile(r"ChildFailedError|CalledProcessError|SubprocessException|RayTaskError"
                        r"|Engine core initialization failed")  # fmt: skip
_LOADING = re.compile(
    r"Loading checkpoint shards|Loading pipeline|from_pretrained|safetensors|torch\.load\b"
    r"|load_state_dict|load_checkpoint|Loading (?:model|weights)"
)
"""Words of a program that reads weights."""
_ENGINE = re.compile(r"llama|gguf|ggml", re.IGNORECASE)
_WSL = re.compile(r"microsoft-standard-WSL|/mnt/[a-z]/|\bWSL ?2?\b")

Place = tuple[int, Form]
"""Where in a text the words of a form stand."""


def explained_file(source: str) -> Explanation:
    """Return what the end of a log, standard input (``-``) or a memory snapshot of torch says.

    Raises:
        UserError: it cannot be read, or holds neither.
    """
    if source != "-" and snapshot.is_snapshot(source):
        return snapshot.read(source)
    return explain(from_file(source))


def from_file(source: str) -> str:
    """Return the end of a log, or of standard input for ``-``.

    Raises:
        UserError: it cannot be read, or holds no text.
    """
    content = _end(source)
    if content.startswith(snapshot.MARK):
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


def _lines(text: str) -> list[str]:
    """Return the lines at the end of a text, without colours, boxes and launchers' prefixes."""
    plain = _COLOURS.sub("", texts.plain(text[-MAX_BYTES:]))
    return _RANK.sub("", _BEFORE_LINES.sub(" ", plain)).splitlines()


def explain(text: str) -> Explanation:
    """Return the error that ended a run, explained; of kind ``none`` where a text has none."""
    held = _lines(text)
    spaced = _explained(_joined(held, " "))
    # A terminal may have broken the lines within words: what tells more sizes is the text.
    glued = _explained(_joined(held[-BROKEN:], ""))
    found = glued if glued is not None and _sizes(glued) > _sizes(spaced) else spaced
    raised = _raised(held)
    if found is None or (raised is not None and found.says.id == LAUNCHER):
        said = "none" if any(map(str.strip, held)) else "empty"
        return raised or Explanation("none", Message.of(f"diagnose.oom.{said}"), Account())
    return found


def _sizes(found: Explanation | None) -> int:
    """Return how much is known of memory; of system memory, whose errors state no sizes, all."""
    if found is None or found.kind == "other":
        return 0
    known = sum(size is not None for size in astuple(found.account))
    return len(fields(Account)) if found.kind in ("host", "worker") else 1 + known


def _explained(text: str) -> Explanation | None:
    if (place := _decisive(text)) is None:
        return None
    at, form = place
    found = form.explained(text, at)
    return _in_its_place(found, text, at) if found.kind == "host" else found


def _in_its_place(found: Explanation, text: str, at: int) -> Explanation:
    """Return the explanation with the fixes that fit what the program did: weights, WSL."""
    fixes, swapping = found.fixes, fix("swapping")
    near = slice(max(0, at - NEAR), at + NEAR)
    for words, better in ((_ENGINE, ("smaller-model", "ollama")), (_LOADING, ("loading",))):
        if swapping in fixes and words.search(text[near]):
            fixes = (*(each for each in fixes if each != swapping), *map(fix, better))
    return replace(found, fixes=(*fixes, fix("wsl")) if _WSL.search(text) else fixes)


def _joined(held: Iterable[str], between: str) -> str:
    """Return lines as one, less what torchrun lists of those that ended after the first."""
    text = " ".join(between.join(held).split())
    first = text.rfind("Root Cause (first observed failure)")
    later = text.rfind("Failures: ", 0, first) if first >= 0 else -1
    return text[:later] + text[first:] if later >= 0 else text


def _decisive(text: str) -> Place | None:
    """Return the error that explains the rest.

    Memory that ran out, on the GPU or the host, explains other errors and exit codes, unless the
    training went on.
    """
    ran_out = (_most_telling(FORMS["gpu"], text), _most_telling(FORMS["host"], text))
    found = max(filter(None, ran_out), key=lambda place: place[0], default=None)
    for part in ("others", "ended"):
        place = _most_telling(FORMS[part], text)
        if found is None or (place is not None and _went_on(text, found[0], place[0])):
            found = place
    return found


def _most_telling(forms: Sequence[Form], text: str) -> Place | None:
    """Return the first form that is in the last error of its kind, which is not always its end.

    What follows from other errors, as of ranks that waited in vain, gives way to one before it.
    """
    places = [(_last_place(form.words, text), form) for form in forms]
    last = max(place for place, _ in places)
    found = next((each for each in places if each[0] >= max(0, last - ONE_ERROR)), None)
    if found is None or not found[1].entry.follows:
        return found
    earlier = (each for each in places if 0 <= each[0] < found[0] and not each[1].entry.follows)
    return next((each for each in earlier if not _went_on(text, each[0], found[0])), found)


def _last_place(pattern: re.Pattern[str], text: str) -> int:
    """Return where a pattern is found for the last time; -1: nowhere."""
    return max((each.start() for each in pattern.finditer(text)), default=-1)


def _went_on(text: str, begin: int, end: int) -> bool:
    return begin < end and len(_PROGRESS.findall(text, begin, end)) >= STEPS_ON


def _raised(held: Sequence[str]) -> Explanation | None:
    """Return Python's last error, which is not about memory; None where there is none."""
    found = (_RAISED.search(line.strip()) for line in reversed(held[-LINES:]))
    error = next((each[0] for each in found if each and not _LAUNCHERS.search(each[0])), None)
    if error is None:
        return None
    says = Message.of("diagnose.oom.other-error", error=one_line(error, 200))
    return Explanation("other", says, Account(), (fix("other-error"),))
