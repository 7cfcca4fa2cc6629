"""What is to be trained or served: the model's source, the task, its inputs and data."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from trainwright.workload.settings import MOST_SAMPLES, Frozen

Task = Literal["pretrain", "full", "lora", "qlora", "prompt", "prefix", "infer"]
Objective = Literal["dpo", "reward", "grpo"]
Reference = Literal["model", "adapter-off", "precomputed"]
Positive = Annotated[int, Field(ge=1)]
Decoder = Literal[
    "pillow", "pillow-simd", "opencv", "torchvision", "turbojpeg", "simplejpeg", "kornia",
    "imageio", "skimage",
]  # fmt: skip


class PythonSource(Frozen):
    """A factory in a user's file; runs only in a child process, after consent."""

    file: str
    factory: str
    args: dict[str, Any] = Field(default_factory=dict)


class ModelSource(Frozen):
    """Exactly one of the places that a model can come from."""

    preset: str | None = None
    """Id of a shipped preset: ``llama-3.1-8b``."""
    hf: str | None = None
    """Path of a Hugging Face ``config.json`` or its folder."""
    timm: str | None = None
    """Name of a timm model."""
    python: PythonSource | None = None
    pt2: str | None = None
    """Path of a program that ``torch.export`` saved; it may hold code, as ``python`` does."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [self.preset, self.hf, self.timm, self.python, self.pt2]
        if sum(source is not None for source in given) != 1:
            raise PydanticCustomError(
                "workload.one-source", "give exactly one of preset, hf, timm, python, pt2"
            )
        return self

    @property
    def code(self) -> str | None:
        """The file whose code building the model runs; None where there is none."""
        return self.python.file if self.python is not None else self.pt2


class Inputs(Frozen):
    """Shape of one sample; which keys apply depends on the model and the task."""

    sequence_length: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Tokens a sample: of the longest, which decides the memory. Packed: tokens a row."""
    mean_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Tokens of a sample on average: what rates count. Default: every sample is as long as
    the longest."""
    batching: Literal["padded", "packed"] | None = None
    """``padded``: each sample fills a row of its own up to the longest. ``packed``: rows of
    ``sequence_length`` tokens hold samples one after the other, and the effective batch
    counts rows. Default: padded."""
    image_size: Annotated[int, Field(ge=8, le=16_384)] | None = None
    """Pixels a side; of videos, pixels of their height."""
    images: Annotated[int, Field(ge=1, le=64)] | None = None
    """Images within the text of a sample, whose tokens are part of ``sequence_length``. Default:
    text alone."""
    frames: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Frames of a video."""
    prompt_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    new_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    concurrent: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Requests served at once."""

    @property
    def samples_a_row(self) -> float:
        """Samples that one row of a batch holds on average."""
        if self.batching != "packed" or not self.sequence_length or not self.mean_tokens:
            return 1.0
        return self.sequence_length / self.mean_tokens

    @property
    def padding(self) -> float:
        """Share of the tokens that are padding, from 0 to 1; 0 where lengths are not known."""
        if self.batching == "packed" or not self.sequence_length or not self.mean_tokens:
            return 0.0
        return 1 - self.mean_tokens / self.sequence_length


class Dataset(Frozen):
    """Where samples come from; absent means that input never limits, and the report says so."""

    layout: Literal["files", "shards", "memory"] = "files"
    sample_kib: Annotated[float, Field(gt=0, le=1e9)] | None = None
    decode: Literal["none", "jpeg", "png", "webp", "audio", "tokenise"] = "none"
    path: str | None = None
    decoder: Decoder | None = None
    """What reads JPEG files. Default: pillow, as torchvision's datasets."""


def _dataset_kind(value: Any) -> str:
    """Tell the two spellings apart, so that an error is about the one that was meant."""
    return "synthetic" if isinstance(value, str) else "files"


DatasetChoice = Annotated[
    Annotated[Dataset, Tag("files")] | Annotated[Literal["synthetic"], Tag("synthetic")],
    Discriminator(_dataset_kind),
]


ALL_LINEAR = ("all-linear",)
"""PEFT's word for every linear layer but the head."""


class Lora(Frozen):
    """Low-rank adapters as PEFT makes them."""

    rank: Annotated[int, Field(ge=1, le=4096)] = 16
    alpha: Annotated[float, Field(gt=0, le=1e6)] = 32
    targets: tuple[str, ...] = ()
    """Names of linear layers; empty means every linear layer except the output head, the experts of
    a mixture and what PEFT refuses to adapt. ``all-linear`` alone means what PEFT makes of it."""
    variant: Literal["lora", "rslora", "dora"] = "lora"
    """rslora scales by alpha / sqrt(rank), at no cost; dora trains a magnitude an output."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0
    """Share of the adapters' input that is dropped."""

    @property
    def named(self) -> tuple[str, ...]:
        """The layers that are named; empty for all of them."""
        return () if self.targets == ALL_LINEAR else self.targets


