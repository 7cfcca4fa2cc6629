"""A step looked at closely: which operators it has, and what they take.

torch's own profiler watches the last steps before timing begins, so that it costs no timed one.
Counts and arithmetic of one step are those of all; its times are shares only. As one step may be
disturbed (one operator that another program interrupts looks like the heaviest), the middle one of
a few is told.
"""

import bisect
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

LOOKS = 3
"""Steps that are watched: the least with a middle one."""
LOOK = "trainwright.look"
"""Name of the span of a watched step among the profiler's events."""
MOST_EVENTS = 200_000
"""Events above which a step is not taken apart: a second of Python at most; assumed."""
TOP = 12
"""Operators that are named."""
SIDE = 512
"""Of the matrices that are multiplied to see what the processor gives: 0.27 GFLOP; assumed."""
REPEATS = 5
CALLS = 500
"""Of a small operator in a row: a millisecond; assumed."""
MOST, MUCH = 0.5, 0.2
CALLING_SECONDS = 100e-6
"""Of an operator's own time, where it is much of its whole: more than calling others takes, so that
it computes besides, as a sum of truth values does after it has made numbers of them; assumed."""
LEAST_POSITIONS = 64
"""Positions from which a softmax over them is one of attention's scores; assumed."""
LEAST_GROUPS = 8
"""Groups of channels from which a convolution reads more than it multiplies; assumed."""
LEAST_ROWS = 8
"""Concatenations in a row from which a tensor is one that grows in a loop; assumed."""
_COLLECTIVES = ("gloo:", "nccl:", "mpi:", "c10d::")
_FUSED_ATTENTION = "_attention"


