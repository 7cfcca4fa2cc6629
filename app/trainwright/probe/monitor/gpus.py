"""NVIDIA GPUs read again and again over one open NVML session; runs in a child (``session``).

What a GPU cannot tell is asked once and remembered. A GPU that falls off the bus is lost alone;
a driver that goes away is asked for again every few seconds, and so is a lost GPU.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pynvml

from trainwright.messages import Message
from trainwright.probe.driver import SYSTEM
from trainwright.probe.monitor.activity import Counters
from trainwright.probe.monitor.processes import Names, gpu_processes
from trainwright.probe.monitor.refusals import LASTING, SESSION_OVER, missing
from trainwright.probe.reading import Missing
from trainwright.probe.sample import Activity, GpuSample, SliceSample, Throttle, unread

T = TypeVar("T")

RETRY_S = 5.0
"""Between attempts to reach a driver or a lost GPU. Assumed: opening a session takes up to
seconds on machines with many GPUs."""
SLICES_S = 10.0
"""Between looks for MIG slices that were made or destroyed; assumed."""
POWER_WINDOW_S = 0.95
"""Time over which the energy counter is differentiated: some GPUs count in steps of 100 ms, so
a shorter time would show the steps. Assumed; nvml.h gives its own power as a mean over 1 s."""

LOST = Missing(Message.of("probe.gpu-lost"))
FIRST = Missing(Message.of("probe.first-sample"))

_THROTTLE: dict[int, Throttle] = {
    0x1: "idle",
    0x2: "application-clocks",
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "thermal",
    0x40: "hardware-thermal",
    0x80: "power-brake",
    0x100: "display-clocks",
}
"""nvml.h, nvmlClocksEventReason*."""


class SessionOverError(Exception):
    """The driver no longer knows this session; carries why."""

    def __init__(self, why: Missing) -> None:
        super().__init__(why.reason.id)
        self.why = why


class Gpus:
    """The session with the driver, and what is known of each GPU.

    ``about_to_ask`` hears the number of each GPU before it is asked, and ``SYSTEM`` for the driver
    itself; GPUs in ``skipped`` are left out.
    """

    def __init__(
        self,
        about_to_ask: Callable[[int], None] = lambda gpu: None,
        skipped: Collection[int] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._about_to_ask = about_to_ask
        self._skipped = skipped
        self._clock = clock
        self._devices: list[Device] = []
        self._open = False
        self._why: Missing = FIRST
        self._retry_at = -float("inf")
        self._numbers: dict[str, int] = {}
        """Number of each GPU by its UUID: it keeps it when a lost one moves the driver's own."""
        self._names: dict[int, str | Missing] = {}
        self._process_names = Names()

    def read(self) -> tuple[GpuSample, ...] | Missing:
        """Return a reading of every GPU seen so far, or why there is no driver to ask."""
        now = self._clock()
        if now >= self._retry_at and (not self._open or self._some_lost()):
            self._reopen(now)
        if not self._open:
            return self._why
        try:
            samples = {device.index: self._sample(device, now) for device in self._devices}
        except SessionOverError as over:
            self.close()
            self._why = over.why
            self._retry_at = now + RETRY_S
            return self._why
        gone = {
            number: unread(number, name, LOST)
            for number, name in self._names.items()
            if number not in samples
        }
        self._process_names.keep_only(samples.values())
        return tuple(sample for _, sample in sorted((samples | gone).items()))

    def _sample(self, device: "Device", now: float) -> GpuSample:
        self._about_to_ask(device.index)
        return device.read(now)

    def close(self) -> None:
        """End the session; the next reading opens another."""
        if not self._open:
            return
        for device in self._devices:
            device.close()
        self._devices, self._open = [], False
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    def forget_rates(self) -> None:
        """Start counting again: what lies between is not an even stretch of time."""
        for device in self._devices:
            device.forget_rates()

    def _some_lost(self) -> bool:
        return any(device.lost for device in self._devices) or len(self._devices) < len(self._names)

    def _reopen(self, now: float) -> None:
        self.close()
        self._retry_at = now + RETRY_S
        self._about_to_ask(SYSTEM)
        try:
            pynvml.nvmlInit()
        except (pynvml.NVMLError, OSError, AttributeError) as error:
            self._why = missing(error)
            return
        self._open = True
        try:
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            self.close()
            self._why = missing(error)
            return
        found = {
            position: self._handle(position)
            for position in range(count)
            if position not in self._skipped
        }
        for number, handle in self._numbered(found):
            self._about_to_ask(number)
            device = Device(number, handle, self._process_names)
            self._devices.append(device)
            self._names[number] = device.name

    def _handle(self, position: int) -> tuple[Any, str]:
        """Return a GPU's handle and UUID; no handle where it is lost."""
        self._about_to_ask(position)
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(position)
        except pynvml.NVMLError:
            return None, ""
        try:
            return handle, str(pynvml.nvmlDeviceGetUUID(handle))
        except (pynvml.NVMLError, UnicodeDecodeError):
            return handle, f"position {position}"

    def _numbered(self, found: Mapping[int, tuple[Any, str]]) -> list[tuple[int, Any]]:
        """Return the reachable GPUs with their numbers: known ones keep theirs."""
        for position, (handle, uuid) in found.items():
            if handle is None:
                self._names.setdefault(position, LOST)
            elif uuid not in self._numbers:
                taken = set(self._numbers.values())
                free = (n for n in range(position, position + len(taken) + 1) if n not in taken)
                self._numbers[uuid] = next(free)
        reached = ((uuid, handle) for handle, uuid in found.values() if handle is not None)
        return [(self._numbers[uuid], handle) for uuid, handle in reached]


