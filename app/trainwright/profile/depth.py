"""The other points of a deep model, from a shallow one of the same layers.

A layer does the same at every depth. So a deep model is traced once (or not at all, where its
layers repeat: ``repeat``), and a copy with a few layers at every point of the fit; each call
and each storage of the deep log then takes, at the other points, what its equal in the shallow
log takes there. Two calls that look alike at the main point and differ elsewhere make the
transfer ambiguous, and a call that the shallow model lacks makes it impossible: the deep model
is then traced at every point.
"""

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from trainwright import reading
from trainwright.messages import UserError
from trainwright.profile import windows
from trainwright.profile.repeat import EDGES, REPEATS
from trainwright.profile.trace import ALLOC, OpRow, RawSegment, RawTrace, TraceResult
from trainwright.workload.sourcefiles import CONFIG_BYTES

LAYERS = 3
"""Of the shallow copy at least: a first, an inner and a last one."""

_DEPTH_KEYS = (
    "num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "n_layers",
    "encoder_layers", "decoder_layers", "num_single_layers",
)  # fmt: skip

_KIND_KEYS = ("layer_types", "mlp_layer_types")
"""Lists with the kind of each layer."""

_ALIKE = (
    "bert", "deberta-v2", "deepseek_v2", "deepseek_v3", "falcon_h1", "gpt2", "llama", "mistral",
    "mixtral", "olmoe", "phi3", "qwen2", "qwen3", "qwen3_moe", "roberta",
)  # fmt: skip
"""Model types whose layers differ in transformers (5.x, ``modeling_*.py``) by no more than what
``_kinds`` reads, and by being the first or the last."""

_MOST_LAYERS = 2048
"""Assumed, as the tracer does: no model has more."""

_POSITION_KEYS = (
    "max_position_embeddings", "n_positions", "max_sequence_length", "max_target_positions",
)  # fmt: skip

_Birth = tuple[OpRow | None, int]


class TransferError(Exception):
    """The shallow model does not determine what the deep one does."""


def shallow_config(path: Path) -> dict[str, Any] | None:
    """Return the config with few layers, or None where it does not say how many it has."""
    config = _config(path)
    layers = _enough(_kinds(config))
    return _with_layers(config, layers) if layers < _depth(config) else None


def stretched_configs(path: Path) -> tuple[dict[str, Any], dict[str, Any], int] | None:
    """Return the config with few layers, with one period more, and how many periods to add.

    None where the layers do not repeat, as far as is known, or too seldom to be worth it.
    """
    config = _config(path)
    depth, kinds = _depth(config), _kinds(config)
    if not _lists(config) and config.get("model_type") not in _ALIKE:
        return None
    if config.get("use_sliding_window") or len({config[key] for key in _keys(config)}) != 1:
        return None
    before, period = _period(kinds)
    few = before + EDGES + REPEATS * period
    few += (depth - few) % period
    if 2 * few + period >= depth:
        return None
    short, long = _with_layers(config, few), _with_layers(config, few + period)
    return short, long, (depth - few) // period


def _keys(config: dict[str, Any]) -> list[str]:
    return [key for key in _DEPTH_KEYS if isinstance(config.get(key), int)]


def _depth(config: dict[str, Any]) -> int:
    """Return the layers, of an encoder or of its decoder; 0 where the config does not say."""
    return min((config[key] for key in _keys(config)), default=0)


def _lists(config: dict[str, Any]) -> dict[str, list[Any]]:
    return {key: kinds for key in _KIND_KEYS if isinstance(kinds := config.get(key), list)}


def _with_layers(config: dict[str, Any], layers: int) -> dict[str, Any]:
    cut: dict[str, Any] = {key: kinds[:layers] for key, kinds in _lists(config).items()}
    if isinstance(dual := config.get("dual_attention_layers"), list):
        # Of Stable Diffusion 3.5: the first ones. One, a plain one and the last are enough.
        cut["dual_attention_layers"] = dual[:1]
    return config | dict.fromkeys(_keys(config), layers) | cut


