"""From a profile to what the allocator and the clock see, for given settings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.profile import holding
from trainwright.profile.checkpointing import (
    OFFLOAD,
    REENTRANT,
    Log,
    chosen_blocks,
    derive,
    offloaded,
)
from trainwright.profile.memo import KEPT, with_profile
from trainwright.profile.profile import (
    CATEGORIES,
    PHASES,
    Events,
    Floats,
    Ints,
    Profile,
    Segment,
    evaluate,
)
from trainwright.profile.rollout import SCORES, WRITES
from trainwright.profile.structure import Living, Structure, joined, nothing

TERM = {name: number for number, name in enumerate(CATEGORIES)}
PHASE = {name: number for number, name in enumerate(PHASES)}

_PHASE_OF_OP = {
    "forward": PHASE["forward"],
    "loss": PHASE["forward"],
    "data": PHASE["forward"],
    "backward": PHASE["backward"],
    "recompute": PHASE["backward"],
    "clip": PHASE["optimizer"],
    "optimizer": PHASE["optimizer"],
    "setup": PHASE["setup"],
    "prefill": PHASE["prefill"],
    "decode": PHASE["decode"],
    "score": PHASE["score"],
}


@dataclass(frozen=True, slots=True)
class Loop:
    """What a training loop does around the step that was traced."""

    output: str = "no"
    """no | step | next: how long it holds what the model returned."""
    gradients: str = "after-step"
    """after-step | before-backward | zeroed: when it drops gradients."""
    loss_in_model: bool = False
    """Whether the model makes the loss before it returns."""
    writes: bool = True
    """Whether a policy writes its answers itself; else an engine does."""


PLAIN_LOOP = Loop()

_HEAD = -2
"""Region of the ops after the last block."""

_KEPT = 4
"""Structures that are kept, of one to two megabytes each; assumed: those of one plan."""
_RUNS = 64
"""Runs that are kept, of about a megabyte each: a search over all cards comes back to each of them
for every kind of card. With 64 it takes 7.6 s where it took 11.2 (QLoRA of Llama 3.1 8B)."""


def training_events(
    profile: Profile,
    batch: int,
    sequence: int,
    *,
    accumulation: int,
    checkpointing: str,
    optimizer: str,
    steps: int = 2,
    loop: Loop = PLAIN_LOOP,
) -> tuple[Events, ...]:
    """Return the setup, then ``steps`` optimizer steps; ids go on through all of them.

    Storages that live on (parameters, optimizer state) are born in the setup or the first
    step. At most two accumulating micro-batches are written out: the others repeat them.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    structures = training_structure(
        profile, min(accumulation, 2), checkpointing, f"optimizer:{optimizer}", steps, loop
    )
    bytes_of = evaluate(profile.sizes, batch, sequence)
    return tuple(structure.events(bytes_of) for structure in structures)


@lru_cache(maxsize=KEPT)
def model_bytes(profile: Profile) -> int:
    """Return the bytes that the setup leaves: the model, whatever batch it will see."""
    return int(_part(profile, "setup").events(evaluate(profile.sizes, 1, 1)).signed.sum())


def op_counts(
    profile: Profile, *, accumulation: int, checkpointing: str, optimizer: str
) -> dict[str, Floats]:
    """Return how often each op row runs in one optimizer step, by stage.

    Stages: forward, recompute, backward, optimizer; each an array over ``profile.ops``.
    """
    counts = _op_counts(profile, checkpointing, f"optimizer:{optimizer}")
    again = accumulation - 1
    return {
        stage: first + again * more if again else first.copy()
        for stage, (first, more) in counts.items()
    }


