"""Forms of errors as data: the words, what ran out, the sizes that are read, and what to do."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainwright.diagnose.outofmemory.account import Account, Explanation, Kind, fix, found_bytes
from trainwright.messages import Message

BEFORE, BEHIND = 600, 2000
"""Characters before an error's words, and from them on, in which its sizes stand; assumed."""
QUOTED = 600
"""Characters of an error that are shown."""
WRONG = 1 << 42
"""Bytes in one piece that nobody means to ask for: a size was computed wrongly; assumed."""
CHANGES: dict[str, dict[str, object]] = {"no-workers": {"settings.loader.num_workers": 0}}
"""Keys of a plan that do what a fix says."""


@dataclass(frozen=True, slots=True)
class Form:
    """An error that tools print: found by its words, explained by what stands near them."""

    words: re.Pattern[str]
    kind: Kind
    says: str
    """The message ``diagnose.oom.<says>``. Forms that tell sizes have ``-asked`` for what was asked
    for, ``-sized`` where they tell what was free too, and ``-held`` for what the process held."""
    fixes: tuple[str, ...] = ()
    sizes: dict[str, tuple[re.Pattern[str], ...]] = field(default_factory=dict)
    """Field of ``Account``: patterns of its size, with ``SIZE`` or ``COUNT``, the best first."""
    own: Callable[[str, int], Explanation] | None = None
    """What explains it, where a table does not suffice: of the text, and where the words are."""

    def explained(self, text: str, at: int) -> Explanation:
        """Return what the error says whose words begin at a place in a text."""
        if self.own is not None:
            return self.own(text, at)
        account = self._account(text, at)
        missing = None
        if account.asked is not None and account.free is not None:
            missing = max(0, account.asked - account.free)
        says, fixes = self._says(account), self.fixes
        if (account.asked or 0) >= WRONG:
            says, fixes = "computed", ("check-size",)
        values = {name: value for name in ("asked", "free", "process")
                  if (value := getattr(account, name)) is not None}  # fmt: skip
        if missing is not None:
            values["missing"] = missing
        message = Message.of(f"diagnose.oom.{says}", **values)
        todo = tuple(fix(each, CHANGES.get(each)) for each in fixes)
        return Explanation(self.kind, message, account, todo, missing, quoted(text, at))

    def _account(self, text: str, at: int) -> Account:
        """Return the sizes, behind the words or, where none is there, before them."""
        near = (text[at : at + BEHIND], text[max(0, at - BEFORE) : at])
        sizes: dict[str, Any] = {
            name: next((size for words in patterns for part in near
                        if (size := found_bytes(words, part)) is not None), None)
            for name, patterns in self.sizes.items()
        }  # fmt: skip
        return Account(**sizes)

    def _says(self, account: Account) -> str:
        if account.asked is not None and account.free is not None:
            return f"{self.says}-sized"
        if account.asked is not None:
            return f"{self.says}-asked"
        held = self.kind == "host" and account.process is not None
        return f"{self.says}-held" if held else self.says


def quoted(text: str, at: int) -> str:
    """Return the words that are shown of an error."""
    return text[max(0, at - 60) : at + QUOTED]


def form(
    words: re.Pattern[str],
    kind: Kind,
    says: str,
    *fixes: str,
    own: Callable[[str, int], Explanation] | None = None,
    **sizes: re.Pattern[str] | tuple[re.Pattern[str], ...],
) -> Form:
    """Return a form; its sizes are patterns by field of ``Account``."""
    patterns = {name: each if isinstance(each, tuple) else (each,) for name, each in sizes.items()}
    return Form(words, kind, says, fixes, patterns, own)
