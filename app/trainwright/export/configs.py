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
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.workload import FullSettings
from trainwright.yamltext import dump

HUB: Mapping[str, str] = {
    "bert-base": "google-bert/bert-base-uncased",
    "bert-large": "google-bert/bert-large-uncased",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "deberta-v3-base": "microsoft/deberta-v3-base",
    "deberta-v3-large": "microsoft/deberta-v3-large",
    "falcon-h1-0.5b": "tiiuae/Falcon-H1-0.5B-Base",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt2": "openai-community/gpt2",
    "gpt2-xl": "openai-community/gpt2-xl",
    "lfm2-1.2b": "LiquidAI/LFM2-1.2B",
    "minicpm3-4b": "openbmb/MiniCPM3-4B",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "modernbert-base": "answerdotai/ModernBERT-base",
    "modernbert-large": "answerdotai/ModernBERT-large",
    "olmoe-1b-7b": "allenai/OLMoE-1B-7B-0924",
    "phi-3.5-mini": "microsoft/Phi-3.5-mini-instruct",
    "phi-4": "microsoft/phi-4",
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-large": "FacebookAI/roberta-large",
    "tinyllama-1.1b": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    **{f"llama-3.1-{size}b": f"meta-llama/Llama-3.1-{size}B" for size in (8, 70)},
    **{f"llama-3.2-{size}b": f"meta-llama/Llama-3.2-{size}B" for size in (1, 3)},
    **{f"qwen-2.5-{s}b": f"Qwen/Qwen2.5-{s}B" for s in ("0.5", "1.5", "3", "7", "14", "32")},
    **{f"qwen-3-{s}b": f"Qwen/Qwen3-{s}B" for s in ("0.6", "1.7", "4", "8", "14", "32")},
    **{f"gemma-2-{size}b": f"google/gemma-2-{size}b" for size in (2, 9, 27)},
    **{f"gemma-3-{size}b": f"google/gemma-3-{size}b-pt" for size in (1, 4, 12, 27)},
    **{f"smollm2-{s}": f"HuggingFaceTB/SmolLM2-{s.upper()}" for s in ("135m", "360m", "1.7b")},
}
"""Preset -> where its weights are published."""
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
