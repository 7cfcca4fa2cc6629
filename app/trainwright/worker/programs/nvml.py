"""Reads what NVML tells of NVIDIA GPUs, a line a reading, so that a call that hangs costs one GPU.

    python nvml.py [--identifiers] [--skip INDEX]...

Before each call a line ``{"asking": name, "gpu": index}``, after it ``{"gpu": index, "reading":
name, "value": ...}`` or ``... "error": code``; ``{"done": true}`` at the end. A GPU of -1 is the
driver itself. The reader ends this process where a call does not return, and starts another
that skips the GPU. Nothing is written to a GPU or its driver.
"""

import json
import os
import sys
from collections.abc import Callable
from ctypes import byref, c_uint
from functools import cache, partial
from typing import Any, TextIO

import pynvml

SYSTEM = -1
GARBLED = "garbled"
"""Error of a text that is not UTF-8."""
IMPLAUSIBLE = "implausible"
"""Error of a number that no GPU can have."""
MOST_COUNTED = 64
"""Profiles of a GPU, or places of a profile; assumed: nvml.h has 18, and 7."""
EMPTY_SLOT = pynvml.NVML_ERROR_NOT_FOUND
MOST_LINKS = pynvml.NVML_NVLINK_MAX_LINKS

Ask = Callable[[], Any]


class ImplausibleError(Exception):
    """A driver told a count that no GPU can have."""


def main(arguments: list[str]) -> None:
    """Read the driver, then each GPU, then how they are connected."""
    skipped = {int(arguments[at + 1]) for at, word in enumerate(arguments) if word == "--skip"}
    identifiers = "--identifiers" in arguments
    if not told(SYSTEM, "start", pynvml.nvmlInit):
        return
    for name, ask in DRIVER.items():
        told(SYSTEM, name, ask)
    count = pynvml.nvmlDeviceGetCount()
    told(SYSTEM, "count", lambda: count)
    handles = {}
    for index in range(count):
        if index not in skipped and (handle := opened(index)) is not None:
            handles[index] = handle
            for name, read in (READINGS | (IDENTIFIERS if identifiers else {})).items():
                told(index, name, partial(read, handle))
    for first in handles:
        for second in handles:
            if first < second:
                told(first, f"path.{second}", partial(path, handles[first], handles[second]))
    say(done=True)


def opened(index: int) -> Any:
    """Return the handle of a GPU, or None where it has none."""
    found: list[Any] = []

    def ask() -> bool:
        found.append(pynvml.nvmlDeviceGetHandleByIndex(index))
        return True

    return found[0] if told(index, "handle", ask) else None


def told(gpu: int, name: str, ask: Ask) -> bool:
    """Ask and tell; return whether there was an answer."""
    say(asking=name, gpu=gpu)
    answer = answered(ask)
    say(gpu=gpu, reading=name, **answer)
    return "value" in answer


def answered(ask: Ask) -> dict[str, Any]:
    """Return ``{"value": ...}`` or ``{"error": code or text}``."""
    try:
        return {"value": ask()}
    except pynvml.NVMLError as error:
        return {"error": error.value}
    except UnicodeDecodeError:
        return {"error": GARBLED}
    except ImplausibleError:
        return {"error": IMPLAUSIBLE}
    except OSError as error:
        return {"error": str(error)}


def say(**line: Any) -> None:
    """Write a line at once."""
    channel().write(json.dumps(line) + "\n")
    channel().flush()


@cache
def channel() -> TextIO:
    """Return standard output, kept to itself: what a library prints goes to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return own


def text(value: Any) -> str:
    """Return a text, whatever the binding's version gives."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def memory(gpu: Any) -> dict[str, int]:
    """Return bytes; drivers before 510 leave what they keep for themselves out of the total."""
    try:
        found = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
        reserved = int(found.reserved)
    except pynvml.NVMLError_FunctionNotFound:
        found, reserved = pynvml.nvmlDeviceGetMemoryInfo(gpu), 0
    return {"total": int(found.total), "reserved": reserved, "used": int(found.used)}


def limits(gpu: Any) -> dict[str, Any]:
    """Return the range of power limits, in milliwatts."""
    least, most = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)
    return {"least": int(least), "most": int(most)}


def clock(domain: int, *, most: bool) -> Callable[[Any], int]:
    """Return a reader of a clock in MHz."""
    ask = pynvml.nvmlDeviceGetMaxClockInfo if most else pynvml.nvmlDeviceGetClockInfo
    return lambda gpu: int(ask(gpu, domain))


