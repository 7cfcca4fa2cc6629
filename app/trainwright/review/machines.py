"""The machine of a run: as many GPUs and computers as its files use."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainwright.machine.choice import MOST_PIECES
from trainwright.review.facts import Facts
from trainwright.review.planning import Asked, processes

GPUS = "machine.gpus[0].count"
"""The plan's key of what ``--machine`` says."""
_NETWORK = "ethernet-100g"
"""What joins several computers where nobody says; assumed."""


def machine_of(machine: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return the plan's section; a GPU without a count stands for as many as the files use."""
    gpus = machine.get("gpus")
    if not gpus:
        return dict(machine)
    wanted, nodes = processes(facts), int(facts.value("nodes", 1))
    counted = any("count" in gpu for gpu in gpus) or "nodes" in machine
    several = not counted and 1 < nodes <= MOST_PIECES and wanted % nodes == 0
    each = min(wanted // nodes if several else wanted, MOST_PIECES)
    joined = {"nodes": nodes, "network": {"kind": _NETWORK}} if several else {}
    return {**machine, **joined, "gpus": [{"count": each, **gpu} for gpu in gpus]}


def asked_gpus(machine: Mapping[str, Any], section: Mapping[str, Any]) -> tuple[Asked, ...]:
    """Return how many GPUs and which network ``machine_of`` took, where nobody said it."""
    given: Sequence[Mapping[str, Any]] = machine.get("gpus") or ()
    taken: Sequence[Mapping[str, Any]] = section.get("gpus") or ()
    if len(given) != 1 or "count" in given[0]:
        return ()
    nodes = section.get("nodes", 1)
    count = nodes * taken[0]["count"]
    network = (Asked("machine.network.kind", _NETWORK),) if nodes > 1 else ()
    return (Asked(GPUS, count), *network) if count > 1 else ()
