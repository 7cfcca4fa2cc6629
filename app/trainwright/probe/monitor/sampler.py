"""Samples at an even pace, on one thread in the background.

A driver that does not answer, or crashes, does so in a child (``session``): the samples go on, and
say why its readings are missing.
"""

import threading
import time
from collections.abc import Callable

from trainwright.probe.monitor.host import HostReader
from trainwright.probe.monitor.session import PATIENCE_S, GpuSession
from trainwright.probe.sample import Sample

SLOWEST_HZ, FASTEST_HZ = 1.0, 10.0
"""Below 10 a second the drivers' own windows are not outrun: utilisation is a mean over up to a
second (nvml.h), GPM samples must lie 0.1 s apart."""
SLEPT_S = 2.0
"""More than this between the clock that counts sleep and the one that does not was sleep, and
not the two being read one after the other. Assumed."""


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


class Reader:
    """Reads this computer, moment by moment."""

    def __init__(self) -> None:
        self._host = HostReader(awake_s)
        self._gpus = GpuSession(clock=awake_s)
        self._clocks = awake_s(), elapsed_s()

    def __call__(self) -> Sample:
        """Return this moment's sample."""
        slept = self._slept()
        if slept:
            self._host.forget_rates()
            self._gpus.forget_rates()
        at, wall = elapsed_s(), time.time()
        return Sample(at, wall, self._host.read(), self._gpus.read(), slept)

    def close(self) -> None:
        """End the child that reads the driver."""
        self._gpus.close()

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
