"""The question put to the tracer, and the key under which its answer is kept."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

TRACER_VERSION = 3
"""Raised whenever the tracer would log something else for the same model."""

LONG = 512
"""Tokens from which on a model may be traced at the usual lengths."""

Kernel = Literal["eager", "flash", "efficient", "math", "cpu"]
"""How attention runs; ``cpu`` is what torch takes on a CPU."""


OPTIMIZERS = ("adamw", "sgd", "adafactor")
"""Updates that every full trace takes along; others are traced where they are asked for."""

DEFAULT_LORA: tuple[int, tuple[str, ...]] = (16, ())
"""Rank 16 on every linear layer but the output head: what ships."""


def digest_of(definition: bytes) -> str:
    """Return the hash that names a model's definition."""
    return hashlib.sha256(definition).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Method:
    """How the step differs from the plain one of its task; nothing of it ships."""

    dora: bool = False
    """Adapters with a trained magnitude an output."""
    dropout: bool = False
    """Whether the adapters' input is dropped out; the share does not matter."""
    frozen: tuple[str, ...] = ()
    """Names of the parts whose weights are left as they are."""
    virtual_tokens: int = 0
    """Trained tokens before the text; of prompt and prefix."""
    cross_entropy: Literal["full", "chunked", "fused", "tiled"] = "full"
    tile: int = 0
    """Tokens of a tile of the loss; 0 where one tile holds all."""
    kbit: Literal["none", "all", "norms"] = "none"
    """What of the weights that are not quantised was cast to fp32."""
    nested: bool = True
    """Whether the scales of 4-bit weights are quantised."""
    unpacked: tuple[str, ...] = ()
    """Modules that a packed checkpoint leaves as they are; empty leaves the head alone."""
    adapters: Literal["fp32", "weights"] = "fp32"
    """Type of low-rank adapters."""
    input_gradients: bool = False
    """Whether the output of frozen embeddings gets a gradient."""
    scores: Literal["upcast", "shifted", "returned", "none"] = "upcast"
    """What the loss copies of the scores."""
    loss_in_model: bool = False
    """Whether the input of the head lives until the loss is made."""
    expanded_heads: bool = False
    """Whether keys and values are repeated for each query head."""
    softmax_inputs: bool = False
    """Whether softmax saves its input for backward too."""
    position_tables: bool = False
    """Whether each block holds the cosines and sines of all positions."""
    separate_experts: bool = False
    """Whether each expert of a mixture is layers of its own."""
    reference: Literal["", "model", "adapter-off", "precomputed"] = ""
    """What a policy is compared with; empty where it is with nothing."""
    rewards: bool = False
    """Whether pairs of answers get a score each, in place of the head's."""
    prompt: int = 0
    """Tokens before an answer that the model itself writes, and is trained on; 0 without."""
    outputs: bool = False
    """Whether the log tells which storages the model returned."""
    tensor: int = 1
    """GPUs that each layer is split over; the log is that of one of them."""


