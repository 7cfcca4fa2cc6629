"""Figures by address: each figure on a screen is an address into the report.

So a figure keeps its meaning when the report changes under it, and the Explain pane
follows.
"""

from dataclasses import replace

from trainwright.estimate.time.roofpoints import Roofs, explained, explained_class, explained_stage
from trainwright.estimate.time.timeline import timeline
from trainwright.explain import Quantity
from trainwright.explain.quantity import total
from trainwright.messages import Message
from trainwright.plan.report import Report

DEFAULT = "memory.used"

_HATCHED = {"temporaries", "casts", "held", "cached", "rounding"}
COLOURS = {
    "paged": "optim",
    "textbook-parameters": "weights",
    "textbook-gradients": "grad",
    "textbook-activations": "act",
    "textbook-optimizer": "optim",
    "casts": "weights",
    "held": "slack",
    "cached": "slack",
    "rounding": "slack",
    "nccl": "work",
    "buckets": "grad",
    "gathered": "weights",
    "engine": "optim",
    "parameters": "weights",
    "reference": "data",
    "weights": "weights",
    "gradients": "grad",
    "optimizer": "optim",
    "activations": "act",
    "logits": "head",
    "temporaries": "act",
    "inputs": "data",
    "kv_cache": "optim",
    "workspaces": "work",
    "context": "ctx",
    "forward": "fwd",
    "prefill": "fwd",
    "generate": "rec",
    "launch": "slack",
    "recompute": "rec",
    "backward": "bwd",
    "communication": "data",
    "offload": "data",
    "load": "input",
    "decode": "input",
    "transfer": "input",
    "products": "weights",
    "attention": "optim",
    "convolutions": "grad",
    "elementwise": "act",
    "moves": "slack",
    "normalisation": "data",
    "reductions": "head",
    "updates": "work",
    "others": "ctx",
}

FAMILIES = {
    "products": ("gemm", "batched-gemm", "grouped-gemm"),
    "attention": ("attention",),
    "convolutions": ("convolution", "grouped-convolution", "depthwise-convolution"),
    "elementwise": ("pointwise",),
    "moves": ("cast", "copy", "concatenate", "index"),
    "normalisation": ("batch-norm", "layer-norm"),
    "reductions": ("softmax", "reduction", "pooling"),
    "updates": ("fused-optimizer", "foreach-optimizer"),
}
"""Classes of operators that share a colour and a name; all others are ``others``."""


def family(group: str) -> str:
    """Return the family of a class of operators."""
    return next((name for name, groups in FAMILIES.items() if group in groups), "others")


def colour(role: str) -> str:
    """Return the colour token of a role; it is the same on every screen."""
    return COLOURS.get(role, "slack")


def hatched(role: str) -> bool:
    """Whether a role is drawn hatched: transient, slack, or held by others."""
    return role in _HATCHED or role not in COLOURS


ORDER = (
    "parameters",
    "reference",
    "casts",
    "context",
    "held",
    "nccl",
    "optimizer",
    "workspaces",
    "buckets",
    "gathered",
    "engine",
    "kv_cache",
    "inputs",
    "gradients",
    "activations",
    "rounding",
    "temporaries",
    "logits",
    "cached",
)
"""How terms are stacked: what stays through the step at the bottom, what comes and goes on top."""


def rank(role: str) -> int:
    """Return the place of a role in a stack."""
    return ORDER.index(role) if role in ORDER else len(ORDER)


def short_name(quantity: Quantity) -> Message:
    """Return a term's name for where there is little room."""
    if quantity.role in ORDER:
        return Message.of(f"ui.role.{quantity.role}")
    return quantity.name


def find(report: Report, address: str, roofs: Roofs | None = None) -> Quantity | None:
    """Return the figure at an address, or None where this report has no such figure."""
    area, _, name = address.partition(".")
    if area in ("operator", "family"):
        return _operators(roofs, area, name) if roofs is not None else None
    if area == "memory":
        return _memory(report, name)
    if area == "term":
        return next((part for part in segments(report) if part.role == name), None)
    if area == "time":
        return _time(report, name)
    if address == "stage.idle":
        return timeline(report.time).idle
    return _stage(report, name, roofs) if area == "stage" else None


def _stage(report: Report, name: str, roofs: Roofs | None) -> Quantity | None:
    """Return a stage; one of kernels opens to its operators."""
    found = next((stage for stage in report.time.stages if stage.name == name), None)
    if found is None:
        return None
    classes = explained_stage(roofs, name) if roofs is not None else ()
    return replace(found.seconds, parts=classes) if classes else found.seconds


def _operators(roofs: Roofs, area: str, name: str) -> Quantity | None:
    if area == "operator":
        point = roofs.at(name)
        return None if point is None else explained(roofs, point)
    groups = [group for group in roofs.classes if family(group) == name]
    if not groups:
        return None
    parts = [explained_class(roofs, group) for group in groups]
    return parts[0] if len(parts) == 1 else total(Message.of(f"ui.family.{name}"), parts, role=name)


def _memory(report: Report, name: str) -> Quantity | None:
    memory = report.memory
    return {
        "used": memory.device_used,
        "p95": memory.device_used_p95,
        "total": memory.device_total,
        "free": memory.free,
        "allocated": memory.allocated_peak,
        "reserved": memory.reserved_peak,
        "derivation": memory.derivation,
        "host": memory.host,
    }.get(name)


def _time(report: Report, name: str) -> Quantity | None:
    time = report.time
    return {
        "step": time.step_seconds,
        "samples": time.samples_per_second,
        "tokens": time.tokens_per_second,
        "epoch": time.epoch_seconds,
        "run": time.run_seconds,
    }.get(name)


def segments(report: Report) -> tuple[Quantity, ...]:
    """Return what fills the card, in drawing order; they sum to what the device uses.

    The reserved part is shown as what is allocated at the peak and what torch caches.
    """
    shown: list[Quantity] = []
    for part in report.memory.device_used.parts:
        if part.role == "reserved":
            shown.extend(report.memory.terms)
            shown.extend(inner for inner in part.parts if inner.role != "allocated")
        else:
            shown.append(part)
    return tuple(part for part in shown if part.value > 0)
