"""Files of other trainers: what they say, what is wrong with it here, and what to change."""

from trainwright.review.files import Source, sources
from trainwright.review.reviewing import Review, plan_of, review

__all__ = ["Review", "Source", "plan_of", "review", "sources"]
