"""From a profile to what the allocator and the clock see, for given settings."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.checkpointing import Log, chosen_blocks, derive
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
}

_HEAD = -2
"""Region of the ops after the last block."""


def training_events(
    profile: Profile,
    batch: int,
    sequence: int,
    *,
    accumulation: int,
    checkpointing: str,
    optimizer: str,
    steps: int = 2,
) -> tuple[Events, ...]:
    """Return the setup, then ``steps`` optimizer steps; ids go on through all of them.

    Storages that live on (parameters, optimizer state) are born in the setup or the first
    step. At most two accumulating micro-batches are written out: the others repeat them.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    structures = training_structure(
        profile, min(accumulation, 2), checkpointing, f"optimizer:{optimizer}", steps
    )
    bytes_of = evaluate(profile.sizes, batch, sequence)
    return tuple(structure.events(bytes_of) for structure in structures)


def inference_events(
    profile: Profile, batch: int, prompt: int, new_tokens: int
) -> tuple[Events, ...]:
    """Return the setup, the prefill of the prompt, and the last decoded token.

    Before the decoded token the cache has grown to the whole context but that token.
    """
    setup, prefill, grown, decode = inference_structure(profile)
    offset = _highest_id(profile) + 1
    short = evaluate(profile.sizes, batch, prompt)
    long = evaluate(profile.sizes, batch, max(prompt + new_tokens - 1, 1))
    moved = _moved(grown, offset, short, long)
    return setup.events(short), prefill.events(short), moved, decode.events(long)


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


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Events of a phase with sizes as rows, valid for every batch and sequence."""

    storage: Ints
    size: NDArray[np.int32]
    op: NDArray[np.int32]
    phase: NDArray[np.uint8]
    term: NDArray[np.uint8]

    def events(self, bytes_of: Ints) -> Events:
        """Return the events with the given bytes for each size row."""
        return Events(self.storage, bytes_of[self.size], self.op, self.phase, self.term)


@lru_cache(maxsize=64)
def training_structure(
    profile: Profile, micro_batches: int, checkpointing: str, optimizer: str, steps: int
) -> tuple[Structure, ...]:
    """Return the setup and the steps of a training run, sizes as rows."""
    blocks = chosen_blocks(_derived(checkpointing), profile.blocks)
    highest = _highest_id(profile)
    micro = _part(profile, "micro", blocks, highest)
    taken = int(np.abs(micro.storage).max(initial=highest))
    again = [_part(profile, "again", blocks, taken)] if micro_batches > 1 else []
    step = _joined([micro, *again, _part(profile, optimizer)])
    setup = _part(profile, "setup")
    stride = int(np.abs(step.storage).max(initial=highest)) + 1
    lasting = _lasting(profile, setup, step)
    living = _Living(setup, profile)
    return (setup, *(living.step(step, lasting, number * stride) for number in range(steps)))


def _derived(checkpointing: str) -> str:
    """``selective`` is in the trace itself: nothing is left to derive."""
    return "none" if checkpointing == "selective" else checkpointing


def _highest_id(profile: Profile) -> int:
    return max(int(segment.a.max(initial=0)) for segment in profile.segments.values())


def _part(
    profile: Profile, name: str, blocks: frozenset[int] = frozenset(), fresh: int = 0
) -> Structure:
    """Return one segment's events with phases; terms are told later, from whole lives."""
    log = _log(profile, name, blocks, fresh)
    row = _op_rows(profile.segments[name], log)
    phase = _phases(profile, name, row, log)
    return Structure(log.storage, log.size, row, phase, _terms(profile, log, row, phase))


@lru_cache(maxsize=64)
def _log(profile: Profile, name: str, blocks: frozenset[int], fresh: int) -> Log:
    """Derive once what events and op counts, and several optimizers, share."""
    return derive(profile.segments[name], blocks, fresh)


def _op_rows(segment: Segment, log: Log) -> NDArray[np.int32]:
    """Return the op row of each birth; -1 where there is none, and at deaths."""
    row = np.full(len(log.op), -1, dtype=np.int32)
    row[log.op >= 0] = segment.ops[log.op[log.op >= 0]]
    return row


