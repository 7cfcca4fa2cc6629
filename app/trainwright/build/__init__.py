"""Which computer to buy for a workload and some money, and what to change of one."""

from trainwright.build.answer import Builds, Candidate, Part, Point, Step
from trainwright.build.money import Money, money
from trainwright.build.request import Owned, Request, Wishes
from trainwright.build.search import search

__all__ = [
    "Builds",
    "Candidate",
    "Money",
    "Owned",
    "Part",
    "Point",
    "Request",
    "Step",
    "Wishes",
    "money",
    "search",
]