FEWEST_ANSWERS = 2
"""To a prompt: TRL's GRPO compares them, and refuses one alone."""
MOST_ANSWERS = 4096
"""To a prompt; assumed."""


class Rollout(Frozen):
    """How often grpo writes answers, and how many; the names in brackets are TRL's."""

    generations: Annotated[int, Field(ge=FEWEST_ANSWERS, le=MOST_ANSWERS)] = 8
    """Answers to each prompt, whose rewards are compared (``num_generations``)."""
    updates: Annotated[int, Field(ge=1, le=1024)] = 1
    """Optimizer steps that go once through the answers written at once
    (``steps_per_generation``, counted in optimizer steps)."""
    iterations: Annotated[int, Field(ge=1, le=1024)] = 1
    """How often the same answers are gone through (``num_iterations``)."""

    @property
    def steps(self) -> int:
        """Optimizer steps before answers are written again."""
        return self.updates * self.iterations


_KIN = {
    **dict.fromkeys(("kto", "orpo", "simpo", "cpo", "ipo", "bco"), "dpo"),
    **dict.fromkeys(("rloo", "ppo", "online-dpo", "online_dpo", "gspo", "dapo"), "grpo"),
    "prm": "reward",
}
"""Objective that people name and no plan knows -> the nearest that one does."""


def _planned(value: Any) -> Any:
    """Return an objective that may be planned, or name the nearest."""
    if isinstance(value, str) and (near := _KIN.get(value)):
        values = {"value": value, "near": near}
        raise PydanticCustomError("workload.objective-unplanned", "not planned", values)
    return value


class Workload(Frozen):
    """The job, apart from the machine and the settings."""

    task: Task
    inputs: Inputs = Inputs()
    effective_batch: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | None = None
    """Samples an optimizer step; the search keeps it. Required for training."""
    samples: Annotated[int, Field(ge=1, le=10**15)] | None = None
    epochs: Annotated[float, Field(gt=0, le=1e6)] | None = None
    dataset: DatasetChoice | None = None
    lora: Lora | None = None
    frozen: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")], ...] = ()
    """Parts of the model that pre-training or fine-tuning leaves as they are: successive parts of
    their modules' paths, as in ``embed_tokens`` or ``layers.0-11``."""
    objective: Annotated[Objective | None, BeforeValidator(_planned)] = None
    """What full, lora and qlora train a language model for, where that is not the next token.
    ``dpo``: that one answer of a pair is likelier than the other; ``reward``: that a single score
    in place of the head's is higher for it. A sample is then a pair, and ``sequence_length`` the
    tokens of a prompt with one of its answers. ``grpo``: that its own answers get higher rewards. A
    sample is then an answer of at most ``new_tokens`` to a prompt of ``prompt_tokens``."""
    reference: Reference | None = None
    """dpo: what the trained model is compared with: a frozen copy (``model``), the same weights
    with the adapters switched off, or log-probabilities that were computed before training.
    Default: adapter-off for lora and qlora, else model. grpo: ``model``, with adapters
    ``adapter-off``, where the distance from it counts (TRL's beta is above 0). Default: none."""
    rollout: Rollout | None = None
    """grpo. Default: 8 answers to a prompt, written again for each optimizer step."""
    virtual_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Trained tokens before the text; prompt and prefix. Default: 20, as in PEFT's guides."""
    routing: Literal["balanced", "worst"] | None = None
    """Of a mixture of experts. Default: balanced, every expert gets the same number of tokens;
    worst: all tokens of a micro-batch choose the same experts."""

    @model_validator(mode="after")
    def _training_needs_a_batch(self) -> Self:
        if self.trains and self.effective_batch is None:
            raise PydanticCustomError("workload.effective-batch", "effective_batch is required")
        return self

    @property
    def low_rank(self) -> bool:
        """Whether low-rank adapters are trained, on quantised weights or on whole ones."""
        return self.task in ("lora", "qlora")

    @property
    def adapts(self) -> bool:
        """Whether the model's own weights are frozen, and something small beside them trained."""
        return self.task in ("lora", "qlora", "prompt", "prefix")

    @property
    def compared(self) -> Reference | None:
        """What the trained model is compared with; None where it is with nothing."""
        if self.objective != "dpo":
            return self.reference if self.objective == "grpo" else None
        return self.reference or ("adapter-off" if self.adapts else "model")

    @property
    def paired(self) -> bool:
        """Whether a sample is a pair of answers."""
        return self.objective in ("dpo", "reward")

    @property
    def writes(self) -> Rollout | None:
        """How the answers that are trained on are written; None where they are given."""
        return (self.rollout or Rollout()) if self.objective == "grpo" else None

    @property
    def rows(self) -> int:
        """Sequences that a sample is: the answers of a pair."""
        return 2 if self.paired else 1

    @property
    def prompted(self) -> int:
        """Virtual tokens before the text; 0 where the task has none."""
        return (self.virtual_tokens or 20) if self.task in ("prompt", "prefix") else 0

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass."""
        return self.task != "infer"
