"""Which models a pipeline of stages is planned for, and what each of its stages needs."""

import json

from trainwright.estimate.memory.device_memory import Asked, stage_peaks
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message, UserError
from trainwright.plan.model import Model
from trainwright.workload import FullSettings

STAGED = ("llama", "mistral", "qwen2", "qwen3")
"""Types of models of transformers whose layers are alike and hand on one tensor, and whose head is
tied to the table of tokens only where the config says so. Each was cut and compared with the whole
(tests/unit/export/test_staged_runs.py)."""


def check_stages(model: Model, settings: FullSettings) -> None:
    """Refuse a model whose layers cannot be cut into the stages that the settings ask for.

    Raises:
        UserError: names the reason, and what to use.
    """
    if (stages := settings.pipeline_stages) is None:
        return
    key = "settings.strategy"
    config = json.loads(model.config) if model.config else {}
    if (found := config.get("model_type")) not in STAGED:
        known = list(STAGED)
        raise UserError.of("plan.stages-model", key=key, found=found or "other", known=known)
    if config.get("tie_word_embeddings", False):
        raise UserError.of("plan.stages-tied", key=key)
    if config.get("use_sliding_window") or len(set(config.get("layer_types") or ())) > 1:
        raise UserError.of("plan.stages-kinds", key=key)
    if (layers := int(config.get("num_hidden_layers") or 32)) < stages:
        raise UserError.of("plan.stages-layers", key=key, layers=layers, stages=stages)


def stage_memory(asked: Asked, largest: Quantity) -> tuple[Quantity, ...]:
    """Return the allocated peak of each pipeline stage in its order, in bytes; none without one.

    ``largest`` is that of the stage that decides, which was replayed.
    """
    found = stage_peaks(asked, among=tuple)
    most = max((int(peak[0]) for peak in found.values()), default=0)
    return tuple(
        Quantity(
            Message.of("memory.stage", stage=one.index + 1, first=one.begin + 1, last=one.end),
            largest.value if int(peak[0]) == most else float(peak[0]),
            Unit.BYTES,
            Kind.ESTIMATED,
            source="torch 2.13: torch/distributed/pipelining",
        )
        for one, peak in found.items()
    )