@lru_cache(maxsize=_RUNS)
def training_structure(
    profile: Profile,
    micro_batches: int,
    checkpointing: str,
    optimizer: str,
    steps: int,
    loop: Loop = PLAIN_LOOP,
) -> tuple[Structure, ...]:
    """Return the setup and the steps of a training run, sizes as rows."""
    if loop.gradients == "zeroed":  # every micro-batch adds to gradients that are there
        micro_batches = 2
    blocks = chosen_blocks(_derived(checkpointing), profile.blocks)
    highest = _highest_id(profile)
    micro = _part(profile, "micro", blocks, highest, checkpointing)
    taken = int(np.abs(micro.storage).max(initial=highest))
    again = [_part(profile, "again", blocks, taken, checkpointing)] if micro_batches > 1 else []
    step = joined([*_rollout(profile, loop), micro, *again, _part(profile, optimizer)])
    setup = _part(profile, "setup")
    stride = int(np.abs(step.storage).max(initial=highest)) + 1
    lasting = _lasting(profile, setup, step, stride)
    living = Living(setup)
    run = tuple(living.step(step, lasting, number * stride) for number in range(steps))
    if loop.output != "no":
        outputs = [
            (_named(profile, part, "output"), _named(profile, part, "kept_by_graph"))
            for part in (micro, *again)
        ]
        run = holding.outputs_held(run, outputs, stride, loop.output, inside=loop.loss_in_model)
    if loop.gradients == "before-backward":
        run = holding.cleared_late(run)
    return (setup, *run)


