"""W7 to W9: the power supply's plugs for cards."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from trainwright.catalog import GpuRecord, PsuRecord
from trainwright.machine.build import Build, BuildGpu, Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.messages import Message

SLOT_W = 75.0
"""Source: PCI Express CEM, x16 graphics cards."""
PLUG_W = {"pcie_6": 75.0, "pcie_8": 150.0, "pcie_12": 600.0, "pcie_16": 600.0, "eps_8": 336.0}
"""Source: PCI Express CEM 5.0; EPS12V's 4 pairs of 7 A for boards' cards with it."""
MAKERS_EIGHT = (
    "NVIDIA DA-07261-001, power guidelines for workstation products: 250 W, one 8-pin plug"
)
MAKERS_EIGHT_W = 250.0 - SLOT_W
"""That NVIDIA lets its workstation cards take through one 8-pin plug, above the standard's 150 W.
Source: DA-07261-001 v14, power requirements for 250 W cards with a single PCIe 8-pin connector."""
ADAPTED = {"pcie_12": 2, "eps_8": 2}
"""8-pin plugs that the adapter in the card's box wants. Source: NVIDIA, RTX 3090 and A6000."""
FULL_PLUG = 0.9
"""Of its rating: from here on a 16-pin plug has next to no margin. Source: Tom's Hardware on
melted 12VHPWR plugs, for whom 575 of 600 W is too close."""


def plugs(facts: Facts) -> Iterator[Check]:
    """W7: the supply has a plug for each socket of the cards, and they carry the power."""
    psu = facts.build.psu
    for gpu in facts.build.gpus:
        if gpu.record.form not in (None, "card"):
            continue
        if gpu.record.plugs is None:
            yield unknown("W7", gpu.record.name, "gpu.plugs")
        elif gpu.watts is not None and gpu.watts > _given(gpu.record):
            yield _weak(gpu)
    if psu is None or not facts.build.gpus:
        return
    known = [gpu for gpu in facts.build.gpus if gpu.record.plugs is not None]
    if len(known) < len(facts.build.gpus):
        return
    yield _plugs(facts.build, psu)


def _weak(gpu: BuildGpu) -> Check:
    """Return that a card draws more than its sockets and its slot are rated for.

    Some makers sell such cards, and say what the cable of their one 8-pin plug must carry.
    """
    given, watts = _given(gpu.record), gpu.watts or 0.0
    allowed = gpu.power_limit_w is None and watts <= _given(gpu.record, eight_w=MAKERS_EIGHT_W)
    tdp = gpu.record.tdp_w
    return found(
        "W7",
        "warning" if allowed else "error",
        "build.w7.beyond" if allowed else "build.w7.weak",
        source=MAKERS_EIGHT if allowed else tdp.source if tdp else "",
        remedy=Message.of("build.remedy.limit", limit=given),
        gpu=gpu.record.name,
        watts=watts,
        given=given,
    )


def _given(card: GpuRecord, eight_w: float = PLUG_W["pcie_8"]) -> float:
    """Return what the card's sockets and its slot may give it."""
    rated = PLUG_W | {"pcie_8": eight_w}
    return SLOT_W + sum(rated[plug] * number for plug, number in (card.plugs or {}).items())


def _plugs(build: Build, psu: PsuRecord) -> Check:
    has = psu.connectors
    wanted = _wanted(build)
    if wanted["pcie_16"] and has.pcie_16 is None:
        return unknown("W7", psu.name, "psu.pcie_16")
    adapters = max(0, wanted["pcie_16"] - (has.pcie_16 or 0))
    eights = wanted["pcie_8"] + adapters * _eights(build)
    if eights and has.pcie_8 is None:
        return unknown("W7", psu.name, "psu.pcie_8")
    values: dict[str, Any] = {
        "psu": psu.name,
        "need_16": wanted["pcie_16"],
        "has_16": has.pcie_16 or 0,
        "need_8": eights,
        "has_8": has.pcie_8 or 0,
        "adapters": adapters,
    }
    source = psu.provenance("connectors").source
    if eights > (has.pcie_8 or 0):
        remedy = Message.of("build.w7.remedy", need_16=wanted["pcie_16"], need_8=wanted["pcie_8"])
        return found("W7", "error", "build.w7.error", source=source, remedy=remedy, **values)
    if adapters:
        remedy = Message.of("build.w7.remedy-native", need_16=wanted["pcie_16"])
        return found("W7", "warning", "build.w7.adapter", source=source, remedy=remedy, **values)
    return found("W7", "ok", "build.w7.ok", source=source, **values)


