"""Sizes that the name of a part states: capacity, modules, rate, watts."""

import re
from dataclasses import dataclass, fields
from math import isclose

_DDR = re.compile(r"\bddr([345])", re.IGNORECASE)
_RATE = re.compile(r"\bddr[345][-\s]?(\d{4,5})\b|\b(\d{4,5})\s*(?:mhz|mt/s)\b", re.IGNORECASE)
_CAS = re.compile(r"\bc(?:l|as)?\s?(\d{2})\b", re.IGNORECASE)
_KIT = re.compile(r"\b(\d)\s*x\s*(\d{1,3})\s*g|\b(\d{1,3})\s*g(?:b)?\s*x\s*(\d)\b", re.IGNORECASE)
_GB = re.compile(r"\b(\d+(?:\.\d+)?)\s*(gb|tb)\b", re.IGNORECASE)
_WATTS = re.compile(r"\b(\d{3,4})\s*w\b", re.IGNORECASE)
_REGISTERED = re.compile(r"\b(?:rdimm|registered|reg)\b|ecc/?reg", re.IGNORECASE)
_UNREGISTERED = re.compile(r"\b(?:c?udimm)\b", re.IGNORECASE)
TOLERANCE = 0.05
"""Capacities that count as the same: 1000, 1024 and 960 GB are all sold as a TB. Assumed."""
_ROOM = {"capacity_gb": TOLERANCE}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a part, or those that a name states; None: not stated."""

    ddr: int | None = None
    gib: float | None = None
    """Of a kit of memory."""
    modules: int | None = None
    mts: int | None = None
    cas: int | None = None
    registered: bool | None = None
    capacity_gb: float | None = None
    """Of a drive."""
    watts: float | None = None

    def agrees(self, other: "Sizes") -> bool:
        """Return whether nothing that both state differs."""
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            both = mine is not None and theirs is not None
            if both and not isclose(mine, theirs, rel_tol=_ROOM.get(field.name, 0)):
                return False
        return True


def sizes(name: str) -> Sizes:
    """Return the sizes that a name states."""
    ddr, watts, kit = _DDR.search(name), _WATTS.search(name), _KIT.search(name)
    capacity = _capacity(name)
    if ddr is None and not kit:
        return Sizes(capacity_gb=capacity, watts=float(watts[1]) if watts else None)
    rate, cas = _RATE.search(name), _CAS.search(name)
    modules, each = _modules(kit)
    return Sizes(
        ddr=int(ddr[1]) if ddr else None,
        gib=modules * each if modules and each else capacity,
        modules=modules,
        mts=int(rate[1] or rate[2]) if rate else None,
        cas=int(cas[1]) if cas else None,
        registered=_registered(name),
    )


def _capacity(name: str) -> float | None:
    found = _GB.search(name)
    if found is None:
        return None
    return float(found[1]) * (1000 if found[2].casefold() == "tb" else 1)


def _modules(kit: re.Match[str] | None) -> tuple[int | None, float | None]:
    """Return modules and GiB of each: ``2 x 16 GB``, or ``16Gx2`` as Koreans write it."""
    if kit is None:
        return None, None
    if kit[1]:
        return int(kit[1]), float(kit[2])
    return int(kit[4]), float(kit[3])


def _registered(name: str) -> bool | None:
    if _REGISTERED.search(name):
        return True
    return False if _UNREGISTERED.search(name) else None
