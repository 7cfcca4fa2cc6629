"""Who serves a model, and what of the traced run that changes: caches, pages, packed weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from trainwright.estimate.cuda import ITEMSIZE, Hidden
from trainwright.estimate.lifetimes import POOL, Insert, Layout, inserted, joined
from trainwright.estimate.serving import engines
from trainwright.estimate.serving.engines import ENGINES, Engine
from trainwright.estimate.serving.kv import CacheShape
from trainwright.estimate.serving.served_split import Split
from trainwright.estimate.serving.weights import Inventory, Weights
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import SCALE, Profile, monomials
from trainwright.profile.structure import Structure
from trainwright.profile.trace import ALLOC

TRANSFORMERS = ENGINES["transformers"]


@dataclass(frozen=True, slots=True)
class Served:
    """A model as an engine holds it."""

    engine: Engine
    dtype: str
    """Of keys and values."""
    shape: CacheShape | None
    """None where the architecture is not known: the trace then speaks for itself."""
    weights: Weights | None = None
    """None where they are as traced."""
    model: Inventory | None = None
    """The matrices; None where the configuration does not say."""
    format: str = "none"
    """Of the weights: ``int4``, ``q4_k_m``; ``none`` where they are not quantised."""
    split: Split | None = None
    """Of the model over several GPUs; None where one GPU holds all of it."""
    copies: int = 1
    """Copies of the model that share the requests; each on one GPU, or split over its own."""

    def each(self, requests: int) -> int:
        """Return the requests of one copy, the fullest one."""
        return -(-requests // self.copies)

    @property
    def traced(self) -> bool:
        """Whether the run is the one that was traced: transformers with weights as they are."""
        return self.engine is TRANSFORMERS and self.weights is None

    @property
    def tensor(self) -> Split | None:
        """The split of each layer over several GPUs; None where there is none."""
        return self.split if self.split is not None and self.split.link is not None else None

    @property
    def queues(self) -> bool:
        """Whether requests wait for whose cache the engine's share of the memory has no room."""
        return self.engine.policy.share is not None

    def pool_bytes(self, requests: int, tokens: int) -> int:
        """Return the bytes of a GPU's cache of so many requests of so many tokens in all."""
        shape = self.held_shape
        assert shape is not None, "only transformers serve a cache that is not known"
        return engines.served_bytes(shape, self.engine, self.dtype, self.each(requests), tokens)

    @property
    def held_shape(self) -> CacheShape | None:
        """Layers of one GPU, of the fullest of several; with its heads where each is split."""
        return self.split.shape if self.split is not None else self.shape

    @property
    def held_weights(self) -> Weights | None:
        """Weights of the same GPU."""
        return self.split.weights if self.split is not None else self.weights

    def computed(self, requests: int, prompt: int) -> tuple[int, int]:
        """Return the (batch, tokens) that are computed at once at most.

        Engines cut prompts into chunks; tokens of several requests go through as one sequence.
        """
        chunk, each = self.engine.chunk, self.each(requests)
        if chunk is None:
            return each, prompt
        return 1, max(min(each * prompt, chunk), 1)

    @property
    def token_bytes(self) -> float | None:
        """Bytes that a token adds to a GPU's cache of one request, within every window."""
        return self._token_bytes(lasting=False)

    @property
    def lasting_token_bytes(self) -> float | None:
        """The same once every sliding window is full."""
        return self._token_bytes(lasting=True)

    def _token_bytes(self, *, lasting: bool) -> float | None:
        if self.held_shape is None:
            return None
        form = self.engine.forms[self.dtype]
        return engines.token_bytes(self.held_shape, form, lasting=lasting)

    @property
    def hidden_weights(self) -> tuple[Hidden, ...]:
        """Packed weights of a GPU as storages, one for each type."""
        held = self.held_weights
        if held is None:
            return ()
        return tuple(
            Hidden("weights", held.source, nbytes=part.nbytes, formula=part.formula)
            for part in held.parts
            if part.nbytes
        )


@lru_cache(maxsize=KEPT)
def traced_elements(profile: Profile) -> float | None:
    """Return the elements of keys and values that a prompt's token adds in the trace.

    None where the trace names no cache.
    """
    prefill = profile.segments.get("prefill")
    if prefill is None:
        return None
    total, born = 0.0, prefill.code == ALLOC
    batch, length = profile.points[0]
    one_length = all(other == length for _, other in profile.points)
    for storage, size, op in zip(
        prefill.a[born].tolist(), prefill.b[born].tolist(), prefill.c[born].tolist(), strict=True
    ):
        if profile.category.get(storage) == "kv_cache":
            dtype = profile.ops.dtype[prefill.ops[op]] if op >= 0 else "bfloat16"
            row = profile.sizes[size]
            # One length only knows bytes, many know what each token of each sample adds.
            at = row @ monomials(batch, length) / max(length, 1)
            rate = at if one_length else row[2] + row[3] * batch
            total += rate / SCALE / batch / ITEMSIZE.get(dtype, 2)
    return total or None


def agrees(profile: Profile, shape: CacheShape) -> bool:
    """Return whether the trace kept as many keys and values as the configuration says.

    A state adds nothing with the tokens, so that attention alone is compared.
    """
    traced = traced_elements(profile)
    return traced is not None and abs(traced - shape.elements) <= 0.001 * shape.elements


def windows_of(profile: Profile, served: Served | None) -> Mapping[int, int] | None:
    """Return (storage of the prefill's cache -> its window) of layers that slide.

    None where nothing slides. Keys and values come in the order of the layers, two each.
    """
    shape = served.shape if served is not None else None
    if shape is None or not shape.windows:
        return None
    attending = [layer for layer in shape.layers if layer.heads]
    return _paired(profile, tuple(layer.window for layer in attending))


@lru_cache(maxsize=KEPT)
def _paired(profile: Profile, windows: tuple[int | None, ...]) -> Mapping[int, int] | None:
    segment = profile.segments["prefill"]
    born = segment.a[segment.code == ALLOC].tolist()
    cached = [storage for storage in born if profile.category.get(storage) == "kv_cache"]
    if len(cached) != 2 * len(windows):
        return None
    found: dict[int, int] = {}
    for at, window in enumerate(windows):
        if window is not None:
            found |= {cached[2 * at]: window, cached[2 * at + 1]: window}
    return found


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
