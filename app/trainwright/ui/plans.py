"""The plans that new documents start from, plans for another model, and what edits are called."""

from pathlib import Path
from typing import Any

from trainwright.messages import Message
from trainwright.messages.keys import key_name, value_name
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.ui.usual import GPU, usual
from trainwright.workload import Inputs, ModelSource, Workload

UNNAMED = "untitled"


def starting_plan() -> Plan:
    """Return the plan that a new document starts from; it fits the GPU that nobody chose."""
    return Plan.model_validate(
        {
            "name": UNNAMED,
            "model": {"preset": "llama-3.2-1b"},
            "workload": {
                "task": "lora",
                "inputs": {"sequence_length": 512},
                "effective_batch": 16,
            },
            "machine": {"gpus": [{"id": usual().gpu or GPU}]},
        }
    )


def local_plan() -> Plan:
    """Return the plan that a new document for this computer starts from."""
    plan = starting_plan()
    return plan.model_copy(update={"machine": type(plan.machine)(local=True)})


def named_after(plan: Plan, before: Path | None, path: Path) -> Plan:
    """Return the plan with its new file's name, unless a person gave it a name of its own."""
    if plan.name not in (UNNAMED, _name_of(before) if before is not None else UNNAMED):
        return plan
    return plan.model_copy(update={"name": _name_of(path)})


def _name_of(path: Path) -> str:
    return path.name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".plan")


def hf_model(config: Path) -> ModelSource:
    """Return the source of a model that a ``config.json`` describes."""
    return ModelSource(hf=str(config))


def for_preset(plan: Plan, preset: Any) -> Plan:
    """Return the plan with a shipped model, its usual inputs, and a task that it has."""
    inputs: dict[str, int] = {}
    if preset.sequence_length:
        inputs["sequence_length"] = preset.sequence_length
        if plan.workload.inputs.sequence_length:
            inputs["sequence_length"] = min(
                preset.sequence_length, plan.workload.inputs.sequence_length
            )
    if preset.image_size:
        inputs["image_size"] = preset.image_size
    if preset.frames:
        inputs["frames"] = preset.frames
    task = plan.workload.task if preset.takes(plan.workload.task) else preset.tasks[0]
    workload: Workload = plan.workload.model_copy(
        update={"inputs": Inputs(**inputs), "lora": _lora_for(plan, task)}
    )
    changed = plan.model_copy(update={"model": ModelSource(preset=preset.id), "workload": workload})
    return with_keys(changed, {"workload.task": task}) if task != plan.workload.task else changed


def _lora_for(plan: Plan, task: str) -> Any:
    lora = plan.workload.lora
    if lora is None or task not in ("lora", "qlora"):
        return None
    return lora.model_copy(update={"targets": ()})


def edit_label(key: str, value: Any) -> Message:
    """Return what an edit of a key is called in the undo command."""
    name = key_name(key) or key
    if value is None:
        return Message.of("ui.edit.free", name=name)
    return Message.of("ui.edit.set", name=name, value=value_name(key, value))
