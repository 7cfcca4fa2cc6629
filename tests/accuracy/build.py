"""Trace what the rows need into ``profiles.zip``: ``python tests/accuracy/build.py [PART]``.

Needs the ``hf`` and ``vision`` extras and litgpt (``pip install litgpt``). One child at a time.
Only missing profiles are traced; delete the archive to trace again.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import forking
import packed
from rows import Row, in_transformers, profile_name, rows, spec_of

from trainwright.profile import codec, store


def main() -> int:
    """Trace the rows whose id holds the word given, or all."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    prepare()
    failed = 0
    # What is quick comes first, and what only has to be too large comes last.
    for row in sorted(
        (*rows(), *in_transformers()), key=lambda row: (not row.measured, not row.infers)
    ):
        name = profile_name(row)
        if part not in row.id or packed.has(name):
            continue
        start = time.monotonic()
        try:
            size = build(row, name)
        except Exception as error:
            failed += 1
            print(f"{row.id}: {error}", flush=True)
            continue
        print(f"{row.id}  {size:,} bytes  {time.monotonic() - start:.1f} s", flush=True)
    return failed


def prepare() -> None:
    """Import once what every child needs."""
    forking.prepare()
    try:
        import litgpt.lora  # noqa: F401
    except ImportError as error:
        print(f"rows of litgpt cannot be traced here: {error}")


def build(row: Row, name: str) -> int:
    """Trace the row's structure at the row's point; return the bytes written."""

    def run(_program: str, document: dict[str, Any], **_options: Any) -> None:
        forked(row, document)

    # A cache that grows needs sizes at two lengths; everything else happens at one point.
    at = None if row.generates > 1 else (row.batch, row.length)
    profile = store.trace(spec_of(row), at=at, keep=False, run=run)
    # The app plans the fused AdamW; many of the measured runs had torch's default.
    segments = {
        name.removesuffix("-foreach"): segment for name, segment in profile.segments.items()
    }
    profile = replace(profile, segments=segments)
    return packed.add(name, codec.encode(profile))


def forked(row: Row, document: dict[str, Any]) -> None:
    """Trace in forks of this process."""
    for question in store.questions(document):
        spec = question | {"check_repeat": False}
        if spec["optimizers"]:  # a first answer has one; rows may be of several
            spec["optimizers"] = spec_of(row).optimizers
        forking.in_fork(partial(traced, row, spec), spec["result_file"])


def traced(row: Row, document: dict[str, Any]) -> dict[str, Any]:
    """Return the tracer's result; rows of litgpt bring their model, shape and optimizer."""
    import tracing

    if row.accumulation == 1 and not row.infers:
        _only_one_micro_batch(tracing)
    if "torch 1.10" in row.versions:
        import attention

        attention.keep_softmax_inputs()
    if row.stack == "litgpt":
        import litgpt_stack
        import models
        import step

        models.build = lambda spec: litgpt_stack.build(row.model.removeprefix("litgpt:"), spec)
        tracing.shape = litgpt_stack.shape
        step.make_optimizer = litgpt_stack.ForeachAdamW
    if row.stack in ("component", "diffusers", "torchvision"):
        _of_another_builder(row)
    result: dict[str, Any] = tracing.trace(document, lambda _progress, _message: None)
    return result


def _of_another_builder(row: Row) -> None:
    """Trace a model that the app has no name for, and torch's default optimizer."""
    import components
    import flux2_stack
    import models
    import rcnn_stack
    import step

    name = row.model.partition(":")[2]
    if row.stack == "component":
        models.build = lambda _spec: components.build(name)
        step.make_optimizer = components.still
        return
    stack = rcnn_stack.build if row.stack == "torchvision" else flux2_stack.build
    models.build = lambda _spec: stack(name, row.image_size)


def _only_one_micro_batch(tracing: Any) -> None:
    """Leave out the second micro-batch, which a run without accumulation does not have."""
    micro, known = tracing.Run._micro, []

    def once(self: Any, *point: Any) -> Any:
        if not known:
            known.append(micro(self, *point))
        return known[0]

    tracing.Run._micro = once


if __name__ == "__main__":
    raise SystemExit(main())
