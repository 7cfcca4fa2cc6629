"""The torch that a person trains with: which one, and which GPUs it can use."""

from dataclasses import dataclass
from typing import Any

from trainwright.messages import Message, UserError
from trainwright.probe.privacy import anonymous, without_names
from trainwright.probe.reading import Missing
from trainwright.worker import client

PATIENCE_S = 60.0
"""Seconds that an interpreter may take to import torch; assumed, a cold disk takes twenty."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What an interpreter's torch told in a process of its own."""

    python: str
    torch: str
    cuda: str | None
    """That it is built for; None: for none."""
    rocm: str | None
    gpus: tuple[str, ...]
    """Names of those that it can use."""
    reason: str | None
    """In torch's own words, why it can use none."""
    architectures: tuple[str, ...] = ()
    """That it has kernels for: ``sm_90``."""
    cudnn: int | None = None
    nccl: str | None = None
    mps: bool = False
    """Whether it can use Apple's GPU."""


def read(interpreter: str) -> Framework | Missing:
    """Return what the torch of an interpreter told, or why it did not."""
    try:
        found = client.run("framework", {}, interpreter=interpreter, timeout_s=PATIENCE_S)
    except UserError as error:
        return Missing(anonymous(error.message))
    if "torch" not in found:
        refused = without_names(str(found.get("refused", "?")))
        return Missing(Message.of("probe.no-torch", reason=refused))
    return Framework(
        python=str(found.get("python")),
        torch=str(found["torch"]),
        cuda=_text(found.get("cuda")),
        rocm=_text(found.get("rocm")),
        gpus=tuple(map(str, found.get("gpus") or ())),
        reason=_text(found.get("reason")),
        architectures=tuple(map(str, found.get("architectures") or ())),
        cudnn=found["cudnn"] if isinstance(found.get("cudnn"), int) else None,
        nccl=_text(found.get("nccl")),
        mps=bool(found.get("mps")),
    )


def _text(value: Any) -> str | None:
    return None if value is None else without_names(str(value))
