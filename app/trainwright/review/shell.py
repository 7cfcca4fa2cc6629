"""A shell's text as lists of words: lines put together, variables replaced. Nothing is run.

A variable stands for what the script itself assigns to it, once and in plain words; any other stays
its name.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

SEEN = "CUDA_VISIBLE_DEVICES"
"""The one variable that says what a run gets."""
_KEEPS = ("export", "readonly", "local", "declare")
"""Words before an assignment."""
_ASSIGNMENT = re.compile(rf"(?:(?:{'|'.join(_KEEPS)})\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_IN_QUOTES = re.compile(rf"\s*(?:(?:{'|'.join(_KEEPS)})\s+)?\w+=\"[^\"]*")
"""An assignment whose quoted text goes on in the next line."""
_HERE = re.compile(r"\s*read\s(?:[^<]*\s)?(\w+)\s*<<-?\s*[\"']?(\w+)[\"']?\s*")
"""``read -r -d '' NAME <<EOF``: the lines up to EOF are what NAME stands for."""
_COMPUTED = re.compile(r"\$\(\([^()]*\)\)|\$\([^()]*\)|`[^`]*`")
"""What a command gives, or arithmetic: only a run knows it."""
_UNKNOWN = "$computed"
"""Stands for it, as any variable that is not known."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?(?::?-([^{}$]*))?\})")
"""``$NAME``, ``${NAME}``, ``${NAME[@]}`` and ``${NAME:-otherwise}``."""
_LONGEST, _MOST = 10_000, 1_000_000
"""Characters of a variable's value, and of all that one file puts in place of variables, so that
variables of variables do not grow; assumed."""
_GOES_ON = ("\\", "`", "^")
"""Ends of a line that goes on: of bash, PowerShell and cmd."""
_REDIRECTED = re.compile(r"(&|[0-9])?(>>?|<)(&[0-9-]|[^<>]*)")
"""``2>&1``, ``> log``, ``&>>log``."""


def commands(text: str) -> Iterator[tuple[list[str], int]]:
    """Yield the words of each command with its line, variables replaced."""
    variables = _Variables()
    for line, first in _lines(text):
        asks = line.startswith("#SBATCH")
        if line.lstrip().startswith("#") and not asks:
            continue
        plain = _COMPUTED.sub(_UNKNOWN, line.removeprefix("#"))
        if (words := _words(plain)) is None:
            continue
        if asks:
            yield ["sbatch", *words[1:]], first
        elif words and variables.assigned(plain, words):
            if words[-1].startswith(f"{SEEN}="):
                yield words[-1:], first
        elif words:
            yield from ((part, first) for part in _apart(variables.expanded(words)) if part)


def _words(line: str) -> list[str] | None:
    """Return the words of a line up to its comment; None where a quotation mark stays open."""
    for text in (line, re.split(r"\s#", line, maxsplit=1)[0]):  # # it's a comment
        try:
            return [*takewhile(lambda word: not word.startswith("#"), shlex.split(text))]
        except ValueError:
            continue
    return None


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield each line with its number.

    It goes on after a backslash, and up to the end of an array or of a variable's text.
    """
    lines = enumerate(text.split("\n"), 1)
    for first, line in lines:
        if (here := _HERE.fullmatch(line.rstrip("\r"))) is not None:
            yield f"{here[1]}={shlex.quote(_up_to(here[2], lines))}", first
            continue
        parts = [line.rstrip("\r")]
        in_array = re.match(r"\s*\w+\+?=\([^)]*$", parts[0]) is not None
        in_text = _IN_QUOTES.fullmatch(parts[0]) is not None
        while in_array or in_text or parts[-1].endswith(_GOES_ON):
            following = next(lines, None)
            if following is None:
                break
            parts[-1] = parts[-1].rstrip("".join(_GOES_ON))
            parts.append(following[1].partition(" #")[0].rstrip())
            in_array = in_array and ")" not in parts[-1]
            in_text = in_text and '"' not in parts[-1]
        yield " ".join(parts), first


def _in_array(word: str) -> str:
    """Return a word of an array as it is put into a line: "--split 99" is two words there."""
    whole = word.startswith("-") or _VARIABLE.fullmatch(word) is not None
    return word if whole else shlex.quote(word)


def _up_to(word: str, lines: Iterator[tuple[int, str]]) -> str:
    """Return the lines before one that is a word alone, as one line."""
    inner = (line.rstrip("\r") for _number, line in lines)
    return " ".join(
        line.rstrip("\\") for line in takewhile(lambda each: each.strip() != word, inner)
    )


class _Variables:
    """What a script assigns to its variables in plain words, as far as its lines were read."""

    def __init__(self) -> None:
        self._values: dict[str, str | None] = {}
        """None: only a run knows, as of a name that gets a second value."""
        self._left = _MOST

    def assigned(self, line: str, words: Sequence[str]) -> bool:
        """Note what a line assigns; return whether it does, and nothing else."""
        found = _ASSIGNMENT.fullmatch(line.strip())
        if found is None:
            return False
        name, more, value = found[1], found[2], found[3]
        if value.startswith("(") and value.endswith(")"):
            inner = [word.strip("()") for word in (words[0].partition("=")[2], *words[1:])]
            value = " ".join(_in_array(word) for word in inner if word)
        elif len(words) != (2 if words[0] in _KEEPS else 1):
            return False  # a command with a variable of its own
        else:
            value = words[-1].partition("=")[2]
        known: str | None = self._replaced(value)
        if known == _UNKNOWN or len(known or "") >= _LONGEST:
            known = None
        if more:  # in a branch or not: what a script may add counts
            before = self._values.get(name)
            known = f"{before} {known}" if before is not None and known is not None else None
            self._values[name] = known if len(known or "") < _LONGEST else None
            return True
        self._values[name] = known if self._values.get(name, known) == known else None
        return True

    def expanded(self, words: Iterable[str]) -> Iterator[str]:
        """Yield words with variables replaced; one that is a variable alone may be several."""
        for word in words:
            text = self._replaced(word)
            if text == word or _VARIABLE.fullmatch(word) is None:
                yield text
                continue
            try:
                yield from shlex.split(text)
            except ValueError:
                yield text

    def _replaced(self, text: str) -> str:
        return _VARIABLE.sub(self._value_of, text)

    def _value_of(self, use: re.Match[str]) -> str:
        value = self._values.get(use[1] or use[2], use[3])
        if value is None or len(value) > self._left:
            return use[0]
        self._left -= len(value)
        return value


def _apart(words: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without where its output goes."""
    part: list[str] = []
    to_file = False
    for word in words:
        if to_file:
            to_file = False
        elif _REDIRECTED.fullmatch(word):
            to_file = word.endswith((">", "<"))
        elif word in ("&&", "||", ";", "|", "&"):
            yield part
            part = []
        else:
            part.append(word)
    yield part