def _rollout(profile: Profile, loop: Loop) -> Iterator[Structure]:
    """Yield what a policy does before an update: it writes answers and scores them."""
    if loop.writes and "decode" in profile.segments:
        _, *writing = _written(profile, len(profile.sizes) // 3)
        yield from writing
    yield from (_part(profile, name) for name in SCORES if name in profile.segments)


def _named(profile: Profile, part: Structure, category: str) -> Ints:
    """Return the ids of a category in a micro-batch."""
    named = [storage for storage, kind in profile.category.items() if kind == category]
    return np.intersect1d(part.storage, np.array(named, dtype=np.int64))


@with_profile(8)
def offloaded_rows(profile: Profile, checkpointing: str) -> Ints:
    """Return the size rows of what a policy keeps in system memory during a micro-batch."""
    blocks = chosen_blocks(_derived(checkpointing), profile.blocks)
    if not checkpointing.endswith(OFFLOAD) or not blocks:
        return np.zeros(0, dtype=np.int64)
    return offloaded(profile.segments["micro"], blocks)


def _derived(checkpointing: str) -> str:
    """``selective`` is in the trace itself: nothing is left to derive."""
    return "none" if checkpointing == "selective" else checkpointing


def _highest_id(profile: Profile) -> int:
    return max(int(segment.a.max(initial=0)) for segment in profile.segments.values())


@lru_cache(maxsize=2 * _KEPT)
def _part(
    profile: Profile,
    name: str,
    blocks: frozenset[int] = frozenset(),
    fresh: int = 0,
    checkpointing: str = "none",
) -> Structure:
    """Return one segment's events with phases; terms are told later, from whole lives."""
    log = _log(profile, name, blocks, fresh, checkpointing)
    row = _op_rows(profile.segments[name], log)
    phase = _phases(profile, name, row, log)
    return Structure(log.storage, log.size, row, phase, _terms(profile, log, row, phase))


@lru_cache(maxsize=2 * _KEPT)
def _log(
    profile: Profile, name: str, blocks: frozenset[int], fresh: int, checkpointing: str
) -> Log:
    """Derive once what events and op counts, and several optimizers, share."""
    offload, reentrant = checkpointing.endswith(OFFLOAD), REENTRANT in checkpointing
    return derive(profile.segments[name], blocks, fresh, offload=offload, reentrant=reentrant)


def _op_rows(segment: Segment, log: Log) -> NDArray[np.int32]:
    """Return the op row of each birth; -1 where there is none, and at deaths."""
    row = np.full(len(log.op), -1, dtype=np.int32)
    row[log.op >= 0] = segment.ops[log.op[log.op >= 0]]
    return row


def _phases(profile: Profile, name: str, row: NDArray[np.int32], log: Log) -> NDArray[np.uint8]:
    """Return each event's phase: its op's, or at a death that of the op before it."""
    fixed = "score" if name in SCORES else name if name in ("setup", *WRITES) else None
    if fixed is None and name.startswith("optimizer:"):
        fixed = "optimizer"
    if fixed is not None:
        return np.full(len(log.storage), PHASE[fixed], dtype=np.uint8)
    of_row = np.array([_PHASE_OF_OP[phase] for phase in profile.ops.phase], dtype=np.uint8)
    own = np.where(row >= 0, of_row[np.maximum(row, 0)], 0).astype(np.uint8)
    own = np.minimum(own, PHASE["backward"])  # an optimizer may run within backward
    own[log.recomputed] = PHASE["backward"]
    return np.maximum.accumulate(np.maximum(own, PHASE["forward"]))


def _terms(
    profile: Profile, log: Log, row: NDArray[np.int32], phase: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return what each event's storage is for, told by identity or by its life."""
    storage = np.abs(log.storage)
    births = log.storage > 0
    known, number = _identities(profile)
    ids = 1 + int(max(storage.max(initial=0), known.max(initial=0)))
    # What never dies has phase -1, which no birth has: it outlives its own.
    death_phase = np.full(ids, -1, dtype=np.int64)
    death_phase[storage[~births]] = phase[~births]
    by_identity = np.full(ids, -1, dtype=np.int64)
    by_identity[known] = number
    kinds = np.where(by_identity >= 0, by_identity, TERM["temporaries"])
    born = storage[births]
    by_life = _by_life(profile, row[births], phase[births], death_phase[born] != phase[births])
    kinds[born] = np.where(by_identity[born] >= 0, by_identity[born], by_life)
    return kinds[storage].astype(np.uint8)


_BY_IDENTITY = {
    "buffer": "parameters",
    "parameter": "parameters",
    "reference": "reference",
    "gradient": "gradients",
    "optimizer": "optimizer",
    "input": "inputs",
    "kv_cache": "kv_cache",
    "cast": "casts",
}


@lru_cache(maxsize=KEPT)
def _identities(profile: Profile) -> tuple[Ints, Ints]:
    """Return the storages whose category is a term of its own, and the terms."""
    known = {
        storage: TERM[_BY_IDENTITY[category]]
        for storage, category in profile.category.items()
        if category in _BY_IDENTITY
    }
    count = len(known)
    return np.fromiter(known, np.int64, count), np.fromiter(known.values(), np.int64, count)


def _by_life(
    profile: Profile, row: NDArray[np.int32], phase: NDArray[np.uint8], crosses: NDArray[np.bool_]
) -> Ints:
    """Return the terms of storages born in ops of the rows; ``crosses``: outlive their phase."""
    in_head = _in_head(profile)
    forward = (phase == PHASE["forward"]) & crosses
    serving = ((phase == PHASE["prefill"]) | (phase == PHASE["decode"])) & crosses
    setup = phase == PHASE["setup"]
    rules = {
        "parameters": setup & crosses,
        "temporaries": setup,
        "logits": in_head[row],
        "activations": forward,
        "kv_cache": serving,
    }
    kinds: Ints = np.select(
        list(rules.values()), [TERM[name] for name in rules], TERM["temporaries"]
    )
    return kinds


@lru_cache(maxsize=KEPT)
def _in_head(profile: Profile) -> NDArray[np.bool_]:
    """Return which op rows are of the head; False at the end, for -1."""
    return np.append(np.array(profile.ops.region) == _HEAD, False)


def _lasting(profile: Profile, setup: Structure, step: Structure, ids: int) -> NDArray[np.bool_]:
    """Return which ids keep their name in every step: model and optimizer state; (ids,)."""
    lasting = np.zeros(ids, dtype=np.bool_)
    lasting[step.storage[step.storage > 0]] = True
    lasting[-step.storage[step.storage < 0]] = False
    lasting[[s for s, kind in profile.category.items() if kind == "gradient"]] = False
    lasting[setup.storage[setup.storage > 0]] = True
    return lasting


@lru_cache(maxsize=_KEPT)
def inference_structure(profile: Profile) -> tuple[Structure, ...]:
    """Return setup, prefill, the growth of what the prefill leaves, and one decoded token.

    Sizes of the last two are of the longer context that they happen at: rows after all of
    ``profile.sizes``. They are empty for a model that does not generate.
    """
    return _written(profile, len(profile.sizes))


def _written(profile: Profile, later: int) -> tuple[Structure, ...]:
    """Return the same, the sizes of the last two so many rows later."""
    setup = _part(profile, "setup")
    living = Living(setup)
    before = living.alive.storage
    prefill = living.admit(_part(profile, "prefill"))
    left = living.alive.at(~np.isin(living.alive.storage, before))
    count = len(left.storage)
    grown = replace(
        left,
        op=np.full(count, -1, dtype=np.int32),
        phase=np.full(count, PHASE["decode"], dtype=np.uint8),
    )
    offset = _highest_id(profile) + 1
    if "decode" not in profile.segments:  # It does not generate: the prefill is all.
        return setup, prefill, nothing(), nothing()
    decode = _part(profile, "decode")
    ours = np.isin(np.abs(decode.storage), grown.storage)
    renamed = np.where(ours, decode.storage + np.sign(decode.storage) * offset, decode.storage)
    living.admit(replace(grown, storage=grown.storage + offset))
    decode = living.admit(replace(decode, storage=renamed))
    return setup, prefill, _grown(grown, offset, later), replace(decode, size=decode.size + later)


def _grown(kept: Structure, offset: int, later: int) -> Structure:
    """Return the events in which each kept storage is replaced by one of its later size."""
    return Structure(
        storage=np.stack([kept.storage + offset, -kept.storage], axis=1).ravel(),
        size=np.stack([kept.size + later, kept.size], axis=1).ravel(),
        op=np.repeat(kept.op, 2),
        phase=np.repeat(kept.phase, 2),
        term=np.repeat(kept.term, 2),
    )


@with_profile(8)
def _op_counts(
    profile: Profile, checkpointing: str, optimizer: str
) -> dict[str, tuple[Floats, Floats]]:
    """Return (first micro-batch, each further one) by stage."""
    blocks = chosen_blocks(_derived(checkpointing), profile.blocks)
    rows = len(profile.ops.name)
    phase = np.array(profile.ops.phase)
    backward = phase == "backward"
    forward = np.isin(phase, ("forward", "loss"))
    counts: dict[str, list[Floats]] = {"forward": [], "recompute": [], "backward": []}
    for wanted in ("micro", "again"):
        name = wanted if wanted in profile.segments else "micro"
        segment = profile.segments[name]
        total = _counted(segment.ops, rows)
        log = _log(profile, name, blocks, _highest_id(profile), checkpointing) if blocks else None
        twice = log.recomputed_ops if log is not None else np.zeros(0, np.int32)
        counts["forward"].append(np.where(forward, total, 0.0))
        counts["backward"].append(np.where(backward, total, 0.0))
        traced = np.where(phase == "recompute", total, 0.0)
        counts["recompute"].append(traced + _counted(segment.ops[twice], rows))
    within = np.where(phase == "optimizer", _counted(profile.segments["micro"].ops, rows), 0.0)
    update = within + _counted(profile.segments[optimizer].ops, rows)
    stages = {stage: (first, more) for stage, (first, more) in counts.items()}
    return stages | {"optimizer": (update, np.zeros_like(update))}


def _counted(ops: NDArray[np.int32], rows: int) -> Floats:
    return np.bincount(ops, minlength=rows).astype(np.float64)
