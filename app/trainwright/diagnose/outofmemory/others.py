"""Errors that are taken for a lack of memory and are something else, each with its true reason."""

import re

from trainwright.diagnose.outofmemory.forms import form

FORMS = tuple(
    form(re.compile(words), "other", f"other-{id}", f"other-{id}")
    for id, words in {
        "device-assert": r"device-side assert triggered|Assertion `[^`]{1,200}` failed"
        r"|cudaErrorAssert\b",
        "illegal-access": r"illegal memory access|misaligned address|illegal instruction was"
        r"|unspecified launch failure|STATUS_EXECUTION_FAILED"
        r"|Memory access fault by GPU|cudaErrorIllegalAddress",
        "no-kernel": r"no kernel image is available|invalid device function"
        r"|not compatible with the current PyTorch installation"
        r"|NO_BINARY_FOR_GPU|invalid device kernel image",
        "old-driver": r"driver version is insufficient|driver on your system is too old"
        r"|PTX was compiled with an unsupported toolchain"
        r"|unsupported display driver / cuda driver combination",
        "no-gpu": r"no CUDA-capable device|Found no NVIDIA driver|CUDA unknown error"
        r"|not compiled with CUDA enabled|No (?:CUDA|HIP) GPUs are available"
        r"|invalid device ordinal|couldn't communicate with the NVIDIA driver"
        r"|could not select device driver|cuda\.is_available\(\) is False"
        r"|No devices were found",
        "gpu-exclusive": r"busy or unavailable",
        "gpu-fault": r"GPU is lost|fallen off the bus|uncorrectable (?:ECC|NVLink)|_DEVICE_LOST"
        r"|NVRM: Xid|Unable to determine the device handle|ErrorDeviceLost",
        "devices": r"Expected all tensors to be on the same device"
        r"|Input type \(\S{1,60}\) and weight type \(\S{1,60}\) should be the same",
        "resources": r"too many resources requested for launch",
        "same-gpu": r"Duplicate GPU detected",
        "collective-timeout": r"collective operation timeout|Timed out initializing process group"
        r"|Socket Timeout|[Tt]imed out after [0-9]+ seconds waiting for"
        r"|Timed out waiting [0-9]+ms for",
        "collective-error": r"ncclSystemError|ncclRemoteError|ncclInternalError|ncclInvalidUsage"
        r"|unhandled (?:system|cuda) error|Connection (?:closed|reset) by peer",
        "disk": r"No space left on device|Disk quota exceeded|low on resource: ephemeral-storage",
        "open-files": r"Too many open files|received 0 items of ancdata",
        "context": r"exceeds the available context size|maximum context length is"
        r"|longer than the maximum model length|the context length exceeds",
        "time-limit": r"DUE TO TIME LIMIT|DUE TO PREEMPTION|TERM_RUNLIMIT",
        "segfault": r"Segmentation fault|\(SIGSEGV\)|exit ?code ?[:=]? ?(?:-11|139)\b",
    }.items()
)
"""The most telling first: a segmentation fault says less than what stands before it."""

ENDED = (
    form(
        re.compile(
            r"failed \(exitcode: -?[0-9]+\)|exitcode : -?[0-9]|returned non-zero exit status"
            r"|exits with return code = [0-9]|Exited with exit code|terminated with code -?[0-9]"
            r"|Engine core initialization failed"
        ),
        "other",
        "other-launcher",
        "other-launcher",
    ),
)
"""What launchers say of an error that stands in the output of the process itself."""
