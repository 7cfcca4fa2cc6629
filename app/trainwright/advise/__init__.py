"""Search over the free settings, with a reason for each."""

from trainwright.advise.advice import Advice, Choice, Point, Reason, Relaxation, what_becomes
from trainwright.advise.choose import (
    advise,
    make_it_fit,
    untraced,
    ways_out,
    with_whole_batch,
    worth_tracing,
)
from trainwright.advise.learning_rate import learning_rate_advice

__all__ = [
    "Advice",
    "Choice",
    "Point",
    "Reason",
    "Relaxation",
    "advise",
    "learning_rate_advice",
    "make_it_fit",
    "untraced",
    "ways_out",
    "what_becomes",
    "with_whole_batch",
    "worth_tracing",
]