def ecc(gpu: Any) -> dict[str, Any]:
    """Return the mode and, where counted, the errors since the GPU was made."""
    on, pending = pynvml.nvmlDeviceGetEccMode(gpu)
    found: dict[str, Any] = {"on": bool(on), "pending": bool(pending)}
    lifetime = pynvml.NVML_AGGREGATE_ECC
    for name, kind in (
        ("corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        ("uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
    ):
        ask = partial(pynvml.nvmlDeviceGetTotalEccErrors, gpu, kind, lifetime)
        found[name] = answered(ask)
    return found


def mig(gpu: Any) -> dict[str, Any]:
    """Return whether the GPU is divided, and its instances."""
    on, pending = pynvml.nvmlDeviceGetMigMode(gpu)
    found: dict[str, Any] = {"on": bool(on), "pending": bool(pending), "instances": []}
    if on:
        slots = int(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu))
        found["instances"] = [each for slot in range(slots) if (each := instance(gpu, slot))]
    return found


def instance(gpu: Any, slot: int) -> dict[str, Any] | None:
    """Return one instance; None for an empty slot, after which others may follow."""
    try:
        part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
    except pynvml.NVMLError as error:
        return None if error.value in (EMPTY_SLOT, pynvml.NVML_ERROR_INVALID_ARGUMENT) else {
            "slot": slot, "name": {"error": error.value}}  # fmt: skip
    return {
        "slot": slot,
        "name": answered(lambda: text(pynvml.nvmlDeviceGetName(part))),
        "memory": answered(lambda: memory(part)),
        "attributes": answered(lambda: attributes(part)),
        "id": answered(lambda: int(pynvml.nvmlDeviceGetGpuInstanceId(part))),
    }


def attributes(part: Any) -> dict[str, int]:
    """Return the size of an instance."""
    found = pynvml.nvmlDeviceGetAttributes_v2(part)
    return {
        "processors": int(found.multiprocessorCount),
        "slices": int(found.gpuInstanceSliceCount),
        "memory": int(found.memorySizeMB) << 20,
    }


def mig_profiles(gpu: Any) -> list[dict[str, Any]]:
    """Return the kinds of instances that the GPU can be divided into, each with its places.

    Some drivers tell none while the GPU is not divided; places are told to administrators only.
    """
    pynvml.nvmlDeviceGetMigMode(gpu)  # says why not, where the GPU cannot be divided
    return [
        {
            "index": index,
            "id": int(found.id),
            "name": text(found.name).removeprefix("MIG ") if hasattr(found, "name") else None,
            "slices": int(found.sliceCount),
            "count": int(found.instanceCount),
            "processors": int(found.multiprocessorCount),
            "copy": int(found.copyEngineCount),
            "nvdec": int(found.decoderCount),
            "nvenc": int(found.encoderCount),
            "jpeg": int(found.jpegCount),
            "ofa": int(found.ofaCount),
            "memory": int(found.memorySizeMB) << 20,
            "places": answered(partial(places, gpu, found.id)),
        }
        for index, found in kinds(gpu)
    ]


def kinds(gpu: Any) -> list[tuple[int, Any]]:
    """Return the profiles' structures by nvml.h's index; those of other GPUs are skipped."""
    found = []
    for index in range(MOST_COUNTED):
        try:
            found.append((index, kind(gpu, index)))
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_INVALID_ARGUMENT:  # behind the last
                break
            if error.value != pynvml.NVML_ERROR_NOT_SUPPORTED:
                raise
    return found


def kind(gpu: Any, index: int) -> Any:
    """Return a profile's structure; drivers before 525 have the form without a name."""
    try:
        return pynvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, index)
    except pynvml.NVMLError as error:
        older = (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        if error.value not in older:
            raise
        return pynvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, index, version=1)


def places(gpu: Any, profile: int) -> list[list[int]]:
    """Return (first unit, units) of each place where an instance may lie."""
    ask = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    count = c_uint()
    ask(gpu, profile, None, byref(count))
    found = (pynvml.c_nvmlGpuInstancePlacement_t * plausible(count.value))()
    ask(gpu, profile, found, byref(count))
    return [[int(each.start), int(each.size)] for each in found[: count.value]]


def mig_placed(gpu: Any) -> list[dict[str, int]]:
    """Return the instances that there are, programs' or nobody's, and where each lies."""
    on, _pending = pynvml.nvmlDeviceGetMigMode(gpu)
    found = []
    for _index, profile in kinds(gpu) if on else ():
        handles = (pynvml.c_nvmlGpuInstance_t * plausible(profile.instanceCount))()
        count = c_uint()
        pynvml.nvmlDeviceGetGpuInstances(gpu, profile.id, handles, byref(count))
        for handle in handles[: plausible(count.value)]:
            each = pynvml.nvmlGpuInstanceGetInfo(handle)
            found.append({
                "id": int(each.id), "profile": int(each.profileId),
                "start": int(each.placement.start), "size": int(each.placement.size),
            })  # fmt: skip
    return found


