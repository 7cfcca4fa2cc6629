"""What a packed checkpoint settles of a plan, as transformers 5.24 load it."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainwright.messages import Message, UserError
from trainwright.plan.model import model_config
from trainwright.plan.packing import Packing, UnknownPackingError, fields_of, packing
from trainwright.plan.schema import Plan
from trainwright.profile.presets import Preset, find
from trainwright.workload.engines import WEIGHTS
from trainwright.workload.settings import Settings
from trainwright.workload.weightfiles import config_of

UNPACKED_BY = {
    "mxfp4": "Mxfp4Config",
    "fp8": "FineGrainedFP8Config",
    "compressed-tensors": "CompressedTensorsConfig",
}
"""Method -> the class whose ``dequantize=True`` unpacks weights as they are loaded."""
OWN = "transformers"


def honoured(plan: Plan) -> tuple[Plan, tuple[Message, ...]]:
    """Return the plan with what its checkpoint settles, and what must be said of it.

    Raises:
        UserError: the task does not train such weights, or the plan says otherwise.
    """
    if plan.model.preset is not None:
        with suppress(UserError):  # an unknown one is refused, with its key, where it is traced
            return _published(plan, find(plan.model.preset))
        return plan, ()
    config = _config(plan)
    fields = None if config is None else fields_of(config)
    if config is None or fields is None:
        return plan, ()
    if plan.workload.task == "pretrain":
        return plan, (Message.of("plan.note.packed-pretrain"),)
    found = _known(config, plan.settings)
    if plan.workload.trains and found.method in UNPACKED_BY and plan.workload.task != "qlora":
        values = {"method": found.method, "by": UNPACKED_BY[found.method]}
        return plan, (Message.of("plan.note.packed-unpacked", **values),)
    _check_task(plan, found)
    settings = _settled(plan.settings, found)
    note = Message.of("plan.note.packed", method=found.method, format=found.format)
    return plan.model_copy(update={"settings": settings}), (note,)


def _published(plan: Plan, preset: Preset) -> tuple[Plan, tuple[Message, ...]]:
    """Return the plan that serves a preset in the form in which its weights are published."""
    engine = plan.settings.engine or "vllm"
    if plan.workload.trains or plan.settings.quantization or preset.packed not in WEIGHTS[engine]:
        return plan, ()
    settings = plan.settings.model_copy(update={"quantization": preset.packed})
    note = Message.of("plan.note.published", model=preset.name, format=preset.packed)
    return plan.model_copy(update={"settings": settings}), (note,)


def _config(plan: Plan) -> Mapping[str, Any] | None:
    return None if plan.model.hf is None else model_config(config_of(Path(plan.model.hf)))[0]


def _known(config: Mapping[str, Any], settings: Settings) -> Packing:
    """Return how a packed checkpoint is packed.

    Raises:
        UserError: it is packed in a way that is not planned.
    """
    try:
        found = packing(config)
        assert found is not None, "it is packed"
        if not found.by_bitsandbytes and "_class_name" in config:
            raise UnknownPackingError(found.method)
        if found.kept and ("_class_name" in config or settings.engine not in (None, OWN)):
            raise UnknownPackingError(f"llm_int8_skip_modules: {', '.join(found.kept)}"[:80])
    except UnknownPackingError as error:
        raise UserError.of("plan.packing-unknown", key="model.hf", problem=str(error)) from None
    return found


def _check_task(plan: Plan, found: Packing) -> None:
    """Check that the task goes with the weights.

    Raises:
        UserError: it does not; says which task or which checkpoint does.
    """
    workload = plan.workload
    if not workload.trains or (workload.task == "qlora" and found.by_bitsandbytes):
        return
    id = "plan.packing-qlora" if found.by_bitsandbytes else "plan.packing-original"
    raise UserError.of(id, key="workload.task", task=workload.task, method=found.method)


def _settled(settings: Settings, found: Packing) -> Settings:
    """Return the settings with the checkpoint's own.

    Raises:
        UserError: the plan says something else, which no library would do with these weights.
    """
    values: dict[str, Any] = {"quantization": found.format}
    if found.nested is not None:
        values["double_quantization"] = found.nested
    if not found.by_bitsandbytes and settings.engine in (None, OWN):
        values["engine"] = "vllm"
    for key, value in values.items():
        given = getattr(settings, key)
        if given is not None and given != value:
            shown = {"value": str(given).lower(), "needed": str(value).lower()}
            raise UserError.of(
                "plan.packing-differs", key=f"settings.{key}", method=found.method, **shown
            )
    return settings.model_copy(update=values)
