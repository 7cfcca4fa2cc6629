"""W1 to W6 and W10 to W12: what the power supply and the wall can give."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, floor
from typing import Any

from trainwright.catalog import PsuRecord
from trainwright.machine.build import Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.machine.power import (
    CIRCUITS,
    COMFORTABLE,
    DESIGN_GUIDE,
    EXCURSIONS,
    MEASURED_PEAK,
    MODERN_FROM_W,
    OLD_SIZING,
    TIGHT,
    USUAL_PEAK,
    Excursion,
    modern,
    peak_factor,
    power,
)
from trainwright.messages import Message

LEAST_LIMIT = 0.6
"""Of a card's own power: limits below cost much of its rate, and drivers refuse most of them.
Assumed; NVIDIA's RTX 5090 takes no less than 70 %."""
LARGEST_W = 1600.0
"""Rating of the largest supplies of which every maker sells one; assumed, and what a US outlet of
120 V and 20 A carries."""
CHEAP_LIMIT = 0.8
"""At which an RTX 3090 keeps 95 % and more. Source: Puget Systems, 'Quad RTX 3090 GPU power
limiting', 2020: 280 of 350 W."""
LIMIT_FROM_W = 300.0
"""Power from which a card's limit is worth a word; assumed."""

SURE = 1.05
"""Factor by which a draw must exceed what a supply gives to say that it cannot work: all parts at
their most at once are an upper end. Assumed; people run four RTX A6000 on 1,600 W."""

PUGET = "Puget Systems, Quad RTX 3090 power limiting: 280 of 350 W keeps 95 %"


def sustained(facts: Facts) -> Iterator[Check]:
    """W1: what everything draws together, for long."""
    if not facts.build.gpus:
        return
    if facts.power.missing:
        yield unknown("W1", _unsaid(facts), *facts.power.missing)
        return
    values: dict[str, Any] = {"watts": facts.power.sustained.value}
    values["parts"] = {part.role: part.value for part in facts.power.parts}
    yield found("W1", "ok", "build.w1.ok", source=DESIGN_GUIDE, **values)


def _unsaid(facts: Facts) -> str:
    """Return the part whose watts nobody says."""
    card = next((gpu.record.name for gpu in facts.build.gpus if gpu.watts is None), None)
    return card or (facts.build.cpu.name if facts.build.cpu else "")


def load(facts: Facts) -> Iterator[Check]:
    """W2: how much of the supply's rating that is."""
    psu, load = facts.build.psu, facts.power.load
    if psu is None or load is None or not facts.build.gpus:
        return
    if facts.power.missing:
        yield unknown("W2", _unsaid(facts), *facts.power.missing)
        return
    verdict: Verdict = "error" if load > SURE else "warning" if load > COMFORTABLE else "ok"
    tight = load > 1 or (load > TIGHT and facts.use.way != "inference")
    tight = tight and verdict == "warning"
    yield found(
        "W2",
        verdict,
        "build.w2.tight" if tight else f"build.w2.{verdict}",
        source="policy: 80 and 94 %; Puget Systems advise against 1,580 of 1,600 W",
        remedy=_more(facts) if verdict != "ok" else None,
        psu=psu.name,
        watts=facts.power.sustained.value,
        rating=psu.watts,
        load=load,
    )


def _more(facts: Facts) -> Message:
    """Return what to do about a supply that is too small: another, a power limit, or several."""
    need = facts.power.recommended_psu_w
    limit = limit_for(facts, facts.power.rating_w or need) or _working_limit(facts)
    ways = "" if limit is None else "-or-limit"
    values = {"need": need, "limit": limit}
    if need > LARGEST_W and facts.build.gpu_count > 1:
        ways += "-or-several"
        number = ceil(need / LARGEST_W)
        values |= {"number": number, "each": ceil(need / number / 50) * 50.0}
    return Message.of(f"build.remedy.psu{ways}", **values)


def _working_limit(facts: Facts) -> float | None:
    """Return the highest power limit with which the supply stays on, with little to spare.

    None where it is so low that the cards would be wasted.
    """
    psu, gpus = facts.build.psu, facts.build.gpus
    watts = [gpu.watts for gpu in gpus if gpu.watts is not None]
    own = [gpu.record.tdp_w.value for gpu in gpus if gpu.record.tdp_w is not None]
    if psu is None or not watts or len(own) < len(gpus):
        return None
    for limit in range(floor(min(watts) / 10 - 1) * 10, ceil(LEAST_LIMIT * max(own)) - 1, -10):
        limited = tuple(replace(gpu, power_limit_w=float(limit)) for gpu in gpus)
        budget = power(replace(facts.build, gpus=limited))
        steady = budget.load is not None and budget.load <= TIGHT
        if steady and not _beyond(budget.usual, psu, modern(psu)):
            return float(limit)
    return None


