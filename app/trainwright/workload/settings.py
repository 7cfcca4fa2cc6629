"""Training settings: declared once, with type, range, default rule and meaning.

The form, the command line, the exports' comments and the tests derive from these fields.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Precision = Literal["fp32", "tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16", "fp8"]
"""``bf16`` and ``fp16`` are weights in 16 bits without autocast."""
Quantization = Literal[
    "none", "int8", "int4", "nf4", "fp4", "fp8", "mxfp4", "q2_k", "q3_k_s", "q3_k_m", "q3_k_l",
    "q4_0", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "q6_k", "q8_0",
]  # fmt: skip
"""The last ones are file types of GGUF, which llama.cpp and ollama serve."""
_FEWER_BITS = tuple(value for value in get_args(Quantization) if value != "none")
Optimizer = Literal[
    "adamw",
    "adamw-8bit",
    "paged-adamw-8bit",
    "paged-adamw",
    "adamw-8bit-torchao",
    "adamw-4bit",
    "sgd",
    "adafactor",
    "lion",
    "muon",
]
"""``adamw-8bit``, the paged ones and ``lion`` are bitsandbytes', ``adamw-8bit-torchao`` and
``adamw-4bit`` torchao's, the others torch's."""
OptimizerOffload = Literal["none", "cpu"]
Attention = Literal["eager", "sdpa", "flash"]
Allocator = Literal["native", "expandable"]
CrossEntropy = Literal["full", "chunked", "fused", "tiled"]
Implementation = Literal["fused", "foreach", "for-loop"]
USUAL_IMPLEMENTATION: dict[str, Implementation] = {"adamw": "fused", "sgd": "foreach"}
"""Of the optimizers that have a choice: what the exports write, and torch's default of SGD."""
AdapterDtype = Literal["fp32", "weights"]
KbitPreparation = Literal["none", "all", "norms"]
ScoresUpcast = Literal["upcast", "shifted", "returned", "none"]
Framework = Literal["torch-1.12", "torch-2.0", "torch-2.4"]
"""Versions of torch whose kernels' times differ, each up to the next; today's are the last."""
OutputKept = Literal["no", "step", "next"]
GradientsCleared = Literal["after-step", "before-backward", "zeroed"]
Strategy = Literal["single", "ddp", "fsdp2", "zero1", "zero2", "zero3", "pp"]
SHARDED: tuple[Strategy, ...] = ("fsdp2", "zero1", "zero2", "zero3")
"""Strategies that share out optimizer state, gradients or weights: torch's ``fully_shard``, and
DeepSpeed's three stages."""
DIVIDED: tuple[Strategy, ...] = (*SHARDED, "pp")
"""Strategies in which no GPU holds the whole model and its state."""
SHARDED_OPTIMIZERS: tuple[Optimizer, ...] = ("adamw", "sgd")
"""Optimizers that are planned on shares: torch's own, which work element by element. Those of
bitsandbytes do not take a DTensor, Adafactor and Muon need whole matrices."""
WEIGHTS_SHARED: tuple[Strategy, ...] = ("fsdp2", "zero3")
"""Of them, those under which no GPU holds all weights."""
StrategyWord = Literal["single", "ddp", "fsdp2", "zero1", "zero2", "zero3", "pp", "tp", "hybrid"]
"""What a plan may say; ``defaults.filled`` refuses by name what is not planned yet."""
KvCache = Literal["fp32", "bf16", "fp16", "fp8", "int8"]
Generation = Literal["transformers", "vllm", "vllm-sleep", "vllm-server"]
EngineName = Literal["transformers", "vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama"]
VLLM_SHARE = 0.3
"""``vllm_gpu_memory_utilization`` of trl 1.16, trainer/grpo_config.py."""
MOST_SAMPLES = 100_000_000
"""Largest effective batch, and so most micro-batches of it; assumed."""
Checkpointing = Annotated[
    str, StringConstraints(pattern=r"^(none|full|selective|every-([2-9]|[1-9][0-9]))$")
]


class Effect(IntEnum):
    """What a value of a setting does to what is trained or answered; the smaller the better."""

    SAME = 0
    """The same result, up to rounding."""
    NEARLY = 1
    """Nearly the same: state in 8 bits, fp8, stochastic rounding, weights in fewer bits."""
    DIFFERENT = 2
    """Trains differently: another update rule, or weights without an fp32 copy."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The values of a setting whose effect is not the same result; all others' is."""

    nearly: tuple[Any, ...] = ()
    differently: tuple[Any, ...] = ()


@cache
def effect(setting: str, value: Any) -> Effect:
    """Return the effect of a value, as declared beside the setting."""
    for declared in Settings.model_fields[setting].metadata:
        if isinstance(declared, Differs):
            if value in declared.differently:
                return Effect.DIFFERENT
            if value in declared.nearly:
                return Effect.NEARLY
    return Effect.SAME


