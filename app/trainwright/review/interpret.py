"""What the keys of a source mean: facts, and a list of all that is not one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from trainwright.review.facts import Fact
from trainwright.review.files import Source
from trainwright.review.kinds import Key, Kind, declared
from trainwright.yamltext import Place

_LIKE = 0.75
"""Likeness from which a known key is worth naming; assumed."""
_LONGEST, _MOST = 80, 100
"""Characters of a key, and unknown keys of a file, for which known ones are searched."""
Why = Literal["moved", "deprecated", "gone", "unknown", "value", "computed", "own", "no-part"]
"""``value``: the key is known and the value is not; ``own``: an option of somebody's script, which
may mean anything; ``no-part``: neither memory nor time."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A key that became no fact, and why."""

    source: Source
    key: str
    place: Place
    line: int | None
    value: Any
    why: Why
    instead: str | None = None
    """What it is called now, or the nearest known key."""


@dataclass(frozen=True, slots=True)
class Interpreted:
    """A source in our words."""

    source: Source
    facts: tuple[Fact, ...]
    unread: tuple[Unread, ...]


def interpreted(sources: Sequence[Source]) -> tuple[Interpreted, ...]:
    """Return what each source of a run says, and by default.

    A key that one source gives has no default in others of its kind.
    """
    given: dict[str, set[str]] = {}
    for source in sources:
        entries = _entries(source.document.data, source.kind)
        # The tool's default is over, even where the value says nothing to us.
        names = {".".join(map(str, place)) for place, value in entries if value is not None}
        names |= {key for key, _ in source.computed}
        given.setdefault(source.kind.name, set()).update(names)
    return tuple(_interpreted(source, given[source.kind.name]) for source in sources)


def _interpreted(source: Source, given: set[str]) -> Interpreted:
    facts: list[Fact] = []
    unread: list[Unread] = []
    kind = source.kind
    for place, value in _entries(source.document.data, kind):
        name = ".".join(map(str, place))
        line = source.document.line(place)
        if isinstance(value, str) and value.startswith("$"):  # a shell's variable
            unread.append(Unread(source, name, place, line, value, "computed"))
            continue
        found, odd = _facts(source, kind.meanings(name), name, place, value, line)
        facts += found
        why, instead = ("value", None) if odd else _why(source, name)
        if why == "unknown" and len(unread) < _MOST:
            instead = _near(source, name)
        if value is None and why not in (None, "unknown"):
            why = "no-part"  # a key without a value is as good as none
        if why is not None and not (found and why in ("own", "no-part")):
            unread.append(Unread(source, name, place, line, value, why, instead))
    unread += (
        Unread(source, key, tuple(key.split(".")), line, None, "computed")
        for key, line in source.computed
    )
    return Interpreted(source, (*facts, *_defaults(source, given)), tuple(unread))


def _left_open(source: Source) -> set[str]:
    """Return the facts that only a run knows: no default of ours stands for them."""
    computed = (key for key, _ in source.computed)
    return {meaning.fact for key in computed for meaning in source.kind.meanings(key)}


def _entries(data: Mapping[str, Any], kind: Kind, above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the keys that mean something by themselves, with all that is not below such a one."""
    for key, value in data.items():
        place = (*above, key)
        name = ".".join(map(str, place))
        deeper = any(known.startswith(f"{name}.") for known in (*kind.keys, *kind.moved))
        if not isinstance(value, dict) or name in kind.keys or name in kind.moved or not deeper:
            yield place, value
        if isinstance(value, dict) and deeper:
            yield from _entries(value, kind, place)


def _facts(
    source: Source, meanings: tuple[Key, ...], name: str, place: Place, value: Any, line: int | None
) -> tuple[list[Fact], bool]:
    """Return the facts of a key, and whether its value is not understood."""
    found: list[Fact] = []
    odd = False
    for meaning in meanings:
        try:
            read = meaning.read(value)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            odd = True
            continue
        if read is not None:
            found.append(
                Fact(meaning.fact, read, source.name, source.kind.name, name, place, line, True)
            )
    return found, odd


def _why(source: Source, name: str) -> tuple[Why | None, str | None]:
    """Return why a key that has been read is listed nevertheless, or is not understood."""
    kind = source.kind
    listed = declared(kind.listed).keys if kind.listed is not None else frozenset[str]()
    if name in kind.moved:
        instead = kind.moved[name]
        if name in listed or name in kind.warned:
            return "deprecated", instead
        return ("gone", None) if instead is None else ("moved", instead)
    parts = name.split(".")
    above = {".".join(parts[:length]) for length in range(len(parts) + 1)}
    if name in kind.keys or kind.traced:
        return None, None
    if kind.extended and "" in kind.open and name not in listed:
        return "own", None
    if name in listed or above & set(kind.open) or (kind.listed is None and not kind.complete):
        return "no-part", None
    return "unknown", None


def _near(source: Source, name: str) -> str | None:
    """Return the known key that was probably meant."""
    kind = source.kind
    if len(name) > _LONGEST or (kind.listed is None and not kind.complete):
        return None
    all_of_them: Iterable[str] = declared(kind.listed).keys if kind.listed else kind.open
    known: set[str] = {*all_of_them, *kind.keys}
    if (last := name.rpartition(".")[2]) != name and last in known | set(kind.open):
        return last  # it stands in a section, and belongs above it
    elsewhere = [key for key in known if key.endswith(f".{name}")]
    if len(elsewhere) == 1:
        return elsewhere[0]  # it stands in the wrong section
    return next(iter(get_close_matches(name, known, n=1, cutoff=_LIKE)), None)


def _defaults(source: Source, given: set[str]) -> Iterator[Fact]:
    """Yield what the tool does where the file is silent: as declared, then as we state it."""
    kind = source.kind
    values = declared(kind.listed).defaults if kind.listed is not None else {}
    for name, value in values.items():
        if name in given:
            continue
        found, _ = _facts(source, kind.meanings(name), name, (), value, None)
        for fact in found:
            yield Fact(fact.name, fact.value, source.name, kind.name, name, (), None, False)
    left_open = _left_open(source)
    for fact_name, value in kind.otherwise.items():
        if fact_name in left_open:
            continue
        yield Fact(fact_name, value, source.name, kind.name, "", (), None, False)
