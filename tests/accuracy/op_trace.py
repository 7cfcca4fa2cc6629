"""Op tables of whole steps: what one micro-batch runs, with quantities linear in its size.

The product's tracer runs the micro-batch at three sizes; two give each quantity as a + c·B, the
third must agree. Imported only where tables are made: it needs torch.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import models
import simdevice
import step
import torch
import tracing
from recorder import BEGIN, END, PACK, Segment
from subject import Subject

from trainwright.profile.spec import TraceSpec

POINTS = (2, 3, 5)
DIMS = 7
COSTS = 3
"""FLOPs, bytes read, bytes written: they come before the dimensions."""

Linear = tuple[int, int]
"""(a, c) of a + c·B."""


@dataclass(frozen=True)
class Call:
    """One operator call at any batch size."""

    name: str
    phase: str
    """forward, loss, backward, and what runs twice where blocks are checkpointed: recompute, up
    to a block's last saved tensor, and recompute-rest, which torch leaves out from 2.1 on."""
    dtype: str
    flops: Linear
    bytes_read: Linear
    bytes_written: Linear
    dims: tuple[Linear, ...]


@dataclass(frozen=True)
class Table:
    """The calls of one micro-batch with how often each happens."""

    calls: Counter[Call]
    parameters: int
    tensors: int
    """Of the trained parameters: what an optimizer goes over."""
    buffers: int
    """Tensors that are not parameters."""


def traced(
    build: Callable[[], Subject], spec: TraceSpec, length: int, *, into_gradients: bool = False
) -> Table:
    """Return the table of a model that has no repeated part worth leaving out.

    With ``into_gradients`` gradients are there from before, and are added to. Only tables of
    whole training steps know what a second forward pass would run.
    """
    document = spec.document() | {"check_repeat": False}
    document["points"] = [(batch, length) for batch in POINTS]
    models.build = lambda _spec: build()
    simdevice.install()
    run = tracing.Run(document, lambda _share, _message: None)
    if into_gradients or not run.trains:
        _leave_storages_out(run.recorder)
    with simdevice.simulate(spec.kernel), run.recorder:
        run._set_up()
        logs = [_log(run, batch, length, into_gradients) for batch in POINTS]
    weights = [weight for weight in run.subject.model.parameters() if weight.requires_grad]
    buffers = len(list(run.subject.model.buffers()))
    return Table(Counter(_fitted(logs)), run.facts["parameters"], len(weights), buffers)


def deep(
    build: Callable[[int], Subject],
    spec: TraceSpec,
    length: int,
    layers: int,
    *,
    into_gradients: bool = False,
) -> Table:
    """Return the table of ``layers`` equal blocks, from those of two and of three."""
    two, three = (
        traced(partial(build, few), spec, length, into_gradients=into_gradients) for few in (2, 3)
    )
    times = layers - 2
    calls = Counter(two.calls)
    for call in {*two.calls, *three.calls}:
        calls[call] += times * (three.calls[call] - two.calls[call])
        if calls[call] < 0:
            raise ValueError(f"{call.name}: blocks are not alike")
    return Table(
        +calls,
        two.parameters + times * (three.parameters - two.parameters),
        two.tensors + times * (three.tensors - two.tensors),
        two.buffers + times * (three.buffers - two.buffers),
    )


def _leave_storages_out(recorder: Any) -> None:
    """Let the recorder keep operators alone, which is quicker."""
    recorder.log = lambda *unused: None


def _log(run: Any, batch: int, length: int, into_gradients: bool) -> list[tuple[str, Any]]:
    """Return (phase, row) of every call of a micro-batch."""
    recorder = run.recorder
    if run.trains:
        for _ in range(1 + into_gradients):
            segment = run._micro(batch, length, _scaler(run))
        with recorder.quiet():
            run.subject.model.zero_grad(set_to_none=True)
    else:
        segment = _answered(run, batch, length)
    rows = list(recorder.rows)
    calls = [(_phase(rows[number][1]), rows[number]) for number in segment.ops]
    if not segment.events:
        return calls
    return [*calls, *((phase, calls[op][1]) for phase, op in _again(segment, rows))]


def _scaler(run: Any) -> Any:
    scaler = step.make_scaler(run.settings, simdevice.DEVICE)
    if scaler is not None:
        with run.recorder.quiet():  # two numbers, made at the first use and kept
            scaler.scale(torch.ones((), device=simdevice.DEVICE))
    return scaler


def _answered(run: Any, batch: int, length: int) -> Segment:
    """Return the log of one forward pass without gradients and without a cache."""
    with run.recorder.quiet():
        host = run.subject.batch(batch, length)
    with run.recorder.record("data") as segment, torch.no_grad():
        run.subject.model(**run._on_device(host).inputs)
    return segment


def _phase(stage: str) -> str:
    return stage if stage in ("loss", "backward") else "forward"


def _again(segment: Segment, rows: list[Any]) -> Iterator[tuple[str, int]]:
    """Yield (phase, number of the call) of what a second forward pass of the blocks runs.

    A block's region tells its calls; the births between its begin and its last save tell how
    far a second pass goes.
    """
    last = _last_needed(segment)
    for op, number in enumerate(segment.ops):
        _, stage, region = rows[number][:3]
        if stage == "forward" and region >= 0:
            yield ("recompute" if op <= last.get(region, -1) else "recompute-rest"), op


def _last_needed(segment: Segment) -> dict[int, int]:
    """Return block -> number of the last call that ran before the block's last save."""
    found: dict[int, int] = {}
    block, op = -1, -1
    for code, a, _, c in segment.events:
        if code == BEGIN:
            block = a
        elif code == END:
            block = -1
        elif code == PACK and block >= 0:
            found[block] = op
        if code == 0 and c >= 0:
            op = c
    return found


def _fitted(logs: list[list[tuple[str, Any]]]) -> Iterator[Call]:
    first, second, third = POINTS
    if len({len(log) for log in logs}) > 1:
        raise ValueError("the batch size changes which calls are made")
    for (phase, one), (_, two), (_, check) in zip(*logs, strict=True):
        name, dtype = one[0], one[3]
        lines: list[Linear] = []
        for low, high, other in zip(_numbers(one), _numbers(two), _numbers(check), strict=True):
            slope = (high - low) // (second - first)
            start = low - slope * first
            # The one dimension of a call without arithmetic is its largest operand's size, which
            # at another batch may be another operand's.
            if start + slope * third != other and (len(lines) < COSTS or one[4]):
                raise ValueError(f"{name} in {phase}: not linear in the batch size")
            lines.append((start, slope))
        yield Call(name, phase, dtype, lines[0], lines[1], lines[2], tuple(lines[3:]))


def _numbers(row: Any) -> tuple[int, ...]:
    dims = tuple(row[7])[:DIMS]
    return (*row[4:7], *dims, *(0,) * (DIMS - len(dims)))
