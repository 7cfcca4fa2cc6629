"""Several computers alike, and the network that joins them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from trainwright.catalog import GpuRecord
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.workload.settings import Frozen

NetworkKind = Literal[
    "ethernet-1g", "ethernet-10g", "ethernet-25g", "ethernet-100g", "ethernet-200g",
    "ethernet-400g", "infiniband-hdr", "infiniband-ndr", "infiniband-xdr",
]  # fmt: skip
_MOST_PORTS = 32
"""Of one computer; assumed."""
_GBIT = dict(zip(get_args(NetworkKind), (1, 10, 25, 100, 200, 400, 200, 400, 800), strict=True))
"""Gbit/s of a port, each way. Sources: IEEE 802.3; IBTA's InfiniBand roadmap, four lanes."""
_PORT_EACH = ("Ampere", "Hopper", "Blackwell", "Blackwell Ultra")
"""Generations whose servers have an InfiniBand port for each GPU module. Sources: NVIDIA's data
sheets of the DGX A100 (8 HDR ports), H100, H200, B200 (8 NDR) and B300 (8 XDR). The eight V100s
of a DGX-1 share four."""


class Network(Frozen):
    """What joins the computers of a plan."""

    kind: NetworkKind
    ports: Annotated[int, Field(ge=1, le=_MOST_PORTS)] | None = None
    """Of each computer, all at work at once. Default: one for each GPU module of a server that
    has InfiniBand, else one."""
    gb_s: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """What a computer was measured to send and receive at once, in GB/s. Default: its ports."""

    @property
    def bytes_per_s(self) -> float:
        """One direction of one computer's ports together."""
        ports = self.ports or 1
        return self.gb_s * 1e9 if self.gb_s is not None else ports * _GBIT[self.kind] * 1e9 / 8


def with_ports(
    network: Network | None, nodes: int, gpus: Sequence[tuple[GpuRecord, int]]
) -> tuple[Network | None, tuple[Message, ...]]:
    """Return the network of computers with these GPUs, and what was assumed of its ports.

    Nothing is assumed of one computer, nor where ``ports`` or ``gb_s`` is given.
    """
    if network is None or nodes < 2 or network.ports or network.gb_s:
        return network, ()
    modules = all(has_board_nvlink(gpu) and gpu.architecture in _PORT_EACH for gpu, _ in gpus)
    each = modules and network.kind.startswith("infiniband")
    ports = min(sum(count for _, count in gpus), _MOST_PORTS) if each else 1
    note = Message.of(f"machine.ports-{'each' if each else 'one'}", kind=network.kind, ports=ports)
    return network.model_copy(update={"ports": ports}), (note,)


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
