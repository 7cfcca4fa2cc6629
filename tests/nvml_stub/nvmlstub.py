"""Compiles the driver library of the tests; ``stub.c`` lists what it can be like."""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("stub.c")
SONAME = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class NvmlStub:
    """The library in two builds: today's driver, and one from before the v2 structures."""

    folder: Path
    """For LD_LIBRARY_PATH."""
    old_folder: Path
    """The same without the newer symbols: scenarios ``old-driver`` and ``mig-old``."""

    def environment(self, scenario: str, **more: str) -> dict[str, str]:
        """Return a child's environment in which NVML is the stub: ``NVML_STUB=scenario``."""
        return os.environ | self.variables(scenario) | more

    def variables(self, scenario: str) -> dict[str, str]:
        """Return the two variables that make it so."""
        folder = self.old_folder if scenario in ("old-driver", "mig-old") else self.folder
        return {"LD_LIBRARY_PATH": str(folder), "NVML_STUB": scenario}

    def load(self) -> None:
        """Make this process's own pynvml find the stub, for good: the loader knows the soname.

        ``NVML_STUB`` and ``NVML_STUB_TIME`` are read at every call, so that monkeypatch.setenv
        changes what it is like.
        """
        ctypes.CDLL(str(self.folder / SONAME), mode=ctypes.RTLD_GLOBAL)


def compiler() -> str | None:
    """Return a C compiler whose libraries LD_LIBRARY_PATH finds; only on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    return shutil.which("gcc") or shutil.which("cc")


def build(folder: Path) -> NvmlStub:
    """Compile both builds below a folder."""
    new, old = folder / "new", folder / "old"
    _compile(new)
    _compile(old, "-DOLD")
    return NvmlStub(new, old)


def _compile(folder: Path, *options: str) -> None:
    folder.mkdir()
    cc = compiler()
    assert cc is not None
    common = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-fvisibility=hidden", "-shared", "-fPIC"]
    linked = [f"-Wl,-soname,{SONAME}", "-o", str(folder / SONAME), str(SOURCE), "-lm"]
    subprocess.run([cc, *common, *options, *linked], check=True)