def _wanted(build: Build) -> dict[str, int]:
    """Return how many 16-pin plugs the cards want, and how many 8-pin ones beside them."""
    sixteen = eight = 0
    for gpu in build.gpus:
        for plug, number in (gpu.record.plugs or {}).items():
            if plug == "pcie_16":
                sixteen += number * gpu.count
            else:
                eight += number * ADAPTED.get(plug, 1) * gpu.count
    return {"pcie_16": sixteen, "pcie_8": eight}


def _eights(build: Build) -> int:
    """Return the 8-pin plugs that one adapter for a 16-pin socket wants."""
    watts = [gpu.watts or 600.0 for gpu in build.gpus if (gpu.record.plugs or {}).get("pcie_16")]
    return max(2, ceil(max(watts, default=300.0) / PLUG_W["pcie_8"]))


def plug_load(facts: Facts) -> Iterator[Check]:
    """W8: how near to its rating a plug runs."""
    psu = facts.build.psu
    for gpu in facts.build.gpus:
        pins = gpu.record.plugs or {}
        if gpu.watts is None:
            continue
        if pins.get("pcie_16"):
            yield from _sixteen(gpu, psu)
        elif number := pins.get("pcie_8", 0) + pins.get("pcie_6", 0) / 2:
            each = max(0.0, gpu.watts - SLOT_W) / number
            if each > FULL_PLUG * PLUG_W["pcie_8"]:
                values: dict[str, Any] = {"gpu": gpu.record.name, "watts": each}
                values["rating"] = PLUG_W["pcie_8"]
                source = "PCI Express CEM: 150 W for each 8-pin plug"
                yield found("W8", "note", "build.w8.cables", source=source, **values)


def _sixteen(gpu: BuildGpu, psu: PsuRecord | None) -> Iterator[Check]:
    watts = (gpu.watts or 0.0) / (gpu.record.plugs or {}).get("pcie_16", 1)
    stated = psu.connectors.pcie_16_w if psu is not None else None
    rating = stated or PLUG_W["pcie_16"]
    values: dict[str, Any] = {"gpu": gpu.record.name, "watts": watts, "rating": rating}
    values["load"] = watts / rating
    source = "PCI Express CEM 5.0; Tom's Hardware on melted 12VHPWR plugs"
    if watts >= FULL_PLUG * rating:
        limit = (ceil(FULL_PLUG * rating / 10) - 1) * 10.0
        verdict: Verdict = "error" if watts > rating else "warning"
        remedy = Message.of("build.remedy.limit", limit=limit)
        yield found("W8", verdict, f"build.w8.{verdict}", source=source, remedy=remedy, **values)
    elif psu is not None and stated is None and psu.connectors.pcie_16:
        yield unknown("W8", psu.name, "psu.pcie_16_w", source=source)
    else:
        yield found("W8", "ok", "build.w8.ok", source=source, **values)


def socket(facts: Facts) -> Iterator[Check]:
    """W9: 12VHPWR of ATX 3.0 or the safer 12V-2x6 of 3.1; cables fit both."""
    psu = facts.build.psu
    wants = any((gpu.record.plugs or {}).get("pcie_16") for gpu in facts.build.gpus)
    if psu is None or not wants or not psu.connectors.pcie_16:
        return
    plug = psu.connectors.pcie_16_plug
    if plug is None and psu.atx_version is None:
        yield unknown("W9", psu.name, "psu.atx_version")
        return
    new = plug == "12v-2x6" or (plug is None and psu.atx_version == "3.1")
    source = "PCI-SIG, CEM 5.1: 12V-2x6 in place of 12VHPWR, cables alike"
    values: dict[str, Any] = {"psu": psu.name, "plug": "12V-2x6" if new else "12VHPWR"}
    verdict: Verdict = "ok" if new else "note"
    yield found("W9", verdict, f"build.w9.{verdict}", source=source, **values)


RULES = (plugs, plug_load, socket)
