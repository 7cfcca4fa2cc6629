"""Which model the files of a run name, and what it has."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwright.messages import Message, UserError
from trainwright.messages.nearest import nearest
from trainwright.plan.model import model_config, usual_inputs
from trainwright.profile import presets
from trainwright.quoting import one_line
from trainwright.review.facts import Fact, Facts
from trainwright.review.files import Source
from trainwright.review.kinds.huggingface import TRL_KINDS
from trainwright.review.names import folder_of, preset_of
from trainwright.workload import Inputs, ModelSource
from trainwright.workload.weightfiles import config_of

LEFT_TO_PEFT = (*TRL_KINDS, "script", "peft")
"""Kinds whose tool hands no layers to PEFT where the file names none."""
FUSED = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), "query_key_value"),
    **dict.fromkeys(("gate_proj", "up_proj"), "dense_h_to_4h"),
    **{"o_proj": "dense", "down_proj": "dense_4h_to_h"},
}
FUSED_TYPES = ("falcon", "gpt_neox")
"""Layers that LitGPT switches one by one, as transformers names them in these model types."""
_QV = ("q_proj", "v_proj")
_FUSED = ("query_key_value",)
_BERT = ("query", "value")
PEFT_TARGETS = {
    **dict.fromkeys(("t5", "mt5"), ("q", "v")),
    **dict.fromkeys(("bart", "opt", "gptj", "gpt_neo", "llama", "llama4", "mistral"), _QV),
    **dict.fromkeys(("mixtral", "stablelm", "gemma", "gemma2", "gemma3_text"), _QV),
    **dict.fromkeys(("qwen2", "qwen3"), _QV),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra", "layoutlm"), _BERT),
    **dict.fromkeys(("bloom", "gpt_neox", "chatglm", "falcon"), _FUSED),
    **dict.fromkeys(("RefinedWebModel", "RefinedWeb"), _FUSED),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), ("c_attn",)),
    "blip-2": ("q", "v", "q_proj", "v_proj"),
    "deberta-v2": ("query_proj", "value_proj"),
    "deberta": ("in_proj",),
    "mpt": ("Wqkv",),
    "btlm": ("c_proj", "c_attn"),
    "codegen": ("qkv_proj",),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
    "nemotron_h": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "rwkv": ("key", "value", "receptance", "output"),
    "rwkv7": ("r_proj", "k_proj", "v_proj", "o_proj", "key", "value"),
}
"""``model_type`` -> names of layers. peft 0.21.2, utils/constants.py,
TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; gemma4's is a pattern, and left out."""
TARGETS = ("query", "key", "value", "attention", "mlp", "head")
"""Parts of a block that some tools switch one by one."""


def model_of(facts: Facts, sources: Sequence[Source]) -> dict[str, Any] | None:
    """Return the model as a plan names it: a config.json, a preset, a timm name; or None."""
    for source in sources:
        if source.kind.name == "model-config" and source.path is not None:
            return {"hf": str(source.path.absolute())}
    names = [fact for fact in facts.all if fact.name == "model"]
    if (flavor := facts.value("flavor")) is not None:
        family = str(facts.value("model_family", ""))
        names.append(_renamed(facts.first("flavor"), f"{family}-{flavor}"))
    for fact in names:
        beside = next((s.path.parent for s in sources if s.path and s.name == fact.file), None)
        if (folder := folder_of(str(fact.value), beside)) is not None:
            return {"hf": str(folder)}
        if (preset := preset_of(str(fact.value))) is not None:
            return {"preset": preset.id}
        if "/" not in str(fact.value) and fact.kind in ("lightning", "timm"):
            return {"timm": str(fact.value)}
    return None


def unknown_model(facts: Facts) -> Message | None:
    """Return which model the files name, where, and what to do; None where they name none."""
    fact = facts.first("model") or facts.first("flavor")
    if fact is None or not fact.given:
        return None
    where = f"{fact.file}:{fact.line}" if fact.line else fact.file
    name = one_line(str(fact.value), 100)
    near = nearest(name.rpartition("/")[2], _alike(name), count=1)
    values = {"name": name, "where": where, "key": fact.key, "near": near[0] if near else ""}
    return Message.of("review.unknown-model" + ("-near" if near else ""), **values)


_SIZE = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
"""Parameters as the names of models say them: ``7b``, ``560m``."""
_ALIKE = 1.5
"""By which factor sizes may differ where one model stands for another; assumed."""


def _alike(name: str) -> list[str]:
    """Return the presets of about the size that a name says, of its family where it has some.

    All where it says neither.
    """
    family = _family(name.rpartition("/")[2])
    fitting = _of_size(name)
    return [preset for preset in fitting if _family(preset) == family] or fitting


def _of_size(name: str) -> list[str]:
    said = _SIZE.search(name.replace("_", "-"))
    if said is None:
        return [*presets.presets()]
    size = float(said[1]) * {"b": 1e9, "m": 1e6}[said[2].lower()]
    return [
        preset.id
        for preset in presets.presets().values()
        if size / _ALIKE <= preset.parameters <= size * _ALIKE
    ]


def _family(name: str) -> str:
    """Return the letters and figures that a name begins with: ``t5``, ``qwen``."""
    return re.split(r"[-_.]|(?<=[a-z]{3})[0-9]", name.lower())[0]


def _renamed(fact: Fact | None, value: str) -> Fact:
    assert fact is not None, "asked where there is one"
    return Fact("model", value, fact.file, fact.kind, fact.key, fact.place, fact.line, fact.given)


def usual_of(model: Mapping[str, Any] | None, kind: str) -> Inputs | None:
    """Return the inputs of a model; None where it is not known, or not one that can be read."""
    if model is None:
        return None
    try:
        return usual_inputs(ModelSource(**model), kind)
    except UserError:
        return None  # the estimate says what is wrong with it


def targets_of(facts: Facts, model: Mapping[str, Any] | None) -> list[str]:
    """Return the adapted layers; PEFT's own where the tool leaves them to PEFT."""
    if (given := facts.value("targets")) is not None:
        return [*given]
    if parts := [name for part in TARGETS for name in facts.value(f"{part}_targets", ())]:
        return _as_named(parts, model)
    if facts.kinds.isdisjoint(LEFT_TO_PEFT) or model is None:
        return []
    return [*PEFT_TARGETS.get(_model_type(model) or "", ())]


def _as_named(parts: list[str], model: Mapping[str, Any] | None) -> list[str]:
    """Return the layers of a block by the names that they have in the model."""
    if model is None or _model_type(model) not in FUSED_TYPES:
        return parts
    return list(dict.fromkeys(FUSED.get(name, name) for name in parts))


def _model_type(model: Mapping[str, Any]) -> str | None:
    """Return what transformers calls the model; None for one that is not its."""
    if "preset" in model:
        model = presets.find(model["preset"]).model()
    if "hf" not in model:
        return None
    try:
        found, _ = model_config(config_of(Path(model["hf"])))
    except UserError:
        return None  # the estimate says what is wrong with it
    return found.get("model_type")
