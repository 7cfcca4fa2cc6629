"""Plans and tunes deep-learning workstations."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import ``trainwright.estimate`` where it is first asked for.

    Raises:
        AttributeError: it is another name.
    """
    if name == "estimate":
        return import_module("trainwright.estimate")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