def limit_for(facts: Facts, rating: float) -> float | None:
    """Return the power limit of each card, in steps of 10 W, with which a supply is enough.

    None where it is so low that the cards would be wasted.
    """
    cards = sum(gpu.count for gpu in facts.build.gpus)
    own = [gpu.record.tdp_w.value for gpu in facts.build.gpus if gpu.record.tdp_w is not None]
    if not cards or len(own) < len(facts.build.gpus):
        return None
    drawn = sum((gpu.watts or 0.0) * gpu.count for gpu in facts.build.gpus)
    beside = facts.power.sustained.value - drawn
    psu = facts.build.psu
    factor = EXCURSIONS[0].modern if psu is None or modern(psu) else OLD_SIZING
    peaks = peak_factor(facts.build.gpus[0].record.id) + USUAL_PEAK * (cards - 1)
    each = min((COMFORTABLE * rating - beside) / cards, (factor * rating - beside) / peaks)
    limit = floor(each / 10) * 10.0
    return limit if max(own) > limit >= LEAST_LIMIT * max(own) else None


def peaks(facts: Facts) -> Iterator[Check]:
    """W3: whether the supply stays on when all cards jump at once."""
    psu = facts.build.psu
    if psu is None or not facts.build.gpus:
        return
    if facts.power.missing:
        yield unknown("W3", _unsaid(facts), *facts.power.missing)
        return
    source = DESIGN_GUIDE + ", table 3-3"
    verdict, worst = _peak_verdict(facts, psu, modern(psu))
    if psu.atx_version is None and verdict != _peak_verdict(facts, psu, True)[0]:
        yield unknown("W3", psu.name, "psu.atx_version", source=source)
        return
    yield found(
        "W3",
        verdict,
        f"build.w3.{verdict}",
        source=source,
        remedy=_more(facts) if verdict != "ok" else None,
        psu=psu.name,
        watts=worst.needed_w,
        allowed=_allowed(worst, psu, modern(psu)),
        seconds=worst.seconds,
    )


def _peak_verdict(facts: Facts, psu: PsuRecord, as_modern: bool) -> tuple[Verdict, Excursion]:
    """Return the verdict on the peaks, and the one that decides it.

    Cards at what was measured of such cards trip the supply; at the most that the standard lets
    them take they may.
    """
    usual = _beyond(facts.power.usual, psu, as_modern)
    if any(peak.needed_w > SURE * _allowed(peak, psu, as_modern) for peak in usual):
        return "error", usual[0]
    if beyond := _beyond(facts.power.excursions, psu, as_modern):
        return "warning", beyond[0]
    return "ok", facts.power.excursions[0]


def _beyond(peaks: tuple[Excursion, ...], psu: PsuRecord, as_modern: bool) -> list[Excursion]:
    return [peak for peak in peaks if peak.needed_w > _allowed(peak, psu, as_modern)]


def _allowed(peak: Excursion, psu: PsuRecord, as_modern: bool) -> float:
    """Return what a supply gives for so long, as one with or without ATX 3's excursions."""
    row = next(row for row in EXCURSIONS if row.seconds == peak.seconds)
    promised = as_modern and psu.watts > MODERN_FROM_W
    return psu.watts * (row.modern if promised else row.old)


def card_peaks(facts: Facts) -> Iterator[Check]:
    """W4 and W5: what one card takes for a moment, as the standard allows or as measured."""
    for gpu in facts.build.gpus:
        if gpu.watts is None:
            yield unknown("W4", gpu.record.name, "gpu.tdp_w")
            continue
        measured = gpu.record.id in MEASURED_PEAK
        factor = peak_factor(gpu.record.id)
        yield found(
            "W5" if measured else "W4",
            "note",
            "build.w5.note" if measured else "build.w4.note",
            source="Lenovo ThinkSystem ST650 V2, maintenance manual p. 69"
            if measured
            else "PCI Express CEM 5.0: three times the sustained power for 100 µs",
            gpu=gpu.record.name,
            watts=gpu.watts * factor,
            sustained=gpu.watts,
            factor=factor,
        )


