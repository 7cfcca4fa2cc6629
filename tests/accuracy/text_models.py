"""Which model a table's key names, for the tracer; imported only where tables are made."""

from collections.abc import Callable
from functools import partial

import image_stack
import mpt_stack
import numpy as np
import op_trace
import transformer_stack
from optables import OpRows
from subject import Subject

from trainwright.profile.spec import TraceSpec

Build = Callable[[int], Subject]
"""Number of blocks -> model."""


def table(key: str) -> OpRows:
    """Return the op table of MODEL@LENGTH/TASK/PRECISION/ATTENTION."""
    name, _, rest = key.partition("@")
    length, task, precision, kernel = rest.split("/")
    spec = TraceSpec(
        model=(("stack", name),),
        digest="",
        task="infer" if task == "infer" else "full",
        precision=_handling(task, precision),
        kernel=kernel,  # type: ignore[arg-type]
    )
    layers, build = _builder(name, int(length), task, half=precision == "fp16")
    again = task == "gradient"
    if layers:
        found = op_trace.deep(build, spec, int(length), layers, into_gradients=again)
    else:
        found = op_trace.traced(partial(build, 0), spec, int(length), into_gradients=again)
    return _as_rows(key, found)


def _handling(task: str, precision: str) -> str:
    """Return the precision for which the tracer leaves a model as it was built.

    One that is half throughout has nothing cast within its step; the tracer gives weights that
    are served the type of a mixed precision, and casts nothing where no autocast runs.
    """
    if precision != "fp16":
        return precision
    return "fp16-mixed" if task == "infer" else "fp32"


def _builder(name: str, length: int, task: str, *, half: bool) -> tuple[int, Build]:
    """Return (blocks, what builds the model with any number of them); 0 where it has none."""
    if name.startswith("mpt-"):
        size = name.removeprefix("mpt-")
        return mpt_stack.SIZES[size].layers, partial(mpt_stack.build, size, length)
    if name in transformer_stack.CONFIGS:
        layers = transformer_stack.layers(name)
        return layers, partial(transformer_stack.build, name, task, half)
    return 0, lambda _layers: image_stack.build(name, task, half)


def _as_rows(key: str, found: op_trace.Table) -> OpRows:
    calls = sorted(found.calls, key=lambda call: (call.phase, call.name, call.dims, call.flops))
    return OpRows(
        key,
        name=tuple(call.name for call in calls),
        phase=tuple(call.phase for call in calls),
        dtype=tuple(call.dtype for call in calls),
        flops=np.array([call.flops for call in calls], dtype=np.int64),
        bytes_read=np.array([call.bytes_read for call in calls], dtype=np.int64),
        bytes_written=np.array([call.bytes_written for call in calls], dtype=np.int64),
        dims=np.array([call.dims for call in calls], dtype=np.int64),
        count=np.array([found.calls[call] for call in calls], dtype=np.int64),
        parameters=found.parameters,
        tensors=found.tensors,
        buffers=found.buffers,
    )
