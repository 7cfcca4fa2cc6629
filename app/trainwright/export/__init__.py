"""Files that run a plan: one module a target."""

from trainwright.export.header import Reasons
from trainwright.export.targets import TARGETS, Target, files, target
from trainwright.export.write import Files, write

__all__ = ["TARGETS", "Files", "Reasons", "Target", "files", "target", "write"]
