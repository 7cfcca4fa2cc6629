"""Scales and ticks."""

import math
from dataclasses import dataclass

from trainwright.messages.units import grouped


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def value(self, pixel: float) -> float:
        """Return the value at a pixel."""
        length = (self.end - self.start) or 1.0
        return self.low + (pixel - self.start) / length * (self.high - self.low)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round values within a range, about as many as asked."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Return a tick's label: as few digits as it needs."""
    if value == 0:
        return "0"
    text = f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1000 else grouped(value)
    return text.replace("-", "−")
