"""Work of a step on the processor that need not be done, as far as its operators show it."""

import re
from collections.abc import Sequence

from trainwright.diagnose.evidence import Evidence, Operator
from trainwright.diagnose.measures.calls import operator_calls, step_calls
from trainwright.diagnose.measures.cost import keeps_all_alone, mostly_takes_pages, takes_pages
from trainwright.diagnose.measures.figures import at_least, number, on_cpu, ranks, step_share
from trainwright.diagnose.measures.kernels import convolve_apart, planes_apart_on_cpu
from trainwright.diagnose.measures.work import (
    DRAWING,
    DRAWS,
    any_products_rate,
    has_its_cores,
    has_its_operators,
    heavy,
    heavy_operators,
    long_operators,
    products_of_matrix_rate,
    reads_more,
    slow_operators,
)

_APART = re.compile(
    rf"::(cat|{DRAWS})$"
    r"|linalg_|cholesky|triangular_solve|_fft|ctc_loss|_cdist"
    r"|_norm|_pool|upsample_|threshold_|elu|silu|mish|softplus|sigmoid|tanh"
)
"""What asks for memory, which counts there; what draws numbers, which models are made for; what
computes much that nobody counts; and the layers between products, which are the model itself."""
AGAIN = 1.6
"""Times that products are computed from which many of them are computed again; assumed."""
OWN = 0.5
"""Of a step, in a way back that Python computes: forward again, and its gradient; assumed."""
LONG_BACKWARD = 2.5
"""Times of the forward pass from which a backward pass does more than gradients; assumed."""
SLOW_BACK = 10
"""Times of their forward pass from which convolutions have a slow way back, which is two of its
size; of 186 recorded runs that have their cores, one has more than 7.1, and one in that is slow."""
LARGE_BACK = 0.25
"""Share of a step from which such a way back is worth another layout; assumed."""
FILLING_CALLS = 30
"""Times of an empty call from which a step's operators are no small ones that fill; assumed."""
LONG_CALL = 200e-6
"""Seconds of one call from which an operator is not a small one, whatever is beside it; assumed."""


def longest_other(evidence: Evidence) -> float | None:
    """Return the share of the one operator that takes most of a step and multiplies no matrices.

    Sorting, indexing, copying or a function of each number: next to products they are little.
    Of steps that only compute, and of long calls; where much of the time is the system's, giving
    pages, they are not what takes it.
    """
    shares = _long_others(evidence)
    return None if shares is None else max(shares, default=0.0)


def long_others(evidence: Evidence) -> float | None:
    """Return the share of all such operators together."""
    shares = _long_others(evidence)
    return None if shares is None else sum(shares)


def of_short_operators(evidence: Evidence) -> bool:
    """Whether calls, and no few long operators, may take a step on the processor."""
    long = at_least(0.4, longest_other)(evidence) or at_least(0.5, long_others)(evidence)
    return not long and (operator_calls(evidence) or 0) < 30 and (step_calls(evidence) or 0) < 5000


def _long_others(evidence: Evidence) -> list[float] | None:
    rows, steps = evidence.operators, evidence.steps
    if not rows or steps is None or not has_its_operators(evidence) or takes_pages(evidence):
        return None
    long = long_operators(evidence)
    apart = [row for row in rows if _APART.search(row.name) and not _draws_most(row)]
    other = [row for row in rows if not heavy(row.name) and row not in apart]
    return [row.share for row in other if long or _call_seconds(row, steps.seconds) >= LONG_CALL]


def products_again(evidence: Evidence) -> float | None:
    """Return how many times the forward pass's products and convolutions are computed a step.

    Autograd calls one backward operator for each convolution, and two products for each linear
    layer with a bias. Of steps whose backward pass takes longer than gradients alone do.
    """
    steps, rows = evidence.steps, evidence.operators
    if steps is None or not steps.forward or not on_cpu(evidence) or not keeps_all_alone(evidence):
        return None
    if (steps.backward or 0.0) < LONG_BACKWARD * steps.forward:
        return None
    convolved = _calls(rows, _CONVOLVED)
    found = [
        forward / backward
        for forward, backward in (
            (convolved, _calls(rows, _CONVOLVED_BACK)),
            (_calls(rows, _ADDMM) * 2, _calls(rows, _MM)),
        )
        if forward and backward
    ]
    return max(found, default=None)


