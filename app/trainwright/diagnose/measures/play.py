"""What the play of reinforcement learning waits for: the world's rules, or the model that is asked.

A learner that waits for games waits for batches. Where most of that is the model, asked about one
position after the other, more of them at once fill the device.
"""

import re

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import data_wait, on_cpu

_MODEL = re.compile(
    r"predict|infer|polic|(?<![a-z])act(or|ion)?(?![a-z])|choose|\b\w*net\b|forward|evaluat"
)
_NO_MODEL = re.compile(
    r"train|learn|updat|loss|back|optim|log_?prob|\benv|world|wait|legal|(?<!a)gen"
)
_WORLD = re.compile(r"\benv|\bworld|simulat|rollout|self.?play|\bgame")
LEAST = 0.3
"""Share of a step that waits for play, from which it is asked for what; assumed."""


def model_in_play(evidence: Evidence) -> float | None:
    """Return the share of the wait for play in which the model is asked; None: nobody timed it."""
    wait = data_wait(evidence)
    rows = evidence.functions
    if wait is None or wait < LEAST or on_cpu(evidence):
        return None  # a processor launches nothing, and its loader may have a model of its own
    names = ((row.name.lower(), row.share) for row in rows)
    asked = [
        share
        for name, share in names
        if _MODEL.search(name) and not _NO_MODEL.search(name) and share <= wait
    ]
    return max(asked) / wait if asked else None


def in_one_world(evidence: Evidence) -> float | None:
    """Return the worlds that a learner waits for, where a row says that they are that."""
    rows = evidence.functions
    waits = (data_wait(evidence) or 0) >= LEAST
    plays = waits and any(_WORLD.search(row.name.lower()) for row in rows)
    return evidence.setup.batch if plays and evidence.setup is not None else None


def asks_the_model(evidence: Evidence) -> bool:
    """Whether most of the wait for play is the model's, which is asked too little at once."""
    return (model_in_play(evidence) or 0.0) >= MOST


MOST = 0.55
"""Share of the wait for play from which the model is most of it; assumed."""
