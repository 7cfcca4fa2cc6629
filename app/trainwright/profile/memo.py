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

P = ParamSpec("P")
R = TypeVar("R")


def with_profile(
    most: int,
) -> Callable[[Callable[Concatenate[Profile, P], R]], Callable[Concatenate[Profile, P], R]]:
    """Return a decorator that keeps the latest answers of a function with their profile.

    Args:
        most: answers of one profile that are kept. A search has up to 80 peaks of one profile, and
            up to eight ways to count its operators (measured on the examples).
    """

    def decorator(
        function: Callable[Concatenate[Profile, P], R],
    ) -> Callable[Concatenate[Profile, P], R]:
        @lru_cache(maxsize=KEPT)
        def answers(profile: Profile) -> Callable[..., R]:
            return lru_cache(maxsize=most)(partial(function, profile))

        @wraps(function)
        def answer(profile: Profile, /, *args: P.args, **named: P.kwargs) -> R:
            return answers(profile)(*args, **named)

        return answer

    return decorator
