"""Trace the models of published ladders that do not ship into ``tests/accuracy/profiles.zip``.

Run by hand when ladders are added; needs torch and timm. Only missing profiles are traced.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / "app/trainwright/worker/programs"),  # first: tests have modules of like names
    str(ROOT / "app"),
    str(ROOT / "tests/accuracy"),
    str(ROOT / "scripts"),
]

import forking  # noqa: E402
import packed  # noqa: E402
from ladders import ladders, packed_name  # noqa: E402

from trainwright.profile import codec, trace  # noqa: E402
from trainwright.profile.fit import fit  # noqa: E402
from trainwright.profile.profile import Profile  # noqa: E402
from trainwright.profile.spec import TraceSpec  # noqa: E402

BATCHES = (3, 2, 5)
"""Two to fit, one to check."""


def main() -> None:
    """Trace each model of the file that no preset has."""
    forking.prepare()
    wanted = {
        rung.model: (rung.precision, rung.sequence)
        for rungs in ladders().values()
        for rung in rungs
        if not rung.model.startswith("preset:")
    }
    for model, (precision, length) in wanted.items():
        name = packed_name(model)
        if not packed.has(name):
            print(model, packed.add(name, codec.encode(traced(model, precision, length))))


def traced(model: str, precision: str, length: int) -> Profile:
    """Return the profile of a model at one length and any batch size."""
    source, _, name = model.rpartition(":")
    spec = TraceSpec(
        model=((source or "stack", name),),
        digest="",
        task="full",
        precision=precision,
        kernel="flash",
        sequence=bool(length),
        points=tuple((batch, length) for batch in BATCHES),
        optimizers=("adamw", "sgd"),
    )
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json.gz"
        forking.in_fork(partial(run, spec.document(), name, length), str(result))
        return fit(read(result))


def run(document: dict[str, Any], name: str, length: int) -> dict[str, Any]:
    """Return the tracer's result; MPT's models are none that the product builds."""
    import models
    import mpt_stack
    import tracing

    if name.startswith("mpt-"):
        models.build = lambda _spec: mpt_stack.build(name.removeprefix("mpt-"), length)
    result: dict[str, Any] = tracing.trace(document, lambda _progress, _message: None)
    return result


def read(path: Path) -> trace.TraceResult:
    """Return the result that a fork wrote."""
    import gzip
    import json

    with gzip.open(path, "rt", encoding="utf-8") as file:
        return trace.parse(json.load(file))


if __name__ == "__main__":
    main()
