"""System libraries that the Qt wheels link to and do not bring along.

Linux only: the Windows and macOS wheels are complete. Found with ``ldd``, so that what is
named is what is really missing here.
"""

import ctypes
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from trainwright.cli import display

PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
"""Library -> the Debian and Ubuntu package that holds it."""

_MODULES = ("QtCore", "QtGui", "QtWidgets", "QtSvg")
_PLUGINS = {
    "offscreen": "libqoffscreen.so",
    "x11": "libqxcb.so",
    "wayland": "libqwayland.so",
}


def missing(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of libraries that opening a window here would lack.

    Empty where nothing is missing, where Qt is not installed, and outside Linux.
    """
    folder = _qt_folder()
    if not sys.platform.startswith("linux") or folder is None:
        return ()
    return tuple(sorted(_unresolved(_needed_files(folder, environment))))


def platform_loads() -> bool:
    """Return whether Qt's plugin for a display server here can be loaded.

    Qt aborts the process where it cannot, so this is asked before a window is opened; it
    costs a few milliseconds, ``missing`` a few hundred.
    """
    folder, servers = _qt_folder(), display.servers()
    if not sys.platform.startswith("linux") or folder is None or not servers:
        return True
    return any(_loads(_plugin(folder, server)) for server in servers)


def packages(libraries: Iterable[str]) -> tuple[str, ...]:
    """Return the Debian packages of the libraries; unknown ones are left out."""
    return tuple(sorted({PACKAGES[name] for name in libraries if name in PACKAGES}))


def _qt_folder() -> Path | None:
    spec = find_spec("PySide6")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def _needed_files(folder: Path, environment: Mapping[str, str] | None) -> list[Path]:
    files = [path for name in _MODULES for path in folder.glob(f"{name}*.so")]
    platforms = ("offscreen", *display.servers(environment))
    return files + [_plugin(folder, platform) for platform in platforms]


def _plugin(folder: Path, platform: str) -> Path:
    return folder / "Qt" / "plugins" / "platforms" / _PLUGINS[platform]


def _loads(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library))
    except OSError:
        return False
    return True


def _unresolved(files: Iterable[Path]) -> set[str]:
    names: set[str] = set()
    for file in files:
        try:
            listing = subprocess.run(
                ["ldd", str(file)], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return set()
        lines = listing.stdout.splitlines()
        names.update(line.split()[0] for line in lines if line.endswith("not found"))
    return names