def _phases(profile: Profile, name: str, row: NDArray[np.int32], log: Log) -> NDArray[np.uint8]:
    """Return each event's phase: its op's, or at a death that of the op before it."""
    fixed = {"setup": "setup", "prefill": "prefill", "decode": "decode"}.get(name)
    if fixed is None and name.startswith("optimizer:"):
        fixed = "optimizer"
    if fixed is not None:
        return np.full(len(log.storage), PHASE[fixed], dtype=np.uint8)
    of_row = np.array([_PHASE_OF_OP[phase] for phase in profile.ops.phase], dtype=np.uint8)
    own = np.where(row >= 0, of_row[np.maximum(row, 0)], 0).astype(np.uint8)
    own[log.recomputed] = PHASE["backward"]
    return np.maximum.accumulate(np.maximum(own, PHASE["forward"]))


def _terms(
    profile: Profile, log: Log, row: NDArray[np.int32], phase: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return what each event's storage is for, told by identity or by its life."""
    births = np.flatnonzero(log.storage > 0)
    deaths = {-int(log.storage[i]): int(i) for i in np.flatnonzero(log.storage < 0)}
    kinds = {
        storage: TERM[_BY_IDENTITY.get(category, "temporaries")]
        for storage, category in profile.category.items()
    }
    for index in births.tolist():
        storage = int(log.storage[index])
        death = deaths.get(storage)
        crosses = death is None or phase[death] != phase[index]
        kinds[storage] = _term(profile, storage, int(row[index]), int(phase[index]), crosses)
    other = TERM["temporaries"]
    return np.array([kinds.get(abs(int(s)), other) for s in log.storage], dtype=np.uint8)


_BY_IDENTITY = {
    "buffer": "parameters",
    "parameter": "parameters",
    "gradient": "gradients",
    "optimizer": "optimizer",
    "input": "inputs",
    "kv_cache": "kv_cache",
}


def _term(profile: Profile, storage: int, row: int, phase: int, crosses: bool) -> int:
    """Return the term of one storage born in an op of ``row``."""
    if (category := profile.category.get(storage)) in _BY_IDENTITY:
        return TERM[_BY_IDENTITY[category]]
    if phase == PHASE["setup"]:
        return TERM["parameters" if crosses else "temporaries"]
    if row >= 0 and profile.ops.region[row] == _HEAD:
        return TERM["logits"]
    if phase == PHASE["forward"] and crosses:
        cast = row >= 0 and profile.ops.name[row].startswith("aten._to_copy")
        constant = row >= 0 and not profile.ops.bytes_written[row, 1:].any()
        return TERM["casts" if cast and constant else "activations"]
    if phase in (PHASE["prefill"], PHASE["decode"]) and crosses:
        return TERM["kv_cache"]
    return TERM["temporaries"]


def _joined(parts: Iterable[Structure]) -> Structure:
    parts = tuple(parts)
    return Structure(
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("storage", "size", "op", "phase", "term")
        )
    )


def _lasting(profile: Profile, setup: Structure, step: Structure) -> frozenset[int]:
    """Return the ids that keep their name in every step: model and optimizer state."""
    born = set(step.storage[step.storage > 0].tolist())
    dead = set((-step.storage[step.storage < 0]).tolist())
    gradients = {s for s, kind in profile.category.items() if kind == "gradient"}
    return frozenset(setup.storage[setup.storage > 0].tolist()) | (born - dead - gradients)


