"""Traces one training step, or one inference, of a model on the simulated accelerator.

Started by path. Reads a JSON document on standard input: ``TraceSpec.document()`` and
``result_file``, or several of them as ``questions``, for which libraries are then imported once.
Writes JSON lines on standard output: ``{"progress", "message_id"}``, at last ``{"result_file"}``
or ``{"error": {"id", "values"}}``. The result's format is stated in
``trainwright/profile/trace.py``.
"""

import gc
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, TextIO

FORMAT = 1

Say = Callable[[float, str], None]


def main() -> int:
    """Read the question, write the answer."""
    protocol = _claim_output()

    def say(progress: float, message_id: str) -> None:
        _write(protocol, {"progress": round(progress, 3), "message_id": message_id})

    try:
        document = json.load(sys.stdin)
        say(0.0, "worker.starting")
        gc.disable()  # libraries stay; the recorder turns it on again after its first segment
        from tracing import trace

        specs = document.get("questions", [document])
        for number, spec in enumerate(specs):

            def part(progress: float, message_id: str, before: int = number) -> None:
                say((before + progress) / len(specs), message_id)

            result = trace(spec, part)
            with gzip.open(spec["result_file"], "wt", encoding="utf-8", compresslevel=4) as file:
                json.dump(result, file, separators=(",", ":"))
            _write(protocol, {"result_file": spec["result_file"]})
    except MemoryError:
        _write(protocol, {"error": {"id": "worker.out-of-memory", "values": {}}})
        return 1
    except Exception as error:
        _write(protocol, {"error": _described(error)})
        return 1
    return 0


def _described(error: Exception) -> dict[str, Any]:
    if os.environ.get("TRAINWRIGHT_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if hasattr(error, "id") and hasattr(error, "values"):
        return {"id": error.id, "values": error.values}
    lines = str(error).strip().splitlines() or [""]
    reason = f"{type(error).__name__}: {lines[0]}"[:300]
    return {"id": "worker.trace-failed", "values": {"reason": reason}}


def _claim_output() -> TextIO:
    """Keep standard output for the protocol; what libraries print goes to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    warnings.simplefilter("ignore")
    return protocol


def _write(protocol: TextIO, message: dict[str, Any]) -> None:
    protocol.write(json.dumps(message) + "\n")
    protocol.flush()


if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    sys.stdout.flush()
    os._exit(status)  # the simulated device does not survive an orderly end of the interpreter
