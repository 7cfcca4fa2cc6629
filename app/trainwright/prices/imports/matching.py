"""Which part of the catalog a list's name means.

The id, name, alias or part number itself settles it. Otherwise the words do: a card's chip and
memory, a processor's model number, and for the rest how much of a record's name stands in the
list's, weighed by how rare each word is; what the name states, capacity or watts, must agree. Words
are a guess that a person confirms.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import Literal, get_args

from trainwright.catalog import (
    DriveRecord,
    MemoryRecord,
    PartKind,
    PsuRecord,
    list_gpus,
    list_parts,
)
from trainwright.catalog.names import name_key, short_keys
from trainwright.catalog.records import GpuRecord
from trainwright.prices.imports.chips import Cards, Found, Processors, holds_a_part
from trainwright.prices.imports.names import words
from trainwright.prices.imports.sizes import Sizes, sizes
from trainwright.prices.shipped import Part, part_kind

How = Literal["exact", "words"]
MOST_CANDIDATES = 6
"""That are offered; assumed."""
SURE = 1.0
"""Share of a record's words that a name must hold to mean it: ``Z790-P`` is not ``Z790-P WIFI``."""
POSSIBLE = 0.5
"""Share, by weight, that makes it a candidate; assumed."""
CLEAR = 0.05
"""How far the best one is ahead of the next, by the weight of its words; assumed."""
_SIZE = re.compile(r"(?:\d{1,3}x)?\d{1,5}(?:\.\d{1,2})?(?:gb|tb|go|to|w|mm)")
_COMMON = {
    *("cpu", "cooler", "liquid", "atx", "mid", "tower", "full", "case", "power", "supply"),
    *("solid", "state", "drive", "internal", "memory", "motherboard", "certified", "modular"),
    *("fully", "semi", "pc", "desktop", "gaming", "black", "white"),
}
"""Words of many names, which tell no part from another."""
_VERSIONS = {
    *("pro", "plus", "max", "xl", "se", "evo", "elite", "ultra", "shift", "mini", "lite", "core"),
    *("g2", "g3", "ii", "iii", "iv", "v2", "v3", "extreme", "carbon", "compact", "neo", "ti"),
    *("dark", "apex", "formula", "encore", "gene", "unify", "ace", "godlike", "edge", "aqua"),
    *(
        "x3d",
        "ice",
        "bcm",
        "carrara",
        "lightning",
        "legend",
        "digital",
        "rgb",
        "argb",
        "aorus",
        "strix",
        "tuf",
    ),
    *("mk2", "lbc", "lcd", "performance", "infinite", "silent", "v4"),
}
"""Words that make one product of a series another: a name that has one means no record without.
So do the words of other records of the kind, save those in ``_DESCRIBING``."""
_DESCRIBING = {
    *("bronze", "silver", "gold", "platinum", "titanium", "sfx", "server", "m.2", "tb"),
    *("2", "x", "3.0", "4.0", "5.0", "pcie", "am4", "am5", "sp3", "sp5", "str5", "tr4"),
}
"""Words that stores add to any name of a kind: grades, sockets, links, counts."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a name means: a part, several that it may, or none."""

    part: Part | None = None
    how: How | None = None
    candidates: tuple[Part, ...] = ()
    """Best first, where none is meant for sure."""


