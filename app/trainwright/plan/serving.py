"""What serving adds to a report: the engine's view, what fits at most, what is taken at start."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf

from trainwright.catalog import GpuRecord
from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.parallel.communication import Link
from trainwright.estimate.serving import weights
from trainwright.estimate.serving.engines import ENGINES, page_tokens, served_bytes
from trainwright.estimate.serving.served import Served, agrees
from trainwright.estimate.serving.served_split import degrees, split_over, tensor_split
from trainwright.estimate.serving.weights import Inventory, Scheme, Weights
from trainwright.messages import Message, UserError
from trainwright.plan.model import cache_shape
from trainwright.plan.packing import packing
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import Profile
from trainwright.profile.spec import SHORTEST
from trainwright.workload import FullSettings
from trainwright.workload.engines import SHARING, caches_fp8

SHARE_SMALL = "plan.note.share-small"
"""The note of an engine that does not start with its share of the memory."""
WAITS = "plan.note.requests-wait"
"""The note of an engine whose cache does not hold all requests at once."""
TENSOR_PARALLEL = "plan.note.tensor-parallel"
NO_TENSOR_PARALLEL = "plan.note.tensor-parallel-short"
"""The notes of a split over several GPUs, with room for a request and without."""
LAYERS_ASIDE = "plan.note.layers-on-cpu"
"""The note of an engine that leaves to the processor the layers for which there is no room."""
_MOST_SHARE = 0.97
"""Share of the memory beyond which a larger one is not proposed; assumed."""
MOST_TOKENS = 10_000_000
MOST_REQUESTS = 100_000
"""Where the search for what fits ends: the largest values that a plan may name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What fits at most, by search over the estimate."""

    largest_context: int | None
    """Tokens of prompt and answer at the asked concurrency; None where not even one fits."""
    most_concurrent: int | None
    """Requests at the asked context; None where not even one fits."""
    bounded_by_model: bool = False
    """Whether the context ends at the model's positions and not at the memory."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The serving side of a report; bytes are of one GPU."""

    served: Served
    context: int
    """Tokens of a request at its end."""
    concurrent: int
    """Requests that come at once."""
    running: int
    """Of them, those that the engine's cache holds at once; the others wait."""
    cache_bytes: int | None
    """Keys and values of those that run, at their ends; None where nobody knows them."""
    prefill_bytes: int
    """Highest allocated bytes while prompts are read."""
    decode_bytes: int
    """Allocated bytes with the last token, at the longest context."""
    taken_bytes: int | None
    """What the engine takes at its start; None where it takes what is needed."""
    tokens_left: int | None
    """Tokens of keys and values that this leaves room for, in whole pages."""
    least_share: float | None = None
    """Share of the memory with which the engine holds all requests, in whole percent; one request
    where all take more than there is. None as ``taken_bytes``."""
    whole_share: float | None = None
    """The share that holds all requests; None where so large a one is not proposed."""
    starts: bool = True
    """Whether the share that the engine takes holds one request: it refuses to start else."""
    limits: Limits | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait until others have ended."""
        return self.concurrent - self.running

    @property
    def views(self) -> dict[str, int]:
        """Keys and values of the same requests in other engines, in the dtype of this one."""
        shape, dtype = self.served.held_shape, self.served.dtype
        if shape is None:
            return {}
        return {
            name: served_bytes(shape, engine, dtype, self.served.each(self.running), self.context)
            for name, engine in ENGINES.items()
            if dtype in engine.forms
        }


@lru_cache(maxsize=KEPT)
def served_of(
    settings: FullSettings, profile: Profile, config: str, gpus: int, link: Link | None = None
) -> Served:
    """Return the model as the engine of the settings holds it, on so many GPUs.

    ``link`` joins them where each layer is split over them; else each has layers of its own.

    Raises:
        UserError: the engine's view needs an architecture that is not known.
    """
    engine = ENGINES[settings.engine]
    if settings.memory_share is not None:
        engine = replace(engine, policy=replace(engine.policy, share=settings.memory_share))
    shape = cache_shape(config)
    if shape is not None and not agrees(profile, shape):
        shape = None
    packed = _packed(settings, profile, config)
    model = None if settings.engine == "transformers" else _inventory(config, _parameters(profile))
    format = "none" if packed is None else _file_type(settings)
    split = None
    if gpus > 1 and model is not None and shape is not None:
        whole, scheme = (gpus, model, shape, format), _scheme(config)
        if link is None:
            split = split_over(*whole, scheme)
        elif gpus in degrees(gpus, model, shape):
            split = tensor_split(*whole, scheme, width=settings.itemsize, link=link)
    served = Served(engine, settings.kv_cache, shape, packed, model, format, split)
    if shape is None and not served.traced:
        key = "engine" if settings.engine != "transformers" else "quantization"
        raise UserError.of("plan.engine-unknown-model", key=f"settings.{key}")
    return served


def _packed(settings: FullSettings, profile: Profile, config: str) -> Weights | None:
    format = settings.quantization
    if format == "none" or settings.engine == "transformers":  # bitsandbytes' weights are traced
        return None
    found = _quantized(config, _parameters(profile), _file_type(settings))
    if found is None:
        raise UserError.of("plan.unknown-weights", key="settings.quantization", value=format)
    return found


def _file_type(settings: FullSettings) -> str:
    """Return the format of the engine's file: llama.cpp's of MXFP4 has 8 bits outside experts.

    Ollama's gpt-oss keeps 16 bits there, as the published checkpoint does.
    """
    mixed = settings.quantization == "mxfp4" and settings.engine == "llama.cpp"
    return "mxfp4_moe" if mixed else settings.quantization


def _parameters(profile: Profile) -> int:
    return int(profile.model.get("parameters", 0))


@lru_cache(maxsize=64)
def _inventory(config: str, parameters: int) -> Inventory | None:
    return weights.inventory(json.loads(config), parameters) if config else None


@lru_cache(maxsize=64)
def _quantized(config: str, parameters: int, format: str) -> Weights | None:
    model = _inventory(config, parameters)
    if model is None or (format.startswith("mxfp4") and not model.experts):
        return None
    return weights.quantized(model, format, _scheme(config))


def _scheme(config: str) -> Scheme | None:
    packed = packing(json.loads(config))
    return packed.scheme if packed is not None else None


def serving_notes(served: Served, *, beyond: bool) -> Iterator[Message]:
    """Yield what the report must say about the engine; ``beyond``: prompts exceed the window."""
    engine, split = served.engine, served.split
    if split is not None and split.link is None and served.shape is not None:
        count, layers = len(served.shape.layers), split.layers
        yield Message.of(
            "plan.note.layers-split", engine=engine.id, gpus=split.gpus, layers=layers, of=count
        )
    if not served.traced:
        chunk = engine.chunk or 0
        yield Message.of("plan.note.engine-activations", engine=engine.id, tokens=chunk)
    if served.shape is not None and served.shape.windows:
        yield Message.of(
            "plan.note.windows",
            sliding=sum(layer.window is not None for layer in served.shape.layers),
            layers=len(served.shape.layers),
            windows=list(served.shape.windows),
        )
        longer = [window for window in served.shape.windows if window >= SHORTEST]
        if served.traced and longer and not beyond:
            yield Message.of("plan.note.window-masks", window=min(longer))
    if served.shape is not None and served.shape.has_state:
        yield Message.of(
            "plan.note.states",
            states=sum(bool(layer.state or layer.channels) for layer in served.shape.layers),
            layers=len(served.shape.layers),
        )


def serving_side(
    served: Served,
    memory: MemoryEstimate,
    of_all: MemoryEstimate,
    *,
    concurrent: int,
    running: int,
    context: int,
) -> Serving:
    """Return the serving side of the memory of requests that run at once, and of all."""
    cache = served.pool_bytes(running, context) if served.shape is not None else None
    prefill, decode = _phases(served, memory, cache or 0)
    taken, room = _taken(served, memory)
    if taken is None or room is None or cache is None:
        return Serving(served, context, concurrent, running, cache, prefill, decode, None, None)
    one, whole = served.pool_bytes(1, context), served.pool_bytes(concurrent, context)
    shares = _share_for(whole, served, of_all), _share_for(one, served, memory)
    return Serving(
        *(served, context, concurrent, running, cache, prefill, decode),
        taken_bytes=round(taken),
        tokens_left=tokens_within(served, room),
        least_share=next((share for share in shares if share <= 1), None),
        whole_share=shares[0] if shares[0] <= _MOST_SHARE else None,
        starts=room >= one,
    )


def holds(served: Served, memory: MemoryEstimate, requests: int, context: int) -> bool:
    """Return whether the share of the memory that an engine takes holds the cache of requests.

    ``memory`` is of those requests. An engine that takes what it needs holds all of them.
    """
    if served.shape is None:
        return True
    _, room = _taken(served, memory)
    if room is None:
        return True
    return not memory.out_of_memory and room >= served.pool_bytes(requests, context)


def room_for(served: Served, memory: MemoryEstimate, context: int) -> int:
    """Return about how many requests the cache of an engine holds, beside the rest of a memory."""
    _, room = _taken(served, memory)
    return int((room or 0.0) // served.pool_bytes(1, context))


def _phases(served: Served, memory: MemoryEstimate, cache: int) -> tuple[int, int]:
    """Return (highest bytes of the prefill, bytes at the end of decoding)."""
    live = memory.curve.live.sum(axis=0)
    highest = {
        name: int(live[first:after].max(initial=0)) for name, first, after in memory.curve.phases
    }
    prefill = highest.get("prefill", int(live.max(initial=0)))
    if served.traced:
        return prefill, highest.get("decode", prefill)
    kept = [row for row, name in enumerate(memory.curve.terms) if name == "parameters"]
    weights_bytes = int(memory.curve.live[kept].max(initial=0)) if kept else 0
    return prefill, weights_bytes + cache


def _taken(served: Served, memory: MemoryEstimate) -> tuple[float | None, float | None]:
    """Return (bytes on the device after the engine's start, bytes of them for its cache)."""
    policy, total = served.engine.policy, memory.device_total.value
    if policy.share is None:
        return None, None
    outside, rest, parameters = _beside_cache(memory)
    match policy.of:
        case "total":  # weights, activations and context count against the share
            return policy.share * total, policy.share * total - outside - rest
        case "static":  # weights and cache; activations take of what is left
            room = policy.share * (total - outside) - parameters
            return outside + rest + max(room, 0.0), room
    room = policy.share * (total - outside - rest)
    return outside + rest + max(room, 0.0), room


def _beside_cache(memory: MemoryEstimate) -> tuple[float, float, float]:
    """Return bytes of (others on the device, all that is allocated but the cache, weights)."""
    terms = {term.role: term.value for term in memory.terms}
    outside = memory.device_used.value - memory.reserved_peak.value
    rest = memory.allocated_peak.value - terms.get("kv_cache", 0.0)
    return outside, rest, terms.get("parameters", 0.0)


def _share_for(need: float, served: Served, memory: MemoryEstimate) -> float:
    """Return the share, in whole percent, with which an engine has so many bytes for its cache."""
    total = memory.device_total.value
    outside, rest, parameters = _beside_cache(memory)
    part, whole = {
        "total": (outside + rest + need, total),
        "static": (parameters + need, total - outside),
    }.get(served.engine.policy.of, (need, total - outside - rest))
    return ceil(100 * part / whole) / 100 if whole > 0 else inf


def refuses(serving: Serving) -> Iterator[Message]:
    """Yield why an engine does not start with the share of the memory that it may take.

    vLLM and SGLang end with an error where not one request of the longest length has room
    (vLLM 0.26: ``vllm/v1/core/kv_cache_utils.py``, ``_check_enough_kv_cache_memory``).
    """
    policy = serving.served.engine.policy
    if serving.starts or serving.least_share is None:
        return
    yield Message.of(
        SHARE_SMALL,
        engine=serving.served.engine.id,
        option=policy.name,
        share=policy.share,
        tokens=serving.tokens_left or 0,
        context=serving.context,
        least=f"{serving.least_share:g}",
    )


def waits(
    serving: Serving, record: GpuRecord, memory: MemoryEstimate, splits: Sequence[int]
) -> Iterator[Message]:
    """Yield how many requests wait, what the engine does then, and what holds more at once.

    ``splits``: over how many GPUs of its copies the engine could split each layer instead.

    Sources: vLLM: docs, Optimization and Tuning, Preemption; SGLang: docs, Hyperparameter Tuning;
    TensorRT-LLM: docs, Capacity Scheduler Policy.
    """
    engine = serving.served.engine
    if not serving.waiting or not serving.starts:
        return
    yield Message.of(
        WAITS,
        engine=engine.id,
        running=serving.running,
        requests=serving.concurrent,
        option=engine.policy.name,
        share=engine.policy.share,
        tokens=serving.tokens_left or 0,
        context=serving.context,
        behaviour=Message.of(f"plan.waits.{engine.id}"),
        ways=[*_split(serving, memory, splits), *_more_at_once(serving, record)],
    )


def _split(serving: Serving, memory: MemoryEstimate, splits: Sequence[int]) -> Iterator[Message]:
    """Yield over how many GPUs a split instead of copies holds all requests, or else the most."""
    served, gpus = serving.served, serving.served.copies
    held = {
        degree: _split_tokens(serving, memory, degree) * (gpus // degree) // serving.context
        for degree in splits
    }
    enough = (degree for degree, most in held.items() if most >= serving.concurrent)
    best = next(enough, max(held, key=held.__getitem__, default=0))
    if served.tensor is None and held.get(best, 0) > serving.running:
        requests = min(held[best], serving.concurrent)
        yield Message.of("plan.waits.split", degree=best, requests=requests)


def _split_tokens(serving: Serving, memory: MemoryEstimate, degree: int) -> int:
    """Return the tokens whose cache fits where each layer is split over so many GPUs.

    Activations stay whole: a lower bound.
    """
    room, fixed = _split_room(serving, memory, degree)
    served = replace(serving.served, copies=1)
    return tokens_within(served, max(room - fixed, 0.0) * degree) or 0


def _split_room(serving: Serving, memory: MemoryEstimate, degree: int) -> tuple[float, float]:
    """Return an engine's share of a GPU, and what a split over so many takes of it before keys."""
    outside, rest, parameters = _beside_cache(memory)
    share = serving.served.engine.policy.share or 1
    return share * memory.device_total.value, outside + rest - parameters * (1 - 1 / degree)


def _more_at_once(serving: Serving, record: GpuRecord) -> Iterator[Message]:
    """Yield what lets more requests run at once, what keeps the answers first."""
    served, left = serving.served, (serving.tokens_left or 0) * serving.served.copies
    if (share := serving.whole_share) is not None:
        yield Message.of("plan.waits.share", least=f"{share:g}", requests=serving.concurrent)
    whole, packed = served.token_bytes, replace(served, dtype="fp8")
    wide = served.dtype in ("bf16", "fp16") and "fp8" in served.engine.forms
    if wide and caches_fp8(served.engine.id, record) and whole and packed.token_bytes:
        more = int(left * whole / packed.token_bytes) // serving.context
        yield Message.of("plan.waits.fp8", requests=min(more, serving.concurrent))
    if served.format == "none":
        yield Message.of("plan.waits.weights")
    page = page_tokens(served.shape, served.engine, served.dtype) if served.shape else 1
    if (shorter := left // serving.concurrent // page * page) >= SHORTEST:
        yield Message.of("plan.waits.context", tokens=shorter, requests=serving.concurrent)
    yield Message.of("plan.waits.fewer", requests=serving.running)


def tensor_parallel(serving: Serving, memory: MemoryEstimate, gpus: int) -> Message | None:
    """Return what each of several GPUs would hold if the engine split every matrix over them.

    None where the engine cannot, and where its split can be planned. Activations stay whole:
    an upper bound.
    """
    served, context = replace(serving.served, copies=1), serving.context
    if gpus < 2 or served.engine.id not in SHARING or served.shape is None:
        return None
    if served.model is not None and not served.shape.has_state:
        return None
    total, (room, fixed) = memory.device_total.value, _split_room(serving, memory, gpus)
    tokens = _split_tokens(serving, memory, gpus)
    most = tokens // context
    cache = served.pool_bytes(max(min(most, serving.concurrent), 1), context)
    values = {"engine": served.engine.id, "gpus": gpus, "each": fixed + cache / gpus}
    if not most:
        return Message.of(NO_TENSOR_PARALLEL, room=room, **values)
    return Message.of(
        TENSOR_PARALLEL, total=total, tokens=tokens, context=context, most=most, **values
    )


def offloads(serving: Serving) -> Iterator[Message]:
    """Yield what an engine does that does not refuse a model without room for it.

    Sources: llama.cpp #16653, ``--fit``; ollama: docs/context-length.mdx.
    """
    if serving.served.engine.splits:
        yield Message.of(LAYERS_ASIDE, engine=serving.served.engine.id)


def policy_notes(serving: Serving, memory: MemoryEstimate) -> Iterator[Message]:
    """Yield why a monitor will show more than what is needed."""
    policy, engine = serving.served.engine.policy, serving.served.engine.id
    if not serving.starts:
        return
    if policy.share is not None and serving.taken_bytes is not None:
        if serving.waiting:
            return
        yield Message.of(
            "plan.note.engine-takes",
            engine=engine,
            option=policy.name,
            share=policy.share,
            taken=serving.taken_bytes,
            used=memory.device_used.value,
            tokens=serving.tokens_left or 0,
        )
    elif policy.name:
        tokens = serving.context * serving.concurrent
        yield Message.of("plan.note.engine-context", engine=engine, tokens=tokens)
    if engine == "ollama" and serving.concurrent > 1:  # ollama: docs/faq.md, default 1
        yield Message.of("plan.note.ollama-parallel", requests=serving.concurrent)


def tokens_within(served: Served, room: float) -> int | None:
    """Return the tokens of keys and values that fit into so many bytes, in whole pages."""
    rate = served.token_bytes
    if not rate or served.shape is None:
        return None
    page = page_tokens(served.shape, served.engine, served.dtype)
    return max(int(room // (rate * page)) * page, 0)


def largest(
    fits: Callable[[int], bool], most: int, *, start: int = 1, guess: int = 0
) -> int | None:
    """Return the largest number up to ``most`` that fits; None where ``start`` does not.

    What fits is taken to fit below too. Steps double from the guess on, up or down, until the
    edge lies between two looks; then halves close in on it.
    """
    at = min(max(guess, start), most)
    step = max(at // 256, 1)
    low, high = start - 1, most + 1
    while high - low > 1:
        if fits(at):
            low = at
            at = at + step if high > most else (low + high) // 2
        else:
            high = at
            at = at - step if low < start else (low + high) // 2
        step *= 2
        at = min(max(at, low + 1), high - 1)
    return low if low >= start else None
