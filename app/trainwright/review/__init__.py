"""Files of other trainers: what they say, what is wrong with it here, and what to change."""

from trainwright.review.files import Source, sources
from trainwright.review.reviewing import Review, review

__all__ = ["Review", "Source", "review", "sources"]