class _Living:
    """The storages alive from step to step: what is born once, what each step frees."""

    def __init__(self, setup: Structure, profile: Profile) -> None:
        self._alive: dict[int, tuple[int, int]] = {}
        self._gradient = TERM["gradients"]
        self._admit(setup)

    def _admit(self, structure: Structure) -> Structure:
        """Return the events that can happen: no second birth, no death of the unborn."""
        keep = np.ones(len(structure.storage), dtype=np.bool_)
        size, term = structure.size.copy(), structure.term.copy()
        columns = zip(
            structure.storage.tolist(), size.tolist(), structure.term.tolist(), strict=True
        )
        for index, (storage, row, kind) in enumerate(columns):
            if storage > 0:
                if storage in self._alive:
                    keep[index] = False
                else:
                    self._alive[storage] = row, kind
            elif (life := self._alive.pop(-storage, None)) is not None:
                size[index], term[index] = life
            else:
                keep[index] = False
        return Structure(
            structure.storage[keep],
            size[keep],
            structure.op[keep],
            structure.phase[keep],
            term[keep],
        )

    def step(self, step: Structure, lasting: frozenset[int], offset: int) -> Structure:
        """Return one optimizer step under ids of its own, gradients freed at its end."""
        same = np.isin(np.abs(step.storage), np.fromiter(lasting, np.int64, len(lasting)))
        moved = np.where(same, step.storage, step.storage + np.sign(step.storage) * offset)
        own = self._admit(Structure(moved, step.size, step.op, step.phase, step.term))
        left = [s for s, (_, kind) in self._alive.items() if kind == self._gradient]
        return _joined([own, self._freed(left)])

    def _freed(self, storages: list[int]) -> Structure:
        lives = [self._alive.pop(storage) for storage in storages]
        count = len(storages)
        return Structure(
            storage=-np.array(storages, dtype=np.int64),
            size=np.array([size for size, _ in lives], dtype=np.int32),
            op=np.full(count, -1, dtype=np.int32),
            phase=np.full(count, PHASE["optimizer"], dtype=np.uint8),
            term=np.array([kind for _, kind in lives], dtype=np.uint8),
        )


@lru_cache(maxsize=16)
def inference_structure(profile: Profile) -> tuple[Structure, ...]:
    """Return setup, prefill, the storages that the prefill leaves, and one decoded token.

    The last two are empty for a model that does not generate.
    """
    living = _Living(_part(profile, "setup"), profile)
    setup = _part(profile, "setup")
    before = set(living._alive)
    prefill = living._admit(_part(profile, "prefill"))
    left = {s: life for s, life in living._alive.items() if s not in before}
    count = len(left)
    grown = Structure(
        storage=np.fromiter(left, np.int64, count),
        size=np.array([size for size, _ in left.values()], dtype=np.int32),
        op=np.full(count, -1, dtype=np.int32),
        phase=np.full(count, PHASE["decode"], dtype=np.uint8),
        term=np.array([kind for _, kind in left.values()], dtype=np.uint8),
    )
    offset = _highest_id(profile) + 1
    if "decode" not in profile.segments:  # It does not generate: the prefill is all.
        return setup, prefill, _nothing(), _nothing()
    decode = _part(profile, "decode")
    ours = np.isin(np.abs(decode.storage), grown.storage)
    renamed = np.where(ours, decode.storage + np.sign(decode.storage) * offset, decode.storage)
    for storage, life in left.items():
        living._alive[storage + offset] = life
    decode = living._admit(Structure(renamed, decode.size, decode.op, decode.phase, decode.term))
    return setup, prefill, grown, decode


def _nothing() -> Structure:
    none = np.zeros(0, dtype=np.int64)
    small = none.astype(np.uint8)
    return Structure(none, none.astype(np.int32), none.astype(np.int32), small, small)


def _moved(grown: Structure, offset: int, short: Ints, long: Ints) -> Events:
    """Return the events in which each kept storage is replaced by one of its later size."""
    storage = np.stack([grown.storage + offset, -grown.storage], axis=1).ravel()
    return Events(
        storage=storage,
        size=np.stack([long[grown.size], short[grown.size]], axis=1).ravel(),
        op=np.repeat(grown.op, 2),
        phase=np.repeat(grown.phase, 2),
        term=np.repeat(grown.term, 2),
    )


@lru_cache(maxsize=64)
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
        log = _log(profile, name, blocks, _highest_id(profile)) if blocks else None
        twice = log.recomputed_ops if log is not None else np.zeros(0, np.int32)
        counts["forward"].append(np.where(forward, total, 0.0))
        counts["backward"].append(np.where(backward, total, 0.0))
        traced = np.where(phase == "recompute", total, 0.0)
        counts["recompute"].append(traced + _counted(segment.ops[twice], rows))
    update = _counted(profile.segments[optimizer].ops, rows)
    stages = {stage: (first, more) for stage, (first, more) in counts.items()}
    return stages | {"optimizer": (update, np.zeros_like(update))}


def _counted(ops: NDArray[np.int32], rows: int) -> Floats:
    return np.bincount(ops, minlength=rows).astype(np.float64)
