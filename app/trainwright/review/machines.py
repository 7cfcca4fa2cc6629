"""The machine of a run: as many GPUs and computers as its files use."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainwright.catalog.instances import instance
from trainwright.machine.choice import MOST_PIECES
from trainwright.review.derived import implied_processes
from trainwright.review.facts import Facts
from trainwright.review.planning import Asked

GPUS = "machine.gpus[0].count"
"""The plan's key of what ``--machine`` says."""
_NETWORK = "ethernet-100g"
"""What joins several computers where nobody says; assumed."""


def machine_of(machine: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return the plan's section; a GPU without a count stands for as many as the files use.

    Counted GPUs are those of one computer where the files use so many on each of several.
    """
    gpus = machine.get("gpus")
    if not gpus:
        return dict(machine)
    wanted, nodes = implied_processes(facts), int(facts.value("nodes", 1))
    counts = [gpu["count"] for gpu in gpus if "count" in gpu]
    alike = not counts or sum(counts) * nodes == wanted
    several = "nodes" not in machine and 1 < nodes <= MOST_PIECES and wanted % nodes == 0 and alike
    each = min(wanted // nodes if several else wanted, MOST_PIECES)
    known = "cloud" in machine and instance(machine["cloud"]).network is not None
    network = {} if known else {"network": {"kind": _NETWORK}}
    joined = {"nodes": nodes, **network} if several else {}
    return {**machine, **joined, "gpus": [{"count": each, **gpu} for gpu in gpus]}


def asked_gpus(machine: Mapping[str, Any], section: Mapping[str, Any]) -> tuple[Asked, ...]:
    """Return how many GPUs and which network ``machine_of`` took, where nobody said it."""
    given: Sequence[Mapping[str, Any]] = machine.get("gpus") or ()
    taken: Sequence[Mapping[str, Any]] = section.get("gpus") or ()
    joined = "network" in section and "network" not in machine
    network = (Asked("machine.network.kind", _NETWORK),) if joined else ()
    if len(given) != 1 or "count" in given[0]:
        return network
    count = section.get("nodes", 1) * taken[0]["count"]
    return (Asked(GPUS, count), *network) if count > 1 else ()
