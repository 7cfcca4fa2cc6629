"""Samples at an even pace, on one thread in the background.

A driver that does not return keeps a thread of its own waiting and nobody else: the samples go
on, and say that it does not answer.
"""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from trainwright.messages import Message
from trainwright.probe.monitor.gpus import Gpus
from trainwright.probe.monitor.host import HostReader
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, Sample

T = TypeVar("T")

SLOWEST_HZ, FASTEST_HZ = 1.0, 10.0
"""Below 10 a second the drivers' own windows are not outrun: utilisation is a mean over up to a
second (nvml.h), GPM samples must lie 0.1 s apart."""
PATIENCE_S = 2.0
"""Time within which the driver has to answer. Assumed: a walk over eight GPUs takes tens of
milliseconds, a blocking PCIe reading 40 ms for each."""
SLEPT_S = 2.0
"""More than this between the clock that counts sleep and the one that does not was sleep, and
not the two being read one after the other. Assumed."""

HANGS = Missing(Message.of("probe.driver-hangs"))


def awake_s() -> float:
    """Return seconds on a clock that stands still while the computer sleeps."""
    return time.monotonic()


def elapsed_s() -> float:
    """Return seconds on a clock that runs on while the computer sleeps.

    Only Linux has one that nobody sets; elsewhere it is the wall's.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time()


class Patient(Generic[T]):
    """Calls a function in a thread that may wait for ever; its callers do not."""

    def __init__(self, ask: Callable[[], T], patience_s: float = PATIENCE_S) -> None:
        self._ask = ask
        self._patience_s = patience_s
        self._wanted = threading.Semaphore(0)
        self._answered = threading.Event()
        self._answered.set()
        self._last: Callable[[], object] | None = None
        self._answer: T | Missing = HANGS
        self._thread: threading.Thread | None = None

    def __call__(self) -> T | Missing:
        """Return the answer, or that there is none within the time."""
        if not self._answered.is_set():
            return HANGS  # the question before still waits
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="driver", daemon=True)
            self._thread.start()
        self._answered.clear()
        self._wanted.release()
        return self._answer if self._answered.wait(self._patience_s) else HANGS

    def close(self, last: Callable[[], object]) -> None:
        """Call something for the last time and let the thread end, once it is free."""
        self._last = last
        self._wanted.release()

    def _run(self) -> None:
        while self._wanted.acquire() and self._last is None:
            self._answer = self._attempt()
            self._answered.set()
        if self._last is not None:
            self._last()

    def _attempt(self) -> T | Missing:
        try:
            return self._ask()
        except Exception as error:  # monitoring outlives any fault in a driver
            reason = f"{type(error).__name__}: {error}"
            return Missing(Message.of("probe.other", reason=reason))


class Reader:
    """Reads this computer, moment by moment."""

    def __init__(self) -> None:
        self._host = HostReader(awake_s)
        self._gpus = Gpus(awake_s)
        self._ask_gpus: Patient[tuple[GpuSample, ...] | Missing] = Patient(self._gpus.read)
        self._clocks = awake_s(), elapsed_s()

    def __call__(self) -> Sample:
        """Return this moment's sample."""
        slept = self._slept()
        if slept:
            self._host.forget_rates()
            self._gpus.forget_rates()
        at, wall = elapsed_s(), time.time()
        return Sample(at, wall, self._host.read(), self._ask_gpus(), slept)

    def close(self) -> None:
        """End the session with the driver, as soon as it answers."""
        self._ask_gpus.close(self._gpus.close)

    def _slept(self) -> float:
        awake, elapsed = awake_s(), elapsed_s()
        before, self._clocks = self._clocks, (awake, elapsed)
        slept = (elapsed - before[1]) - (awake - before[0])
        return slept if slept >= SLEPT_S else 0.0


class Sampler:
    """Reads at a pace and hands every sample on, from a thread of its own."""

    def __init__(
        self,
        make_reader: Callable[[], Callable[[], Sample]],
        heard: Callable[[Sample], None],
        hz: float = SLOWEST_HZ,
    ) -> None:
        self._make_reader = make_reader
        self._heard = heard
        self._hz = hz
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether samples are being taken."""
        return self._thread is not None and self._thread.is_alive() and not self._stop.is_set()

    @property
    def hz(self) -> float:
        """Samples a second; may be set while it runs."""
        return self._hz

    @hz.setter
    def hz(self, value: float) -> None:
        self._hz = min(max(value, SLOWEST_HZ), FASTEST_HZ)

    def start(self) -> None:
        """Take samples from now on."""
        if self.running:
            return
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._stop,), name="sampler", daemon=True
        )
        self._thread.start()

    def stop(self, wait_s: float = PATIENCE_S + 1) -> None:
        """Take no more samples; wait for the one under way."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait_s)

    def _run(self, stop: threading.Event) -> None:
        read = self._make_reader()
        due = awake_s()
        while not stop.is_set():
            sample = read()
            if stop.is_set():
                break
            self._heard(sample)
            now, period = awake_s(), 1 / self._hz
            due += period
            if due < now:  # those that were missed are not made up for
                due = now + period
            stop.wait(due - now)
        close = getattr(read, "close", None)
        if close is not None:
            close()
