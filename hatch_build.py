"""Makes what is compiled, so that what is installed starts at once and replays fast.

A wheel for another system: ``TRAINWRIGHT_PLATFORM=win_amd64 pip wheel --no-deps .``, with any
platform of ``scripts/compile_allocator.py``.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

PLATFORM = os.environ.get("TRAINWRIGHT_PLATFORM", "")


class CompiledData(BuildHookInterface):
    """Messages, the hardware catalog and the allocator, for a wheel and an editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what compiles for another system."""
        return ["ziglang==0.17.1"] if PLATFORM else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile them; a program of its own each, for some import the package."""
        self._run("compile_messages")
        self._run("compile_catalog")
        library = self._run("compile_allocator", *filter(None, [PLATFORM]))
        if library and self.target_name == "wheel" and version != "editable":
            source = next(Path(self.root).glob("app/trainwright/**/allocator.c"))
            inside = source.relative_to(Path(self.root, "app")).with_name(Path(library).name)
            build_data["force_include"][library] = str(inside)
            build_data["tag"] = f"py3-none-{PLATFORM or next(sys_tags()).platform}"

    def _run(self, name: str, *arguments: str) -> str:
        script = Path(self.root, "scripts", f"{name}.py")
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
