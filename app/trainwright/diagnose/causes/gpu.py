"""Signs that hold beside a GPU which computes by itself while its host goes on."""

from trainwright.diagnose.causes.parallelism import only_launches
from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.measures.figures import given
from trainwright.diagnose.measures.gpu import (
    narrow_link_used,
    thread_is_the_limit,
)
from trainwright.diagnose.verdict import Cause

_parallelism = rules_of(Cause.PARALLELISM)
_scheduling = rules_of(Cause.SCHEDULING)
LANES = "PCI-SIG: transfer rates of a lane by generation, less encoding"

PARALLELISM = (
    _parallelism("host.main_process", given(only_launches, thread_is_the_limit), "number",
          above(0.9, 2, "assumed: the one thread that launches kernels is never idle"),
          variant="host-bound"),
)  # fmt: skip
SCHEDULING = (
    _scheduling("gpus.link_used", narrow_link_used, "share", above(0.2, 3, LANES),
          above(0.5, 4, LANES), below(0.1, -3, "assumed: a link that carries little slows nothing"),
          variant="link"),
)  # fmt: skip
