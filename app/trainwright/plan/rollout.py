"""What training on a model's own answers adds to a plan.

How many answers are written at once, and which phase of a step takes the most memory.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.serving import weights
from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.serving.served import Served
from trainwright.messages import Message, UserError
from trainwright.plan.model import cache_shape
from trainwright.profile.profile import Profile
from trainwright.profile.rollout import Answers, placed
from trainwright.workload import FullSettings, Inputs, Workload

_PHASES = {
    "write": ("prefill", "decode"),
    "score": ("score",),
    "update": ("forward", "backward", "optimizer"),
}
"""Phase of a step -> what the curve calls its parts."""


@dataclass(frozen=True, slots=True)
class Phases:
    """The highest allocated bytes of each phase of a step; 0 where there is no such phase."""

    write: int
    score: int
    update: int

    @property
    def highest(self) -> str:
        """The phase that decides the peak."""
        return max(_PHASES, key=lambda name: int(getattr(self, name)))


def answers_of(
    workload: Workload, settings: FullSettings, inputs: Inputs, gpu_count: int
) -> Answers | None:
    """Return the answers that one GPU writes at once; None where they are given."""
    writes = workload.writes
    if writes is None or workload.effective_batch is None:
        return None
    gpus = gpu_count if settings.several else 1
    return Answers(
        rows=max(workload.effective_batch * writes.updates // gpus, 1),
        prompt=inputs.prompt_tokens or 1,
        tokens=inputs.new_tokens or 1,
        # trl 1.16, grpo_trainer.py: where a step starts from weights that answers were not
        # written by, and always with vLLM, whose probabilities differ.
        scored=writes.steps > 1 or settings.generation != "transformers",
    )


def with_answers(profile: Profile, answers: Answers | None) -> Profile:
    """Return the profile of a step that begins with writing the answers.

    Raises:
        UserError: the trace holds at one length alone, which a prompt and an answer do not share.
    """
    if answers is None:
        return profile
    if not profile.exact:
        raise UserError.of("plan.answers-untraced", key="workload.objective")
    return placed(profile, answers)


def written_by(
    workload: Workload, settings: FullSettings, profile: Profile, config: str
) -> Served | None:
    """Return the model as a vLLM holds it that writes the answers.

    None where the model itself writes them, and where its configuration does not say enough.
    """
    shape = cache_shape(config)
    if workload.writes is None or settings.generation == "transformers" or shape is None:
        return None
    own = int(profile.model["parameters"]) - workload.adapts * int(profile.model["trainable"])
    model = weights.inventory(json.loads(config), own)
    return Served(ENGINES["vllm"], settings.kv_cache, shape, model=model)


def share_short(
    served: Served | None, settings: FullSettings, answers: Answers, total: float
) -> Message | None:
    """Return why a vLLM beside the training does not start; None where it does, or none is there.

    As vLLM 0.26 does (``vllm/v1/core/kv_cache_utils.py``), without what its passes take.
    """
    taken = settings.beside * total
    if served is None or served.model is None or not taken:
        return None
    held = served.model.elements * (4 if settings.kv_cache == "fp32" else 2)
    need = held + served.pool_bytes(1, answers.prompt + answers.tokens)
    if need <= taken:
        return None
    least = f"{ceil(100 * need / total) / 100:g}"
    values = {"share": settings.beside, "taken": taken, "need": need, "least": least}
    return Message.of("plan.note.answers-share", **values)


def phases_of(memory: MemoryEstimate) -> Phases:
    """Return the highest bytes of each phase of a step that begins with writing answers."""
    live = memory.curve.live.sum(axis=0)
    highest = dict.fromkeys(_PHASES, 0)
    for part, first, after in memory.curve.phases:
        for name, parts in _PHASES.items():
            if part in parts:
                highest[name] = max(highest[name], int(live[first:after].max(initial=0)))
    return Phases(**highest)


def notes(settings: FullSettings, found: Phases, rows: int) -> Iterator[Message]:
    """Yield which phase is the peak, and who writes how many answers at once."""
    parts = [
        Message.of(f"plan.phase-of.{name}", bytes=nbytes)
        for name in _PHASES
        if (nbytes := getattr(found, name))
    ]
    peak = Message.of(f"plan.phase.{found.highest}")
    yield Message.of("plan.note.phases", peak=peak, parts=parts)
    yield Message.of(f"plan.note.answers-{settings.generation}", share=settings.beside, rows=rows)
