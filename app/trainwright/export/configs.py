"""What targets share whose file is all that their tool needs: the model's name, and the head."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwright.export.batch import batch
from trainwright.export.header import Reasons, header
from trainwright.export.learning import learning_rate
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.model import model_in
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.profile.hub import HUB
from trainwright.workload import FullSettings, Lora
from trainwright.yamltext import dump

ADAPTED = ("pretrain", "full", "lora", "qlora")
"""Tasks that these targets' files can say."""
DATA = "DATA"
"""Written where the plan names no data set."""


def model_name(plan: Plan) -> str:
    """Return the model as these tools take it: a hub id, or a folder with its weights.

    Raises:
        UserError: it is not one that transformers loads.
    """
    if plan.model.hf is not None:
        path = Path(os.path.expanduser(plan.model.hf))
        return str(path.parent if path.name == "config.json" else path)
    if plan.model.preset is not None:
        preset = presets.find(plan.model.preset)
        if preset.id in HUB:
            return HUB[preset.id]
        raise UserError.of("export.needs-transformers", model=preset.name)
    named = plan.model.timm or plan.model.pt2 or plan.model.python
    raise UserError.of("export.needs-transformers", model=str(named))


def check_task(plan: Plan, target: str) -> None:
    """Refuse a task that the target's file cannot say.

    Raises:
        UserError: it cannot.
    """
    if plan.workload.task not in ADAPTED or plan.workload.frozen:
        task = "frozen" if plan.workload.frozen else plan.workload.task
        raise UserError.of("export.not-of-target", target=target, task=task)


def data_name(plan: Plan) -> str:
    """Return the plan's data set, or what stands for one."""
    data = plan.workload.dataset
    return data.path or DATA if data is not None and data != "synthetic" else DATA


def length(plan: Plan) -> int:
    """Return the tokens of a sample."""
    if plan.workload.inputs.sequence_length:
        return plan.workload.inputs.sequence_length
    preset = presets.find(plan.model.preset) if plan.model.preset is not None else None
    return preset.sequence_length if preset is not None and preset.sequence_length else 1024


def adapted(plan: Plan, target: str, *, experts: bool) -> list[str]:
    """Return the layers to adapt; none for all linear ones.

    Raises:
        UserError: all are meant, and the tool would take some that the plan leaves alone: what
            PEFT refuses to adapt, or ``experts`` where it takes them for linear layers.
    """
    named = (plan.workload.lora or Lora()).named
    if not named and ((model := model_in(plan)).refused or (experts and model.mixed)):
        raise UserError.of("export.spared-layers", name=target, key="workload.lora.targets")
    return list(named)


def rate(plan: Plan, settings: FullSettings) -> float:
    """Return the learning rate that is written."""
    return learning_rate(plan, settings, batch(plan, settings).effective).value


def head(
    plan: Plan,
    settings: FullSettings,
    reasons: Reasons,
    language: Language,
    *,
    commands: Sequence[str],
    made_for: Mapping[str, str],
    lost: Sequence[Message],
    remarks: Sequence[Message] = (),
) -> str:
    """Return a block of comments: what the file is, how to start it, and why so."""
    own = learning_rate(plan, settings, batch(plan, settings).effective)
    return header(
        plan,
        settings.model_copy(update={"learning_rate": own.value}),
        {"learning_rate": own.because, **reasons},
        title=model_name(plan),
        start=Message.of("export.header.start-tool"),
        commands=commands,
        made_for=made_for,
        lost=lost,
        remarks=remarks,
        language=language,
    )


def headed(
    plan: Plan,
    settings: FullSettings,
    reasons: Reasons,
    language: Language,
    data: Mapping[str, Any],
    *,
    commands: Sequence[str],
    made_for: Mapping[str, str],
    lost: Sequence[Message],
    remarks: Sequence[Message] = (),
) -> str:
    """Return a YAML file below its block of comments."""
    above = head(
        plan,
        settings,
        reasons,
        language,
        commands=commands,
        made_for=made_for,
        lost=lost,
        remarks=remarks,
    )
    return above + dump(dict(data))


def single(name: str, text: str) -> Files:
    """Return the one file of a target."""
    return {name: text}
