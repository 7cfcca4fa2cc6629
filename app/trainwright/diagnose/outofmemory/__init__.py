"""An out-of-memory error explained: what was asked, who holds the rest, and what would help."""

from trainwright.diagnose.outofmemory.account import Account, Explanation, Kind
from trainwright.diagnose.outofmemory.read import explain, explained_file, from_file
from trainwright.diagnose.outofmemory.remedies import Help, Remedy, help_for
from trainwright.diagnose.outofmemory.snapshot import is_snapshot

__all__ = [
    "Account",
    "Explanation",
    "Help",
    "Kind",
    "Remedy",
    "explain",
    "explained_file",
    "from_file",
    "help_for",
    "is_snapshot",
]
