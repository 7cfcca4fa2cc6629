"""The events of a phase with sizes as rows, and which of them happen when it is repeated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import CATEGORIES, PHASES, Events, Ints

_GRADIENTS = CATEGORIES.index("gradients")
_OPTIMIZER = PHASES.index("optimizer")


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

    def at(self, chosen: NDArray[np.bool_]) -> "Structure":
        """Return some of the events."""
        return Structure(
            self.storage[chosen],
            self.size[chosen],
            self.op[chosen],
            self.phase[chosen],
            self.term[chosen],
        )


def joined(parts: Sequence[Structure]) -> Structure:
    """Return the events of several parts, one after the other."""
    return Structure(
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("storage", "size", "op", "phase", "term")
        )
    )


def nothing() -> Structure:
    """Return no events."""
    none = np.zeros(0, dtype=np.int64)
    small = none.astype(np.uint8)
    return Structure(none, none.astype(np.int32), none.astype(np.int32), small, small)


class Living:
    """The storages alive from step to step: what is born once, what each step frees."""

    def __init__(self, setup: Structure) -> None:
        self.alive = nothing()
        """Their births, in order."""
        self.admit(setup)

    def admit(self, structure: Structure) -> Structure:
        """Return the events that can happen: no second birth, no death of the unborn.

        Sizes and terms of deaths are those of the births.
        """
        known = len(self.alive.storage)
        events = joined([self.alive, structure])
        birth, happens = _lives(events.storage)
        events = replace(events, size=events.size[birth], term=events.term[birth])
        left = happens & (events.storage > 0)
        left[birth[happens & (events.storage < 0)]] = False
        self.alive = events.at(left)
        happens[:known] = False
        return events.at(happens)

    def step(self, step: Structure, lasting: NDArray[np.bool_], offset: int) -> Structure:
        """Return one optimizer step under ids of its own, gradients freed at its end.

        Args:
            step: The events, with the ids of the first step.
            lasting: By id, whether the storage is the same in every step.
            offset: What is added to the other ids.
        """
        same = lasting[np.abs(step.storage)]
        moved = np.where(same, step.storage, step.storage + np.sign(step.storage) * offset)
        own = self.admit(replace(step, storage=moved))
        gradients = self.alive.at(self.alive.term == _GRADIENTS)
        return joined([own, self.admit(_freed(gradients))])


def _lives(storage: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the birth (as event number) that each event belongs to, and whether it happens.

    A birth happens where the storage is not alive, a death where it is.
    """
    order = np.argsort(np.abs(storage), kind="stable")  # The events of a storage in a row.
    ordered = storage[order]
    born = ordered > 0
    first = np.append(True, np.abs(ordered[1:]) != np.abs(ordered[:-1]))[: len(ordered)]
    alive = np.append(False, born[:-1])[: len(ordered)] & ~first
    happens = born != alive
    # The latest birth that happened is that of the same storage, or the death does not happen.
    latest = np.maximum.accumulate(np.where(born & happens, np.arange(len(order)), 0))
    birth, mask = np.empty_like(order), np.empty_like(happens)
    birth[order], mask[order] = order[latest], happens
    return birth, mask


def _freed(alive: Structure) -> Structure:
    """Return the deaths of storages at the end of a step."""
    count = len(alive.storage)
    return replace(
        alive,
        storage=-alive.storage,
        op=np.full(count, -1, dtype=np.int32),
        phase=np.full(count, _OPTIMIZER, dtype=np.uint8),
    )
