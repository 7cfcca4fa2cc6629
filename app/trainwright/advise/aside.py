"""Ways out through system memory: what is moved there, and more of it."""

from collections.abc import Iterator
from typing import Any

from trainwright.advise.advice import Relaxation
from trainwright.advise.search import Search, first
from trainwright.advise.wayout import Answer, used, way_out
from trainwright.machine.capacity import GIB
from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload.settings import SHARDED_OPTIMIZERS, Effect

SHARES_ASIDE = "advise.relax.shard-offload"
SIZES_GIB = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""What memory is sold in: two, four, eight or twelve modules alike."""
_LARGER = 3
"""Sizes above the one there that are tried; assumed: each is a search."""


def sharding(plan: Plan, *, aside: bool = False) -> Plan | None:
    """Return the plan with its weights shared out; None where that is not open.

    ``aside``: with the shares in system memory.
    """
    gpus, given = plan.machine.gpu_count, plan.settings
    open_to = (None, "fsdp2") if aside and given.shard_offload is None else (None,)
    if gpus < 2 or not plan.workload.trains or given.strategy not in open_to:
        return None
    if plan.workload.objective is not None:  # how GPUs share a reference is not planned
        return None
    moved = given.optimizer_offload == "cpu" or given.optimizer_in_backward
    if moved or given.optimizer not in (None, *SHARDED_OPTIMIZERS):
        return None
    update: dict[str, Any] = {"strategy": "fsdp2"} | ({"shard_offload": True} if aside else {})
    settings = given.model_copy(update=update)
    return plan.model_copy(update={"settings": settings})


def shares(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with weights shared out and kept in system memory, which is not known.

    Where that memory is known, it is among the choices.
    """
    machine, plan = search.facts.machine, sharding(search.plan, aside=True)
    if plan is None or machine.memory_bytes is not None:
        return
    yield from _aside(search, plan, SHARES_ASIDE, gpus=machine.gpu_count)


def activations(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with blocks' inputs in system memory, which is not known.

    Where that memory is known, it is among the choices.
    """
    plan, machine = search.plan, search.facts.machine
    given = plan.settings
    if not plan.workload.trains or machine.memory_bytes is not None:
        return
    if given.activation_offload is not None or machine.gpu.record.unified_memory:
        return
    settings = given.model_copy(update={"activation_offload": True})
    moved = plan.model_copy(update={"settings": settings})
    yield from _aside(search, moved, "advise.relax.activation-offload")


def _aside(search: Search, moved: Plan, id: str, **values: Any) -> Iterator[Relaxation]:
    """Yield a plan that keeps something in system memory, with how much it takes of that."""
    if (answer := first(moved, search.sources)) is not None:
        memory = answer[2].memory
        need = memory.host.value if memory.host is not None else 0.0
        change = Message.of(id, need=need, **values, **used(answer[2]))
        yield way_out(change, moved, search, answer, Effect.SAME)


def more(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with the least system memory that holds what can be moved there.

    Less memory that would train differently is passed over.
    """
    machine, choice = search.facts.machine, search.plan.machine
    if machine.memory_bytes is None or machine.gpu.record.unified_memory or choice.cloud:
        return
    if not search.plan.workload.trains:
        return
    larger = [gib for gib in SIZES_GIB if gib * GIB > machine.memory_bytes][:_LARGER]
    found: tuple[int, Plan, Answer] | None = None
    for gib in reversed(larger):  # where the most of them is too little, so is less
        held = choice.model_copy(update={"memory_gib": float(gib), "memory": ()})
        moved = _moved(search.plan.model_copy(update={"machine": held}), search)
        if moved is None or (found is not None and _effect(moved[1]) > _effect(found[2])):
            break
        found = gib, *moved
    if found is not None:
        gib, plan, answer = found
        change = Message.of("advise.relax.system-memory", memory=gib, **used(answer[2]))
        yield way_out(change, plan, search, answer, Effect.SAME, buys=True)


def _moved(plan: Plan, search: Search) -> tuple[Plan, Answer] | None:
    """Return the plan that fits because something of it lies in system memory, with its answer."""
    for tried in (plan, sharding(plan, aside=True)):
        answer = first(tried, search.sources) if tried is not None else None
        if tried is not None and answer is not None and answer[2].memory.host is not None:
            return tried, answer
    return None


def _effect(answer: Answer) -> Effect:
    return answer[1].candidate.effect
