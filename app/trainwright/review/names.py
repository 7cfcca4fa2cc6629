"""From the name of a model in somebody's file to a model that a plan can take."""

import re
from collections.abc import Iterator
from pathlib import Path

from trainwright.messages import UserError
from trainwright.profile import presets
from trainwright.profile.presets import Preset

_ENDINGS = re.compile(
    r"[-_.](instruct|it|chat|hf|base|pt|bnb|4bit|8bit|unsloth|gguf|awq|gptq|fp8|bf16|fp16|int4|int8"
    r"|dynamic|latest|text|distill|sft|dpo|nvfp4|w4a16|w8a8|turbo|qat|preview|[0-9]{4}"
    r"|v[0-9](\.[0-9])?|q[0-9](_[0-9a-z]{1,4}){0,3}|iq[0-9](_[a-z]{1,4}){0,2}|f16|q8_0)$",
    re.IGNORECASE,
)
_WEIGHTS = {
    "fp8": re.compile(r"[-_.]fp8([-_.]|$)"),
    "int8": re.compile(r"[-_.](int8|w8a8|w8a16|8bit)([-_.]|$)"),
    "nf4": re.compile(r"[-_.]bnb[-_.]4bit([-_.]|$)"),
    "int4": re.compile(r"[-_.](awq|gptq|w4a16|int4|4bit)([-_.]|$)"),
}
"""Weights -> words of a name that say them; FP8 before W8A8, and bits before a method."""
_BEGINNINGS = re.compile(r"^(meta|google|mistralai|qwen|unsloth|microsoft)[-_]", re.IGNORECASE)


def preset_of(name: str) -> Preset | None:
    """Return the shipped preset that a hub id, a tag or a builder's name means."""
    for candidate in _candidates(name):
        try:
            return presets.find(candidate)
        except UserError:
            continue
    return None


def quantization_of(name: str) -> str | None:
    """Return the weights that whole words of a hub id name: ``Qwen2.5-32B-Instruct-AWQ``."""
    text = name.rstrip("/").rpartition("/")[2].lower()
    return next((weights for weights, words in _WEIGHTS.items() if words.search(text)), None)


def folder_of(name: str, beside: Path | None) -> Path | None:
    """Return the folder or ``config.json`` that a path leads to, from a file's own folder."""
    for base in (beside, Path()):
        if base is None:
            continue
        path = base / Path(name).expanduser()
        if path.suffix == ".json" and path.is_file():
            return path.absolute()
        if (path / "config.json").is_file():
            return path.absolute()
    return None


def _candidates(name: str) -> Iterator[str]:
    """Yield the name, then less and less of it."""
    text = name.rstrip("/").rpartition("/")[2].replace(":", "-")
    text = re.sub(r"\.(gguf|safetensors|bin)$", "", text, flags=re.IGNORECASE)
    yield text
    while True:
        shorter = _ENDINGS.sub("", text)
        if shorter == text:
            break
        text = shorter
        yield text
    shorter = _BEGINNINGS.sub("", text)
    if shorter != text:
        yield shorter