def size(facts: Facts) -> Iterator[Check]:
    """W6: the rating to choose."""
    if not facts.build.gpus:
        return
    if facts.power.missing:
        yield unknown("W6", _unsaid(facts), *facts.power.missing)
        return
    psu, budget = facts.build.psu, facts.power
    values: dict[str, Any] = {"need": budget.recommended_psu_w, "least": budget.least_psu_w}
    source = (
        "policy: a fifth to spare, and 2.0 (ATX 3.x) or 1.25 times the rating for peaks; the"
        " latter reproduce Intel 613768's example of 300 + 300 + 150 W"
    )
    if psu is None:
        yield found("W6", "note", "build.w6.none", source=source, **values)
        return
    values |= {"psu": psu.name, "rating": psu.watts}
    if psu.watts >= budget.recommended_psu_w:
        yield found("W6", "ok", "build.w6.ok", source=source, **values)
    else:
        verdict: Verdict = "note" if psu.watts >= budget.least_psu_w else "warning"
        remedy = _more(facts)
        yield found("W6", verdict, "build.w6.small", source=source, remedy=remedy, **values)


EFFICIENT_FROM_W = 750.0
"""Assumed: below, the difference is some watts."""


LOW_LINE_V = 200.0
"""Below which large supplies give less than their rating: 100 to 127 V outlets."""


def efficiency(facts: Facts) -> Iterator[Check]:
    """W10: how much more than the parts draw comes from the wall."""
    psu, wall = facts.build.psu, facts.power.wall_w
    if psu is None or wall is None:
        return
    if psu.efficiency is None:
        yield unknown("W10", psu.name, "psu.efficiency")
        return
    wasteful = psu.watts > EFFICIENT_FROM_W and psu.efficiency in ("bronze", "silver")
    verdict: Verdict = "warning" if wasteful else "ok"
    yield found(
        "W10",
        verdict,
        f"build.w10.{verdict}",
        source="80 PLUS, half load at 115 or 230 V",
        remedy=Message.of("build.w10.remedy") if wasteful else None,
        psu=psu.name,
        badge=psu.efficiency.capitalize(),
        efficiency=facts.power.efficiency,
        wall=wall,
    )


def circuit(facts: Facts) -> Iterator[Check]:
    """W11: whether the wall's circuit carries it for hours."""
    name, wall, psu = facts.build.circuit, facts.power.wall_w, facts.build.psu
    if psu is not None and psu.needs_200v and (name is None or CIRCUITS[name].volts < LOW_LINE_V):
        source = psu.provenance("needs_200v").source
        verdict: Verdict = "note" if name is None else "error"
        remedy = None if name is None else Message.of("build.w11.remedy-volts")
        yield found("W11", verdict, "build.w11.volts", source=source, remedy=remedy, psu=psu.name)
    if name is None or wall is None:
        return
    line = CIRCUITS[name]
    verdict = "ok"
    if wall > line.rated_w:
        verdict = "error"
    elif wall > line.continuous_w:
        verdict = "warning"
    remedy = None
    if verdict != "ok":
        limit = limit_for(facts, line.continuous_w * (facts.power.efficiency or 1) / COMFORTABLE)
        remedy = (
            Message.of("build.w11.remedy")
            if limit is None
            else Message.of("build.remedy.limit", limit=limit)
        )
    yield found(
        "W11",
        verdict,
        f"build.w11.{verdict}",
        source="US NEC 210.20(A): four fifths of the breaker for hours; likewise elsewhere",
        remedy=remedy,
        wall=wall,
        volts=line.volts,
        amps=line.amps,
        continuous=line.continuous_w,
        rated=line.rated_w,
    )


def limit(facts: Facts) -> Iterator[Check]:
    """W12: what a lower power limit would save."""
    for gpu in facts.build.gpus:
        tdp = gpu.record.tdp_w
        if tdp is None or tdp.value < LIMIT_FROM_W or gpu.power_limit_w is not None:
            continue
        if gpu.record.form not in (None, "card"):
            continue
        lower = floor(CHEAP_LIMIT * tdp.value / 10) * 10.0
        saved = (tdp.value - lower) * gpu.count
        yield found(
            "W12",
            "note",
            "build.w12.note",
            source=PUGET,
            remedy=Message.of("build.remedy.limit", limit=lower),
            gpu=gpu.record.name,
            limit=lower,
            saved=saved,
        )


RULES = (
    sustained,
    load,
    peaks,
    card_peaks,
    size,
    efficiency,
    circuit,
    limit,
)
