"""What a host's times mean beside a GPU, which computes by itself while the host goes on.

A read waits until the device has made what is read: the wait is the device's time, and costs only
what the device idles meanwhile. A thread that waits for the device spins, and looks busy.
"""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.evidence_readings import GpuReadings
from trainwright.diagnose.measures.cost import kernel_spacing
from trainwright.diagnose.measures.figures import (
    host_thread_full,
    link_share,
    number,
    on_gpu,
    over_gpus,
    step_share,
    time_share,
)
from trainwright.diagnose.verdict import Cause
from trainwright.machine.wiring import gb_s

BUSY = 0.95
"""Utilisation from which a device hardly idles; assumed: NVML counts time in which a kernel ran."""
IDLES = 0.9
"""Utilisation below which a device waits now and then; assumed."""
CLOSE_S = 5e-5
"""From one kernel's begin to the next's, up to which launches may fill a step: 10 to 30 µs where
Python makes them, longer for large operators; assumed."""
NARROW = 0.6
"""Share of a link's best rate below which it is narrow: half of the lanes, or a generation less."""
PAYLOAD = 0.85
"""Share of what a link's lanes carry that copies reach beside headers; assumed."""
_OF_THE_HOST = ((Cause.MONITORING, "synchronisation"), (Cause.PARALLELISM, "host-bound"))
"""Kinds of causes by which a device idles: none takes more than it does."""


def busy_all_the_time(evidence: Evidence) -> bool:
    """Whether a GPU has a kernel to run nearly all the time."""
    return on_gpu(evidence) and (number("gpus.utilisation")(evidence) or 0) >= BUSY


def least_idle(cause: Cause, variant: str, evidence: Evidence) -> float | None:
    """Return the share that a GPU idles which is nearly always busy, for what makes it idle."""
    if (cause, variant) not in _OF_THE_HOST or not busy_all_the_time(evidence):
        return None
    return 1 - (number("gpus.utilisation")(evidence) or 0)


def beside_step(evidence: Evidence) -> float | None:
    """Return the share between an update and the next batch, less what reads wait for a GPU."""
    other = step_share("other")(evidence)
    if other is None or not on_gpu(evidence):
        return other
    return max(0.0, other - (time_share("synchronisation_seconds")(evidence) or 0))


def thread_is_the_limit(evidence: Evidence) -> float | None:
    """Return the training thread's cores where a GPU waits for it; a thread that waits spins.

    CUDA's runtime spins by default while it waits (``cudaDeviceScheduleAuto``), so that the
    thread tells nothing where the device is busy, or where its launches do not fill the step.
    """
    busy, spacing = number("gpus.utilisation")(evidence), kernel_spacing(evidence)
    idles = busy < IDLES if busy is not None else spacing is None or spacing < CLOSE_S
    return host_thread_full(evidence) if idles else None


def narrow_link_used(evidence: Evidence) -> float | None:
    """Return what crosses a GPU's link over what it carries, of links slower than they could be."""
    if (link_share(evidence) or 1) >= NARROW:
        return None

    def used(gpu: GpuReadings) -> float | None:
        known = [rate for rate in (gpu.received_bytes_s, gpu.sent_bytes_s) if rate is not None]
        if not known or not gpu.link_width or not gpu.link_generation:
            return None
        carries = gb_s(gpu.link_generation, gpu.link_width) * 1e9
        return min(1.0, max(known) / (PAYLOAD * carries))

    return over_gpus(evidence, used)
