"""Signs of a run that waits for its own threads: cores that nobody else uses, and still too few."""

from trainwright.diagnose.causes.cores import THREADS, too_many_of_its_own
from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import (
    at_least,
    data_wait,
    foreign_share,
    given,
    number,
    on_cpu,
    ranks,
    threads_of_cores,
)
from trainwright.diagnose.measures.sharing import stopped
from trainwright.diagnose.verdict import Cause

ITSELF = "assumed: a run waits for its own threads on cores that no other program uses"

_rule = rules_of(Cause.SCHEDULING)


def _waits_for_itself(evidence: Evidence) -> bool:
    """Whether a run of one process wants cores that nobody else uses and nothing keeps from it."""
    host, setup, others = evidence.host, evidence.setup, foreign_share(evidence)
    if host is None or setup is None or not on_cpu(evidence) or ranks(evidence) > 1:
        return False
    free = others is not None and others < 0.15 and not stopped(evidence)
    late = (data_wait(evidence) or 0) > 0.15
    starved_itself = at_least(0.25, number("host.starved_share"))(evidence)
    told = too_many_of_its_own(evidence)
    return free and starved_itself and not late and not setup.num_workers and not told


RULES = (
    _rule("host.starved_threads", given(_waits_for_itself, number("host.starved_share")), "share",
          above(0.25, 3, ITSELF), variant="threads"),
    _rule("host.foreign_cores", given(_waits_for_itself, foreign_share), "share",
          below(0.15, 1, ITSELF), variant="threads"),
    _rule("setup.torch_threads", given(_waits_for_itself, threads_of_cores), "share",
          above(1.1, 1, THREADS), variant="threads"),
)  # fmt: skip
