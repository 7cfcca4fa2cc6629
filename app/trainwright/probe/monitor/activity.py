"""Shares of a GPU's hardware in use, by NVML's GPM counters."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pynvml

from trainwright.messages import Message
from trainwright.messages.units import MIB
from trainwright.probe.monitor.refusals import missing
from trainwright.probe.reading import Missing
from trainwright.probe.sample import Activity

APART_S = 0.1
"""Least time between two samples that are compared; nvml.h, nvmlGpmMetricsGet."""

_SHARES = (
    pynvml.NVML_GPM_METRIC_SM_UTIL,
    pynvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
)
"""In the order of ``Activity``'s fields; percentages."""
_TRAFFIC = (pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC, pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC)
"""MiB a second from the GPU and to it."""


Answer = tuple[Activity, tuple[float, float] | None]
"""The shares, and bytes a second over PCIe (sent, received) where they are counted."""


class Counters:
    """Two samples of the counters in turn; what they differ by is the activity between them."""

    def __init__(self, take: Callable[[Any], object]) -> None:
        self._take = take
        self._older: Any = None
        self._newer: Any = None
        self._taken_at: float | None = None
        self._asked = pynvml.c_nvmlGpmMetricsGet_t()
        self._last: Answer = _none(Missing(Message.of("probe.first-sample")))
        self._refused: Missing | None = None

    def read(self, now: float) -> Answer:
        """Return the activity since the reading before, and PCIe bytes a second."""
        if self._refused is not None:
            return _none(self._refused)
        if self._taken_at is not None and now - self._taken_at < APART_S:
            return self._last
        try:
            self._last = self._next(now)
        except pynvml.NVMLError as error:
            self._last = _none(missing(error))
            if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION):
                self._refused = missing(error)
        return self._last

    def _next(self, now: float) -> Answer:
        if self._older is None:
            self._older, self._newer = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        self._older, self._newer = self._newer, self._older
        first, self._taken_at = self._taken_at is None, None
        self._take(self._newer)
        self._taken_at = now
        return _none(Missing(Message.of("probe.first-sample"))) if first else self._between()

    def _between(self) -> Answer:
        asked = self._asked
        asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(_SHARES) + len(_TRAFFIC)
        asked.sample1, asked.sample2 = self._older, self._newer
        for place, metric in enumerate((*_SHARES, *_TRAFFIC)):
            asked.metrics[place].metricId = metric
        pynvml.nvmlGpmMetricsGet(asked)
        found = [_value(asked.metrics[place]) for place in range(asked.numMetrics)]
        shares = [share if isinstance(share, Missing) else share / 100 for share in found[:4]]
        sent, received = found[4:]
        if isinstance(sent, Missing) or isinstance(received, Missing):
            return Activity(*shares), None
        return Activity(*shares), (sent * MIB, received * MIB)

    def forget(self) -> None:
        """Compare the next sample with none."""
        self._taken_at = None

    def close(self) -> None:
        """Free the samples."""
        for sample in (self._older, self._newer):
            if sample is not None:
                with suppress(pynvml.NVMLError):
                    pynvml.nvmlGpmSampleFree(sample)
        self._older = self._newer = self._taken_at = None


def _value(metric: Any) -> float | Missing:
    """Return a metric; NaN stands for what the driver could not work out."""
    if metric.nvmlReturn != pynvml.NVML_SUCCESS or metric.value != metric.value:
        return Missing(Message.of("probe.not-supported"))
    return float(metric.value)


def _none(why: Missing) -> tuple[Activity, None]:
    return Activity(why, why, why, why), None