def _kinds(config: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what each layer is, as far as a config says it."""
    depth, lists = _depth(config), _lists(config)
    dense = config.get("first_k_dense_replace")
    step = config.get("decoder_sparse_step")
    plain = config.get("mlp_only_layers")
    return [
        (
            *(kinds[layer] if layer < len(kinds) else None for kinds in lists.values()),
            isinstance(dense, int) and layer < dense,
            isinstance(step, int) and step > 0 and (layer + 1) % step == 0,
            isinstance(plain, list) and layer in plain,
        )
        for layer in range(min(depth, _MOST_LAYERS))
    ]


def _enough(kinds: list[tuple[Any, ...]]) -> int:
    """Return how many layers show every kind behind every other that it follows."""
    pairs = list(pairwise(map(str, kinds)))
    last = max((pairs.index(pair) for pair in set(pairs)), default=0)
    return max(LAYERS, last + 2)


def _period(kinds: list[tuple[Any, ...]]) -> tuple[int, int]:
    """Return (layers before, period) of the shortest beginning that tells all other layers."""
    found = []
    for period in range(1, len(kinds) + 1):
        pairs = zip(kinds, kinds[period:], strict=False)
        before = max((n + 1 for n, (one, other) in enumerate(pairs) if one != other), default=0)
        found.append((before + period, before, period))
    return min(found)[1:]


def positions(source: dict[str, str]) -> int:
    """Return the longest sequence that a Hugging Face config takes, or that a plan for the
    user's own code speaks of; 0 where there is no limit.
    """
    if "longest" in source:
        return int(source["longest"])
    config = _config(Path(source["hf"])) if "hf" in source else {}
    found = [config[key] for key in _POSITION_KEYS if isinstance(config.get(key), int)]
    return min(found, default=0)


def window(source: dict[str, str]) -> int:
    """Return the sliding window of a Hugging Face config; 0 where no layer has one."""
    return windows.first_partial(_config(Path(source["hf"]))) if "hf" in source else 0


def _config(path: Path) -> dict[str, Any]:
    """Return a config, given as a file or its folder; empty where the tracer will refuse it."""
    try:
        file = path / "config.json" if os.path.isdir(path) else path
        config = json.loads(reading.text(file, CONFIG_BYTES))
    except (UserError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def transferred(deep: TraceResult, shallow: TraceResult) -> TraceResult:
    """Return the deep model's trace at every point of the shallow one's.

    Raises:
        TransferError: a call is ambiguous, or not in the shallow model.
    """
    main = deep.traces[0]
    if (main.batch, main.sequence) != (shallow.traces[0].batch, shallow.traces[0].sequence):
        raise TransferError("the main points differ")
    others = [_elsewhere(main, shallow, number) for number in range(1, len(shallow.traces))]
    return replace(deep, traces=(main, *others))


def _elsewhere(main: RawTrace, shallow: TraceResult, number: int) -> RawTrace:
    """Return the deep trace at the shallow trace's point of this number."""
    here, there = shallow.traces[0], shallow.traces[number]
    calls: dict[OpRow, OpRow] = {}
    births: dict[_Birth, int] = {}
    for name in there.segments:
        _learn(here, there, name, calls, births)
    rows: dict[OpRow, int] = {}
    segments = {}
    for name in there.segments:
        if name == "setup" or name.startswith("optimizer:"):
            continue  # The batch does not change them.
        segments[name] = _moved(main, main.segments[name], calls, births, rows)
    return RawTrace(there.batch, there.sequence, segments, list(rows), main.category)


def _learn(
    here: RawTrace,
    there: RawTrace,
    name: str,
    calls: dict[OpRow, OpRow],
    births: dict[_Birth, int],
) -> None:
    one, other = here.segments[name], there.segments[name]
    if one.code != other.code or one.c != other.c or len(one.ops) != len(other.ops):
        raise TransferError(f"the shallow model changes its events: {name}")
    for row, row_there in set(zip(one.ops, other.ops, strict=True)):
        _only(calls, _anywhere(here.rows[row]), _anywhere(there.rows[row_there]))
    for index, code in enumerate(one.code):
        if code == ALLOC:
            _only(births, _birth(here, one, index), other.b[index])


def _only(known: dict[Any, Any], key: Any, value: Any) -> None:
    if known.setdefault(key, value) != value:
        raise TransferError(f"ambiguous: {key}")


def _anywhere(row: OpRow) -> OpRow:
    """Return the call without the number of its block."""
    return replace(row, region=min(row.region, 0)) if row.region > 0 else row


def _birth(trace: RawTrace, segment: RawSegment, index: int) -> _Birth:
    op = segment.c[index]
    maker = _anywhere(trace.rows[segment.ops[op]]) if op >= 0 else None
    return maker, segment.b[index]


def _moved(
    main: RawTrace,
    segment: RawSegment,
    calls: dict[OpRow, OpRow],
    births: dict[_Birth, int],
    rows: dict[OpRow, int],
) -> RawSegment:
    """Return the segment with every call and size as it is at the other point."""
    numbers: dict[int, int] = {}
    sizes = list(segment.b)
    try:
        for row in set(segment.ops):
            call = calls[_anywhere(main.rows[row])]
            numbers[row] = rows.setdefault(call, len(rows))
        for index, code in enumerate(segment.code):
            if code == ALLOC:
                sizes[index] = births[_birth(main, segment, index)]
    except KeyError as error:
        raise TransferError(f"not in the shallow model: {error}") from error
    return replace(segment, b=sizes, ops=[numbers[row] for row in segment.ops])
