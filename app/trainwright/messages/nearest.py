"""The known names nearest to what a person typed."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(text: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return up to ``count`` known names that resemble the text, best first."""
    by_fold = {name.casefold(): name for name in known}
    found = get_close_matches(text.casefold()[:200], by_fold, n=count, cutoff=0.5)
    return tuple(by_fold[name] for name in found)
