"""Seconds of one forward pass of a serving engine: weights, products, caches and launches.

Engines fuse what the trace holds apart and launch it from a recorded graph, so that a pass
follows from the matrices and the caches of a model and not from traced operators:

    weights = bytes / (bandwidth · m) + weights · unpacking / vector rate
    products = 2 · weights · tokens / (peak · e)
    pass = (weights^p + products^p)^(1/p) + attention + activations + sums + layers · t + t0

Each token is multiplied with every dense weight, and with those of the experts that it goes to; of
the experts, those are read that a token goes to. Sums are what GPUs that split each layer wait for.
Constants, each with its source, are in
``resources/calibration/serving.json``; ``tests/accuracy/rows/serving.csv`` compares.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import ceil
from typing import Literal

from pydantic import Field

from trainwright.catalog import GpuRecord
from trainwright.catalog.records import FlopKey
from trainwright.data import resources
from trainwright.estimate.calibration_file import Entry
from trainwright.estimate.power import board_share, limit_share
from trainwright.estimate.serving.engines import Engine, Form
from trainwright.estimate.serving.kv import CacheShape, Layer
from trainwright.estimate.serving.served_split import Split
from trainwright.estimate.serving.weights import Inventory, Matrix, matrix_bytes


class Constants(Entry):
    """What one family of engines reaches; shares are of the data sheet's peaks."""

    memory: float = Field(gt=0, le=0.95)
    """Share of the bandwidth that reading weights reaches."""
    products: float = Field(gt=0, le=1.05)
    """Share of the peak that large products of 16-bit weights reach."""
    packed_products: float = Field(gt=0, le=1.05)
    """The same of quantised weights, of the 16-bit peak."""
    sharpness: float = Field(ge=1)
    """``p``: 1 where reading and multiplying add up, large where the slower one decides."""
    packed_sharpness: float = Field(ge=1)
    cache: float = Field(gt=0, le=0.95)
    """Share of the bandwidth that reading keys and values reaches."""
    attention: float = Field(gt=0, le=1)
    """Share of the peak that attention of a prompt reaches."""
    activations: float = Field(ge=0)
    """Bytes a token and layer of norms, gates and residuals, in elements of the hidden size."""
    layer_s: float = Field(ge=0)
    """Seconds of a layer that are neither traffic nor arithmetic: gaps between kernels."""
    pass_s: float = Field(ge=0)
    """Seconds of a pass: scheduling, sampling, and the launch of the graph."""
    unpack_flop: float = Field(ge=0)
    """Vector operations a quantised weight, each time it is read for few tokens."""
    source: str


class Maker(Entry):
    """How another maker's GPUs differ from NVIDIA's, as factors."""

    memory: float = Field(gt=0)
    products: float = Field(gt=0)
    unpack: float = Field(gt=0)
    interval_factor: float = Field(ge=1)
    source: str


class ServingCalibration(Entry):
    """Everything that the time of serving assumes beside the data sheet."""

    version: int
    stated: str
    families: dict[str, Constants]
    engines: dict[str, str]
    """Engine -> family."""
    makers: dict[str, Maker]
    interval_factor: float = Field(gt=1)
    """The 90 % interval is time / factor to time · factor, on GPUs kept out of the fit."""
    interval_source: str
    eager_s_per_kernel: float = Field(gt=0)
    """Seconds in which transformers' generate launches one kernel: the CPU's."""
    eager_interval_factor: float = Field(gt=1)
    eager_source: str

    def factor(self, vendor: str) -> float:
        """Return the interval's factor for GPUs of a maker."""
        maker = self.makers.get(vendor)
        return maker.interval_factor if maker else self.interval_factor


@cache
def calibration() -> ServingCalibration:
    """Return the shipped constants."""
    text = resources("calibration", "serving.json").read_text(encoding="utf-8")
    return ServingCalibration.model_validate(json.loads(text))


@dataclass(frozen=True, slots=True)
class Rates:
    """What a GPU offers to serving."""

    peak: float | None
    """FLOP/s of 16-bit products with fp32 accumulation; None where nobody publishes it."""
    packed_peak: float | None
    """The same for weights and activations in fp8, where engine and GPU multiply them so."""
    vector: float | None
    """FLOP/s of the ordinary cores."""
    bandwidth: float


_WIDE: dict[int, tuple[FlopKey, ...]] = {
    2: ("fp16_fp32", "bf16_fp32", "fp32"),
    4: ("fp32_matrix", "fp32"),
}


