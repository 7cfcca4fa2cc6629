"""Traces in forks of a process that has imported the model libraries once."""

import gzip
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trainwright.profile import store
from trainwright.profile.presets import presets

PROGRAMS = Path(store.__file__).parents[1] / "worker" / "programs"
REFUSED = 2
"""Exit status of a fork whose trace was refused, and not broken."""


class Refused(RuntimeError):  # noqa: N818
    """The tracer does not take this structure; it has said why."""


def prepare() -> None:
    """Import once what every fork needs."""
    sys.path.insert(0, str(PROGRAMS))
    import models  # noqa: F401
    import tracing  # noqa: F401
    import transformers.models.auto.modeling_auto  # noqa: F401

    if find_spec("diffusers") is None:  # only models for images and video need it
        return
    import diffusers

    for preset in presets().values():
        if preset.diffusers is not None:  # a class is imported when it is first asked for
            getattr(diffusers, json.loads(preset.definition())["_class_name"])


def in_fork(work: Callable[[], dict[str, Any]], result_file: str) -> None:
    """Do the work in a fork and write what it returns, as the tracer's program would.

    Raises:
        Refused: the tracer does not take the model; why stands on standard error.
        RuntimeError: it failed; likewise.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            from refusal import Refusal

            result = work()
            with gzip.open(result_file, "wt", encoding="utf-8") as file:
                json.dump(result, file)
            status = 0
        except Refusal as refusal:
            sys.stderr.write(f"{refusal.id} {refusal.values}\n")
            status = REFUSED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == REFUSED:
        raise Refused
    if ended:
        raise RuntimeError("the trace failed; see above")
