"""How a program talks to the one that started it: a question in, progress and an answer out."""

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

from refusal import Refusal

Say = Callable[[float, str], None]
"""Tells (share that is done, id of the message that says what is being done)."""


def answer(program: Callable[[dict[str, Any], Say], dict[str, Any]], failed: str) -> int:
    """Run the program on the question, write what it returns; return the exit status.

    ``failed`` is the id of the message for what nobody foresaw; it has a ``reason``.
    """
    protocol = _claimed_output()

    def say(progress: float, message_id: str) -> None:
        _write(protocol, {"progress": round(progress, 3), "message_id": message_id})

    try:
        _write(protocol, program(json.load(sys.stdin), say))
    except Refusal as refusal:
        _write(protocol, {"error": {"id": refusal.id, "values": refusal.values}})
        return 1
    except MemoryError:
        _write(protocol, {"error": {"id": "worker.out-of-memory", "values": {}}})
        return 1
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        reason = f"{type(error).__name__}: {lines[0]}"[:300]
        _write(protocol, {"error": {"id": failed, "values": {"reason": reason}}})
        return 1
    return 0


def _claimed_output() -> TextIO:
    """Keep standard output for the protocol; what libraries print goes to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    warnings.simplefilter("ignore")
    return protocol


def _write(protocol: TextIO, message: dict[str, Any]) -> None:
    protocol.write(json.dumps(message) + "\n")
    protocol.flush()