def rates(record: GpuRecord, *, width: int, format: str, limit_w: float | None = None) -> Rates:
    """Return the peaks of a GPU for weights of ``width`` bytes, as its power sustains them.

    ``limit_w``: the power limit that is set; None where the board's own holds.
    """

    def first(*keys: FlopKey) -> float | None:
        return next((record.flops[key].value for key in keys if key in record.flops), None)

    def sustained(rate: float | None, share: float) -> float | None:
        return None if rate is None else rate * share

    clock = limit_share(record, limit_w)
    share = clock * board_share(record) if width == 2 else clock
    peak = sustained(first(*_WIDE[width]), share)
    packed = sustained(first("fp8_fp32"), share) if format == "fp8" else None
    vector = sustained(first("fp32"), clock)
    return Rates(peak, packed or peak, vector, record.bandwidth_bytes_per_s.value)


@dataclass(frozen=True, slots=True)
class Matrices:
    """Elements and bytes of what a pass multiplies with."""

    dense: float
    dense_bytes: float
    head: float
    head_bytes: float
    routed: float
    """Weights of all experts."""
    routed_bytes: float
    experts: int
    chosen: int
    layers: int
    hidden: int
    packed: bool


@lru_cache(maxsize=64)
def matrices(model: Inventory, format: str, width: int) -> Matrices:
    """Return the sums over a model's matrices; an embedding is looked up, not multiplied."""

    def total(chosen: list[Matrix]) -> tuple[float, float]:
        nbytes = sum(matrix_bytes(model, format, matrix, width) for matrix in chosen)
        return float(sum(matrix.elements for matrix in chosen)), float(nbytes)

    head: tuple[str, ...] = ("embedding", "head") if model.tied else ("head",)
    inside = [matrix for matrix in model.matrices if matrix.layer >= 0]
    routed = total([matrix for matrix in inside if matrix.copies > 1])
    dense = total([matrix for matrix in inside if matrix.copies == 1])
    last = total([matrix for matrix in model.matrices if matrix.role in head])
    hidden = next(matrix.columns for matrix in model.matrices if matrix.role == "embedding")
    return Matrices(
        *dense,
        *last,
        *routed,
        max(model.experts, 1),
        model.chosen,
        model.layers,
        hidden,
        format != "none",
    )


@dataclass(frozen=True, slots=True)
class Load:
    """What one pass computes."""

    tokens: float
    """Of all requests."""
    requests: float
    context: float
    """Tokens that a request looks back on, on average."""


Bound = Literal["weights", "products", "cache", "sums", "overhead"]


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of one pass, by what takes them."""

    weights: float
    """Reading and unpacking."""
    products: float
    cache: float
    """Reading keys and values, or attention's arithmetic where that is slower."""
    activations: float
    overhead: float
    sharpness: float
    sums: float = 0.0
    """Adding up what several GPUs have of each layer."""

    @property
    def seconds(self) -> float:
        """Seconds of the whole pass."""
        return self.matrices + self.cache + self.activations + self.sums + self.overhead

    @property
    def matrices(self) -> float:
        """Seconds of all products, the reading of their weights within."""
        p = self.sharpness
        return float((self.weights**p + self.products**p) ** (1 / p))

    @property
    def bound(self) -> Bound:
        """What takes the most."""
        parts: dict[Bound, float] = {
            "weights": self.weights,
            "products": self.products,
            "cache": self.cache,
            "sums": self.sums,
            "overhead": self.overhead,
        }
        return max(parts, key=parts.__getitem__)


@dataclass(frozen=True, slots=True)
class Attending:
    """Layers of one kind together."""

    window: int | None
    nbytes: float
    """Of one token's keys and values."""
    flops: float
    """Of one token's query and one token's key and value."""


@lru_cache(maxsize=64)
def attending(shape: CacheShape, form: Form) -> tuple[Attending, ...]:
    """Return the layers that attend, alike ones together."""
    counts = Counter(layer for layer in shape.layers if layer.heads)
    return tuple(
        Attending(
            layer.window,
            count * float(form.vector(layer)),
            count * _attended(layer, shape.query_heads),
        )
        for layer, count in counts.items()
    )


