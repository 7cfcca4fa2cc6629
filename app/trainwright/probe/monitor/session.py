"""The GPUs' readings, from a child: a driver that hangs, crashes or prints does so there.

A call that hangs or ends the child costs the readings of its GPU: another child reads the others.
A crash is tried once more, a hanging GPU after minutes.
"""

import queue
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trainwright
from trainwright.messages import Message
from trainwright.probe.conversation import Conversation
from trainwright.probe.driver import PATIENCE_S as STUCK_S
from trainwright.probe.driver import STARTING_S, SYSTEM
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, unread
from trainwright.probe.samplejson import gpus_of

PATIENCE_S = 2.0
"""Time that a sample waits for the driver. Assumed: a walk over eight GPUs takes tens of
milliseconds, a blocking PCIe reading 40 ms for each."""
AGAIN_S = 600.0
"""Until a GPU that hung is asked again; assumed: each attempt costs the others ``STUCK_S``."""
CRASHES = 2
"""Of one GPU or the driver, after which it is not asked again: a crash may write a core file."""
FORGET = "forget"
"""Has the child count rates again; any other line asks for a reading."""

HANGS = Missing(Message.of("probe.driver-hangs"))
CRASHED = Missing(Message.of("probe.driver-crashed"))
STARTING = Missing(Message.of("probe.starting"))

_ROOT = str(Path(trainwright.__file__).parents[1])
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from trainwright.probe.monitor.gpus_program import main; main(sys.argv[1:])"
)
"""Not ``-m``, which would look for modules in the folder that the person is in."""

Gpus = tuple[GpuSample, ...] | Missing


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a GPU is left out, and until when."""

    why: Missing
    until: float


class GpuSession:
    """Asks one child at a time, and remembers what made earlier ones fail."""

    def __init__(
        self, patience_s: float = PATIENCE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._child: Conversation | None = None
        self._ready = False
        self._asked_at: float | None = None
        self._asking = SYSTEM
        self._crashes: Counter[int] = Counter()
        self._faults: dict[int, _Fault] = {}
        self._names: dict[int, str | Missing] = {}

    def read(self) -> Gpus:
        """Return a reading of every GPU, or why there is none; waits no longer than its time."""
        now = self._clock()
        if over := [gpu for gpu, fault in self._faults.items() if now >= fault.until]:
            self.close()
            for gpu in over:
                del self._faults[gpu]
        if SYSTEM in self._faults:
            return self._faults[SYSTEM].why
        return self._with_faults(self._answer(now))

    def forget_rates(self) -> None:
        """Start counting again: what lies between is not an even stretch of time."""
        if self._child is not None:
            self._child.say(FORGET)

    def close(self) -> None:
        """End the child; the next reading starts another."""
        if self._child is not None:
            self._child.close()
        self._child, self._ready, self._asked_at, self._asking = None, False, None, SYSTEM

    def _answer(self, now: float) -> Gpus:
        if self._child is None:
            self._child = Conversation(["-P", "-c", _START, _ROOT, *map(str, self._faults)])
        patience = 0.0  # a question that is still open has had its time
        if self._asked_at is None:
            self._child.say("read")
            self._asked_at, patience = now, self._patience_s
        try:
            return self._heard(self._child, now + patience)
        except queue.Empty:
            return self._unanswered(self._clock() - self._asked_at)

    def _heard(self, child: Conversation, due: float) -> Gpus:
        """Return the answer of the child.

        Raises:
            queue.Empty: there is none until the time is due.
        """
        while (line := child.line(due - self._clock())) is not None:
            match line:
                case {"ready": True}:
                    self._ready = True
                case {"asking": int(gpu)}:
                    self._asking = gpu
                case {"gpus": document}:
                    self._asked_at, self._asking = None, SYSTEM
                    return gpus_of(document)
        self._crashes[self._asking] += 1
        if self._crashes[self._asking] >= CRASHES:
            self._faults[self._asking] = _Fault(CRASHED, float("inf"))
        self.close()
        return CRASHED

    def _unanswered(self, seconds: float) -> Missing:
        if seconds >= (STUCK_S if self._ready else STARTING_S):
            stuck = Missing(Message.of("probe.no-answer", seconds=STUCK_S))
            self._faults[self._asking] = _Fault(stuck, self._clock() + AGAIN_S)
            self.close()
        return HANGS if self._ready else STARTING

    def _with_faults(self, gpus: Gpus) -> Gpus:
        """Return the reading with the GPUs that are left out, each with its reason."""
        if isinstance(gpus, Missing):
            return gpus
        self._names.update((gpu.index, gpu.name) for gpu in gpus)
        left_out = (
            unread(gpu, self._names.get(gpu, fault.why), fault.why)
            for gpu, fault in self._faults.items()
        )
        return tuple(sorted((*gpus, *left_out), key=lambda gpu: gpu.index))