class Sample:
    """Steps in the profiler, each from ``start`` to ``stop``; the middle one is told.

    One profiler watches all of them: where gloo's threads end their work while one profiler
    follows another, torch reads what is gone, and the run dies.
    """

    def __init__(self) -> None:
        self._profiler: Any = None
        self._mark: Any = None
        self._started = 0.0
        self._walls: list[float] = []

    @property
    def on(self) -> bool:
        """Whether a step is being watched."""
        return self._mark is not None

    def start(self) -> None:
        """Watch from now on; nothing where a profiler of the script does."""
        profiler = sys.modules["torch.autograd.profiler"]
        if self._profiler is None:
            if sys.modules["torch"].autograd._profiler_enabled():
                return
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would write onto standard error
            watching = profiler.profile(use_device=None, record_shapes=True)
            watching.__enter__()  # as the script's own would, it has whoever watches make way
            self._profiler = watching
        self._mark = profiler.record_function(f"{LOOK}{len(self._walls)}")
        self._mark.__enter__()
        self._started = time.perf_counter()

    def stop(self) -> None:
        """End the look at a step, and keep it."""
        if self.on:
            self._walls.append(time.perf_counter() - self._started)
            self._unmark()

    def drop(self) -> None:
        """End all looks without keeping them."""
        self._unmark()
        self._ended()

    def told(self) -> dict[str, Any]:
        """Return the middle step, by its time, as a ``profile`` with facts of its ``_setup``."""
        walls, events = self._walls, self._ended()
        if not walls:
            return {}
        middle = sorted(range(len(walls)), key=lambda step: walls[step])[len(walls) // 2]
        own = _within(f"{LOOK}{middle}", events)
        return described(own, walls[middle]) if 0 < len(own) <= MOST_EVENTS else {}

    def _unmark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _ended(self) -> list[Any]:
        """End the profiler, and return what it saw."""
        profiler, self._profiler, self._walls = self._profiler, None, []
        if profiler is None:
            return []
        profiler.__exit__(None, None, None)
        found: list[Any] = profiler.kineto_results.events()
        return found


def _within(name: str, events: Sequence[Any]) -> list[Any]:
    """Return the events that begin within the one of a name, whatever thread they are of."""
    spans = [_span(each) for each in events if each.name() == name]
    begin, end = spans[0] if spans else (0, 0)
    return [each for each in events if begin <= each.start_ns() < end and each.name() != name]


def described(events: Iterable[Any], wall: float) -> dict[str, Any]:
    """Return what the events of one step of ``wall`` seconds say."""
    ranked = sorted(events, key=lambda each: (each.start_ns(), -each.end_ns()))
    loading = [_span(each) for each in ranked if each.name().startswith("enumerate(DataLoader)")]
    operators = [each for each in ranked if each.name().startswith("aten::")]
    operators = [each for each in operators if not _inside(_span(each), loading)]
    working = [(each, own) for each, own in _own_seconds(operators) if _computes(each, own)]
    if not working:
        return {}
    by_name: dict[str, float] = {}
    for each, own in working:
        by_name[each.name()] = by_name.get(each.name(), 0.0) + own
    calls = Counter(each.name() for each, _ in working)
    top = sorted(by_name, key=lambda name: -by_name[name])[:TOP]
    found: dict[str, Any] = {
        "kernels_a_step": float(len(working)),
        "kernel_median_seconds": statistics.median(own for _, own in working),
        "flops_a_step": sum(map(arithmetic, operators)),
        "top": [
            {"name": name, "share": min(1.0, by_name[name] / wall), "calls": float(calls[name])}
            for name in top
        ],
        "attention_eager": min(1.0, _scores(working) / wall),
    }
    found |= _collectives(ranked, [each for each, _ in working], wall)
    if grouped := sum(own for each, own in working if _in_groups(each)):
        found["grouped_convolutions"] = min(1.0, grouped / wall)
    if grown := _grown(working):
        found["grown"] = min(1.0, grown / wall)
    return {**found, "_setup": _attention(operators) | _scored_targets(operators)}


def _own_seconds(operators: Sequence[Any]) -> list[tuple[Any, float]]:
    """Return each operator with its time less that of those it calls; ranked by their start."""
    children = [0] * len(operators)
    open_ones: dict[int, list[int]] = {}
    for at, each in enumerate(operators):
        callers = open_ones.setdefault(each.start_thread_id(), [])
        while callers and operators[callers[-1]].end_ns() <= each.start_ns():
            callers.pop()
        if callers:
            children[callers[-1]] += each.duration_ns()
        callers.append(at)
    return [
        (each, max(0, each.duration_ns() - inside) / 1e9)
        for each, inside in zip(operators, children, strict=True)
    ]


def _computes(event: Any, own: float) -> bool:
    """Whether an operator computes by itself: it makes no view, and does not merely call others."""
    if event.name().removeprefix("aten::") in VIEWS:
        return False
    share = 1e9 * own / max(1, event.duration_ns())
    return share >= MOST or (own >= CALLING_SECONDS and share >= MUCH)


VIEWS = frozenset({
    "view", "as_strided", "transpose", "t", "expand", "expand_as", "unsqueeze", "squeeze",
    "select", "slice", "reshape", "permute", "narrow", "detach", "alias", "unbind", "split",
    "chunk", "unflatten", "flatten", "_unsafe_view", "_reshape_alias", "resolve_conj",
    "resolve_neg", "empty", "empty_like", "empty_strided", "item", "_local_scalar_dense",
})  # fmt: skip
"""Operators that compute nothing: they look at a tensor in another way, or make room."""


def _span(event: Any) -> tuple[int, int]:
    return event.start_ns(), event.end_ns()


def _inside(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _shape(event: Any, at: int) -> list[int]:
    shapes = event.shapes()
    return list(shapes[at]) if len(shapes) > at else []


def arithmetic(event: Any) -> float:
    """Return the floating-point operations of a matrix product, convolution, cell or attention.

    Two for each product and sum; 0 for all others, so that a step's sum is a lower bound.
    """
    name, first, second = event.name(), _shape(event, 0), _shape(event, 1)
    if name in ("aten::addmm", "aten::baddbmm"):
        first, second = second, _shape(event, 2)
    if name in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"):
        return 2.0 * math.prod(first) * second[-1] if first and second else 0.0
    if name == "aten::convolution_backward":  # twice the forward's, which is counted here too
        weight = _shape(event, 2)
        if len(first) != len(weight) or len(weight) < 3:
            return 0.0
        return 6.0 * math.prod(first) * math.prod(weight[1:])
    if name in ("aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"):
        weights = math.prod(second) + math.prod(_shape(event, 2))
        passes = 6.0 if name.endswith("backward") else 2.0
        return passes * math.prod(first[:2]) * weights if len(first) == 3 and second else 0.0
    if _FUSED_ATTENTION in name and len(first) == len(second) == 4:
        backward = "backward" in name
        query = _shape(event, 1) if backward else first
        key = _shape(event, 2) if backward else second
        if len(query) != 4 or len(key) != 4 or not name.startswith("aten::_scaled"):
            return 0.0
        return (10.0 if backward else 4.0) * math.prod(query) * key[-2]
    return 0.0


def _scored(event: Any) -> list[int]:
    """Return the shape of attention's scores, where the operator is a softmax over them."""
    name = event.name()
    if name not in ("aten::_softmax", "aten::_safe_softmax", "aten::_softmax_backward_data"):
        return []
    shape = _shape(event, 0)
    large = len(shape) >= 3 and min(shape[-2:]) >= LEAST_POSITIONS
    return shape if large else []


def _scores(working: Sequence[tuple[Any, float]]) -> float:
    """Return the seconds in operators that take whole matrices of scores."""
    sizes = {math.prod(shape) for each, _ in working if (shape := _scored(each))}
    if not sizes:
        return 0.0
    return sum(own for each, own in working if any(_size(one) in sizes for one in each.shapes()))


def _size(shape: Any) -> int:
    """Return how many numbers a tensor has; lists of tensors have shapes within shapes."""
    return math.prod(shape) if shape and all(isinstance(one, int) for one in shape) else 0


def _attention(operators: Sequence[Any]) -> dict[str, Any]:
    """Return how attention is computed, where the step has some."""
    if any(each.name().startswith("aten::_scaled_dot_product") for each in operators):
        return {"attention": "sdpa"}
    return {"attention": "eager"} if any(_scored(each) for each in operators) else {}


def _in_groups(event: Any) -> bool:
    """Whether a convolution multiplies each channel with few of the others."""
    if "convolution" not in event.name():
        return False
    at = 1 if event.name().endswith("backward") else 0
    taken, weight = _shape(event, at), _shape(event, at + 1)
    return len(taken) == len(weight) > 2 and taken[1] >= LEAST_GROUPS * weight[1]


def _scored_targets(operators: Sequence[Any]) -> dict[str, int]:
    """Return for how many targets the loss of classes takes scores, where the step has one."""
    losses = [each for each in operators if each.name().startswith("aten::nll_loss")]
    losses = [each for each in losses if each.name().endswith("forward")]
    return {"_scored": sum(_size(_shape(each, 1)) for each in losses)} if losses else {}


def _grown(working: Sequence[tuple[Any, float]]) -> float:
    """Return the seconds in concatenations to what another has given, where many are in a row."""
    joined = [(_joined(each), own) for each, own in working if each.name() == "aten::cat"]
    longest: dict[int, tuple[int, float]] = {}
    """Of a size: how many were put together one after the other to get there, and for how long."""
    for sizes, own in joined:
        given = (longest.get(size, (0, 0.0)) for size in sizes if size < sum(sizes))
        before = max(given, default=(0, 0.0))
        longest[sum(sizes)] = before[0] + 1, before[1] + own
    rows, seconds = max(longest.values(), default=(0, 0.0))
    return seconds if rows >= LEAST_ROWS else 0.0


def _joined(event: Any) -> list[int]:
    """Return how many numbers each tensor has that a concatenation takes."""
    shapes = getattr(event, "structured_input_shapes", event.shapes)()
    lists = shapes[0] if shapes and shapes[0] and isinstance(shapes[0][0], (list, tuple)) else []
    return [math.prod(each) for each in lists]


def _collectives(ranked: Sequence[Any], working: Sequence[Any], wall: float) -> dict[str, Any]:
    """Return the share of the step in which collectives ran, and of that in which work did."""
    spans = _merged(_span(each) for each in ranked if each.name().startswith(_COLLECTIVES))
    total = sum(end - start for start, end in spans)
    if not total:
        return {}
    busy = _merged(_span(each) for each in working)
    starts = [start for start, _ in busy]
    hidden = 0
    for start, end in spans:
        for begun, ended in busy[max(0, bisect.bisect(starts, start) - 1) :]:
            if begun >= end:
                break
            hidden += max(0, min(end, ended) - max(start, begun))
    return {
        "communication": min(1.0, total / 1e9 / wall),
        "communication_hidden": min(1.0, hidden / total),
    }


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def empty_call_seconds() -> float:
    """Return what an operator takes here that has next to nothing to compute: the best of a few."""
    torch = sys.modules["torch"]
    few = torch.ones(16, dtype=torch.float32, device="cpu")

    def called() -> None:
        for _ in range(CALLS):
            torch.mul(few, few)

    return _quickest(called) / CALLS


def matrix_rate() -> float:
    """Return the FLOP/s of a matrix product in fp32 here and now: the best of a few.

    The matrices are of ones: drawing numbers would change those that the script draws.
    """
    torch = sys.modules["torch"]
    one = torch.ones(SIDE, SIDE, dtype=torch.float32, device="cpu")
    return 2 * SIDE**3 / _quickest(lambda: torch.mm(one, one))


def _quickest(work: Callable[[], Any]) -> float:
    """Return the seconds of the quickest of a few runs, without gradients or autocast."""
    torch = sys.modules["torch"]
    best = math.inf
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        for _ in range(REPEATS):
            started = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - started)
    return best
