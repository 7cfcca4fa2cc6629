"""What a report says about a mixture of experts: its assumption, and what libraries do with it."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.estimate.serving.served import Served
from trainwright.estimate.time.roofline import grouped_dtypes
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec

_FIRST_GROUPED = (8, 0)
"""Compute capability from which transformers calls torch's grouped product
(``transformers/integrations/moe.py``, ``_can_use_grouped_mm``)."""

_DTYPES = {"bf16": "bfloat16", "bf16-mixed": "bfloat16", "fp16-mixed": "float16", "fp16": "float16"}


def speaks_of_experts(config: Mapping[str, Any]) -> bool:
    """Return whether a configuration may be that of a mixture."""
    return any("experts" in key for key in config)


def notes(
    profile: Profile, spec: TraceSpec, record: GpuRecord, served: Served | None
) -> Iterator[Message]:
    """Yield the notes; none for a model without experts.

    What transformers does with experts is left out where another engine serves them.
    """
    facts = profile.model
    if not facts.get("experts"):
        return
    packed = served.weights if served is not None else None
    share = packed.bits_each / 16 if packed is not None else 1.0
    own = served is None or served.traced
    every = own and facts["experts_implementation"] == "every"
    yield Message.of(
        "plan.note.experts-every" if every else "plan.note.experts",
        experts=facts["experts"],
        each=facts["experts_per_token"],
        active=facts["active_parameters"],
        whole=facts["parameters"],
        bytes=facts["expert_bytes"] * share,
    )
    if not own:
        return
    grouped = facts["experts_implementation"] == "grouped_mm"
    if not every:
        yield Message.of(f"plan.note.routing-{spec.routing}", each=facts["experts_per_token"])
    if grouped:
        yield Message.of("plan.note.routing-of-grouped")
        yield from _speed(spec, record)
    if facts["experts_implementation"] == "separate":
        return
    if spec.task in ("lora", "qlora"):
        yield Message.of("plan.note.experts-frozen")
    if spec.task == "qlora":
        yield Message.of("plan.note.experts-not-quantized", bytes=facts["expert_bytes"])


def _speed(spec: TraceSpec, record: GpuRecord) -> Iterator[Message]:
    """Yield in what type grouped products run, and whether one by one."""
    full = spec.task == "full" and spec.precision.endswith("-mixed")
    if full:
        yield Message.of("plan.note.experts-without-autocast", precision=spec.precision)
    dtype = "float32" if full else _DTYPES.get(spec.precision, "float32")
    capability = record.compute_capability
    if capability is not None and capability < _FIRST_GROUPED:
        yield Message.of("plan.note.experts-old-gpu", gpu=record.name)
    elif dtype not in grouped_dtypes(record):
        yield Message.of("plan.note.experts-one-by-one", gpu=record.name, dtype=dtype)