@dataclass(frozen=True, slots=True)
class TraceSpec:
    """One structure of the training step; batch and sequence are free within it."""

    model: tuple[tuple[str, str], ...]
    """Source as pairs, its kind first: (("hf", path),), (("timm", name),), (("builtin", name),);
    (("python", path), ("factory", name), ("args", JSON), ("root", folder), ("sources", JSON of
    the hashes)), with ("longest", tokens) where the plan has short sequences."""
    digest: str
    """Hash of the model's definition (config text, source file); part of the key."""
    task: Literal["full", "lora", "qlora", "prompt", "prefix", "infer"]
    """``pretrain`` runs the same step as ``full``."""
    precision: str
    kernel: Kernel
    channels_last: bool = False
    checkpointing: str = "none"
    """``none`` serves none, full and every-K, which are derived; ``selective`` is traced."""
    quantization: str = "none"
    lora: tuple[int, tuple[str, ...]] = DEFAULT_LORA
    image_size: int = 0
    """Pixels a side; 0 where the model has no image."""
    frames: int = 0
    """Frames of a video; 0 where the model has none."""
    images: int = 0
    """Images within the text of a sample."""
    sequence: bool = True
    """Whether the model has a sequence whose length may change."""
    routing: Literal["balanced", "worst"] = "balanced"
    """How tokens spread over the experts of a mixture, where its memory depends on it."""
    single: bool = False
    """Batch 1, where transformers take other paths than for 2 and more."""
    in_backward: str = ""
    """Update that runs within backward, parameter by parameter; empty where it follows."""
    method: Method = Method()
    beyond: int = 0
    """A sliding window that every length reaches, where attention needs a mask that shorter
    ones do without; 0 where lengths are free."""
    points: tuple[tuple[int, int], ...] = ()
    """(batch, sequence) to trace: those of the fit, then one to check it at."""
    optimizers: tuple[str, ...] = OPTIMIZERS
    asked: str = field(default="adamw", compare=False)
    """The update that the first answer traces alone, and that a stored profile must know."""

    def key(self, versions: Sequence[tuple[str, str]]) -> str:
        """Return the cache key: the structure without the points, and the libraries'
        versions.
        """
        fields = asdict(self)
        del fields["points"], fields["optimizers"], fields["asked"]
        if fields["routing"] == "balanced":  # what was traced before there was a choice
            del fields["routing"]
        for name in ("in_backward", "beyond", "images"):
            if not fields[name]:
                del fields[name]
        if self.method == Method():
            del fields["method"]
        fields |= {"versions": dict(versions), "tracer": TRACER_VERSION}
        text = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def runs_code(self) -> bool:
        """Whether building the model runs code of the user's, which needs their consent."""
        return self.model[0][0] in ("python", "pt2")

    def document(self) -> dict[str, Any]:
        """Return what is sent to the child as JSON."""
        return asdict(self) | {"model": dict(self.model)}


SHORTEST = 256
"""The least of the usual lengths: above a shorter window every trace is beyond it."""


def kernel_points(
    spec: TraceSpec, longest: int = 0, window: int = 0
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the sets of points to try, each ending with the one that checks the fit.

    Flash attention is linear in the length: two lengths. Other kernels keep scores or
    biases: three. Lengths are multiples of 32, where no kernel pads, and at most
    ``longest`` (0: no limit). The first point has factors (3, 11) that sizes of layers do
    not have, so that equal sizes there are equal everywhere. Batch 1 is a structure of its
    own. A ``window`` among the lengths, where a mask comes in and a cache stops growing, would
    bend the sizes: they stay below it, or not below it with ``beyond``.
    """
    if not spec.sequence:
        return (((2, 0), (3, 0), (5, 0)),)
    prompt = spec.method.prompt  # rows with an answer are longer
    if not spec.beyond and SHORTEST <= window <= LONG + prompt:
        longest = min(longest or window, window - 1)
    if spec.beyond:
        *lengths, last = _lengths_from(max(spec.beyond, prompt + 1), longest)
    else:
        rest = max(longest - prompt, 1) if longest else 0
        *lengths, last = (prompt + length for length in _lengths(rest))
    batches = (1,) if spec.single else (3, 2)
    check = (1 if spec.single else 5, last)
    linear = tuple((batch, length) for length in lengths[:2] for batch in batches)
    quadratic = tuple((batch, length) for length in lengths for batch in batches)
    if spec.kernel == "flash":
        return (*linear, check), (*quadratic, check)
    return ((*quadratic, check),)


def _lengths_from(window: int, longest: int) -> tuple[int, int, int, int]:
    """Return three lengths to fit and one to check, none below the window."""
    first = 352 * -(-window // 352)
    if not longest or longest >= first + 160:
        return first, first + 64, first + 32, first + 160
    step = max((longest - window) // 4, 1)
    return longest - step, longest - 2 * step, longest - 3 * step, longest


def _lengths(longest: int) -> tuple[int, int, int, int]:
    """Return three lengths to fit and one to check, none above ``longest``."""
    if not longest or longest >= LONG:
        return 352, 416, 256, 512
    step = 32 if longest >= 128 else 8 if longest >= 32 else 1
    most = max(longest // step, 4)
    return step * (most - 1), step * (most - 2), step * (most - 3), step * most
