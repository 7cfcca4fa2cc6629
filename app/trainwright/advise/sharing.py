"""Why weights or layers are shared out over the GPUs, or whole on each, and what others gain."""

from collections.abc import Iterator
from itertools import islice, takewhile

from trainwright.advise.advice import Reason
from trainwright.advise.search import Search
from trainwright.advise.walk import Timed
from trainwright.messages import Message

SERVING_SOURCE = "vLLM: docs, Parallelism and Scaling; estimate"
SHARDING_SOURCE = "torch: docs, torch.distributed.fsdp.fully_shard"
_TRIES = 3
"""Replays spent on what else would fit."""
_WORTH = 0.02
"""Shorter step that is worth naming, as a share. Assumed: below it the estimate cannot tell."""


def shares(search: Search, best: Timed, gpus: int) -> Iterator[Reason]:
    """Yield why weights are shared out: copies do not fit, leave nothing free, or take longer."""
    copies = alternative(search, best, strategy="ddp")
    if copies is None:
        yield from sharded(gpus)
    elif best.seconds >= copies.seconds:  # these fit, and leave nothing free
        because = Message.of("advise.strategy.fsdp2-room", gpus=gpus)
        yield Reason("strategy", "fsdp2", because, SHARDING_SOURCE)
    else:
        less = 1 - best.seconds / copies.seconds
        because = Message.of("advise.strategy.fsdp2-faster", gpus=gpus, less=less)
        yield Reason("strategy", "fsdp2", because, SHARDING_SOURCE)


def faster_shares(search: Search, best: Timed) -> Message | None:
    """Return what sharing the weights out would gain, and what it changes; None where nothing."""
    shares = next(search.best(search.holding(strategy="fsdp2")), None)
    if shares is None or not search.casts(shares[0].candidate):
        return None
    less = 1 - shares[0].seconds / best.seconds
    alike = shares[0].candidate.effect <= best.candidate.effect
    return Message.of("advise.flip.shares", less=less) if alike and less > _WORTH else None


def sharded(gpus: int, *, aside: bool = False) -> Iterator[Reason]:
    """Yield why weights are shared out where whole copies do not fit."""
    because = Message.of("advise.strategy.fsdp2", gpus=gpus)
    yield Reason("strategy", "fsdp2", because, SHARDING_SOURCE)
    if aside:
        yield Reason("shard_offload", True, Message.of("advise.shard-offload"), SHARDING_SOURCE)


def alternative(search: Search, best: Timed, **held: object) -> Timed | None:
    """Return the best that fits with other values and changes the training no more, if any."""
    chosen = best.candidate
    within = search.holding(**held).within(chosen.effect)
    alike = takewhile(lambda one: one.candidate.departs <= chosen.departs, within)
    return next((one for one, _ in search.confirmed(islice(alike, _TRIES))), None)


def served(search: Search, best: Timed) -> Iterator[Reason]:
    """Yield why an engine splits each layer over so many GPUs, or none, with the next best's rate.

    Nothing where the GPUs leave no choice.
    """
    own, known = best.candidate.tensor_degree, search.obedient.space.open["tensor_degree"]
    if len(known) < 2 or search.plan.workload.trains:
        return
    others = (search.alike(best.candidate, tensor_degree=one) for one in known if one != own)
    ranked = sorted(filter(None, others), key=lambda one: one.seconds)
    rival = next(iter(search.confirmed(ranked)), None)
    if own is None and rival is None:
        return
    ending = "copies" if own is None else "split" if rival is not None else "fits"
    values: dict[str, object] = {"engine": search.facts.settings.engine, "degree": own or 1}
    if rival is not None:
        values |= {"other": rival[0].candidate.tensor_degree or 1}
        values |= {"more": rival[0].seconds / best.seconds - 1}
    because = Message.of(f"advise.tensor-served.{ending}", **values)
    yield Reason("tensor_degree", own or 1, because, SERVING_SOURCE)