@dataclass(frozen=True, slots=True)
class ServingModel:
    """A model in an engine on a GPU: what all of its passes share."""

    matrices: Matrices
    attention: tuple["Attending", ...]
    rates: Rates
    constants: Constants
    maker: Maker | None = None
    split: Split | None = None
    """Where each layer is split over several GPUs; matrices and caches are then those of one."""
    width: int = 2
    """Bytes of an activation."""

    def run(self, load: Load) -> Pass:
        """Return the seconds of a pass."""
        known, rates = self.constants, self.rates
        packed = self.matrices.packed
        share = known.packed_products if packed else known.products
        factor = self.maker.products if self.maker else 1.0
        peak = rates.packed_peak if packed else rates.peak
        products = 2 * self._multiplied(load) / (peak * share * factor) if peak else 0.0
        activations = load.tokens * self.matrices.layers * self.matrices.hidden * known.activations
        return Pass(
            weights=self._reading(load),
            products=products,
            cache=self._attention(load),
            activations=activations / (rates.bandwidth * known.memory * self._memory),
            overhead=self.matrices.layers * known.layer_s + known.pass_s,
            sharpness=known.packed_sharpness if packed else known.sharpness,
            sums=self.split.sums_s(load.tokens, self.width) if self.split else 0.0,
        )

    def layer(self, tokens: int) -> float:
        """Return the seconds of one layer without attention; of layers that are all alike."""
        known = self.matrices
        inside = replace(known, head=0.0, head_bytes=0.0)
        work = replace(self, matrices=inside).run(Load(tokens, 0, 0))
        return (work.seconds - self.constants.pass_s) / known.layers

    @property
    def _memory(self) -> float:
        return self.maker.memory if self.maker else 1.0

    def _multiplied(self, load: Load) -> float:
        """Return weights times tokens; only the last token of each request needs the head."""
        known = self.matrices
        routed = known.routed * known.chosen / known.experts
        return load.tokens * (known.dense + routed) + load.requests * known.head

    def _reading(self, load: Load) -> float:
        """Return the seconds in which the weights are read and unpacked.

        Tokens choose experts independently: an expert is left alone by all of them with
        probability (1 - chosen / experts)^tokens.
        """
        known, rates = self.matrices, self.rates
        read = 1 - (1 - known.chosen / known.experts) ** load.tokens if known.routed else 0.0
        nbytes = known.dense_bytes + known.head_bytes + read * known.routed_bytes
        seconds = nbytes / (rates.bandwidth * self.constants.memory * self._memory)
        if not known.packed or rates.vector is None:
            return seconds
        elements = known.dense + known.head + read * known.routed
        slower = self.maker.unpack if self.maker else 1.0
        return seconds + elements * self.constants.unpack_flop * slower / rates.vector

    def _attention(self, load: Load) -> float:
        nbytes = flops = 0.0
        for layers in self.attention:
            seen = min(load.context, layers.window or load.context)
            nbytes += load.requests * seen * layers.nbytes
            flops += load.tokens * seen * layers.flops
        reading = nbytes / (self.rates.bandwidth * self.constants.cache * self._memory)
        peak = self.rates.peak
        return max(reading, flops / (peak * self.constants.attention) if peak else 0.0)


def _attended(layer: Layer, heads: int) -> float:
    """Return the FLOPs of one token's query and one token's key and value.

    A latent's queries and results have the width of the compressed keys (DeepSeek-V2).
    """
    wide = 2 * layer.key + layer.value if layer.latent else layer.key + layer.value
    return 2.0 * heads * wide


def prefill_s(model: ServingModel, engine: Engine, requests: int, prompt: int) -> float:
    """Return the seconds in which the prompts of all requests are read, in the engine's chunks."""
    tokens = requests * prompt
    chunk = min(engine.chunk or tokens, tokens)
    passes = ceil(tokens / chunk)
    at_once = max(chunk / prompt, 1.0)
    load = Load(tokens / passes, min(at_once, requests), prompt / 2)
    return passes * model.run(load).seconds


def decode_load(requests: int, prompt: int, new: int) -> Load:
    """Return the pass that gives each request one token, at the mean length of its context."""
    return Load(requests, requests, prompt + new / 2)


def serving_model(
    model: Inventory,
    shape: CacheShape,
    engine: Engine,
    record: GpuRecord,
    *,
    format: str,
    dtype: str,
    width: int = 2,
    limit_w: float | None = None,
    known: ServingCalibration | None = None,
    split: Split | None = None,
) -> ServingModel:
    """Return a model in an engine on a GPU, or on several that split each of its layers.

    ``format`` is of its weights, ``width`` the bytes of one that is not quantised, ``dtype`` of
    its cache, ``limit_w`` the power limit that is set.

    Raises:
        KeyError: the engine does not store this dtype.
    """
    known = known or calibration()
    if split is not None:
        model, shape = split.model, split.shape
    return ServingModel(
        matrices(model, format, width),
        attending(shape, engine.forms[dtype]),
        rates(record, width=width, format=format, limit_w=limit_w),
        known.families[known.engines[engine.id]],
        known.makers.get(record.vendor),
        split,
        width,
    )
