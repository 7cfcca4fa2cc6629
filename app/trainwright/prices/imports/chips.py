"""Cards and processors by their chip, which the names of shops hold among other words.

A chip is what stands in the name whole: a letter more makes another one (``RTX 5090 D``,
``14900KS``). Maker, generation and memory must not contradict. What several may be is asked.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from trainwright.catalog.records import GpuRecord
from trainwright.messages.units import GIB
from trainwright.prices.imports.names import plain, words
from trainwright.prices.shipped import Part

_PIECE = re.compile(r"\d+|[a-z]+")
_MEMORY_KIND = re.compile(r"(?:lp)?(?:g?ddr|d)[3-7]x?|hbm[23]?e?")
"""``GDDR7``, and ``D7`` and ``D6X`` as Danawa writes it."""
_GLUED_KIND = re.compile(
    r"(?:(?:lp)?g?ddr[3-7]x?|hbm[23]?e?"
    r"|(?:(?<=\d)|(?<=ti)|(?<=xt)|(?<=xtx)|(?<=gre)|(?<=super))d[3-7]x?)$"
)
_MEMORY_UNITS = frozenset(("gb", "g", "gd", "go", "gib"))
_UNTOLD = frozenset(
    ("nvidia", "amd", "intel", "geforce", "radeon", "generation", "gpu", "graphics", "edition")
) | {"laptop", "blackwell"}
"""Words that a chip's name may have or not."""
_GENERATIONS = frozenset(("pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"))
_VARIANTS = frozenset(
    ("ti", "super", "xt", "xtx", "gre", "d", "dd", "mobile", "m", "s", "sff", "ada")
)
"""Words behind a chip's number that make it another chip."""
_FORMS = frozenset(("pcie", "sxm", "nvl", "oam"))
"""Words behind the number of a chip for servers that make it another card."""
_SERIES = ("geforce", "quadro", "titan", "jetson")
"""Words that no card of another series has in its name."""
_MAKERS = {
    **dict.fromkeys(("nvidia", "geforce", "quadro", "tesla", "titan", "gtx", "rtx"), "NVIDIA"),
    **dict.fromkeys(("amd", "radeon", "instinct", "ryzen", "threadripper", "epyc"), "AMD"),
    **dict.fromkeys(("intel", "arc", "core", "xeon", "i3", "i5", "i7", "i9"), "Intel"),
}
_PROCESSORS = frozenset(
    ("amd", "intel", "ryzen", "threadripper", "epyc", "core", "xeon", "ultra", "cpu", "i")
)
_OTHER_THINGS = re.compile(
    r"\b(?:water ?block|back ?plate|bracket|holder|riser\b|nvlink\b|adapters?\b|anti.?sag\b)"
    r"|\bcables?\b(?! manage)|\b(?:mounting|upgrade|mesh|fan) kit\b|\bthermal pads?\b"
    r"|\b(?:(?:side|front|glass) panel|front mesh|delid|delidded|contact frame)\b"
    r"|\b(?:replacement|spare) (?:fan|cooler|part)s?\b"
    r"|\b(?:fan|cooler|heat ?sink) (?:fan )?replacements?\b"
    r"|\bso-?dimm\b|\blaptop\b|\b(?:external|portable)\b"
    r"|\b(?:(?:gaming|desktop|mini) ?pc|box only|broken|for parts|not working)\b"
    r"|워터\s?블[록럭]|백플레이트|지지대|브라켓|라이저|브[릿리]지|케이블(?!\s?일체)|어댑터|써멀"
    r"|\blot of \d|\b(?:bundle|combo)\b|\bno card\b|\s\+\s|수냉|일괄|본체(?!\s?없)"
    r"|완본체|조립\s?(?:pc|컴퓨터)|게이밍\s?pc|미니\s?pc|박스만|고장|부품용"
)
"""Things that go with a part or hold one, and parts that do not work."""


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    ends: bool
    """Whether its word ends with it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What may be meant; surely where it is one, and nothing contradicts."""

    parts: tuple[Part, ...]
    sure: bool


def holds_a_part(name: str) -> bool:
    """Return whether a name is of a thing for a part, or of a whole computer."""
    return _OTHER_THINGS.search(plain(name)) is not None


