"""Where blocks without gradients begin and end, and where backward computes again."""

import functools
import importlib
import time
from typing import Any

from .notes import Notes
from .wrapping import put, put_before


def hook_passes(recorder: Notes, torch: Any) -> None:
    """Note blocks without gradients, and what torch's checkpoints compute again."""
    for holder in (torch.no_grad, torch.inference_mode):
        _note_block(recorder, torch, holder)
    module = importlib.import_module("torch.utils.checkpoint")
    again = getattr(module, "_recomputation_hook", None)  # of checkpoints without reentry
    if again is not None:
        put_before(recorder, again, "__enter__", recorder.recomputes)
        put_before(recorder, again, "__exit__", lambda block, *_: recorder.recomputed(block))
    reentrant = getattr(module, "CheckpointFunction", None)
    if reentrant is not None:  # it goes on with a backward of its own, where it is over
        put(recorder, reentrant, "backward", staticmethod(_during(reentrant.backward, recorder)))
    _note_backward(recorder, torch)


def _note_block(recorder: Notes, torch: Any, holder: Any) -> None:
    compiling, enter = torch.compiler.is_compiling, holder.__enter__

    @functools.wraps(enter)
    def begin(self: Any) -> Any:
        result = enter(self)
        if not compiling() and not torch.is_grad_enabled():
            recorder.ungraded(self)
        return result

    put(recorder, holder, "__enter__", begin)
    put_before(recorder, holder, "__exit__",
               lambda block, *_: None if compiling() else recorder.graded(block))  # fmt: skip


def _during(original: Any, recorder: Notes) -> Any:
    @functools.wraps(original)
    def call(context: Any, *arguments: Any) -> Any:
        recorder.recomputes(context)
        try:
            return original(context, *arguments)
        finally:
            recorder.recomputed(context)

    return call


def _note_backward(recorder: Notes, torch: Any) -> None:
    """Time backward as the script calls it; one within it belongs to it."""
    original = torch.autograd.backward
    depth = [0]

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        recorder.recomputed()
        if not recorder.mine():
            return original(*arguments, **named)
        depth[0] += 1
        started = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            depth[0] -= 1
            if not depth[0]:
                recorder.counted("backward", time.perf_counter() - started)

    put(recorder, torch.autograd, "backward", call)
