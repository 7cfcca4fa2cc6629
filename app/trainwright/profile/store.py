"""Where profiles live: shipped presets, then the user's cache of traced ones."""

from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec


def load(spec: TraceSpec) -> Profile | None:
    """Return the profile for the structure, or None where it must be traced."""
    raise NotImplementedError


def trace(spec: TraceSpec, on_progress: object = None, cancel: object = None) -> Profile:
    """Trace in a child process, fit, check, keep in the cache, and return the profile.

    Raises:
        UserError: the child failed, was cancelled, or ran into its limits.
    """
    raise NotImplementedError
