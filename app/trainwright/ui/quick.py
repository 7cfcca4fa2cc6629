"""A first look at an edited plan: the byte curve without the allocator's replay.

It takes about a millisecond, so that the screen follows every edit; the replayed answer
comes from another thread and takes its place.
"""

from dataclasses import replace

from trainwright.estimate.memory.breakdown import Curve
from trainwright.estimate.memory.device_memory import MemoryEstimate, first_look
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, asked_of
from trainwright.plan.judging import host_room, verdict
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan


def look(plan: Plan, facts: Facts, before: Report) -> Report:
    """Return a provisional report: memory by the byte curve, all else as it was before."""
    peak, curve = first_look(asked_of(plan, facts))
    memory = _memory(before.memory, peak, curve, facts.machine.gpu.total)
    return replace(
        before,
        verdict=verdict(memory, facts.machine.system, host_room(facts.machine, memory)),
        memory=memory,
        settings=facts.settings,
    )


def _memory(before: MemoryEstimate, peak: float, curve: Curve, total: Quantity) -> MemoryEstimate:
    allocated = replace(before.allocated_peak, value=peak, parts=_terms(curve), interval=None)
    cached = before.reserved_peak.value - before.allocated_peak.value
    others = before.device_used.value - before.reserved_peak.value
    reserved = replace(
        before.reserved_peak,
        value=peak + cached,
        parts=(allocated, *before.reserved_peak.parts[1:]),
    )
    outside = [part for part in before.device_used.parts if part.role != "reserved"]
    used = replace(before.device_used, value=peak + cached + others, parts=(reserved, *outside))
    share = before.device_used_p95.value / before.device_used.value
    return replace(
        before,
        allocated_peak=allocated,
        reserved_peak=reserved,
        device_used=used,
        device_used_p95=replace(before.device_used_p95, value=used.value * share),
        device_total=total,
        free=replace(before.free, value=total.value - used.value, parts=(total, used)),
        out_of_memory=used.value > total.value,
        curve=curve,
    )


def _terms(curve: Curve) -> tuple[Quantity, ...]:
    """Return the live bytes by term at the curve's peak, largest first."""
    if curve.live.size == 0:
        return ()
    at_peak = curve.live[:, int(curve.live.sum(axis=0).argmax())].tolist()
    terms = [
        Quantity(
            Message.of(f"memory.term.{term}"), value, Unit.BYTES, Kind.ESTIMATED, role=term
        )
        for term, value in zip(curve.terms, at_peak, strict=True)
        if value > 0
    ]  # fmt: skip
    return tuple(sorted(terms, key=lambda term: -term.value))
