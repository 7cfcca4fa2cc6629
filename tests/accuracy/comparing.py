"""Trainwright beside the usual estimators on the plans of ``steps``, each pair on the same rows."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import baselines
import fitchecked
from baselines import Facts, Stated

from trainwright.data import resources


@dataclass(frozen=True, slots=True)
class Said:
    """A row of a model of transformers, and how far we were off."""

    row: dict[str, Any]
    error: float
    """Ours, relative."""
    config: Path

    @property
    def facts(self) -> Facts:
        """What estimators ask of the model."""
        workload = self.row["workload"]
        lora = workload.get("lora", {}) if workload["task"] in ("lora", "qlora") else None
        targets = tuple((lora or {}).get("targets", ()))
        return facts_of(self.config, None if lora is None else lora.get("rank", 16), targets)

    @property
    def dense(self) -> bool:
        """Whether it is a decoder without experts."""
        return not self.facts["experts"]


@cache
def facts_of(config: Path, rank: int | None, targets: tuple[str, ...]) -> Facts:
    """Return a model's sizes, counted on the model that transformers builds."""
    import torch
    import transformers

    fields = json.loads(config.read_text(encoding="utf-8"))
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    made = known[fields["model_type"]].from_dict(fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(made)
    parameters = trainable = sum(weight.numel() for weight in model.parameters())
    if rank is not None:
        adapted = (
            module
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear)
            and (name.rpartition(".")[2] in targets if targets else name != "lm_head")
        )
        trainable = sum(rank * (one.in_features + one.out_features) for one in adapted)
    heads = made.num_attention_heads
    return {
        "parameters": parameters,
        "trainable": trainable,
        "layers": made.num_hidden_layers,
        "hidden": made.hidden_size,
        "heads": heads,
        "kv_heads": getattr(made, "num_key_value_heads", heads),
        "vocabulary": made.vocab_size,
        "experts": getattr(made, "num_local_experts", 0),
    }


GROUPS: dict[str, Callable[[Said], bool]] = {
    "all of transformers": lambda said: True,
    "lora, dense decoders": lambda said: said.dense and said.row["kind"] == "lora",
    "qlora, dense decoders": lambda said: said.dense and said.row["kind"] == "qlora",
}


def stated(said: Said) -> Stated:
    """Return what the estimators ask of a row's plan."""
    settings, workload, facts = said.row["settings"], said.row["workload"], said.facts
    inputs = workload["inputs"]
    packed = settings.get("quantization", "none")
    nested = settings.get("double_quantization", True) and packed != "none"
    return Stated(
        params=facts["parameters"],
        task="full" if workload["task"] == "pretrain" else workload["task"],
        precision=settings["precision"],
        quantization="nf4-dq" if nested else packed.replace("fp4", "nf4"),
        batch=settings.get("micro_batch") or inputs.get("concurrent", 1),
        length=inputs.get("sequence_length") or inputs.get("prompt_tokens", 0),
        generates=inputs.get("new_tokens", 0),
        attention=settings.get("attention", "sdpa"),
        checkpointing=settings.get("checkpointing", "none"),
    )


def config_of(row: dict[str, Any], folder: Path) -> Path | None:
    """Return the ``config.json`` of a row's model."""
    model = row["model"]
    if "hf" in model:
        return folder / model["hf"]
    path = resources("presets", model.get("preset", ""), "config.json")
    return path if "preset" in model and path.is_file() else None


def fitcheck(said: Said) -> float | None:
    """Return what fitcheck-llm says; None where it is not installed or refuses."""
    return fitchecked.estimate(said.row, said.config) if fitchecked.installed() else None


def published(estimator: baselines.Estimator) -> Callable[[Said], float | None]:
    return lambda said: estimator(stated(said), said.facts)


OTHERS: dict[str, Callable[[Said], float | None]] = {
    "fitcheck-llm 0.3.1": fitcheck,
    **{name: published(estimator) for name, estimator in baselines.ALL.items()},
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Errors of another and of ours on the rows that it has a figure for."""

    group: str
    name: str
    theirs: tuple[float, ...]
    ours: tuple[float, ...]

    @property
    def ahead(self) -> bool:
        """Whether ours are lower in the median and the 90th percentile."""
        return median(self.ours) < median(self.theirs) and p90(self.ours) < p90(self.theirs)


def pairs(answers: Sequence[Said]) -> Iterator[Pair]:
    """Yield each estimator's errors in each group, and ours beside them."""
    for name, estimator in OTHERS.items():
        values = [(said, estimator(said)) for said in answers]
        for group, holds in GROUPS.items():
            chosen = [(said, value) for said, value in values if value and holds(said)]
            if chosen:
                theirs = (abs(value / said.row["measured"] - 1) for said, value in chosen)
                yield Pair(group, name, tuple(theirs), tuple(abs(s.error) for s, _ in chosen))


def lines(answers: Sequence[Said]) -> Iterator[str]:
    """Yield the table."""
    yield f"{'on the same rows':24} {'':20} rows  theirs median, p90   ours median, p90"
    for pair in pairs(answers):
        yield (
            f"{pair.group:24} {pair.name:20} {len(pair.ours):4} "
            f"{median(pair.theirs):8.1%} {p90(pair.theirs):8.1%} "
            f"{median(pair.ours):10.1%} {p90(pair.ours):8.1%}"
        )
    if not fitchecked.installed():
        yield "fitcheck-llm is not installed here: pip install fitcheck-llm==0.3.1"


def p90(errors: Sequence[float]) -> float:
    """Return the error that a tenth of the rows exceeds."""
    ordered = sorted(errors)
    return ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)]
