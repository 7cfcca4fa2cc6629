"""Why NVML does not answer: error numbers as reasons for people."""

import pynvml

from trainwright.messages import Message
from trainwright.probe.reading import Missing

_REASONS = {
    pynvml.NVML_ERROR_UNINITIALIZED: "probe.driver-gone",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "probe.no-driver",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "probe.driver-not-loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "probe.driver-updated",
    pynvml.NVML_ERROR_NO_PERMISSION: "probe.no-permission",
    pynvml.NVML_ERROR_NOT_SUPPORTED: "probe.not-supported",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "probe.old-driver",
    pynvml.NVML_ERROR_GPU_IS_LOST: "probe.gpu-lost",
}
LASTING = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
    }
)
"""Answers that stay the same for as long as the session is open."""
SESSION_OVER = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)


def missing(error: Exception) -> Missing:
    """Return why NVML did not answer."""
    id = _REASONS.get(getattr(error, "value", -1))
    if id is not None:
        return Missing(Message.of(id))
    if isinstance(error, UnicodeDecodeError):  # drivers have sent such names
        return Missing(Message.of("probe.garbled"))
    return Missing(Message.of("probe.other", reason=str(error) or type(error).__name__))
