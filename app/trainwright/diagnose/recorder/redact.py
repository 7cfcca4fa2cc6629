"""What identifies a person or opens an account, taken out of texts and records.

Secrets by the name that they are given under and by their shape, values of the environment and of
arguments, folders of people, and the names of this computer and its user. ``…`` stands in their
place. It needs the standard library only, so that the recorder can take it along. Every pattern
takes time in proportion to its text.
"""

import contextlib
import getpass
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHADOW = "…"
LEAST_VALUE, LEAST_SECRET, LEAST_NAME = 8, 4, 3
"""Shorter values of the environment, secrets and names are too common in other texts; assumed."""
COMMON_NAMES = frozenset({
    "root", "user", "users", "home", "admin", "ubuntu", "localhost", "host", "node", "worker",
    "server", "data", "model", "models", "train", "training", "test", "python", "torch", "cuda",
    "nvidia", "gpu", "cpu", "memory",
})  # fmt: skip
"""Users and computers are called so, and it says nothing of them."""

# Secrets

_SECRET_NAME = re.compile(
    r"(?:token|secret|key|password|passwd|passphrase|pwd|pass|auth|authorization|credentials?"
    r"|cookie|bearer|signature|dsn)$",
    re.IGNORECASE,
)
_VALUE = r"""(?P<quote>["'])?(?P<value>(?(quote)[^"'\n]*|[^\s"',;&}\])]+))"""
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z_-][\w.-]{0,60})(?P<between>["']?\s{0,3}[=:]\s{0,3})""" + _VALUE
)
_GIVEN = re.compile(
    r"""(?<![\w.-])(?P<name>--?[A-Za-z][\w.-]{0,60})(?P<between>["']?,?\s{1,3})""" + _VALUE
)
_SHAPES = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?",
        r"(?<=://)[^\s/@'\"]{1,512}(?=@)",
        r"(?i)(?<=bearer )[\w.~+/=-]{6,}",
        r"(?i)(?<=basic )[\w.~+/=-]{16,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
        r"\bhf_\w{8,}|\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}",
        r"\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}|\bnpm_\w{20,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{30,}|\bya29\.[\w-]{10,}|\bpypi-\w{20,}",
        r"\b[0-9a-fA-F]{40}\b",  # Weights & Biases and others
        r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){4}",
        r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}",
    )
)
"""Of Hugging Face, OpenAI and its kin, GitHub, GitLab, Slack, NVIDIA, npm, AWS, Google, PyPI, of
JSON web tokens and keys; users in links, addresses of mail, and the numbers of single GPUs."""


def is_secret(name: str) -> bool:
    """Return whether an option or variable of this name, such as ``hf-token``, holds a secret."""
    return any(_SECRET_NAME.search(part) for part in re.split(r"[-_.]", name) if part)


def _hide_assigned(found: re.Match[str]) -> str:
    if not is_secret(found["name"]):
        return found[0]
    return f"{found['name']}{found['between']}{found['quote'] or ''}{SHADOW}"


def without_secrets(text: str) -> str:
    """Return a text without what is a secret by its name or its shape."""
    for shape in _SHAPES:
        text = shape.sub(SHADOW, text)
    return _GIVEN.sub(_hide_assigned, _ASSIGNED.sub(_hide_assigned, text))


# Folders of people

_SEPARATOR = r"[\\/]{1,4}"
_HOMES = (
    rf"(?:(?<![A-Za-z])[A-Za-z]:)?(?:{_SEPARATOR}[\w.$-]{{1,40}}){{0,3}}?"
    rf"{_SEPARATOR}(?:home|users|documents and settings){_SEPARATOR}[^\s\\/\"'<>|:;,)\]}}]+"
    rf"|(?<![\w.~-])/(?:var/)?root(?![\w.-])"
)
"""Of Linux, macOS and Windows, also as WSL, MSYS and shares of a network show them."""
_REST = r"""(?(quote)[^"'`\n]*|(?:[^\s"'`<>|:;,)\]}]|[ ](?=[\w.-]{1,40}\\))*)"""
_LIBRARY = re.compile(r"site-packages|dist-packages|python3\.\d+t?|trainwright")
"""Folders from which on a path says what a program is made of, and nothing of its user."""
_CODE = (".py", ".pyx", ".so", ".dll", ".cu", ".cpp")


def _shortened(found: re.Match[str]) -> str:
    parts = [part for part in re.split(r"[\\/]+", found["rest"]) if part]
    named = found["quote"] or ""
    known = [at for at, part in enumerate(parts) if _LIBRARY.fullmatch(part)]
    first = known[-1] if known else len(parts) - any(part.endswith(_CODE) for part in parts[-1:])
    kept = parts[first:]
    hidden = [SHADOW] if len(parts) > len(kept) else []
    return f"{named}{'/'.join(['~', *hidden, *kept])}"


