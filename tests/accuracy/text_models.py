"""Which model a table's key names, for the tracer; imported only where tables are made."""

import mpt_stack
import numpy as np
import op_trace
from optables import OpRows

from trainwright.profile.spec import TraceSpec


def table(key: str) -> OpRows:
    """Return the op table of MODEL@LENGTH/TASK/PRECISION/ATTENTION."""
    name, _, rest = key.partition("@")
    length, task, precision, kernel = rest.split("/")
    spec = TraceSpec(
        model=(("stack", name),),
        digest="",
        task="infer" if task == "prefill" else "full",
        precision=precision,
        kernel=kernel,  # type: ignore[arg-type]
    )
    found = _traced(name, spec, int(length))
    return _as_rows(key, found)


def _traced(name: str, spec: TraceSpec, length: int) -> op_trace.Table:
    size = name.removeprefix("mpt-")
    layers = mpt_stack.SIZES[size].layers
    return op_trace.deep(lambda n: mpt_stack.build(size, length, n), spec, length, layers)


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