class Device:
    """One GPU, or one MIG slice, within an open session."""

    def __init__(self, index: int, handle: Any, names: Names) -> None:
        self.index = index
        self.lost = False
        self._handle = handle
        self._process_names = names
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._energies: deque[tuple[float, float]] = deque(maxlen=16)
        self._pcie: dict[int, tuple[float, int]] = {}
        self._slices: list[tuple[int, Device]] = []
        self._slices_at = -float("inf")
        self._counters = self._gpm()
        self.name = self.once("nvmlDeviceGetName", form=_text)

    def ask(self, call: str, *args: Any, form: Callable[[Any], T] = lambda value: value) -> Any:
        """Return a formed answer about this GPU, or why there is none.

        Raises:
            SessionOverError: the driver went away.
        """
        if self.lost:
            return LOST
        if (call, *args) in self._kept:
            return self._kept[call, *args]
        try:
            return form(getattr(pynvml, call)(self._handle, *args))
        except AttributeError:  # an older nvidia-ml-py
            answer = self._kept[call, *args] = Missing(Message.of("probe.old-driver"))
            return answer
        except (pynvml.NVMLError, UnicodeDecodeError) as error:
            return self._refused(error, (call, *args))

    def once(self, call: str, *args: Any, form: Callable[[Any], T] = lambda value: value) -> Any:
        """Return an answer that does not change while the session is open."""
        answer = self.ask(call, *args, form=form)
        if not self.lost:
            self._kept[call, *args] = answer
        return answer

    def _refused(self, error: Exception, key: tuple[Any, ...]) -> Missing:
        code = getattr(error, "value", None)
        if code in SESSION_OVER:
            raise SessionOverError(missing(error)) from None
        self.lost = self.lost or code == pynvml.NVML_ERROR_GPU_IS_LOST
        answer = missing(error)
        if code in LASTING:
            self._kept[key] = answer
        return answer

    def read(self, now: float) -> GpuSample:
        """Return this GPU's readings.

        Raises:
            SessionOverError: the driver went away.
        """
        used, total = self._memory()
        energy = self.ask("nvmlDeviceGetTotalEnergyConsumption", form=lambda milli: milli / 1000)
        activity, pcie = self._activity(now)
        sent, received = pcie or self._pcie_rates(now)
        mig = self.ask("nvmlDeviceGetMigMode", form=lambda mode: bool(mode[0]))
        mig = False if _is(mig, "probe.not-supported") else mig
        sample = GpuSample(
            self.index,
            self.name,
            utilisation=self.ask("nvmlDeviceGetUtilizationRates", form=lambda u: u.gpu / 100),
            memory_used=used,
            memory_total=total,
            temperature_c=self._temperature(),
            power_w=self._power(now, energy),
            power_limit_w=self.ask("nvmlDeviceGetEnforcedPowerLimit", form=lambda mw: mw / 1000),
            power_limit_default_w=self.once(
                "nvmlDeviceGetPowerManagementDefaultLimit", form=lambda mw: mw / 1000
            ),
            energy_j=energy,
            sm_clock_mhz=self.ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM, form=float),
            sm_clock_max_mhz=self.once(
                "nvmlDeviceGetMaxClockInfo", pynvml.NVML_CLOCK_SM, form=float
            ),
            memory_clock_mhz=self.ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_MEM, form=float),
            memory_clock_max_mhz=self.once(
                "nvmlDeviceGetMaxClockInfo", pynvml.NVML_CLOCK_MEM, form=float
            ),
            throttle=self._throttle(),
            pcie_sent=sent,
            pcie_received=received,
            pcie_generation=self.ask("nvmlDeviceGetCurrPcieLinkGeneration", form=int),
            pcie_generation_max=self.once("nvmlDeviceGetMaxPcieLinkGeneration", form=int),
            pcie_width=self.ask("nvmlDeviceGetCurrPcieLinkWidth", form=int),
            pcie_width_max=self.once("nvmlDeviceGetMaxPcieLinkWidth", form=int),
            processes=gpu_processes(self.ask, self._process_names),
            activity=activity,
            slices=self._read_slices(now) if mig is True else (),
            mig=mig,
        )
        return unread(self.index, self.name, LOST) if self.lost else sample

    def close(self) -> None:
        """Give back what the driver keeps for the counters."""
        for _, one in self._slices:
            one.close()
        if isinstance(self._counters, Counters):
            self._counters.close()

    def _memory(self) -> tuple[int | Missing, int | Missing]:
        read = self.ask("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2)
        if _is(read, "probe.old-driver"):  # drivers before 510
            read = self.ask("nvmlDeviceGetMemoryInfo")
        if isinstance(read, Missing):
            return read, read
        return int(read.used), int(read.total)

    def _temperature(self) -> float | Missing:
        read = self.ask("nvmlDeviceGetTemperatureV", pynvml.NVML_TEMPERATURE_GPU, form=float)
        if _is(read, "probe.old-driver"):
            read = self.ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU, form=float)
        answer: float | Missing = read
        return answer

    def _power(self, now: float, energy: float | Missing) -> float | Missing:
        """Return the mean power of the last second, by the energy counter where there is one."""
        if not isinstance(energy, Missing):
            counted = self._energies
            if counted and energy < counted[-1][1]:
                counted.clear()
            while len(counted) > 1 and now - counted[1][0] >= POWER_WINDOW_S:
                counted.popleft()
            counted.append((now, energy))
            seconds = now - counted[0][0]
            if seconds >= POWER_WINDOW_S:
                return (energy - counted[0][1]) / seconds
        answer: float | Missing = self.ask("nvmlDeviceGetPowerUsage", form=lambda mw: mw / 1000)
        return answer

    def _throttle(self) -> frozenset[Throttle] | Missing:
        bits = self.ask("nvmlDeviceGetCurrentClocksEventReasons", form=int)
        if _is(bits, "probe.old-driver"):  # drivers before 535 know it by its former name
            bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", form=int)
        if isinstance(bits, Missing):
            return bits
        return frozenset(name for bit, name in _THROTTLE.items() if bits & bit)

    def _activity(self, now: float) -> tuple[Activity, tuple[float, float] | None]:
        """Return the GPM shares, and the PCIe rates (sent, received) where GPM counts them."""
        if isinstance(self._counters, Missing):
            return Activity(*(4 * (self._counters,))), None
        return self._counters.read(now)

    def _gpm(self) -> Counters | Missing:
        """Return the GPM counters. The header says Hopper and newer; the driver is asked."""
        support = self.ask("nvmlGpmQueryDeviceSupport")
        if isinstance(support, Missing):
            return support
        if not support.isSupportedDevice:
            return Missing(Message.of("probe.not-supported"))
        return Counters(lambda into: pynvml.nvmlGpmSampleGet(self._handle, into))

    def _pcie_rates(self, now: float) -> tuple[float | Missing, float | Missing]:
        """Return bytes a second (sent, received).

        Byte counters come first: nvmlDeviceGetPcieThroughput stops the caller for 20 ms.
        """
        rates = []
        for field, counter in (
            (pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, pynvml.NVML_PCIE_UTIL_TX_BYTES),
            (pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES),
        ):
            counted = self.ask("nvmlDeviceGetFieldValues", (field,), form=_counter)
            if isinstance(counted, Missing):
                self._kept["nvmlDeviceGetFieldValues", (field,)] = counted
                rates.append(
                    self.ask("nvmlDeviceGetPcieThroughput", counter, form=lambda kb: kb * 1000.0)
                )
            else:
                rates.append(self._rate(field, now, counted))
        return rates[0], rates[1]

    def _rate(self, field: int, now: float, counted: int) -> float | Missing:
        before = self._pcie.get(field)
        self._pcie[field] = now, counted
        if before is None or counted < before[1] or now <= before[0]:
            return FIRST
        return (counted - before[1]) / (now - before[0])

    def forget_rates(self) -> None:
        """Start counting again: what lies between is not an even stretch of time."""
        self._energies.clear()
        self._pcie.clear()
        for _, one in self._slices:
            one.forget_rates()
        if isinstance(self._counters, Counters):
            self._counters.forget()

    # MIG

    def _read_slices(self, now: float) -> tuple[SliceSample, ...]:
        if now - self._slices_at >= SLICES_S:
            self._slices_at = now
            self._find_slices()
        return tuple(one.read_slice(number, now) for number, one in self._slices)

    def _find_slices(self) -> None:
        for _, one in self._slices:
            one.close()
        count = self.ask("nvmlDeviceGetMaxMigDeviceCount", form=int)
        self._slices = []
        for number in range(0 if isinstance(count, Missing) else count):
            try:  # an empty place is NOT_FOUND; the next may be taken
                handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(self._handle, number)
            except pynvml.NVMLError:
                continue
            self._slices.append((number, _Slice(self._handle, handle, self._process_names)))

    def read_slice(self, number: int, now: float) -> SliceSample:
        """Return the readings of this MIG slice."""
        used, total = self._memory()
        return SliceSample(
            number,
            self.name,
            memory_used=used,
            memory_total=total,
            activity=self._activity(now)[0],
            processes=gpu_processes(self.ask, self._process_names),
        )


class _Slice(Device):
    """A MIG slice: its counters are asked of the GPU, by the number of its GPU instance."""

    def __init__(self, parent: Any, handle: Any, names: Names) -> None:
        self._parent = parent
        super().__init__(0, handle, names)

    def _gpm(self) -> Counters | Missing:
        parent, instance = self._parent, self.ask("nvmlDeviceGetGpuInstanceId", form=int)
        if isinstance(instance, Missing):
            return instance
        try:
            if not pynvml.nvmlGpmQueryDeviceSupport(parent).isSupportedDevice:
                return Missing(Message.of("probe.not-supported"))
        except pynvml.NVMLError as error:
            return missing(error)
        return Counters(lambda into: pynvml.nvmlGpmMigSampleGet(parent, instance, into))


def _is(answer: object, id: str) -> bool:
    return isinstance(answer, Missing) and answer.reason.id == id


def _text(value: str | bytes) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _counter(values: Any) -> int:
    """Return the 64-bit count of a field; a 32-bit one wraps within a second and is not use."""
    value = values[0]
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    if value.valueType != pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return int(value.value.ullVal)
