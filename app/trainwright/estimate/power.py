"""What a power limit leaves of a GPU's arithmetic; its memory keeps its clock.

Two things bound the clock of the cores under a full load:

    board(card) = min(1, TDP · FLOP per joule / peak)
    limit(r) = min(1, ((r - s) / (n - s))^x)        r: limit over TDP

A card whose maker lists a boost clock that its board power cannot feed (Max-Q, low-profile)
sustains ``board`` of its peak. A limit below what a full load draws, ``n`` of the TDP, lowers the
clock; ``s`` of the TDP goes to memory and leakage whatever the clock. With voltage falling along
with the frequency the exponent would be 1/3; half fits the clocks that were logged. The memory's
clock was the same at every limit (3090: 9501 MHz from 210 to 450 W), so that what waits for memory
loses nothing. Rows: ``tests/accuracy/rows/power.csv``.
"""

from trainwright.catalog import GpuRecord

STATIC = 0.3
"""Share of the TDP that no lower clock saves: fitted on clocks of RTX 3090 at 210 and 220 W."""
EXPONENT = 0.5
"""Fitted on the same clocks, and on those of an RTX 4090 at 60 to 90 % of its power."""

NEED = {"Ampere": 0.85, "Ada": 0.72, "Blackwell": 0.72}
"""Architecture -> share of the TDP that a full load draws at the boost clock: Ampere fitted on
RTX 3090 (Puget Systems: 95 % of a training's speed at 280 of 350 W), Ada on RTX 4090 (its clock
starts to fall below 80 %), Blackwell assumed as Ada."""
NEED_ELSEWHERE = 1.0
"""Assumed for other architectures and for cards of servers: products draw what the board may."""

FLOP_PER_JOULE = {"Ada": 1.0e12, "Blackwell": 1.0e12}
"""16-bit products with fp32 accumulation: timm's table of RTX PRO 6000 Max-Q, 300 W, fits 1.0 T;
Ada, made in the same process, assumed alike. Others: no evidence, no bound."""
_STACKED = frozenset({"b200", "b300", "gb200", "gb300"})
"""Blackwell with stacked memory, another design."""


def sustained_share(record: GpuRecord, limit_w: float | None = None) -> float:
    """Return the share of the 16-bit peak that a GPU sustains, from 0 to 1.

    1 where nothing is known of its power.
    """
    return board_share(record) * limit_share(record, limit_w)


def board_share(record: GpuRecord) -> float:
    """Return the share of the 16-bit peak that the board's own power feeds."""
    peak, rate = record.flops.get("fp16_fp32"), FLOP_PER_JOULE.get(record.architecture)
    if peak is None or rate is None or record.tdp_w is None or record.id in _STACKED:
        return 1.0
    return min(1.0, record.tdp_w.value * rate / peak.value)


def limit_share(record: GpuRecord, limit_w: float | None) -> float:
    """Return the share of the clock that is left under a limit."""
    if limit_w is None or record.tdp_w is None:
        return 1.0
    server = record.segment == "datacenter"
    need = NEED_ELSEWHERE if server else NEED.get(record.architecture, NEED_ELSEWHERE)
    left = (limit_w / record.tdp_w.value - STATIC) / (need - STATIC)
    return min(1.0, float(max(left, 0.01) ** EXPONENT))
