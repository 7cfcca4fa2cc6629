"""Signs of work that need not be done, in the operators and settings of runs on a processor."""

from trainwright.diagnose.measures import given, number, reading, step_share
from trainwright.diagnose.measures_kernels import (
    double_on_cpu,
    double_precision,
    planes_apart_on_cpu,
)
from trainwright.diagnose.measures_needless import (
    POOLED,
    few_samples,
    ignored_scores,
    joined,
    long_calls,
    longest_other,
    max_pooling,
    pools_planes,
    simulated,
)
from trainwright.diagnose.measures_work import written
from trainwright.diagnose.rules import above, any_of, at_least, rules_of
from trainwright.diagnose.verdict import Cause

OTHER = "assumed: one operator that multiplies nothing takes a quarter of healthy steps at most"
IGNORED = "assumed: scores of targets that the loss leaves out are computed for nothing"
GROWN = "assumed: a tensor that grows by a row at a time is copied as often as it has rows"
JOINED = "assumed: what is put together is copied into memory that is asked for anew"
POOLS = "measured: 1.2 to 1.4 times as fast in channels_last, whose pooling is vectorised"
SIMULATED = "PyTorch: fake quantisation rounds in fp32, and computes no faster for it"
UPDATE = "assumed: an update takes as long for any batch, and little beside a large one"
DOUBLE = "assumed: what computes in double precision is slow by that first"

_tuning, _memory = rules_of(Cause.TUNING), rules_of(Cause.MEMORY)
_parallelism, _none = rules_of(Cause.PARALLELISM), rules_of(Cause.NONE)
_monitoring = rules_of(Cause.MONITORING)

TUNING = (
    _tuning(
        "setup.ignored_targets",
        ignored_scores,
        "share",
        above(0.5, 2, IGNORED),
        above(0.75, 3, IGNORED),
        variant="padding",
    ),
    _tuning(
        "profile.longest_other",
        longest_other,
        "share",
        above(0.3, 2, OTHER),
        above(0.4, 3, OTHER),
        variant="kernels",
    ),
    _tuning(
        "profile.max_pooling",
        given(pools_planes, max_pooling),
        "share",
        above(POOLED, 2, POOLS),
        variant="layout",
    ),
    _tuning(
        "profile.grouped_convolutions",
        given(planes_apart_on_cpu, reading("profile.grouped_convolutions")),
        "share",
        above(0.1, -3, "measured: 0.75 times as fast in channels_last on two cores"),
        variant="layout",
    ),
    _tuning(
        "profile.simulated",
        simulated,
        "share",
        above(0.08, 2, SIMULATED),
        above(0.2, 3, SIMULATED),
        variant="precision",
    ),
)

MEMORY = (
    _memory(
        "profile.grown",
        reading("profile.grown"),
        "share",
        above(0.05, 2, GROWN),
        above(0.1, 3, GROWN),
        variant="heap",
    ),
    _memory(
        "profile.joined",
        joined,
        "share",
        above(0.2, 2, JOINED),
        above(0.35, 3, JOINED),
        variant="heap",
    ),
    _memory(
        "profile.written",
        given(
            lambda evidence: (
                at_least(0.05, number("profile.grown"))(evidence) or at_least(0.2, joined)(evidence)
            ),
            written,
        ),
        "share",
        above(0.12, 1, "assumed: what grows by copies fills and copies its gradients too"),
        variant="heap",
    ),
)

PARALLELISM = (
    _parallelism(
        "profile.long_calls",
        given(lambda evidence: not few_samples(evidence), long_calls),
        "share",
        above(0.5, -3, "assumed: half of the step in long calls leaves little to short ones"),
    ),
    _parallelism(
        "steps.optimizer",
        given(few_samples, step_share("optimizer")),
        "share",
        above(0.3, 2, UPDATE),
        variant="small-batch",
    ),
    _parallelism(
        "setup.precision", given(double_on_cpu, double_precision), "word", any_of(-3, DOUBLE)
    ),
)

MONITORING = (
    _monitoring(
        "profile.simulated",
        simulated,
        "share",
        above(0.08, -3, "PyTorch: fake quantisation's observers read the ranges that they see"),
        variant="synchronisation",
    ),
)

NONE = (
    _none(
        "setup.ignored_targets",
        ignored_scores,
        "share",
        above(0.5, -4, "assumed: scores of targets that the loss leaves out are for nothing"),
    ),
    _none(
        "profile.longest_other",
        longest_other,
        "share",
        above(0.3, -4, "assumed: next to products an operator that multiplies nothing is little"),
    ),
    _none("profile.joined", joined, "share", above(0.2, -4, JOINED)),
    _none("profile.simulated", simulated, "share", above(0.08, -4, SIMULATED)),
)
