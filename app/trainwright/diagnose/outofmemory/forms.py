"""Forms of errors, as ``resources/diagnose/errors.yaml`` has them: words, meaning, sizes, fixes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from trainwright.data import resources
from trainwright.diagnose.outofmemory import torch_messages
from trainwright.diagnose.outofmemory.account import (
    BEFORE,
    BEHIND,
    COUNT,
    SIZE,
    Account,
    Explanation,
    Kind,
    fix,
    found_bytes,
)
from trainwright.messages import Message
from trainwright.workload.settings import Frozen
from trainwright.yamltext import parse

WRONG = 1 << 42
"""Bytes in one piece that nobody means to ask for: a size was computed wrongly; assumed."""
CHANGES: dict[str, dict[str, object]] = {"no-workers": {"settings.loader.num_workers": 0}}
"""Keys of a plan that do what a fix says."""
EXPLAINERS: dict[str, Callable[[Account, str, int], Explanation]] = {
    "allocator": torch_messages.allocator,
    "metal": torch_messages.metal,
    "shape": torch_messages.shape,
    "collective": torch_messages.collective,
}
"""What explains an error where a table does not: of its sizes, the text, and the words' place."""
Words = Annotated[tuple[str, ...], Field(min_length=1)]
Sizes = dict[Literal["asked", "free", "total", "process", "allocated", "unused", "allowed"], Words]
"""Expressions for the fields of ``Account``, the best first."""


class Entry(Frozen):
    """A form in the file; its head says what the keys mean."""

    words: Words
    kind: Kind = "other"
    says: str
    sized: str = ""
    fixes: tuple[str, ...] = ()
    sizes: Literal["torch", "malloc_async", "metal", "llama"] | Sizes = Field({})
    values: dict[str, str] = Field({})
    fixes_of: tuple[str, ...] = ()
    follows: bool = False
    explained_by: Literal["", "allocator", "metal", "shape", "collective"] = ""


class Table(Frozen):
    """The file: sizes that several forms have, and the forms by what they say."""

    sizes: dict[str, Sizes]
    gpu: tuple[Entry, ...]
    host: tuple[Entry, ...]
    others: tuple[Entry, ...]
    ended: tuple[Entry, ...]
    unread: dict[str, Words]


@dataclass(frozen=True, slots=True)
class Form:
    """An error that tools print: found by its words, explained by what stands near them."""

    entry: Entry
    words: re.Pattern[str]
    sizes: dict[str, tuple[re.Pattern[str], ...]]
    """Field of ``Account``: expressions for it, the best first."""
    values: dict[str, re.Pattern[str]]

    def explained(self, text: str, at: int) -> Explanation:
        """Return what the error says whose words begin at a place in a text."""
        entry = self.entry
        account, values = self._account(text, at), self._values(text, at)
        if entry.explained_by:
            return EXPLAINERS[entry.explained_by](account, text, at)
        told = bool(values) and len(values) == len(self.values)
        missing = None
        if account.asked is not None and account.free is not None:
            missing = max(0, account.asked - account.free)
        says = self._says(account)
        fixes = entry.fixes_of if told and entry.fixes_of else entry.fixes
        fixes = fixes or ((says,) if entry.kind == "other" else ())
        if (account.asked or 0) >= WRONG:
            says, fixes = "computed", ("check-size",)
        known = {name: value for name in ("asked", "free", "total", "others", "process")
                 if (value := getattr(account, name)) is not None}  # fmt: skip
        known |= values | ({"missing": missing} if missing is not None else {})
        message = Message.of(f"diagnose.oom.{says}", **known)
        todo = tuple(fix(each, CHANGES.get(each), **values) for each in fixes)
        return Explanation(entry.kind, message, account, todo, missing)

    def _account(self, text: str, at: int) -> Account:
        """Return the sizes, behind the words or, where a table suffices, before them."""
        near = [text[at : at + BEHIND]]
        if not self.entry.explained_by:
            near.append(text[max(0, at - BEFORE) : at])
        sizes: dict[str, Any] = {
            name: next((size for words in patterns for part in near
                        if (size := found_bytes(words, part)) is not None), None)
            for name, patterns in self.sizes.items()
        }  # fmt: skip
        account = Account(**sizes)
        if self.entry.kind != "other-programs" or account.total is None or account.free is None:
            return account
        return replace(account, others=max(0, account.total - account.free))

    def _values(self, text: str, at: int) -> dict[str, int]:
        near = text[at : at + BEHIND]
        found = {name: words.search(near) for name, words in self.values.items()}
        return {name: int(next(filter(None, each.groups())))
                for name, each in found.items() if each is not None}  # fmt: skip

    def _says(self, account: Account) -> str:
        entry = self.entry
        if account.asked is not None and account.free is not None:
            return entry.sized or f"{entry.says}-sized"
        if account.asked is not None and not entry.sized:
            return f"{entry.says}-asked"
        held = entry.kind == "host" and account.process is not None
        return f"{entry.says}-held" if held else entry.says


def _filled(words: str) -> str:
    return words.replace("<size>", SIZE).replace("<count>", COUNT)


def _sizes(entry: Entry) -> Sizes:
    return _TABLE.sizes[entry.sizes] if isinstance(entry.sizes, str) else entry.sizes


_FILE = resources("diagnose", "errors.yaml")
_TABLE = Table.model_validate(parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data)
FORMS: dict[str, tuple[Form, ...]] = {
    part: tuple(
        Form(
            entry,
            re.compile(_filled("|".join(entry.words))),
            {name: tuple(re.compile(_filled(each)) for each in patterns)
             for name, patterns in _sizes(entry).items()},
            {name: re.compile(words) for name, words in entry.values.items()},
        )
        for entry in entries
    )
    for part, entries in _TABLE
    if part not in ("sizes", "unread")
}  # fmt: skip
"""Forms by the file's parts, the most telling first."""
UNREAD = {why: re.compile("|".join(words), re.MULTILINE) for why, words in _TABLE.unread.items()}
"""Of what tools print that is not read: why, as the message ``diagnose.file-<why>`` says it."""
