"""Timeouts of collectives: which ranks waited, and in which call."""

import re

from trainwright.diagnose.outofmemory.account import Account, Explanation, fix
from trainwright.messages import Message

_WAITED = re.compile(
    r"Rank (?P<rank>[0-9]{1,6})\] Watchdog caught collective operation timeout: Work[A-Z]{2,8}"
    r"\((?:SeqNum=(?P<number>[0-9]{1,18}), )?OpType=(?P<operation>[A-Z0-9_]{1,40})"
    r"[^()]{0,300}Timeout\(ms\)=(?P<limit>[0-9]{1,15})"
)
"""What torch's watchdog prints in each rank that waited."""
MOST_CALLS = 3
"""Calls that are listed, the last ones; assumed: more say no more."""


def collective(account: Account, text: str, at: int) -> Explanation:
    """Return the ranks that waited, by the call that they waited in, and what to look at."""
    waited: dict[tuple[str, int], set[int]] = {}
    for each in _WAITED.finditer(text):
        number = f" (SeqNum={each['number']})" if each["number"] else ""
        call = each["operation"] + number, int(each["limit"])
        waited.setdefault(call, set()).add(int(each["rank"]))
    named = tuple(
        fix("collective-ranks", ranks=_listed(ranks), call=call, limit=limit / 1000)
        for (call, limit), ranks in list(waited.items())[-MOST_CALLS:]
    )
    says = Message.of("diagnose.oom.other-collective-timeout")
    return Explanation("other", says, account, (*named, fix("other-collective-timeout")))


MOST_RANKS = 16
"""Ranks that are named; assumed."""


def _listed(ranks: set[int]) -> str:
    first = ", ".join(str(each) for each in sorted(ranks)[:MOST_RANKS])
    return first if len(ranks) <= MOST_RANKS else f"{first}, ... ({len(ranks)})"