class Matcher:
    """Finds parts by name; built once for a catalog, asked for each row."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._by_kind: dict[PartKind, list[Part]] = defaultdict(list)
        self._exact: dict[str, dict[tuple[PartKind, str], Part]] = defaultdict(dict)
        for part in parts:
            kind = part_kind(part)
            self._by_kind[kind].append(part)
            for key in _keys(part):
                self._exact[key][kind, part.id] = part
        self._cards = Cards(self._by_kind["gpu"])
        self._processors = Processors(self._by_kind["cpu"])
        self._wordings = _Wordings(
            [part for kind in get_args(PartKind)[2:] for part in self._by_kind[kind]]
        )
        self._known: dict[tuple[str, PartKind | None], Verdict] = {}

    def match(self, name: str, kind: PartKind | None = None) -> Verdict:
        """Return what a name means, among the parts of a kind where the list says which."""
        key = name, kind
        if key not in self._known:
            self._known[key] = self._match(name, kind)
        return self._known[key]

    def _match(self, name: str, kind: PartKind | None) -> Verdict:
        same = [
            part
            for (found, _), part in self._exact.get(name_key(name), {}).items()
            if kind in (None, found)
        ]
        if len(same) == 1 and (name == same[0].id or not _is_of_a_laptop(same[0])):
            return Verdict(same[0], "exact")
        if same:
            return Verdict(candidates=tuple(same[:MOST_CANDIDATES]))
        found = [
            one
            for one in (
                self._cards.find(name, told=kind == "gpu") if kind in (None, "gpu") else None,
                self._processors.find(name, told=kind == "cpu") if kind in (None, "cpu") else None,
            )
            if one
        ]
        if found:
            return _verdict(found, sure=not holds_a_part(name))
        return Verdict() if kind in ("gpu", "cpu") else self._wordings.match(name, kind)


def _verdict(found: list[Found], *, sure: bool) -> Verdict:
    """Return the one chip of a name; what states several is none of them for sure."""
    parts = tuple(part for one in found for part in one.parts)
    if sure and len(found) == 1 and found[0].sure:
        return Verdict(parts[0], "words")
    return Verdict(candidates=parts[:MOST_CANDIDATES])


def _is_of_a_laptop(part: Part) -> bool:
    """Return whether a part is sold with the laptop only, whose price a list then states."""
    return isinstance(part, GpuRecord) and part.segment == "laptop"


def _keys(part: Part) -> Iterator[str]:
    """Yield what stands for a part alone; of a card also ``3090`` and ``409024gb``."""
    more = part.shared_names if isinstance(part, GpuRecord) else ()
    for name in (part.id, part.name, *part.aliases, *more):
        key = name_key(name)
        yield key
        if isinstance(part, GpuRecord):
            yield from short_keys(key, part.memory_bytes.value)


class _Wordings:
    """Parts by the words of their names, each word weighed by how rare it is."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts
        self._kinds = [part_kind(part) for part in parts]
        self._sizes = [_sizes_of(part) for part in parts]
        self._words = [_telling(part.name) for part in parts]
        counts = Counter(word for own in self._words for word in own)
        self._weight = {word: log(1 + len(parts) / count) for word, count in counts.items()}
        self._whole = [sum(self._weight[word] for word in own) for own in self._words]
        self._holders: dict[str, list[int]] = defaultdict(list)
        self._versions: dict[PartKind, set[str]] = defaultdict(lambda: set(_VERSIONS))
        for index, own in enumerate(self._words):
            self._versions[self._kinds[index]] |= own - _DESCRIBING
            for word in own:
                self._holders[word].append(index)

    def match(self, name: str, kind: PartKind | None) -> Verdict:
        stated = _telling(name)
        joined = stated | _pairs(words(name))
        scores: dict[int, float] = defaultdict(float)
        for word in joined:
            for index in self._holders.get(word, ()):
                scores[index] += self._weight[word]
        if not scores:
            return Verdict()
        asked = sizes(name)
        ranked = sorted(
            (
                (round(score / self._whole[index], 3), round(score, 3), -index)
                for index, score in scores.items()
                if score >= POSSIBLE * self._whole[index]
                and kind in (None, self._kinds[index])
                and asked.agrees(self._sizes[index])
            ),
            reverse=True,
        )
        return self._verdict(ranked, stated, alone=not holds_a_part(name))

    def _is_of(self, stated: frozenset[str], index: int) -> bool:
        """Return whether a name has no word that makes a record of the kind another product."""
        return stated & self._versions[self._kinds[index]] <= self._words[index]

    def _verdict(
        self, ranked: list[tuple[float, float, int]], stated: frozenset[str], *, alone: bool
    ) -> Verdict:
        if not ranked:
            return Verdict()
        sure = [one for one in ranked if one[0] >= SURE and self._is_of(stated, -one[2])]
        # Of records that a name holds wholly, the one with more words is the closer.
        sure.sort(key=lambda one: one[1], reverse=True)
        ahead = len(sure) == 1 or (len(sure) > 1 and sure[0][1] > sure[1][1] * (1 + CLEAR))
        if sure and ahead and alone:
            return Verdict(self._parts[-sure[0][2]], "words")
        shown = (sure or ranked)[:MOST_CANDIDATES]
        return Verdict(candidates=tuple(self._parts[-one[2]] for one in shown))


def _telling(name: str) -> frozenset[str]:
    """Return the words of a name that tell parts apart: sizes are compared on their own."""
    return frozenset(
        word for word in words(name) if word not in _COMMON and not _SIZE.fullmatch(word)
    )


def _pairs(stated: tuple[str, ...]) -> set[str]:
    """Return neighbours written as one: ``990 pro`` and ``990pro`` are the same words."""
    return {first + second for first, second in pairwise(stated)}


def _sizes_of(part: Part) -> Sizes:
    match part:
        case MemoryRecord():
            return Sizes(
                ddr=int(part.type[-1]),
                gib=part.gib,
                modules=part.modules,
                mts=part.mts,
                cas=part.cas,
                registered=part.module == "rdimm",
            )
        case DriveRecord():
            return Sizes(capacity_gb=part.capacity_gb or sizes(part.name).capacity_gb)
        case PsuRecord():
            return Sizes(watts=part.watts)
        case _:
            return Sizes()


@lru_cache(maxsize=1)
def _built(parts: tuple[str, ...]) -> Matcher:
    return Matcher(_all_parts())


def _all_parts() -> list[Part]:
    found: list[Part] = list(list_gpus())
    for kind in get_args(PartKind):
        if kind != "gpu":
            found += list_parts(kind)
    return found


def matcher() -> Matcher:
    """Return the matcher of the catalog in use."""
    return _built(tuple(part.id for part in _all_parts()))
