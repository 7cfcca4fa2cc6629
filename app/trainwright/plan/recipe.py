"""What a report says of the recipe: which one, or what the likely ones may take."""

import json
from collections.abc import Iterator
from functools import lru_cache

from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.memory.likely import highest, more
from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.recipes import RECIPES

_WORTH = 0.03
"""Share of what is used below which another recipe is not worth a sentence; assumed."""


def likely_bytes(
    plan: Plan,
    settings: FullSettings,
    profile: Profile,
    memory: MemoryEstimate,
    config: str,
    gpus: int = 1,
) -> float | None:
    """Return the most bytes of the device that a likely recipe takes; None where one is stated.

    None of pipeline stages too, for no trainer of these takes them.
    ``config`` is the text of the model's ``config.json``, empty where it has none; ``gpus`` train
    together.
    """
    if settings.recipe is not None or settings.pipeline_stages or not plan.workload.trains:
        return None
    batch, sequence = settings.micro_batch, plan.workload.inputs.sequence_length or 0
    task = "full" if plan.workload.task == "pretrain" else plan.workload.task
    shares = settings.shards_of(gpus) if settings.shards else 1
    found = more(profile, settings, task, batch, sequence, tied=_tied(config), shares=shares)
    return highest(memory, found)


@lru_cache(maxsize=32)
def _tied(config: str) -> bool:
    return bool(config) and json.loads(config).get("tie_word_embeddings") is True


def notes(plan: Plan, settings: FullSettings) -> Iterator[Message]:
    """Yield which recipe the step is of; without one, that of the exported programs."""
    if (name := settings.recipe) is not None:
        yield Message.of("plan.note.recipe", recipe=name, library=RECIPES[name].library)


def note_of(likely: float | None, memory: MemoryEstimate) -> Iterator[Message]:
    """Yield what other recipes than the plain one may take, where it is more."""
    used = memory.device_used.value
    if likely is not None and likely > (1 + _WORTH) * used:
        fits = "fits" if likely <= memory.device_total.value else "full"
        yield Message.of(f"plan.note.recipes-{fits}", high=likely)