class Frozen(BaseModel):
    """A value that files can hold: immutable, unknown keys refused.

    Validators that check several keys at once raise ``PydanticCustomError`` whose type is
    a message id, so that the reader of a file can say it in the person's language.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Loader(Frozen):
    """DataLoader settings; a missing key is free."""

    num_workers: Annotated[int, Field(ge=0, le=256)] | None = None
    """Default: at most 8, one core of each GPU's share left free, at least 2; 4 where the
    cores are not known."""
    prefetch_factor: Annotated[int, Field(ge=1, le=64)] | None = None
    """Batches that each worker holds ready. Default: 2, as torch."""
    pin_memory: bool | None = None
    """Default: true; false on Apple's GPUs."""
    persistent_workers: bool | None = None
    """Default: true where there are workers."""


RecipeName = Literal[
    "plain", "hf-trainer", "hf-trainer-4.46", "hf-trainer-4.41", "hf-trainer-4.30",
    "hf-trainer-4.3", "trl-sft", "trl-sft-0.9", "trl-dpo", "trl-reward", "trl-grpo",
    "llama-factory", "axolotl", "peft-script", "accelerate", "lightning", "nanogpt",
    "torchvision", "diffusers-script",
]  # fmt: skip


def _renamed(name: Any) -> Any:
    """Return a recipe's name of today, so that earlier plans keep theirs."""
    return "hf-trainer-4.46" if name == "hf-trainer-4.45" else name


