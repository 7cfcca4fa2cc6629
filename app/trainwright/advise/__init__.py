"""Search over the free settings, with a reason for each."""

from trainwright.advise.advice import Advice, Choice, Point, Reason, Relaxation, what_becomes
from trainwright.advise.choose import (
    advise,
    make_it_fit,
    splits,
    ways_out,
    with_whole_batch,
    worth_splitting,
    would_shard,
)
from trainwright.advise.learning_rate import learning_rate_advice
from trainwright.advise.relax import sharding

__all__ = [
    "Advice",
    "Choice",
    "Point",
    "Reason",
    "Relaxation",
    "advise",
    "learning_rate_advice",
    "make_it_fit",
    "sharding",
    "splits",
    "ways_out",
    "what_becomes",
    "with_whole_batch",
    "worth_splitting",
    "would_shard",
]