def plausible(count: int) -> int:
    """Return a count that memory may be taken for.

    Raises:
        ImplausibleError: there cannot be so many.
    """
    if count > MOST_COUNTED:
        raise ImplausibleError
    return int(count)


def processes(gpu: Any) -> list[dict[str, Any]]:
    """Return the processes that hold memory; of their programs, the name without its folder."""
    found = []
    for kind in ("compute", "graphics"):
        for each in running(gpu, kind.capitalize()):
            pid = int(each.pid)
            used = each.usedGpuMemory
            found.append({
                "kind": kind, "pid": pid, "memory": None if used is None else int(used),
                "name": answered(partial(program, pid)),
            })  # fmt: skip
    return found


def running(gpu: Any, kind: str) -> list[Any]:
    """Return the processes of a kind; drivers before 510 have the second form of the call."""
    try:
        newest = getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")
        return list(newest(gpu))
    except pynvml.NVMLError_FunctionNotFound:
        older = getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v2")
        return list(older(gpu))


def program(pid: int) -> str:
    """Return a program's name; its folder may hold a person's name."""
    return text(pynvml.nvmlSystemGetProcessName(pid)).replace("\\", "/").rsplit("/", 1)[-1]


def links(gpu: Any) -> dict[str, Any]:
    """Return the NVLinks of a GPU: how many, how many are up, and to which PCI addresses."""
    found: dict[str, Any] = {"links": 0, "active": 0, "version": None, "peers": []}
    for link in range(MOST_LINKS):
        try:
            active = pynvml.nvmlDeviceGetNvLinkState(gpu, link)
        except pynvml.NVMLError:
            if link == 0:
                raise
            break
        found["links"] += 1
        if active:
            found["active"] += 1
            found["version"] = answered(partial(pynvml.nvmlDeviceGetNvLinkVersion, gpu, link))
            found["peers"].append(answered(partial(other_end, gpu, link)))
    return found


def other_end(gpu: Any, link: int) -> str:
    """Return the PCI address that a link leads to."""
    return text(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId)


def path(first: Any, second: Any) -> dict[str, Any]:
    """Return how two GPUs are connected, and whether they reach each other's memory."""
    reaches = pynvml.NVML_P2P_CAPS_INDEX_WRITE
    return {
        "level": int(pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second)),
        "peer": answered(lambda: int(pynvml.nvmlDeviceGetP2PStatus(first, second, reaches))),
    }


def call(name: str, form: Callable[[Any], Any] = int) -> Callable[[Any], Any]:
    """Return a reader by the binding's name; an older binding lacks some."""
    return lambda gpu: form(getattr(pynvml, name)(gpu))


DRIVER: dict[str, Ask] = {
    "driver": lambda: text(pynvml.nvmlSystemGetDriverVersion()),
    "cuda": lambda: int(pynvml.nvmlSystemGetCudaDriverVersion()),
}
READINGS: dict[str, Callable[[Any], Any]] = {
    "name": call("nvmlDeviceGetName", text),
    "bus": lambda gpu: text(pynvml.nvmlDeviceGetPciInfo(gpu).busId),
    "memory": memory,
    "capability": call("nvmlDeviceGetCudaComputeCapability", list),
    "cores": call("nvmlDeviceGetNumGpuCores"),
    "bus_width": call("nvmlDeviceGetMemoryBusWidth"),
    "power": call("nvmlDeviceGetEnforcedPowerLimit"),
    "power_default": call("nvmlDeviceGetPowerManagementDefaultLimit"),
    "power_range": limits,
    "generation": call("nvmlDeviceGetCurrPcieLinkGeneration"),
    "width": call("nvmlDeviceGetCurrPcieLinkWidth"),
    "most_generation": call("nvmlDeviceGetMaxPcieLinkGeneration"),
    "most_width": call("nvmlDeviceGetMaxPcieLinkWidth"),
    "clock": clock(pynvml.NVML_CLOCK_SM, most=False),
    "memory_clock": clock(pynvml.NVML_CLOCK_MEM, most=False),
    "most_clock": clock(pynvml.NVML_CLOCK_SM, most=True),
    "most_memory_clock": clock(pynvml.NVML_CLOCK_MEM, most=True),
    "ecc": ecc,
    "mig": mig,
    "processes": processes,
    "nvlink": links,
    "mig_profiles": mig_profiles,
    "mig_placed": mig_placed,
}
IDENTIFIERS: dict[str, Callable[[Any], Any]] = {
    "uuid": call("nvmlDeviceGetUUID", text),
    "serial": call("nvmlDeviceGetSerial", text),
}


if __name__ == "__main__":
    main(sys.argv[1:])