class Settings(Frozen):
    """What a person fixes; ``None`` is free for the search, and estimates take the default."""

    recipe: Annotated[RecipeName, BeforeValidator(_renamed)] | None = None
    """Who runs the step: sets the defaults of other keys, as ``workload/recipes.py`` states
    them. Default: none, the step that the exports write."""

    precision: Annotated[
        Precision | None, Differs(nearly=("fp8",), differently=("bf16", "fp16"))
    ] = None
    """Default: bf16-mixed from compute capability 8.0 on (and on other makers' GPUs with bf16
    units), fp16-mixed on 7.x (and on Apple's first GPUs), else fp32. Inference, where no master
    copy is kept: bf16 or fp16 where training would take it mixed."""
    quantization: Annotated[Quantization | None, Differs(nearly=_FEWER_BITS)] = None
    """Of frozen or served weights. Default: nf4 for qlora, q4_k_m for
    ollama and llama.cpp, mxfp4 where the weights are published so, else none."""
    kv_cache: Annotated[KvCache | None, Differs(nearly=("fp8", "int8"))] = None
    """Inference only. Default: the dtype of the weights."""
    engine: EngineName | None = None
    """Inference only: what serves. Default: transformers, as traced; llama.cpp for GGUF types,
    vllm for int4 and fp8 weights and for a quantised cache."""
    memory_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Inference with vllm, sglang or tensorrt-llm: the share of the memory that the engine takes at
    its start, as its own option says. Default: the engine's. grpo with a vLLM in the same process:
    the same of that vLLM. Default: 0.3, as TRL."""
    generation: Generation | None = None
    """grpo: what writes the answers. ``transformers``: the trained model itself. ``vllm``: a vLLM
    in the same process, which holds its share of the memory all the time; ``vllm-sleep``: one that
    gives it back before each update; ``vllm-server``: one on other GPUs. Default: transformers."""
    micro_batch: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Samples a forward pass on one GPU. Default: the largest divisor of the GPU's share
    of the effective batch that is at most 8. Inference: the requests served at once."""
    accumulation: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | None = None
    """Micro-batches an optimizer step. Default: what reaches the effective batch."""
    checkpointing: Checkpointing | None = None
    """Default: none; full where activations are offloaded."""
    activation_offload: bool | None = None
    """Whether what checkpointed blocks keep, their inputs, waits in pinned system memory.
    Default: false."""
    optimizer: Annotated[
        Optimizer | None,
        Differs(
            nearly=("adamw-8bit", "paged-adamw-8bit", "adamw-8bit-torchao", "adamw-4bit"),
            differently=("sgd", "adafactor", "lion", "muon"),
        ),
    ] = None
    """Default: adamw."""
    optimizer_implementation: Implementation | None = None
    """How torch's AdamW and SGD run: one kernel, operators over lists of parameters, or one
    parameter at a time. Default: the recipe's; without one, fused AdamW and foreach SGD."""
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Of sgd; 0 keeps no state. Default: 0.9."""
    optimizer_in_backward: Annotated[bool | None, Differs(differently=(True,))] = None
    """Whether each parameter is moved, and its gradient dropped, as soon as backward has it.
    Nothing can clip gradients by their norm then. Default: false."""
    optimizer_offload: Annotated[OptimizerOffload | None, Differs(differently=("cpu",))] = None
    """Where optimizer state lies: ``cpu`` as torchao's CPUOffloadOptimizer has it, with
    ``offload_gradients=False``: gradients are not clipped by their norm. Default: none."""
    attention: Attention | None = None
    """Default: sdpa."""
    cross_entropy: CrossEntropy | None = None
    """Whether all scores of a language model are made at once, in chunks of tokens that backward
    makes again, by Liger's fused kernel, with their gradients, or in tiles of 4,096 tokens and
    32,768 words that backward makes again, by TRL's. Default: the recipe's, else full."""
    kbit_preparation: KbitPreparation | None = None
    """qlora: what is cast to fp32 of what is not quantised: all, by PEFT's
    ``prepare_model_for_kbit_training`` (embeddings, norms, head), or the norms, where TRL casts
    embeddings and head back to bf16. Default: the recipe's, else none."""
    double_quantization: bool | None = None
    """qlora in 4 bits: whether the scales are quantised too. Default: the recipe's, else true."""
    adapter_dtype: AdapterDtype | None = None
    """lora and qlora: adapters in fp32, as PEFT makes them, or in the type of the weights.
    Default: the recipe's, else fp32."""
    input_gradients: bool | None = None
    """Frozen weights: whether the embedding's output gets a gradient
    (``enable_input_require_grads``). Default: the recipe's, else false."""
    scores_upcast: ScoresUpcast | None = None
    """What the loss of a language model makes of the scores: an fp32 copy (transformers from
    4.48 on), that and a shifted copy of it (4.46 and 4.47), the same where the model returns fp32
    scores (before), or neither. Default: the recipe's, else upcast."""
    loss_in_model: bool | None = None
    """Whether the model makes the loss itself, from labels that it is given, and holds its last
    hidden states until then. Default: the recipe's, else false."""
    expanded_heads: bool | None = None
    """Whether keys and values are repeated for each query head before SDPA: transformers before
    4.48, and later where a batch has padding. Default: the recipe's, else false."""
    reentrant: bool | None = None
    """Whether checkpointed blocks run again by torch's re-entrant way (``use_reentrant=True``), to
    their end, and hold what they return. Default: the recipe's, else false."""
    softmax_inputs: bool | None = None
    """Whether softmax keeps its input for backward too, as torch before 1.11 did. Default: the
    recipe's, else false."""
    position_tables: bool | None = None
    """Whether each block holds the cosines and sines of all ``max_position_embeddings`` of its
    rotary embedding (transformers before 4.41). Default: the recipe's, else false."""
    separate_experts: bool | None = None
    """Whether each expert of a mixture is linear layers of its own, which are quantised and
    adapted (transformers 4), and not part of one parameter (5). Default: the recipe's, else
    false."""
    output_kept: OutputKept | None = None
    """How long the loop holds what the model returned: until backward (no), to the end of the
    step, or until the next loss is made. Default: the recipe's, else no."""
    gradients_cleared: GradientsCleared | None = None
    """When the loop drops gradients: after the step, before the next backward, or never
    (``set_to_none=False``). Default: the recipe's, else after-step."""
    framework: Framework | None = None
    """Which torch runs the step, for its time: kernels of older ones are slower. What else
    differs, as attention and the optimizer's implementation, is a setting of its own.
    Default: torch-2.4, which stands for all from there on."""
    compile: bool | None = None
    """torch.compile. Default: false."""
    channels_last: bool | None = None
    """Default: false."""
    allocator: Allocator | None = None
    """Default: native."""
    strategy: StrategyWord | None = None
    """How several GPUs share the work. Default: single with one GPU, ddp with more."""
    reshard_after_forward: bool | None = None
    """fsdp2: whether a block drops the weights that it gathered after its forward pass, and
    gathers them again for backward. Default: true."""
    shard_degree: Annotated[int, Field(ge=2, le=4096)] | None = None
    """fsdp2: how many GPUs share one copy of the weights. More GPUs than that hold further copies,
    and add up their gradients (HSDP). Default: all GPUs share one."""
    tensor_degree: Annotated[int, Field(ge=2, le=64)] | None = None
    """fsdp2: over how many GPUs of a computer each layer is split as well (tensor parallelism):
    they compute the same samples together. Default: no layer is split. Serving by vllm, sglang or
    tensorrt-llm: the GPUs of one copy; more of them are further copies. Default: the fewest that
    hold a request."""
    pipeline_stages: Annotated[int, Field(ge=2, le=64)] | None = None
    """pp: how many parts the layers are cut into, each on a GPU of its own, that hand micro-batches
    on (1F1B). More GPUs than that hold further copies. Default: as many as there are GPUs."""
    shard_offload: bool | None = None
    """fsdp2: whether each GPU's shares of weights, gradients and optimizer state lie in pinned
    system memory, where the CPU updates them (torch's ``CPUOffloadPolicy``). Default: false."""
    learning_rate: Annotated[float, Field(gt=0, le=100)] | None = None
    """Default: left to the training script."""
    warmup: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """Steps of learning-rate warm-up."""
    loader: Loader = Loader()


