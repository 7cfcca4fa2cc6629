"""Runs the plan's own training step on this computer, and measures what it takes.

Started by path. Reads a JSON document on standard input: ``{"look": true}`` asks only what there
is to run on; else ``TraceSpec.document()`` with the step's settings and limits beside it
(``trainwright/plan/verifying.py``). The answer is what was measured, or where memory ran out.
"""

import os
import sys
from typing import Any

from saying import Say, answer


def main() -> int:
    """Read the question, write the answer."""
    return answer(run, "worker.verify-failed")


def run(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return what was measured."""
    if question.get("allocator") == "expandable":  # read when torch is loaded; renamed in 2.10
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            os.environ[name] = "expandable_segments:True"
    # Threads that wait would spin, and two of them take five times as long beside other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    say(0.0, "worker.starting")
    import realrun

    return realrun.look() if question.get("look") else realrun.measured(question, say)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # what a profiler or a loader leaves behind does not hold the answer up
