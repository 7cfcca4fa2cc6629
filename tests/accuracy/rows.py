"""The measured rows, and what has to be traced for them."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trainwright.data import resources
from trainwright.profile.spec import Method, TraceSpec, digest_of

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Row:
    """One published measurement."""

    id: str
    source: str
    url: str
    model: str
    """``litgpt:NAME``, ``preset:ID``, ``timm:NAME``, or a file beside this one."""
    family: str
    params: int
    """As published, without what a stack adds."""
    trainable: int
    """As published, 0 where it is not."""
    task: str
    stack: str
    precision: str
    optimizer: str
    accumulation: int
    """2 stands for every larger number, and for gradients that stay between steps."""
    batch: int
    length: int
    image_size: int
    checkpointing: str
    attention: str
    adapters: str
    """RANK:TARGET+TARGET, after ``dora-`` where weights are decomposed; no targets means every
    linear layer but the head."""
    quantization: str
    gpu: str
    """Id in the catalog."""
    context_mib: int
    """CUDA context, where the source measured it by itself; 0 where not."""
    beside_mib: int
    """What the run held on the GPU beside the training step, as its source says; 0 for nothing."""
    versions: str
    metric: str
    """allocated | reserved | device | oom."""
    measured_bytes: int
    confidence: str
    notes: str

    @property
    def measured(self) -> bool:
        """Whether there is a figure, and not only the fact that it did not fit."""
        return self.metric != "oom"

    @property
    def infers(self) -> bool:
        return self.task == "infer"

    @property
    def replicas(self) -> int:
        """GPUs that train together, each with the row's batch, under DistributedDataParallel."""
        return 8 if self.source == "detectron2 model zoo" else 1

    @property
    def generates(self) -> int:
        """Tokens that inference generates after the prompt; litgpt's stay in its prefill."""
        return 2048 if self.infers and self.stack == "transformers" else 1


_NUMBERS = {
    "params", "trainable", "accumulation", "batch", "length", "image_size", "context_mib",
    "beside_mib", "measured_bytes",
}  # fmt: skip


@cache
def rows() -> tuple[Row, ...]:
    """Return every row of ``rows.csv``."""
    return tuple(
        Row(**{key: int(value or 0) if key in _NUMBERS else value for key, value in row.items()})
        for row in table("rows.csv")
    )


def table(name: str) -> Iterator[dict[str, str]]:
    """Yield the records of a table beside this file."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def spec_of(row: Row) -> TraceSpec:
    """Return the structure that the row's run has."""
    kind, _, name = row.model.rpartition(":")
    if kind == "preset":
        file = resources("presets", name, "config.json")
        model, definition = ("hf", str(file)), file.read_bytes()
    elif not kind:
        path = HERE / row.model
        model, definition = ("hf", str(path)), path.read_bytes()
    else:
        model, definition = (kind, name), name.encode()
    rank, _, targets = row.adapters.removeprefix("dora-").partition(":")
    return TraceSpec(
        model=(model,),
        digest=digest_of(definition),
        task=row.task,  # type: ignore[arg-type]
        precision=row.precision,
        kernel=_kernel(row),
        quantization=row.quantization,
        lora=(int(rank or 16), tuple(filter(None, targets.split("+")))),
        image_size=row.image_size,
        sequence=not row.image_size,
        single=row.batch == 1,
        method=Method(dora=row.adapters.startswith("dora-")),
        optimizers=("adamw", "adafactor") if row.family == "bert" else (row.optimizer or "adamw",),
    )


def _kernel(row: Row) -> str:
    if row.attention == "eager":
        return "eager"
    return "efficient" if row.precision == "fp32" else "flash"


SAME_STRUCTURE = {
    "litgpt:Llama-3.1-8B": "litgpt:Llama-3-8B",
    "litgpt:Mistral-7B-v0.2": "litgpt:Mistral-7B-v0.1",
}
"""Models that differ from another in constants of the rotary embedding only."""


def profile_name(row: Row) -> str:
    """Return the name of the profile of the row's structure in the archive."""
    model = SAME_STRUCTURE.get(row.model, row.model)
    model = model.removesuffix(".json").rpartition("/")[2].replace(":", "-").lower()
    adapters = row.adapters.replace(":", "-").replace("+", "-")
    parts = (
        model, row.task, row.precision, row.attention, row.quantization, adapters,
        f"{row.batch}x{row.length or row.image_size}",
    )  # fmt: skip
    return "_".join(filter(None, parts))


IN_TRANSFORMERS = {
    "litgpt:Llama-2-7b-hf": "models/llama-2-7b.json",
    "litgpt:Llama-3-8B": "preset:llama-3.1-8b",
    "litgpt:Llama-3.1-8B": "preset:llama-3.1-8b",
    "litgpt:Llama-3.2-1B": "preset:llama-3.2-1b",
    "litgpt:Llama-3.2-3B": "preset:llama-3.2-3b",
    "litgpt:Mistral-7B-v0.1": "preset:mistral-7b",
    "litgpt:Mistral-7B-v0.2": "preset:mistral-7b",
}


@cache
def in_transformers() -> tuple[Row, ...]:
    """Return measured litgpt runs with adapters, as a plan for transformers would name them.

    What a person gets who plans today's transformers and PEFT and runs litgpt of 2023 or 2024.
    """
    return tuple(
        replace(
            row,
            model=IN_TRANSFORMERS[row.model],
            stack="transformers",
            optimizer="adamw",
            accumulation=1,
            adapters=row.adapters.replace("query", "q_proj").replace("value", "v_proj"),
            quantization="none" if row.quantization == "none" else "nf4",
        )
        for row in rows()
        if row.measured and row.model in IN_TRANSFORMERS and row.task in ("lora", "qlora")
    )
