"""Signs of work that need not be done, in the operators and settings of runs on a processor."""

from trainwright.diagnose.causes.rules import above, any_of, rules_of
from trainwright.diagnose.causes.tuning import BACKWARD, LEFT
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import (
    AGAIN,
    LONG_BACKWARD,
    OWN,
    POOLED,
    SLOW_BACK,
    by_decomposition,
    computes_again,
    convolutions_back,
    decompositions,
    filled_for_nothing,
    filled_on_processor,
    ignored_scores,
    joined,
    longest_other,
    max_pooling,
    own_backward,
    passes_by_element,
    pools_planes,
    products_again,
    scattered,
    simulated,
    slow_way_back,
)
from trainwright.diagnose.measures.calls import WATCHED_S, operator_calls, watched_call
from trainwright.diagnose.measures.cost import written_a_step
from trainwright.diagnose.measures.figures import at_least, given, number, ratio, reading
from trainwright.diagnose.measures.kernels import (
    double_on_cpu,
    double_precision,
    planes_apart_on_cpu,
)
from trainwright.diagnose.measures.names import kernels_of
from trainwright.diagnose.measures.work import written
from trainwright.diagnose.verdict import Cause

AUTOGRAD = "autograd: one backward operator a convolution, and two products a linear layer"
OTHER = "assumed: one operator that multiplies nothing takes a quarter of healthy steps at most"
IGNORED = "assumed: scores of targets that the loss leaves out are computed for nothing"
GROWN = "assumed: a tensor that grows by a row at a time is copied as often as it has rows"
JOINED = "assumed: what is put together is copied into memory that is asked for anew"
POOLS = "measured: 1.2 to 1.4 times as fast in channels_last, whose pooling is vectorised"
SIMULATED = "PyTorch: fake quantisation rounds in fp32, and computes no faster for it"
UPDATE = "assumed: an update takes as long for any batch, and little beside a large one"
BY_ELEMENT = "assumed: layers of a library read a tensor once where operators read it in turn"
SCATTERED = "PyTorch: an indexed sum runs on one core; windows and strides need no indices"
FILLS = "assumed: healthy steps fill next to nothing"
TWO = "autograd: a convolution's way back is two convolutions of its arithmetic"
WATCHES = "assumed: the emptiest operator takes 1.5 to 3 µs where nothing watches each call"
DECOMPOSED = "Golub, Van Loan: a singular value decomposition takes 20 n³ and more, Cholesky's n³/3"
DOUBLE = "assumed: what computes in double precision is slow by that first"

_tuning, _memory = rules_of(Cause.TUNING), rules_of(Cause.MEMORY)
_parallelism, _none = rules_of(Cause.PARALLELISM), rules_of(Cause.NONE)
_monitoring = rules_of(Cause.MONITORING)


def _apart_and_fast_back(evidence: Evidence) -> bool:
    return planes_apart_on_cpu(evidence) and not slow_way_back(evidence)


TUNING = (
    _tuning("profile.decompositions",
          given(lambda evidence: by_decomposition(evidence) is not None, decompositions), "share",
          above(0.15, 2, DECOMPOSED), variant="kernels"),
    _tuning("profile.host_decompositions", by_decomposition, "share", above(0.15, 3, DECOMPOSED),
          variant="kernels"),
    _tuning("setup.ignored_targets", ignored_scores, "share", above(0.5, 2, IGNORED),
          above(0.75, 3, IGNORED), variant="padding"),
    _tuning("profile.longest_other", longest_other, "share", above(0.3, 2, OTHER),
          above(0.4, 3, OTHER), variant="kernels"),
    _tuning("profile.fills", filled_for_nothing, "share", above(0.15, 3, FILLS), variant="kernels"),
    _tuning("profile.passes_by_element", passes_by_element, "share", above(0.3, 3, BY_ELEMENT),
          variant="kernels"),
    _tuning("profile.max_pooling", given(pools_planes, max_pooling), "share",
          above(POOLED, 2, POOLS), variant="layout"),
    _tuning("profile.grouped_convolutions",
          given(_apart_and_fast_back, reading("profile.grouped_convolutions")), "share",
          above(0.1, -3, "measured: 0.75 times as fast in channels_last on two cores"),
          variant="layout"),
    _tuning("profile.convolutions_back", convolutions_back, "times", above(SLOW_BACK, 3, TWO),
          variant="layout"),
    _tuning("steps.backward", given(slow_way_back, ratio("steps.backward", "steps.forward")),
          "times", above(LONG_BACKWARD, 2, TWO), variant="layout"),
    _tuning("profile.simulated", simulated, "share", above(0.08, 2, SIMULATED),
          above(0.2, 3, SIMULATED), variant="precision"),
)  # fmt: skip

MEMORY = (
    _memory("profile.products_again", products_again, "times", above(AGAIN, 3, AUTOGRAD),
          above(2.5, 4, AUTOGRAD), variant="recomputation"),
    _memory("profile.host_recomputation", own_backward, "share", above(OWN, 3, BACKWARD),
          variant="recomputation"),
    _memory("steps.backward", given(computes_again, ratio("steps.backward", "steps.forward")),
          "times", above(LONG_BACKWARD, 2, BACKWARD), variant="recomputation"),
    _memory("profile.grown", reading("profile.grown"), "share", above(0.05, 2, GROWN),
          above(0.1, 3, GROWN), variant="heap"),
    _memory("profile.joined", joined, "share", above(0.2, 2, JOINED), above(0.35, 3, JOINED),
          variant="heap"),
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
)  # fmt: skip

PARALLELISM = (
    _parallelism("profile.passes_by_element",
          given(at_least(10, operator_calls), passes_by_element), "share",
          above(0.3, -2, BY_ELEMENT)),
    _parallelism("profile.scattered", scattered, "share", above(0.15, -2, SCATTERED)),
    _parallelism("profile.fallback", kernels_of("fallback"), "share", above(0.5, -3, LEFT)),
    _parallelism("setup.precision", given(double_on_cpu, double_precision), "word",
          any_of(-3, DOUBLE)),
)  # fmt: skip

MONITORING = (
    _monitoring("profile.simulated", simulated, "share",
          above(0.08, -3, "PyTorch: fake quantisation's observers read the ranges that they see"),
          variant="synchronisation"),
    _monitoring("profile.empty_call", watched_call, "seconds", above(WATCHED_S, 4, WATCHES),
          variant="profiler"),
    _monitoring("host.written_a_step",
          given(lambda evidence: watched_call(evidence) is not None, written_a_step), "times",
          above(0.3, 3, "assumed: what watches each call and writes much writes them down"),
          variant="profiler"),
)  # fmt: skip

NONE = (
    _none("setup.ignored_targets", ignored_scores, "share",
          above(0.5, -4, "assumed: scores of targets that the loss leaves out are for nothing")),
    _none("profile.passes_by_element", passes_by_element, "share", above(0.3, -4, BY_ELEMENT)),
    _none("profile.fills", filled_on_processor, "share", above(0.1, -4, FILLS)),
    _none("profile.convolutions_back", convolutions_back, "times", above(SLOW_BACK, -4, TWO)),
    _none("profile.simulated", simulated, "share", above(0.08, -4, SIMULATED)),
)  # fmt: skip
