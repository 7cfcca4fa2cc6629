"""Files that run a plan: one module a target."""

from trainwright.export.header import Reasons
from trainwright.export.targets import (
    ALL,
    CLUSTERS,
    CONFIGS,
    TARGETS,
    Target,
    files,
    suiting,
    target,
)
from trainwright.export.write import Files, write

__all__ = [
    "ALL",
    "CLUSTERS",
    "CONFIGS",
    "TARGETS",
    "Files",
    "Reasons",
    "Target",
    "files",
    "suiting",
    "target",
    "write",
]