class Cards:
    """Graphics cards by the pieces of their chips' names."""

    def __init__(self, cards: Iterable[Part]) -> None:
        found: dict[tuple[str, ...], dict[str, GpuRecord]] = defaultdict(dict)
        for card in cards:
            if isinstance(card, GpuRecord):
                for name in (card.name, *card.aliases, *card.shared_names):
                    chip = tuple(piece.text for piece in _pieces(name)[0])
                    if chip[0] == "titan" or any(text.isdigit() for text in chip):
                        found[chip][card.id] = card
        self._chips = {chip: tuple(cards.values()) for chip, cards in found.items()}
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for chip in self._chips:
            self._lengths[chip[0]].add(len(chip))

    def find(self, name: str, *, told: bool) -> Found | None:
        """Return the cards whose chip stands in a name; None where none does.

        Args:
            name: as a list writes it.
            told: whether the list says that it is a card.
        """
        stated, held = _pieces(name)
        spans = self._spans([piece.text for piece in stated])
        named = set(words(name))
        if not told and not named & {"nvidia", "tesla"}:
            spans = [span for span in spans if not _is_short(span[2])]
        if not spans:
            return None
        start, end, chip = spans[0]
        if not stated[end - 1].ends or _is_variant(stated[end:], chip, self._chips[chip]):
            return Found((), sure=False)
        sold_alone = "laptop" not in named  # a chip of a laptop is sold with the laptop only
        cards = [card for card in self._chips[chip] if _is_card(card) == sold_alone]
        fitting = [card for card in cards if _agrees(card, named)]
        if held:
            fitting = [card for card in fitting if card.memory_bytes.value / GIB in held]
        else:
            fitting = _without_modified(fitting)
        known = {card.id for card in cards}
        strange = [
            card
            for first, last, other in spans
            if last <= start or first >= end
            for card in self._chips[other]
            if card.id not in known and _is_card(card) == sold_alone
        ]
        sure = len(fitting) == 1 and not strange and sold_alone
        return Found((*(fitting or cards), *strange), sure=sure)

    def _spans(self, stated: list[str]) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return where the names of chips stand, the longest first."""
        found = [
            (start, start + length, tuple(stated[start : start + length]))
            for start, piece in enumerate(stated)
            for length in self._lengths.get(piece, ())
            if start + length <= len(stated)
            and tuple(stated[start : start + length]) in self._chips
        ]
        return sorted(found, key=lambda one: one[0] - one[1])


def _pieces(name: str) -> tuple[list[_Piece], set[float]]:
    """Return letters and digits of a name apart, and the GiB that it states.

    The memory is left out, size and kind: the ``D7`` in ``RTX 5090 D7`` makes no ``RTX 5090 D``.
    """
    found: list[_Piece] = []
    for word in words(name.replace("-", " ")):
        if word in _UNTOLD or _MEMORY_KIND.fullmatch(word):
            continue
        split = _PIECE.findall(_GLUED_KIND.sub("", word))
        found += [_Piece(text, ends=at == len(split)) for at, text in enumerate(split, 1)]
    sizes = {
        at
        for at, (number, unit) in enumerate(pairwise(found))
        if number.text.isdigit() and unit.text in _MEMORY_UNITS and not number.ends
    }
    held = {float(found[at].text) for at in sizes}
    left_out = sizes | {at + 1 for at in sizes}
    return [piece for at, piece in enumerate(found) if at not in left_out], held


def _without_modified(cards: list[GpuRecord]) -> list[GpuRecord]:
    """Leave out cards whose name adds a memory to another one's: sellers always say it.

    Of the two sizes of an RTX 4060 Ti none is left out, as both of their names say it.
    """
    plain = [card for card in cards if not _pieces(card.name)[1]]
    return plain or cards


def _is_short(chip: tuple[str, ...]) -> bool:
    """Return whether a chip's name may be anything: ``L4``, ``A10``."""
    return len(chip) == 1 or (len(chip) == 2 and len(chip[0]) == 1 and len(chip[1]) < 3)


def _is_variant(behind: list[_Piece], chip: tuple[str, ...], cards: Iterable[GpuRecord]) -> bool:
    first, second = (*(piece.text for piece in behind[:2]), "", "")[:2]
    return (
        first in _VARIANTS
        or (first == "max" and second == "q")
        or (first == "v" and second.isdigit())
        or (
            first in _FORMS
            and not _FORMS.intersection(chip)
            and any(card.segment == "datacenter" for card in cards)
        )
    )


def _is_card(card: GpuRecord) -> bool:
    return card.segment != "laptop"


def _agrees(card: GpuRecord, named: set[str]) -> bool:
    """Return whether neither maker, series nor generation contradict."""
    own = set(words(" ".join((card.name, *card.aliases, card.architecture))))
    makers = {_MAKERS[word] for word in named if word in _MAKERS}
    return (
        (not makers or card.vendor in makers)
        and all(word in own for word in _SERIES if word in named)
        and named & _GENERATIONS <= own
    )


class Processors:
    """Processors by their model number: ``9950x3d``, ``7763``."""

    def __init__(self, cpus: Iterable[Part]) -> None:
        self._models: Mapping[str, list[Part]] = defaultdict(list)
        for cpu in cpus:
            for word in words(cpu.name):
                if len(re.findall(r"\d", word)) >= 3:
                    self._models[word].append(cpu)

    def find(self, name: str, *, told: bool) -> Found | None:
        """Return the processors whose model number stands in a name; None where none does."""
        stated = words(name)
        if not told and not any(word.rstrip("0123456789") in _PROCESSORS for word in stated):
            return None
        found = {part.id: part for word in stated for part in self._models.get(word, ())}
        makers = {_MAKERS[word] for word in stated if word in _MAKERS}
        fitting = [part for part in found.values() if _is_of(part, stated, makers)]
        if not fitting:
            return None
        return Found(tuple(fitting), sure=len(fitting) == 1)


def _is_of(part: Part, stated: tuple[str, ...], makers: set[str]) -> bool:
    """Return whether a processor is of the maker and the series that a name states."""
    own = words(part.name)
    maker = next((_MAKERS[word] for word in own if word in _MAKERS), None)
    told = maker is None or not makers or maker in makers
    return told and all((word in stated) == (word in own) for word in ("plus", "pro"))
