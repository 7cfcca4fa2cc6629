"""What joins GPUs beside their slots: NVLink, Infinity Fabric, and reading each other's memory."""

from trainwright.catalog import GpuRecord

_WITHOUT_PEER = ("Turing", "Ampere", "Ada", "Blackwell")
"""Generations whose GeForce cards NVIDIA's driver refuses peer access over PCIe. Sources:
NVIDIA/nccl-tests issue 117 (RTX 2080 Ti, 4090), README of tinygrad/open-gpu-kernel-modules."""
_BOARD_NVLINK = 300e9
"""From here on NVLink is wired on the server's board: V100 SXM2. A30 (200) and A40 (112.5) have
bridges only."""
_FABRIC = {"mi300x": 64e9, "mi325x": 64e9, "mi350x": 76.8e9, "mi355x": 76.8e9}
"""Bytes/s, one direction, of the Infinity Fabric link that each two GPU modules of a server have.
Source: AMD, data sheets of the MI300X, MI325X, MI350X and MI355X platforms: seven links each."""


def fabric_link(record: GpuRecord) -> float | None:
    """Return the bytes/s of the link between each two modules, one direction; None without any."""
    return _FABRIC.get(record.id)


def has_board_nvlink(record: GpuRecord) -> bool:
    """Return whether the GPU's NVLink is wired on a server's board, and not by bridges."""
    fact = record.nvlink_bytes_per_s
    if fact is None or record.segment != "datacenter" or fact.value < _BOARD_NVLINK:
        return False
    return "PCIe" not in record.name and "NVL" not in record.name


def has_peer_access(record: GpuRecord) -> bool:
    """Return whether GPUs read each other's memory over PCIe with the maker's own driver.

    Workstation and data-centre cards do, and GeForce up to Pascal. Of AMD, Instinct and
    Radeon Pro are taken to.
    """
    if record.segment in ("datacenter", "workstation"):
        return True
    return record.vendor == "NVIDIA" and not record.architecture.startswith(_WITHOUT_PEER)
