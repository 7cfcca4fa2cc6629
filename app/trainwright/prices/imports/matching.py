"""Which part of the catalog a list's name means.

The id, name, alias or part number itself settles it. Otherwise the words do: a card's chip and
memory, a processor's model number, and for the rest how much of a record's name stands in the
list's, weighed by how rare each word is; what the name states, capacity or watts, must agree. Words
are a guess that a person confirms.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
from trainwright.messages.units import GIB
from trainwright.prices.imports.sizes import Sizes, sizes
from trainwright.prices.shipped import Part, part_kind

How = Literal["exact", "words"]
MOST_CANDIDATES = 6
"""That are offered; assumed."""
SURE = 0.8
"""Share of a record's words, by weight, that a name must hold to mean it; assumed."""
POSSIBLE = 0.5
"""Share that makes it a candidate; assumed."""
CLEAR = 0.05
"""How far the best one is ahead of the next; assumed."""
_KOREAN = {
    "지포스": "geforce",
    "라데온": "radeon",
    "라이젠": "ryzen",
    "스레드리퍼": "threadripper",
    "인텔": "intel",
    "코어": "core",
    "울트라": "ultra",
    "제온": "xeon",
    "에픽": "epyc",
    "삼성전자": "samsung",
    "삼성": "samsung",
    "마이크론": "crucial",
    "크루셜": "crucial",
    "하이닉스": "hynix",
    "시소닉": "seasonic",
    "커세어": "corsair",
    "쿨러마스터": "cooler master",
    "리안리": "lian li",
    "녹투아": "noctua",
    "딥쿨": "deepcool",
    "써멀라이트": "thermalright",
    "써멀테이크": "thermaltake",
    "프랙탈디자인": "fractal design",
    "프랙탈": "fractal",
    "비콰이어트": "be quiet",
    "기가바이트": "gigabyte",
    "애즈락": "asrock",
    "에이수스": "asus",
    "웨스턴디지털": "western digital",
    "씨게이트": "seagate",
    "도시바": "toshiba",
    "킹스톤": "kingston",
    "슈퍼플라워": "super flower",
    "실버스톤": "silverstone",
    "노트북": "laptop",
    "패키지": "kit",
}
_VENDORS = {
    "wd": "western digital",
    "g.skill": "gskill",
    "g skill": "gskill",
    "team group": "teamgroup",
}
_KOREAN_WORD = re.compile("|".join(sorted(_KOREAN, key=len, reverse=True)))
_VENDOR_WORD = re.compile(rf"\b(?:{'|'.join(map(re.escape, _VENDORS))})\b")
_SPACED_UNIT = re.compile(r"(\d)\s+(gb|tb|w|mm)\b")
_WORD = re.compile(r"[0-9a-z]+(?:\.\d+)?|[가-힣]+")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:gb|tb|w|mm)")
_PIECE = re.compile(r"\d+|[a-z]+")
_VARIANTS = frozenset(("ti", "super", "xt", "xtx", "gre", "d", "laptop", "mobile", "max"))
"""Words behind a chip's number that make it another chip."""
_TRIM = frozenset(("nvidia", "amd", "intel", "geforce", "radeon", "generation", "gpu", "graphics"))
_BRANDS = frozenset(
    ("amd", "intel", "ryzen", "threadripper", "epyc", "core", "xeon", "ultra", "cpu")
)
_COMMON = {
    *("cpu", "cooler", "air", "liquid", "atx", "mid", "tower", "full", "case", "power", "supply"),
    *("solid", "state", "drive", "internal", "memory", "motherboard", "certified", "modular"),
    *("fully", "semi", "pc", "desktop", "gaming", "black", "white"),
}
"""Words of many names, which tell no part from another."""


