"""A run of serving: caches no longer than their windows, packed weights, an engine's own cache."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainwright.estimate.cuda import Hidden
from trainwright.estimate.lifetimes import POOL, Insert, Layout, inserted, joined
from trainwright.estimate.serving import Served, windows_of
from trainwright.profile.profile import Profile
from trainwright.profile.structure import Structure
from trainwright.profile.trace import ALLOC


def windowed_layout(profile: Profile, parts: Sequence[Structure], served: Served | None) -> Layout:
    """Return the traced run, the caches of sliding layers no longer than their windows."""
    layout = joined(profile, parts, steady=1)
    window_of = windows_of(profile, served)
    if served is None or served.shape is None or window_of is None:
        return layout
    windows = served.shape.windows
    block = {window: number for number, window in enumerate(windows, start=2)}
    setup, prefill = (len(part.storage) for part in parts[:2])
    rows, size = layout.rows, layout.size.copy()
    late = np.zeros(len(size), dtype=np.bool_)
    late[setup + prefill :] = (size >= rows)[setup + prefill :]
    if all(layer.window for layer in served.shape.layers if layer.heads) and len(windows) == 1:
        size[late] += rows  # No layer sees more than its window: nothing else grows either.
        return replace(layout, size=size, windows=windows)
    place = _cache_places(profile, parts, tuple(window_of))
    for storage, number in place.items():
        of_storage = late & (np.abs(layout.storage) == storage)
        size[of_storage] += rows * (block[window_of[number]] - 1)
    return replace(layout, size=size, windows=windows)


def _cache_places(
    profile: Profile, parts: Sequence[Structure], cached: tuple[int, ...]
) -> dict[int, int]:
    """Return (storage after the prefill -> storage of the prefill that it carries on).

    The first grown storage replaces the prefill's; each one that decoding makes replaces that,
    in the same order.
    """
    grown = parts[2]
    births, deaths = grown.storage[0::2], -grown.storage[1::2]
    found = {
        int(new): int(old) for new, old in zip(births, deaths, strict=True) if int(old) in cached
    }
    every = [s for s, kind in profile.category.items() if kind == "kv_cache"]
    before = _born(profile, "prefill", every)
    after = [storage for storage in _born(profile, "decode", every) if storage not in before]
    pairs = zip(before, after, strict=False)
    found |= {new: old for old, new in pairs if old in cached}
    return found if len(before) == len(after) else {}


def _born(profile: Profile, segment: str, known: Sequence[int]) -> list[int]:
    if segment not in profile.segments:
        return []
    part, wanted = profile.segments[segment], frozenset(known)
    return [s for s in part.a[part.code == ALLOC].tolist() if s in wanted]


def engine_layout(profile: Profile, parts: Sequence[Structure], served: Served) -> Layout:
    """Return packed weights, the engine's cache, and the prefill of one chunk."""
    setup, prefill = parts[:2]
    if served.held_weights is not None:
        setup = setup.at(np.zeros(len(setup.storage), dtype=np.bool_))
    cached = [s for s, kind in profile.category.items() if kind == "kv_cache"]
    prefill = prefill.at(~np.isin(np.abs(prefill.storage), cached))
    layout = joined(profile, (setup, prefill), steady=1)
    pool = Hidden(POOL, served.engine.source, formula=_pool_formula(served))
    inserts = [Insert(layout.steady, (pool,), "kv_cache", lasts=True)]
    if packed := served.hidden_weights:
        inserts.insert(0, Insert(layout.steady, packed, "parameters", lasts=True))
    return inserted(layout, inserts)


def _pool_formula(served: Served) -> str:
    rate = served.token_bytes
    return f"n · {rate:,.10g} B" if rate else ""
