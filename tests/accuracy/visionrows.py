"""The measured rows of image models: families, and what is kept out of every fit."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "rows"

FAMILIES = (
    # Names hold parts of each other: the first that matches decides.
    ("sequencer", "unrolled", r"sequencer"),
    ("inception-next", "depthwise", r"inception_next"),
    ("mobilevit", "hybrid", r"mobilevit"),
    ("attention-resnet", "hybrid", r"halo|botnet|lambda|bat_res"),
    ("vit-hybrid", "hybrid", r"vit_\w+_(r\d+_|resnet|r_s16)"),
    ("vit-relpos", "transformer", r"vit_s?relpos"),
    ("vit-rope", "transformer", r"eva02|vit_\w+_(rope|dinov3)"),
    ("levit", "hybrid", r"levit"),
    ("convit", "transformer", r"convit"),
    ("crossvit", "transformer", r"crossvit"),
    ("vit", "transformer", r"vit_|deit"),
    ("beit", "transformer", r"beit"),
    ("xcit", "transformer", r"xcit"),
    ("cait", "transformer", r"cait"),
    ("volo", "transformer", r"volo"),
    ("swin", "transformer", r"swin"),
    ("twins", "transformer", r"twins"),
    ("tnt", "transformer", r"tnt"),
    ("pit", "transformer", r"pit"),
    ("nest", "transformer", r"nest"),
    ("coat", "hybrid", r"coat"),
    ("mlp", "transformer", r"mixer|mlp"),
    ("poolformer", "hybrid", r"poolformer"),
    ("efficientnetv2", "depthwise", r"efficientnetv2"),
    ("efficientnet", "depthwise", r"efficientnet"),
    ("mixnet", "depthwise", r"mixnet"),
    ("mobilenetv2", "depthwise", r"mobilenetv2"),
    ("mobilenetv3", "depthwise", r"mobilenetv3|hardcorenas|fbnet|lcnet"),
    ("mobilenetv4", "depthwise", r"mobilenetv4"),
    ("mnasnet", "depthwise", r"mnasnet|spnasnet"),
    ("ghostnet", "depthwise", r"ghostnet"),
    ("rexnet", "depthwise", r"rexnet"),
    ("fastvit", "hybrid", r"fastvit"),
    ("convnext", "depthwise", r"convnext|edgenext"),
    ("nasnet", "depthwise", r"nasnet"),
    ("xception", "depthwise", r"xception"),
    ("inception", "plain", r"inception"),
    ("nfnet", "grouped", r"nfnet"),
    ("regnet", "grouped", r"regnet"),
    ("repvgg", "plain", r"repvgg"),
    ("vgg", "plain", r"vgg"),
    ("densenet", "plain", r"densenet"),
    ("dpn", "grouped", r"dpn"),
    ("senet154", "grouped", r"senet154"),
    ("resnetv2", "plain", r"resnetv2"),
    ("resnext", "grouped", r"resnext"),
    ("gcresnet", "plain", r"gcresnet"),
    ("skresnet", "plain", r"skresnet"),
    ("seresnet", "plain", r"seresnet|ecaresnet"),
    ("resnetrs", "plain", r"resnetrs"),
    ("resnet", "plain", r"resnet"),
    ("cspnet", "plain", r"csp|darknet"),
    ("gernet", "plain", r"gernet"),
    ("selecsls", "plain", r"selecsls"),
)
"""(family, kind of most of its arithmetic, pattern in the names of its models)."""

KINDS = {family: kind for family, kind, _ in FAMILIES}

REPARAMETRISED = re.compile(r"repvgg|fastvit|ghostnetv3|mobileone|levit")
"""Models that timm may fuse for inference (``timm.utils.reparameterize_model``)."""

LEAST, MOST = 0.22, 0.34
"""Share of a kind's training rows that is kept out of the fit."""

HELD_OUT_GPUS = ("rtx-5090", "rtx-pro-6000-max-q")
"""The newest generation, whole: what a GPU without rows would meet. The 4090 stays in."""


@dataclass(frozen=True, slots=True)
class VisionRow:
    """One published measurement of timm's benchmark, on one GPU with synthetic data."""

    id: str
    source: str
    model: str
    """As published."""
    params: int
    """As published, to 0.01 million."""
    task: str
    """train: forward, loss, backward and SGD with momentum | infer: forward."""
    precision: str
    """fp16-mixed | bf16-mixed | bf16."""
    layout: str
    """nchw | nhwc."""
    batch: int
    image_size: int
    gpu: str
    """Id in the catalog."""
    framework: str
    compiled: bool
    seconds: float
    """Of a step: the batch over the published samples a second."""
    family: str
    key: str
    """Of its op table: see ``optables.OpRows``."""


@cache
def rows() -> tuple[VisionRow, ...]:
    """Return the rows of ``rows/vision.csv``."""
    with (ROWS / "vision.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_row(record) for record in csv.DictReader(file))


def _row(record: Mapping[str, str]) -> VisionRow:
    values: dict[str, Any] = {name: _READ.get(name, str)(text) for name, text in record.items()}
    return VisionRow(**values)


_READ: dict[str, Callable[[str], object]] = {
    "params": int,
    "batch": int,
    "image_size": int,
    "compiled": "y".__eq__,
    "seconds": float,
}


@cache
def held_out() -> dict[str, frozenset[str]]:
    """Return what ``rows/held_out.csv`` keeps out of every fit: family and gpu -> names."""
    with (ROWS / "held_out.csv").open(encoding="utf-8", newline="") as file:
        listed = [(record["kind"], record["name"]) for record in csv.DictReader(file)]
    return {
        kind: frozenset(name for of, name in listed if of == kind) for kind in ("family", "gpu")
    }


def kept_out(row: VisionRow) -> bool:
    """Whether the row is for the score alone."""
    out = held_out()
    return row.family in out["family"] or row.gpu in out["gpu"]


def family(model: str) -> str:
    """Return the family of a model of timm.

    Raises:
        KeyError: no pattern has its name.
    """
    for name, _, pattern in FAMILIES:
        if re.search(pattern, model):
            return name
    raise KeyError(model)


def held_out_families(training: Mapping[str, int], others: Iterable[str]) -> tuple[str, ...]:
    """Return the families kept out of every fit, by a rule that knows no measurement.

    Of each kind, families come in the order of the hash of their name. One is kept out unless
    that would take more than ``MOST`` of the kind's training rows, until ``LEAST`` are out. Of
    the families without training rows each fourth, by the same hash, is kept out.

    Args:
        training: family -> number of its training rows.
        others: families that have inference rows alone.
    """
    chosen = [name for name in others if _hash(name) % 4 == 0]
    total = Counter[str]()
    for name, rows in training.items():
        total[KINDS[name]] += rows
    out = Counter[str]()
    for name in sorted(training, key=_hash):
        kind, rows = KINDS[name], training[name]
        if out[kind] < LEAST * total[kind] and out[kind] + rows <= MOST * total[kind]:
            out[kind] += rows
            chosen.append(name)
    return tuple(sorted(chosen))


def _hash(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")
