"""What is computed from a profile is kept as long as the profile is, and no longer.

A cache with more arguments than the profile holds hundreds of answers during a search. If they
were in one cache, as many profiles could live in it long after anybody asks for their models.
"""

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from trainwright.profile.profile import Profile

KEPT = 16
"""Profiles that are kept, and tables made of one: a search needs up to eleven (measured on the
examples), and each takes one to three megabytes."""
_ANSWERS = 256
"""Answers of one function on one profile; a search has about a hundred."""

P = ParamSpec("P")
R = TypeVar("R")


def with_profile(
    function: Callable[Concatenate[Profile, P], R],
) -> Callable[Concatenate[Profile, P], R]:
    """Return a function that remembers its answers on the profiles that it was asked about last."""

    @lru_cache(maxsize=KEPT)
    def answers(profile: Profile) -> Callable[..., R]:
        return lru_cache(maxsize=_ANSWERS)(partial(function, profile))

    @wraps(function)
    def answer(profile: Profile, /, *args: P.args, **named: P.kwargs) -> R:
        return answers(profile)(*args, **named)

    return answer
