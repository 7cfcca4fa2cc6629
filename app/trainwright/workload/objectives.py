"""What a workload with an objective of its own asks of its other keys, and of the settings."""

from collections.abc import Iterator, Mapping
from math import gcd

from trainwright.messages import UserError
from trainwright.workload.settings import (
    CrossEntropy,
    FullSettings,
    RecipeName,
    Settings,
    Strategy,
)
from trainwright.workload.workload import Workload

RECIPE: Mapping[str, RecipeName] = {
    "dpo": "trl-dpo",
    "reward": "trl-reward",
    "grpo": "trl-grpo",
}
"""Objective -> the recipe of the library that runs it."""
_LOSS: Mapping[str, CrossEntropy] = {"dpo": "tiled", "reward": "full", "grpo": "tiled"}
"""Objective -> how that library makes the scores of its loss."""
TASKS = ("full", "lora", "qlora")
STRATEGIES: tuple[Strategy, ...] = ("single", "ddp")
"""Strategies that are planned: how the others share a reference is not traced."""


def with_recipe(settings: Settings, workload: Workload) -> Settings:
    """Return the settings with the recipe of the objective, where there is one.

    Raises:
        UserError: they name another recipe, or that of an objective that the workload lacks.
    """
    key = "settings.recipe"
    if workload.objective is None:
        needed = next((name for name, own in RECIPE.items() if own == settings.recipe), None)
        if needed is not None:
            values = {"value": settings.recipe, "objective": needed}
            raise UserError.of("workload.recipe-needs-objective", key=key, **values)
        return settings
    own = RECIPE[workload.objective]
    if settings.recipe not in (None, own):
        raise _unsuitable(key, str(settings.recipe), own, workload)
    return settings.model_copy(update={"recipe": own})


def meaningless(settings: Settings, workload: Workload) -> Iterator[str]:
    """Yield the keys that are given and mean nothing to the task or the objective."""
    trained = workload.task in TASKS
    if workload.objective is not None and not trained:
        yield "workload.objective"
    if workload.reference is not None and not (trained and _compares(workload)):
        yield "workload.reference"
    writes = trained and workload.writes is not None
    inputs = workload.inputs
    given: dict[str, object] = {
        "workload.rollout": workload.rollout,
        "settings.generation": settings.generation,
        "workload.inputs.prompt_tokens": inputs.prompt_tokens,
        "workload.inputs.new_tokens": inputs.new_tokens,
    }
    if writes:
        within = settings.generation in ("vllm", "vllm-sleep")
        given = {
            "workload.inputs.sequence_length": inputs.sequence_length,
            "settings.memory_share": None if within else settings.memory_share,
        }
    elif not workload.trains:
        given = {name: given[name] for name in ("workload.rollout", "settings.generation")}
    else:
        given["settings.memory_share"] = settings.memory_share
    yield from (key for key, value in given.items() if value is not None)


def idle(settings: FullSettings, workload: Workload) -> Iterator[str]:
    """Yield the decided settings of writing answers that mean nothing to the workload."""
    if workload.writes is None:
        yield "generation"
    if workload.trains and not settings.beside:
        yield "memory_share"


def _compares(workload: Workload) -> bool:
    """Return whether the objective can compare with the reference that is named.

    TRL's GRPOTrainer compares adapters with the weights below them, and computes the reference
    while it trains.
    """
    off = workload.reference == "adapter-off"
    if workload.objective == "grpo":
        return off == workload.adapts and workload.reference != "precomputed"
    return workload.objective == "dpo" and (workload.adapts or not off)


def check(settings: Settings, workload: Workload) -> None:
    """Check what the objective asks for of a plan whose recipe has filled in its defaults.

    Raises:
        UserError: a key says something else; names what it may say.
    """
    if workload.objective is None:
        return
    asked = {
        "workload.inputs.batching": (workload.inputs.batching, ("padded",)),
        "settings.cross_entropy": (settings.cross_entropy, (_LOSS[workload.objective],)),
        "settings.strategy": (settings.strategy, STRATEGIES),
    }
    for key, (value, known) in asked.items():
        if value is not None and value not in known:
            raise _unsuitable(key, value, ", ".join(known), workload)
    if workload.inputs.images is not None:
        raise UserError.of(
            "workload.objective-of-text",
            key="workload.inputs.images",
            objective=workload.objective,
        )


def group_unit(workload: Workload) -> int:
    """Return what the effective batch is a multiple of, so that answers are whole groups.

    TRL wants the answers written at once, which are those of all updates, to be whole groups.
    """
    writes = workload.writes
    return writes.generations // gcd(writes.generations, writes.updates) if writes else 1


def _unsuitable(key: str, value: str, instead: str, workload: Workload) -> UserError:
    objective = workload.objective
    return UserError.of(
        "workload.objective-needs", key=key, value=value, objective=objective, instead=instead
    )
