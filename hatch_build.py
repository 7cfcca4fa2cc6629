"""Makes what is compiled from the data folders, so that what is installed starts at once."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledData(BuildHookInterface):
    """Message catalogues and the hardware catalog, for the wheel and for an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile both; a program of its own each, for they import the package."""
        for name in ("compile_messages", "compile_catalog"):
            script = Path(self.root, "scripts", f"{name}.py")
            subprocess.run([sys.executable, str(script)], check=True)