class FullSettings(Frozen):
    """Settings with every key decided: what an estimate is made for and an export writes."""

    precision: Precision
    quantization: Quantization
    kv_cache: KvCache
    micro_batch: int
    accumulation: int
    checkpointing: Checkpointing
    optimizer: Optimizer = "adamw"
    attention: Attention = "sdpa"
    compile: bool = False
    channels_last: bool = False
    allocator: Allocator = "native"
    strategy: Strategy
    reshard_after_forward: bool = True
    shard_degree: int | None = None
    """None where all GPUs share one copy."""
    tensor_degree: int | None = None
    """None where no layer is split."""
    pipeline_stages: int | None = None
    """None where each GPU has all layers."""
    shard_offload: bool = False
    learning_rate: float | None = None
    warmup: int | None = None
    num_workers: int
    prefetch_factor: int
    pin_memory: bool
    persistent_workers: bool
    optimizer_in_backward: bool = False
    optimizer_offload: OptimizerOffload = "none"
    cross_entropy: CrossEntropy = "full"
    activation_offload: bool = False
    engine: EngineName = "transformers"
    memory_share: float | None = None
    """None for the engine's own."""
    generation: Generation = "transformers"
    recipe: RecipeName | None = None
    optimizer_implementation: Implementation | None = None
    """None where the optimizer has no choice."""
    momentum: float = 0.9
    kbit_preparation: KbitPreparation = "none"
    double_quantization: bool = True
    adapter_dtype: AdapterDtype = "fp32"
    input_gradients: bool = False
    scores_upcast: ScoresUpcast = "upcast"
    loss_in_model: bool = False
    expanded_heads: bool = False
    reentrant: bool = False
    softmax_inputs: bool = False
    position_tables: bool = False
    separate_experts: bool = False
    output_kept: OutputKept = "no"
    gradients_cleared: GradientsCleared = "after-step"
    framework: Framework = "torch-2.4"

    @property
    def update(self) -> str:
        """The update as a trace names it: with how it runs, where that is not the usual way."""
        if self.optimizer not in USUAL_IMPLEMENTATION or self.optimizer_offload == "cpu":
            return self.optimizer
        usual = USUAL_IMPLEMENTATION[self.optimizer]
        how = self.optimizer_implementation or usual
        own = "" if how == usual else f"-{how}"
        plain = "-plain" if self.optimizer == "sgd" and self.momentum == 0 else ""
        return f"{self.optimizer}{plain}{own}"

    @property
    def beside(self) -> float:
        """Share of the memory that a vLLM in the same process holds while it writes answers."""
        within = self.generation in ("vllm", "vllm-sleep")
        return (self.memory_share or VLLM_SHARE) if within else 0.0

    @property
    def several(self) -> bool:
        """Whether all GPUs of the machine take part."""
        return self.strategy != "single"

    @property
    def itemsize(self) -> int:
        """Bytes of a number in the type that computes, where nothing is quantised."""
        return 4 if self.precision in ("fp32", "tf32") else 2

    @property
    def shards(self) -> bool:
        """Whether a GPU holds only its share of something that one GPU would hold whole."""
        return self.strategy in SHARDED

    @property
    def casts_shares(self) -> bool:
        """Whether all weights are cast to 16 bits as they are gathered: no autocast then."""
        return self.shards and self.precision.endswith("-mixed")

    @property
    def together(self) -> int:
        """GPUs that work on the same samples: those of a split layer, or the stages."""
        return (self.tensor_degree or 1) * (self.pipeline_stages or 1)

    def ranks_of(self, gpu_count: int) -> int:
        """Return how many of so many GPUs take samples of their own; one of each split layer."""
        return max(gpu_count // self.together, 1)

    def shards_of(self, gpu_count: int) -> int:
        """Return how many of so many GPUs share one copy of what is shared out.

        Of a split layer: of the part that each holds.
        """
        ranks = self.ranks_of(gpu_count)
        degree = self.shard_degree or ranks
        return degree if ranks % degree == 0 else ranks

    @property
    def recomputing(self) -> str:
        """The policy of checkpointing, with how its blocks run again and where inputs wait."""
        derived = self.checkpointing not in ("none", "selective")
        again = "+reentrant" if self.reentrant and derived else ""
        return self.checkpointing + again + ("+offload" if self.activation_offload else "")
