"""Plans made from plans: what would change the answer, and what edits are called."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwright.messages import Message, UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Pending
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.ui.core import Core
from trainwright.workload import FullSettings, Inputs, ModelSource, Workload

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the plan, and what it does to the answer."""

    title: Message
    verdict: Verdict
    memory_bytes: float
    """Difference of device use."""
    speed: float
    """Ratio of samples a second, after to before."""


def starting_plan() -> Plan:
    """Return the plan that a new document starts from."""
    return Plan.model_validate(
        {
            "name": "untitled",
            "model": {"preset": "llama-3.2-1b"},
            "workload": {
                "task": "lora",
                "inputs": {"sequence_length": 2048},
                "effective_batch": 16,
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


def local_plan() -> Plan:
    """Return the plan that a new document for this computer starts from."""
    plan = starting_plan()
    return plan.model_copy(update={"machine": type(plan.machine)(local=True)})


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
    name = Message.of(f"ui.key.{key.removeprefix('settings.')}")
    if value is None:
        return Message.of("ui.edit.free", name=name)
    return Message.of("ui.edit.set", name=name, value=value)


def changes(
    plan: Plan, report: Report, core: Core, *, wanted: Callable[[], bool] = lambda: True
) -> list[tuple[Change, Plan]]:
    """Return the changes worth showing, each evaluated like the plan itself.

    Those whose model would have to be traced first, or that the plan cannot take, are left out.
    """
    found: list[tuple[Change, Plan]] = []
    for title, values in _candidates(plan, report):
        if not wanted():
            break
        try:
            changed = with_keys(plan, values)
            facts = core.resolve(changed)
            if isinstance(facts, Pending):
                continue
            other = core.evaluate(changed, facts)
        except UserError:
            continue
        found.append((_change(title, report, other), changed))
        if len(found) == _SHOWN:
            break
    return found


def _change(title: Message, before: Report, after: Report) -> Change:
    speed = before.time.samples_per_second.value
    return Change(
        title,
        after.verdict,
        after.memory.device_used.value - before.memory.device_used.value,
        after.time.samples_per_second.value / speed if speed else 1.0,
    )


def _candidates(plan: Plan, report: Report) -> Iterator[tuple[Message, dict[str, Any]]]:
    settings = report.settings
    if plan.workload.trains:
        yield from _training(plan, settings)
    yield from _inputs(plan)
    if settings.attention == "eager":
        yield Message.of("ui.change.attention", value="sdpa"), {"settings.attention": "sdpa"}
    if settings.precision == "fp32":
        bf16 = "bf16-mixed"
        yield Message.of("ui.change.precision", value=bf16), {"settings.precision": bf16}


def _training(plan: Plan, settings: FullSettings) -> Iterator[tuple[Message, dict[str, Any]]]:
    full = settings.checkpointing == "none"
    yield (
        Message.of("ui.change.checkpointing-on" if full else "ui.change.checkpointing-off"),
        {"settings.checkpointing": "full" if full else "none"},
    )
    for factor in (0.5, 2.0):
        micro = int(settings.micro_batch * factor)
        accumulation = settings.accumulation / factor
        if micro >= 1 and accumulation >= 1 and accumulation.is_integer():
            yield (
                Message.of("ui.change.micro", value=micro),
                {"settings.micro_batch": micro, "settings.accumulation": int(accumulation)},
            )
    if plan.workload.task == "lora":
        yield Message.of("ui.change.qlora"), {"workload.task": "qlora"}


def _inputs(plan: Plan) -> Iterator[tuple[Message, dict[str, Any]]]:
    inputs = plan.workload.inputs
    if inputs.sequence_length:
        longer = inputs.sequence_length * 2
        yield (
            Message.of("ui.change.sequence", value=longer),
            {"workload.inputs.sequence_length": longer},
        )
