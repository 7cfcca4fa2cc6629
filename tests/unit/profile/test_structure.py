"""What is born and freed in a repeated step: as a person would keep the books, one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainwright.profile.structure import Living, Structure, nothing

ids = st.integers(1, 6)
logs = st.lists(st.tuples(ids, st.booleans(), st.integers(0, 99)), max_size=30)


def structure(log):
    storage = [key if born else -key for key, born, _ in log]
    size = [nbytes for *_, nbytes in log]
    count = len(log)
    return Structure(
        np.array(storage, dtype=np.int64),
        np.array(size, dtype=np.int32),
        np.arange(count, dtype=np.int32),
        np.zeros(count, dtype=np.uint8),
        np.array(size, dtype=np.uint8),
    )


def kept_one_by_one(alive, log):
    """(event, signed id, size) of what can happen; ``alive`` is changed."""
    for event, (key, born, nbytes) in enumerate(log):
        if born and key not in alive:
            alive[key] = nbytes
            yield event, key, nbytes
        elif not born and key in alive:
            yield event, -key, alive.pop(key)


@given(st.lists(logs, min_size=1, max_size=4))
def test_what_is_alive_is_not_born_again_and_only_that_dies(phases):
    living, alive = Living(nothing()), {}
    for log in phases:
        expected = list(kept_one_by_one(alive, log))
        found = living.admit(structure(log))
        columns = (found.op.tolist(), found.storage.tolist(), found.size.tolist())
        assert list(zip(*columns, strict=True)) == expected
        assert found.term.tolist() == found.size.tolist()
        assert living.alive.storage.tolist() == list(alive)