def convolutions_back(evidence: Evidence) -> float | None:
    """Return the time of convolutions' gradients over that of the convolutions, on the processor.

    Gradients of inputs and weights are two convolutions of the same arithmetic. Of runs that have
    their cores: threads that wait for one take long in the way back first.
    """
    starved = number("host.starved_share")(evidence)
    if starved is None or starved >= 0.05 or not has_its_cores(evidence):
        return None
    back = _share(evidence.operators, "aten::convolution_backward")
    there = _share(evidence.operators, "aten::mkldnn_convolution")
    return back / there if there and back >= LARGE_BACK else None


def slow_way_back(evidence: Evidence) -> bool:
    """Whether gradients of convolutions take far longer than their arithmetic."""
    return (convolutions_back(evidence) or 0.0) >= SLOW_BACK


def computes_again(evidence: Evidence) -> bool:
    """Whether the backward pass computes much of the forward pass again."""
    return (products_again(evidence) or 1.0) >= AGAIN or (own_backward(evidence) or 0.0) >= OWN


def own_backward(evidence: Evidence) -> float | None:
    """Return the share of a way back that Python computes, where its pass is a long one.

    Of one process, whose way back is its own and waits for nobody else's.
    """
    steps, profile = evidence.steps, evidence.profile
    if steps is None or profile is None or not steps.forward or ranks(evidence) > 1:
        return None
    if (steps.backward or 0) < LONG_BACKWARD * steps.forward:
        return None
    named = (row.share for row in profile.host_top if row.name.endswith(".backward"))
    return max(named, default=None)


def _share(rows: Sequence[Operator], named: str) -> float:
    return sum(row.share for row in rows if row.name == named)


_CONVOLVED = re.compile(r"::(mkldnn|thnn|slow|_?conv_depthwise)\w*conv\w*$")
_CONVOLVED_BACK = re.compile(r"::convolution_backward$")
_ADDMM, _MM = re.compile(r"::addmm$"), re.compile(r"::mm$")


def _calls(rows: Sequence[Operator], named: re.Pattern[str]) -> float:
    return sum(row.calls or 0 for row in rows if named.search(row.name))


def _draws_most(row: Operator) -> bool:
    """Whether a step mostly draws numbers: dropout and noise are little beside their products."""
    return row.share >= 0.5 and DRAWING.search(row.name) is not None


def _call_seconds(row: Operator, step: float) -> float:
    return row.share * step / row.calls if row.calls else 0.0


_BY_ELEMENT = re.compile(
    r"::(mul|add|sub|rsub|div|pow|neg|exp|log|sqrt|rsqrt|square|abs|sign|round|floor|where|clamp"
    r"|max|min|amax|amin|sum|mean|maximum|minimum|erf|sin|cos|tanh|sigmoid|reciprocal)_?$"
)
"""One number at a time: each of them reads and writes a whole tensor for little arithmetic."""


