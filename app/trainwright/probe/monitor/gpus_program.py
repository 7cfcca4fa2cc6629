"""The child that holds the session with the driver, and reads all GPUs at each line it is sent.

Before it asks a GPU it says ``{"asking": number}``, so that its parent knows which one hung or
ended it; the answer is ``{"gpus": ...}`` as ``samplejson`` writes it. It ends with its parent.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Sequence
from typing import Any

from trainwright.messages import Message
from trainwright.probe.monitor.gpus import Gpus
from trainwright.probe.monitor.session import FORGET
from trainwright.probe.reading import Missing
from trainwright.probe.samplejson import gpus_as_document


def main(arguments: Sequence[str]) -> None:
    """Answer until the parent is gone; GPUs whose numbers are among the arguments are left out."""
    channel = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what a library prints is not an answer

    def say(**line: Any) -> None:
        channel.write(json.dumps(line) + "\n")
        channel.flush()

    gpus = Gpus(lambda gpu: say(asking=gpu), frozenset(map(int, arguments)))
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(words,), daemon=True).start()
    say(ready=True)
    while True:
        if words.get() == FORGET:
            gpus.forget_rates()
        else:
            say(gpus=_reading(gpus))


def _listen(words: "queue.SimpleQueue[str]") -> None:
    """Pass on what the parent says; end with it, even while a call of the driver hangs."""
    for line in iter(sys.stdin.readline, ""):
        words.put(line.strip())
    os._exit(0)


def _reading(gpus: Gpus) -> Any:
    try:
        return gpus_as_document(gpus.read())
    except Exception as error:  # monitoring outlives any fault in a driver
        reason = f"{type(error).__name__}: {error}"
        return gpus_as_document(Missing(Message.of("probe.other", reason=reason)))
