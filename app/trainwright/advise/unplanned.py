"""Nothing fits: what would do that no plan may ask for yet, by the terms that are known."""

from collections.abc import Iterator

from trainwright.advise.search import Search
from trainwright.advise.space import Candidate
from trainwright.messages import Message
from trainwright.workload.settings import SHARDED_OPTIMIZERS, Effect

_SHARED = ("parameters", "gradients", "optimizer")
"""Terms of the memory that FSDP2 and ZeRO-3 share out."""
_OF_COPIES = ("buckets", "casts")
"""Terms that only whole copies of the weights have."""
_NAMED = ("precision", "optimizer", "micro_batch", "checkpointing")


def unplanned_sharding(search: Search) -> Iterator[Message]:
    """Yield what shares of the weights would take where an objective rules them out.

    The least change of the training that does. TRL shares a reference too (trl 1.16, models/utils:
    ``prepare_fsdp``, ``prepare_deepspeed`` with stage 3).
    """
    plan, count = search.plan, search.facts.machine.gpu_count
    if plan.workload.objective is None or count < 2 or plan.settings.strategy is not None:
        return
    for effect in Effect:
        points = [
            one
            for one in search.obedient.leanest(effect)
            if one.strategy == "ddp" and one.optimizer in SHARDED_OPTIMIZERS
        ]
        # Where the state is shared, what a sample takes decides: the peak of today does not tell.
        points.sort(key=lambda one: (one.micro_batch, search.peak(one)))
        if points and (found := _shared(search, points[0], count)) is not None:
            yield found
            return


def _shared(search: Search, point: Candidate, count: int) -> Message | None:
    """Return what a step takes with its weights over the GPUs; None where it does not fit so."""
    terms = {one.role: one.value for one in search.report(point).memory.allocated_peak.parts}
    of_reference = terms.get("reference", 0.0)
    shared = sum(terms.get(role, 0.0) for role in _SHARED)
    gone = sum(terms.get(role, 0.0) for role in _OF_COPIES)
    rest = search.peak(point) - shared - of_reference - gone
    need, room = rest + (shared + of_reference) / count, search.room(point)
    if need > room:
        return None
    workload = search.plan.workload
    return Message.of(
        "advise.sharding-reference" if of_reference else "advise.sharding-objective",
        task=Message.of(f"ui.task.{workload.task}"),
        objective=workload.objective,
        gpus=count,
        need=need,
        whole=rest + shared / count + of_reference,
        room=room,
        settings=[f"settings.{key}: {getattr(point, key)}" for key in _NAMED],
    )
