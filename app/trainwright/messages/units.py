"""Readable units at the edge: bytes and seconds inside, GiB and hours here."""

from collections.abc import Callable
from typing import Any

MIB = 1 << 20
GIB = 1 << 30

_mark = ","
"""Between thousands; both languages have a comma (Unicode CLDR 48)."""


def mark_thousands(mark: str) -> None:
    """Write this between thousands from now on: a person's own habit."""
    global _mark
    _mark = mark


MEMORY: dict[str, tuple[tuple[float, str], ...]] = {
    "GiB": ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")),
    "GB": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
}
"""Units of memory, the largest first: powers of two, as drivers and PyTorch have them
(IEC 80000-13), or of ten, as on drives."""
_memory = MEMORY["GiB"]


def measure_memory(unit: str) -> None:
    """Write memory in this of ``MEMORY`` from now on."""
    global _memory
    _memory = MEMORY[unit]


def memory_units() -> tuple[tuple[float, str], ...]:
    """Return the bytes and the name of the units of memory, the largest first."""
    return _memory


def grouped(value: float, digits: int = 0) -> str:
    """Return a number with so many decimals and its thousands apart."""
    return f"{value:,.{digits}f}".replace(",", _mark)


def gib(value: float, _language: str = "en") -> str:
    """Return bytes as GiB, or MiB below a tenth of one; as GB and MB where a person set these."""
    (giga, name), (mega, small) = _memory[:2]
    if abs(value) < giga / 10:
        return f"{value / mega:.0f} {small}"
    return f"{value / giga:.1f} {name}" if abs(value) >= 10 * giga else f"{value / giga:.2f} {name}"


def number(value: float, _language: str = "en") -> str:
    """Return a number with its thousands apart, three figures when fractional."""
    if float(value).is_integer() or abs(value) >= 1000:
        return grouped(value)
    return f"{value:.3g}"


def percent(value: float, _language: str = "en") -> str:
    """Return a ratio as a percentage."""
    return f"{value * 100:.0f} %" if abs(value) >= 0.1 else f"{value * 100:.1f} %"


def signed(value: float, _language: str = "en") -> str:
    """Return a change as a percentage with its sign: +34 %, −12 %."""
    return f"{'−' if value < 0 else '+'}{percent(abs(value))}"


def count(value: float, _language: str = "en") -> str:
    """Return a large count in short form: 8.03 B, 25.6 M; Korean counts in 억 and 만."""
    if _language == "ko":
        for size, suffix in ((1e8, "억"), (1e4, "만")):
            if abs(value) >= size:
                return (
                    f"{value / size:.3g}{suffix}"
                    if value / size < 1000
                    else f"{grouped(value / size)}{suffix}"
                )
        return number(value)
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:.3g} {suffix}"
    return number(value)


def si(value: float, _language: str = "en") -> str:
    """Return a number with a decimal prefix, for a unit to follow: 19.5 G, 294 M."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            scaled = value / size
            return f"{number(scaled) if scaled >= 1000 else f'{scaled:#.3g}'.rstrip('.')} {prefix}"
    return f"{number(value)} "


_DURATION = {
    "en": (" d", " h", " min", " s", " ms"),
    "ko": ("일", "시간", "분", "초", "ms"),
}
_DAYS = 2 * 86400
"""Seconds from which a time is told in days."""


def duration(value: float, language: str = "en") -> str:
    """Return seconds as two leading units: 5 h 54 min, 12.3 s, 4.1 ms, 5 µs."""
    day, hour, minute, second, milli = _DURATION["ko" if language == "ko" else "en"]
    if 0 < value < 1e-4:
        return f"{value * 1e6:.3g}{milli.replace('m', 'µ')}"
    if value < 1:
        return f"{value * 1000:.3g}{milli}"
    if value < 60:
        return f"{value:.3g}{second}"
    if value < 3600:
        whole = round(value)
        return (
            f"{whole // 60}{minute} {whole % 60}{second}"
            if whole % 60
            else f"{whole // 60}{minute}"
        )
    if value < _DAYS:
        whole = round(value / 60)
        return f"{whole // 60}{hour} {whole % 60}{minute}"
    return _days(value, day, hour)


def durations(low: float, high: float, language: str = "en") -> tuple[str, str]:
    """Return the ends of an interval of seconds; both in days where both are a day or more."""
    day, hour, *_ = _DURATION["ko" if language == "ko" else "en"]
    if low >= _DAYS / 2 and high >= _DAYS:
        return _days(low, day, hour), _days(high, day, hour)
    return duration(low, language), duration(high, language)


def _days(seconds: float, day: str, hour: str) -> str:
    whole = round(seconds / 3600)
    return f"{whole // 24}{day} {whole % 24}{hour}"


FORMATS: dict[str, Callable[[Any, str], str]] = {
    "gib": gib,
    "num": number,
    "percent": percent,
    "signed": signed,
    "count": count,
    "si": si,
    "duration": duration,
}
