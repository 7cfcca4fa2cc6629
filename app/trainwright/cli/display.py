"""Whether there is a screen to open a window on."""

import os
import sys
from collections.abc import Mapping

_SERVERS = {"WAYLAND_DISPLAY": "wayland", "DISPLAY": "x11"}


def servers(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the display servers that the environment names: ``wayland``, ``x11``."""
    environment = os.environ if environment is None else environment
    return tuple(server for name, server in _SERVERS.items() if environment.get(name))


def present(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether Qt has somewhere to draw.

    Windows and macOS sessions always have; elsewhere a display server is named in the
    environment, or the user chose a Qt platform that needs none.
    """
    environment = os.environ if environment is None else environment
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(servers(environment) or environment.get("QT_QPA_PLATFORM"))
