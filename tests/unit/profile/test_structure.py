"""Steps and what is kept of them: what is born and freed, and how long a result lives."""

import gc
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.estimate.input.inputs import batch_bytes
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.profile.memo import KEPT, with_profile
from trainwright.profile.presets import presets
from trainwright.profile.profile import Profile
from trainwright.profile.structure import Living, Structure, nothing
from trainwright.ui.plans import for_preset, starting_plan

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


def alive():
    gc.collect()
    return sum(isinstance(one, Profile) for one in gc.get_objects())


def test_answers_are_remembered_by_profile_and_by_what_else_was_asked():
    asked = []

    @with_profile(2)
    def double(profile, number):
        asked.append((profile, number))
        return 2 * number

    one, other = object(), object()
    assert [double(one, 2), double(one, 2), double(other, 2), double(one, 3)] == [4, 4, 4, 6]
    assert asked == [(one, 2), (other, 2), (one, 3)]
    for profile in [object() for _ in range(KEPT)]:
        double(profile, 2)
    double(one, 2)
    assert asked[-1] == (one, 2)


@pytest.mark.slow
def test_looking_at_many_models_keeps_few_of_them():
    plan, looked = starting_plan(), 0
    before = alive()
    for preset in islice(presets().values(), 60):
        changed = for_preset(plan, preset)
        facts = resolve(changed)
        if isinstance(facts, Facts):
            evaluate(changed, facts)
            for length in (128, 256, 512):
                batch_bytes(facts.profile, 2, length)
            looked += 1
    assert looked > 2 * KEPT
    assert alive() - before <= 2 * KEPT
