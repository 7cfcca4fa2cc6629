"""Weights beside a model's config against the model that was traced from it."""

import json
from collections.abc import Iterator
from pathlib import Path

from trainwright.messages import Message, UserError
from trainwright.plan.schema import Plan
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec
from trainwright.workload.weightfiles import Weights, names_weights, weights


def looked_up(plan: Plan) -> Weights | Message | None:
    """Return the weights of the plan's model, or why what lies beside it is no such thing.

    Raises:
        UserError: the plan names the weights themselves, and they are not what they say.
    """
    if plan.model.hf is None:
        return None
    path = Path(plan.model.hf)
    try:
        return weights(path)
    except UserError as error:
        if names_weights(path):
            raise
        return Message.of("plan.note.weights-refused", problem=error.message)


def notes(
    found: Weights | Message | None, profile: Profile, spec: TraceSpec, config: str
) -> Iterator[Message]:
    """Yield what the files say beside what was traced."""
    if found is None:
        return
    if isinstance(found, Message):
        yield found
        return
    types = [dtype for dtype, _ in found.by_type]
    if found.quantised:
        method = _method(config)
        yield Message.of("plan.note.weights-packed", types=types, method=method, bytes=found.bytes)
        return
    traced = profile.model["parameters"]
    if spec.task in ("lora", "qlora"):
        traced -= profile.model["trainable"]
    table = profile.model.get("vocabulary", 0) * profile.model.get("hidden", 0)
    values = {"stored": found.parameters, "traced": traced, "types": types, "bytes": found.bytes}
    match traced - found.parameters:
        case 0:
            yield Message.of("plan.note.weights-agree", **values)
        case missing if missing == table:
            yield Message.of("plan.note.weights-without-head", **values)
        case missing if missing == -table:
            yield Message.of("plan.note.weights-with-head", **values)
        case _:
            yield Message.of("plan.note.weights-differ", **values)


def _method(config: str) -> str:
    """Return how the config says that the weights are packed."""
    fields = json.loads(config) if config else {}
    packing = fields.get("quantization_config")
    method = packing.get("quant_method") if isinstance(packing, dict) else None
    return method if isinstance(method, str) else "?"