_VERSIONS = {
    *("pro", "plus", "max", "xl", "se", "evo", "elite", "ultra", "shift", "mini", "lite", "core"),
    *("g2", "g3", "ii", "iii", "iv", "v2", "v3", "extreme", "carbon", "compact", "neo", "ti"),
}
"""Words that make one product of a series another: a name that has one means no record without."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a name means: a part, several that it may, or none."""

    part: Part | None = None
    how: How | None = None
    candidates: tuple[Part, ...] = ()
    """Best first, where none is meant for sure."""


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name in one form, letters and numbers that belong together whole."""
    plain = unicodedata.normalize("NFKC", text[:300]).casefold().replace("_", " ")
    if not plain.isascii():
        plain = _KOREAN_WORD.sub(lambda found: f" {_KOREAN[found[0]]} ", plain)
    plain = _VENDOR_WORD.sub(lambda found: _VENDORS[found[0]], plain)
    plain = _SPACED_UNIT.sub(r"\1\2", plain)
    return tuple(_WORD.findall(plain))


def pieces(text: str) -> tuple[str, ...]:
    """Return the words of a name with letters and digits apart: ``rtx 5070 ti``."""
    return tuple(_PIECE.findall(" ".join(words(text))))


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
        self._chips = _chips(self._by_kind["gpu"])
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for chip in self._chips:
            self._lengths[chip[0]].add(len(chip))
        self._models = _models(self._by_kind["cpu"])
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
        if len(same) == 1:
            return Verdict(same[0], "exact")
        if same:
            return Verdict(candidates=tuple(same[:MOST_CANDIDATES]))
        if kind in (None, "gpu") and (card := self._card(name, told=kind == "gpu")):
            return card
        if kind in (None, "cpu") and (cpu := self._cpu(name, told=kind == "cpu")):
            return cpu
        return Verdict() if kind in ("gpu", "cpu") else self._wordings.match(name, kind)

    def _card(self, name: str, *, told: bool) -> Verdict | None:
        """Return the card whose chip and memory a name states; None where it states no chip."""
        stated = pieces(name)
        for start, length in self._spans(stated):
            chip = stated[start : start + length]
            cards = self._chips[chip]
            if not told and not any(piece.isalpha() for piece in chip):
                continue
            behind = stated[start + length] if start + length < len(stated) else ""
            if behind in _VARIANTS:
                return Verdict()
            laptop = "laptop" in stated
            cards = [card for card in cards if (card.segment == "laptop") == laptop]
            held = _memory_stated(stated[start + length :])
            fitting = [card for card in cards if card.memory_bytes.value / GIB in held] or (
                [] if held else cards
            )
            if len(fitting) == 1:
                return Verdict(fitting[0], "words")
            return Verdict(candidates=tuple((fitting or cards)[:MOST_CANDIDATES]))
        return None

    def _spans(self, stated: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """Yield where the names of chips stand, the longest first."""
        found = [
            (length, start)
            for start, piece in enumerate(stated)
            for length in self._lengths.get(piece, ())
            if stated[start : start + length] in self._chips
        ]
        for length, start in sorted(found, key=lambda one: -one[0]):
            yield start, length

    def _cpu(self, name: str, *, told: bool) -> Verdict | None:
        stated = words(name)
        if not told and not any(word.rstrip("0123456789") in _BRANDS for word in stated):
            return None
        found = {part.id: part for word in stated for part in self._models.get(word, ())}
        plus = "plus" in stated
        fitting = [part for part in found.values() if ("plus" in words(part.name)) == plus]
        if len(fitting) == 1:
            return Verdict(fitting[0], "words")
        return Verdict(candidates=tuple(fitting[:MOST_CANDIDATES])) if fitting else None


def _keys(part: Part) -> Iterator[str]:
    """Yield what stands for a part alone; of a card also ``3090`` and ``409024gb``."""
    more = part.shared_names if isinstance(part, GpuRecord) else ()
    for name in (part.id, part.name, *part.aliases, *more):
        key = name_key(name)
        yield key
        if isinstance(part, GpuRecord):
            yield from short_keys(key, part.memory_bytes.value)


def _chips(cards: Iterable[Part]) -> Mapping[tuple[str, ...], list[GpuRecord]]:
    """Return cards by the pieces of their chip's name, without maker and memory."""
    found: dict[tuple[str, ...], dict[str, GpuRecord]] = defaultdict(dict)
    for card in cards:
        if not isinstance(card, GpuRecord):
            continue
        for name in (card.name, *card.aliases, *card.shared_names):
            chip = _chip(name)
            if any(piece.isdigit() for piece in chip):
                found[chip][card.id] = card
    return {chip: list(cards.values()) for chip, cards in found.items()}


def _chip(name: str) -> tuple[str, ...]:
    plain = [piece for piece in pieces(name) if piece not in _TRIM]
    while len(plain) > 2 and plain[-1] in ("gb", "g") and plain[-2].isdigit():
        plain = plain[:-2]
    return tuple(piece for piece in plain if piece != "laptop")


def _memory_stated(behind: tuple[str, ...]) -> set[float]:
    """Return the GiB that the words behind a chip state."""
    return {
        float(number)
        for number, unit in pairwise(behind)
        if unit in ("gb", "g") and number.isdigit()
    }


def _models(cpus: Iterable[Part]) -> Mapping[str, list[Part]]:
    """Return processors by their model number: ``9950x3d``, ``7763``."""
    found: dict[str, list[Part]] = defaultdict(list)
    for cpu in cpus:
        for word in words(cpu.name):
            if len(re.findall(r"\d", word)) >= 3:
                found[word].append(cpu)
    return found


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
        for index, own in enumerate(self._words):
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
        return self._verdict(ranked, stated & _VERSIONS)

    def _verdict(self, ranked: list[tuple[float, float, int]], versions: frozenset[str]) -> Verdict:
        if not ranked:
            return Verdict()
        least = max(SURE, ranked[0][0] - CLEAR)
        sure = [one for one in ranked if one[0] >= least and versions <= self._words[-one[2]]]
        # Of records that a name holds wholly, the one with more words is the closer.
        sure.sort(key=lambda one: one[1], reverse=True)
        alone = len(sure) == 1 or (len(sure) > 1 and sure[0][1] > sure[1][1] * (1 + CLEAR))
        if sure and alone:
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