def _paths(homes: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of paths within a person's folder; these homes, and those of others."""
    escaped = [
        _SEPARATOR.join(map(re.escape, re.split(r"[\\/]+", home.rstrip("\\/")))) for home in homes
    ]
    own = "".join(rf"{home}(?![\w.-])|" for home in escaped if home)
    return re.compile(rf"(?P<quote>[\"'`])?(?:{own}{_HOMES})(?P<rest>{_REST})", re.IGNORECASE)


# What is known of this computer


@dataclass(frozen=True, slots=True)
class Private:
    """What must not be in a text besides secrets of any kind."""

    paths: re.Pattern[str]
    values: re.Pattern[str] | None = None
    """Values of the environment and of arguments."""
    names: re.Pattern[str] | None = None
    """The user's and the computer's."""

    def path(self, text: str) -> str:
        """Return a text with the folders of people shortened to ``~``."""
        return self.paths.sub(_shortened, text)

    def word(self, text: str) -> str:
        """Return a text without secrets, private values and folders of people."""
        text = self.values.sub(SHADOW, text) if self.values is not None else text
        return without_secrets(self.path(text))

    def prose(self, text: str) -> str:
        """Return a text without all these and without names."""
        text = self.word(text)
        return self.names.sub(SHADOW, text) if self.names is not None else text


def private(
    environment: Mapping[str, str],
    arguments: Sequence[str],
    homes: Iterable[str],
    names: Iterable[str],
) -> Private:
    """Return what is private by a process's environment, arguments, home folders and names."""
    paths = _paths(sorted({home for home in homes if len(home) > 1}, key=len, reverse=True))
    values = {
        value
        for name, value in (*environment.items(), *_given(arguments))
        if len(value.strip()) >= (LEAST_SECRET if is_secret(name) else LEAST_VALUE)
        and not paths.sub(_shortened, value).startswith("~")
    }
    known = {
        name for name in names if len(name) >= LEAST_NAME and name.casefold() not in COMMON_NAMES
    }
    return Private(
        paths, _any_of(values, "{}"), _any_of(known, "(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])")
    )


def here(arguments: Sequence[str] | None = None) -> Private:
    """Return what is private in this process; its own arguments where none are given."""
    host = user = ""
    with contextlib.suppress(OSError):
        host = socket.gethostname()
    with contextlib.suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
    homes = {os.path.expanduser("~"), *map(os.environ.get, ("HOME", "USERPROFILE"))}
    homes |= {os.path.realpath(home) for home in homes if home}
    names = {host, host.partition(".")[0], Path(os.path.expanduser("~")).name, user}
    return private(
        os.environ,
        sys.argv[1:] if arguments is None else arguments,
        {home for home in homes if home},
        names,
    )


def _any_of(texts: Iterable[str], around: str) -> re.Pattern[str] | None:
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile(around.format("|".join(map(re.escape, longest_first)))) if texts else None


# Command lines

_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*")
_LONGEST_OPTION = 40


def is_option(name: str) -> bool:
    """Return whether a word is an option's name; one dash may have a value glued to it."""
    if not _OPTION.fullmatch(name) or without_secrets(name) != name:
        return False
    return len(name) <= (_LONGEST_OPTION if name.startswith("--") else 2)


def _given(words: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Yield each value of a command line with the name that it was given under."""
    name = ""
    for word in words:
        option, _, value = word.partition("=")
        if is_option(option) and not is_secret(name):
            name = option
            if value:
                yield option, value
                name = ""
        else:
            if not word.endswith(_CODE):  # the name of a script is not a secret of the run
                yield name, word
            name = ""


# Records

_PROSE = ("source", "note", "failure", "host.foreign_top", "host.other_programs.name",
          "unavailable")  # fmt: skip
_WORDS = ("profile.top.name", "profile.host_top.name", "trials.to")
"""Names of functions and kernels: a user may be called Adam."""


def cleaned(record: Mapping[str, Any], known: Private) -> dict[str, Any]:
    """Return a record's document without anything private; what verdicts read stays."""
    return {key: _cleaned(value, key, known) for key, value in record.items()}


def _cleaned(value: Any, place: str, known: Private) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(each, f"{place}.{key}", known) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(each, place, known) for each in value]
    return _cleaner(place, known)(value) if isinstance(value, str) else value


def _cleaner(place: str, known: Private) -> Callable[[str], str]:
    if place.startswith(_PROSE):
        return known.prose
    if place in _WORDS:
        return known.word
    return lambda text: without_secrets(known.path(text))
