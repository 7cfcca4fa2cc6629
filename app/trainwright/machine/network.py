"""Several computers alike, and the network that joins them."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from trainwright.workload.settings import Frozen

NetworkKind = Literal[
    "ethernet-1g", "ethernet-10g", "ethernet-25g", "ethernet-100g", "ethernet-200g",
    "ethernet-400g", "infiniband-hdr", "infiniband-ndr", "infiniband-xdr",
]  # fmt: skip
_GBIT = dict(zip(get_args(NetworkKind), (1, 10, 25, 100, 200, 400, 200, 400, 800), strict=True))
"""Gbit/s of a port, each way. Sources: IEEE 802.3; IBTA's InfiniBand roadmap, four lanes."""


class Network(Frozen):
    """What joins the computers of a plan."""

    kind: NetworkKind
    ports: Annotated[int, Field(ge=1, le=32)] = 1
    """Of each computer, all at work at once."""
    gb_s: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """What a computer was measured to send and receive at once, in GB/s. Default: its ports."""

    @property
    def bytes_per_s(self) -> float:
        """One direction of one computer's ports together."""
        return self.gb_s * 1e9 if self.gb_s is not None else self.ports * _GBIT[self.kind] * 1e9 / 8


@dataclass(frozen=True, slots=True)
class Cluster:
    """Computers alike that train together."""

    nodes: int
    """At least two."""
    each: int
    """GPUs of one computer."""
    network: Network

    def used(self, gpus: int) -> int:
        """Return how many computers so many GPUs take: one is filled before the next."""
        return -(-gpus // self.each)
