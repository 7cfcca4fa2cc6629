"""An out-of-memory error explained: what was asked, and who holds the rest."""

from trainwright.diagnose.outofmemory.account import Account, Explanation, Kind
from trainwright.diagnose.outofmemory.read import explain, explained_file, from_file
from trainwright.diagnose.outofmemory.snapshot import is_snapshot

__all__ = [
    "Account",
    "Explanation",
    "Kind",
    "explain",
    "explained_file",
    "from_file",
    "is_snapshot",
]
