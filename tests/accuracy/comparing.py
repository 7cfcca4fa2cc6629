"""Trainwright beside the usual estimators on the plans of ``steps``, each pair on the same rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import baselines
import fitchecked
from baselines import Facts, Stated

from trainwright.data import resources


@dataclass(frozen=True, slots=True)
class Said:
    """A row with a figure: what we said, and what others are told."""

    row: dict[str, Any]
    error: float
    """Ours, relative."""
    facts: Facts
    """Of the model."""
    config: Path | None
    """Of transformers; None for other models."""

    @property
    def dense(self) -> bool:
        """Whether it is a dense decoder of transformers."""
        return self.config is not None and "experts" not in self.facts and "heads" in self.facts


GROUPS: dict[str, Callable[[Said], bool]] = {
    "all": lambda said: True,
    "lora, dense decoders": lambda said: said.dense and said.row["kind"] == "lora",
    "qlora, dense decoders": lambda said: said.dense and said.row["kind"] == "qlora",
}


def stated(said: Said) -> Stated:
    """Return what the estimators ask of a row's plan."""
    settings, workload, facts = said.row["settings"], said.row["workload"], said.facts
    inputs, adapts = workload["inputs"], workload["task"] in ("lora", "qlora")
    packed = settings.get("quantization", "none")
    nested = settings.get("double_quantization", True) and packed != "none"
    return Stated(
        params=facts["parameters"] - (facts["trainable"] if adapts else 0),
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
    if said.config is None or not fitchecked.installed():
        return None
    return fitchecked.estimate(said.row, said.config)


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