def passes_by_element(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in operators of one number at a time.

    Where they take more than products do, which a model is made of. An update is made of them as
    well, and does not count.
    """
    rows = evidence.operators
    if not rows or not on_cpu(evidence):
        return None
    found = sum(row.share for row in rows if _BY_ELEMENT.search(row.name))
    found -= step_share("optimizer")(evidence) or 0
    return found if found > (heavy_operators(evidence) or 0) else None


def scattered(evidence: Evidence) -> float | None:
    """Return the share of operators that gather by indices and sum their gradients one by one.

    Of long calls: of many short ones it is the calls that take the time.
    """
    rows, steps = evidence.operators, evidence.steps
    sums = [row for row in rows if row.name.endswith("::_index_put_impl_")]
    if not sums or steps is None or not on_cpu(evidence):
        return None
    long = all(_call_seconds(row, steps.seconds) >= LONG_CALL for row in sums)
    gathered = sum(row.share for row in rows if row.name.endswith("::index"))
    return gathered + sum(row.share for row in sums) if long else None


def filled_on_processor(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in filling tensors with one number."""
    rows = evidence.operators
    found = (row.share for row in rows if row.name.endswith(("::fill_", "::zero_")))
    return sum(found) if rows and on_cpu(evidence) else None


def filled_for_nothing(evidence: Evidence) -> float | None:
    """Return the same share where long calls of one process fill, and memory is there for them.

    Tensors of zeros with a few ones, as ``one_hot`` makes them, are what a product then reads.
    """
    long = (operator_calls(evidence) or 0) >= FILLING_CALLS
    alone = keeps_all_alone(evidence) and has_its_cores(evidence)
    return filled_on_processor(evidence) if long and alone and not takes_pages(evidence) else None


def ignored_scores(evidence: Evidence) -> float | None:
    """Return the share of ignored targets, where the loss of classes is seen to take time."""
    rows = evidence.operators
    loss = sum(row.share for row in rows if "log_softmax" in row.name or "nll_loss" in row.name)
    known = number("setup.ignored_targets")(evidence)
    return known if loss >= 0.05 or not on_cpu(evidence) else None


def joined(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in which tensors are put together."""
    rows = evidence.operators
    if not rows or not on_cpu(evidence):
        return None
    return min(1.0, sum(row.share for row in rows if row.name.endswith(("::cat", "::stack"))))


def simulated(evidence: Evidence) -> float | None:
    """Return the share of the operators that only round numbers as fewer bits would."""
    rows = evidence.operators
    return min(1.0, sum(row.share for row in rows if "fake_quant" in row.name)) if rows else None


def max_pooling(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in which the largest of neighbours are taken."""
    rows = evidence.operators
    if not rows or not on_cpu(evidence):
        return None
    return min(1.0, sum(row.share for row in rows if "max_pool" in row.name))


POOLED = 0.1
"""Share from which it says more of a layout than convolutions' rate: with it at 0.12 to 0.25,
networks on a processor were 1.22 to 1.44 times as fast in channels_last, others 0.75 to 1.12."""


def pools_planes(evidence: Evidence) -> bool:
    """Whether a convolutional network on the processor pools planes that lie apart."""
    return convolve_apart(evidence) and (max_pooling(evidence) or 0) >= POOLED


CELLS = 0.1
"""Share of a step in recurrent layers from which its rate says little; assumed."""
CONVOLVED = 0.2
"""Of a plain product's rate, which convolutions of few channels reach at least; assumed."""
FAST_PRODUCTS = 0.3
"""Of a plain product's rate, from which a step's products are not slow; assumed."""


def products_with_cores(evidence: Evidence) -> float | None:
    """Return ``products_of_matrix_rate`` of a run that has the cores that it wants.

    Not of convolutions that are slow only as they have few channels, and of recurrent layers.
    """
    rate = products_of_matrix_rate(evidence)
    if rate is None or slow_by_nature(evidence) or not has_its_cores(evidence):
        return None
    convolved = sum(row.share for row in evidence.operators if "conv" in row.name)
    narrow = convolved >= 0.5 * (heavy_operators(evidence) or 0) and rate >= CONVOLVED
    return None if narrow else rate


def slow_by_nature(evidence: Evidence) -> bool:
    """Whether much of a step multiplies little at once: many groups, or one place of a sequence."""
    cells = sum(row.share for row in evidence.operators if "rnn_layer" in row.name)
    return reads_more(evidence) or cells >= CELLS


def slow_beside_products(evidence: Evidence) -> float | None:
    """Return ``slow_operators`` but where products are fast: the rest is not arithmetic."""
    fast = (any_products_rate(evidence) or 0) >= FAST_PRODUCTS
    apart = fast or slow_by_nature(evidence) or mostly_takes_pages(evidence)
    return None if apart else slow_operators(evidence)


def layout_shows(evidence: Evidence) -> bool:
    """Whether convolutions' rate tells what their layout costs: pooling takes little beside them.

    A low rate only of long operators, as short ones are slow in any; a high one of all.
    """
    return convolve_apart(evidence) and not pools_planes(evidence)


SLOW_CONVOLUTIONS = 0.15
"""Of a plain product's rate, below which convolutions are slow for their layout; assumed."""


def layout_may_cost(evidence: Evidence) -> bool:
    """Whether planes lie apart on a processor, and its operators show a cost, or are unknown."""
    rate = products_of_matrix_rate(evidence) if layout_shows(evidence) else None
    slow = rate is not None and rate < SLOW_CONVOLUTIONS
    shown = slow or pools_planes(evidence) or not evidence.operators
    return planes_apart_on_cpu(evidence) and shown


_DECOMPOSES = re.compile(r"linalg_(svd|eig)|geqrf|orgqr")
_BY_DECOMPOSITION = re.compile(r"\b(pinv|pinverse|lstsq|matrix_rank)\b")


def decompositions(evidence: Evidence) -> float | None:
    """Return the share of a step in decompositions of matrices, into singular values, say."""
    rows = evidence.operators
    return sum(row.share for row in rows if _DECOMPOSES.search(row.name)) if rows else None


def by_decomposition(evidence: Evidence) -> float | None:
    """Return the share of the host's time in functions that solve equations by one of them."""
    found = [row.share for row in evidence.functions if _BY_DECOMPOSITION.search(row.name)]
    return max(found, default=None)
