"""Stored profiles that answer for a structure, and those that are derived from them."""

from dataclasses import replace

from trainwright.profile import store
from trainwright.profile.chunked import chunked
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec


def stored(spec: TraceSpec) -> Profile | None:
    """Return the stored profile; where a model has no attention, that of any kernel."""
    if (profile := store.load(spec)) is not None:
        return profile
    for kernel in ("flash", "efficient"):
        other = store.load(replace(spec, kernel=kernel)) if spec.kernel != kernel else None
        if other is not None and not other.kernels:
            return other
    return _in_chunks(spec)


def _in_chunks(spec: TraceSpec) -> Profile | None:
    """Return the profile of a loss in chunks, derived from the stored one of the whole loss."""
    if spec.method.cross_entropy != "chunked" or spec.method.loss_in_model:
        return None
    method = replace(spec.method, cross_entropy="full", scores="upcast")
    whole = stored(replace(spec, method=method))
    return chunked(whole) if whole is not None else None
