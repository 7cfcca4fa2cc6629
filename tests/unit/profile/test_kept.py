"""Profiles that nobody asks for any more leave memory, whatever was computed from them."""

import gc
from itertools import islice

import pytest

from trainwright.estimate.inputs import batch_bytes
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.profile.kept import KEPT, with_profile
from trainwright.profile.presets import presets
from trainwright.profile.profile import Profile
from trainwright.ui.plans import for_preset, starting_plan


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
