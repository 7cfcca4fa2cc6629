"""What the rows of the plan form offer, in their order."""

from collections.abc import Sequence

from trainwright.messages import Message
from trainwright.ui.widgets.controls import Choice
from trainwright.workload.engines import GGUF, WEIGHTS
from trainwright.workload.recipes import RECIPES as RECIPE_DATA

TASKS = ("pretrain", "full", "lora", "qlora", "prompt", "prefix", "infer")
OBJECTIVES = ("next-token", "dpo", "reward", "grpo")
KEPT = ("none", "kept")
GENERATIONS = ("transformers", "vllm", "vllm-sleep", "vllm-server")
REFERENCES = ("model", "adapter-off", "precomputed")
PRECISIONS = ("fp32", "tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16")
CHECKPOINTING = (
    "none",
    "full",
    "selective",
    "every-2",
    "every-3",
    "every-4",
    "every-6",
    "every-8",
)
OPTIMIZERS = (
    "adamw",
    "adamw-8bit",
    "paged-adamw-8bit",
    "paged-adamw",
    "adamw-8bit-torchao",
    "adamw-4bit",
    "lion",
    "muon",
    "sgd",
    "adafactor",
)
OFFLOADS = ("none", "cpu")
BATCHING = ("padded", "packed")
ATTENTION = ("eager", "sdpa", "flash")
CROSS_ENTROPY = ("full", "chunked", "fused", "tiled")
STRATEGIES = ("single", "ddp", "fsdp2", "zero1", "zero2", "zero3", "pp")
ALLOCATORS = ("native", "expandable")
SYSTEMS = ("linux", "windows")
FROZEN = ("nf4", "fp4", "int8")
SERVED = ("none", "int8", "int4", "nf4", "fp4", "fp8", "mxfp4", *GGUF)
RECIPES = tuple(RECIPE_DATA)
IMPLEMENTATIONS = ("fused", "foreach", "for-loop")
KBIT = ("none", "all", "norms")
ADAPTER_DTYPES = ("fp32", "weights")
SCORES = ("upcast", "shifted", "returned", "none")
FRAMEWORKS = ("torch-1.12", "torch-2.0", "torch-2.4")
OUTPUT_KEPT = ("no", "step", "next")
GRADIENTS = ("after-step", "before-backward", "zeroed")
ENGINES = tuple(WEIGHTS)
VARIANTS = ("lora", "rslora", "dora")
KV_CACHE = ("fp32", "bf16", "fp16", "fp8", "int8")


def named(kind: str, keys: Sequence[str]) -> list[Choice]:
    """Return choices that have a name in each language."""
    return [(key, Message.of(f"ui.{kind}.{key}")) for key in keys]


def verbatim(keys: Sequence[str]) -> list[Choice]:
    """Return choices that everyone writes alike."""
    return [(key, key) for key in keys]


def weights(keys: Sequence[str]) -> list[Choice]:
    """Return types of weights; files of llama.cpp have names that everyone writes alike."""
    known = ("none", "nf4", "fp4", "int8", "int4", "fp8")
    return [
        (key, Message.of(f"ui.quantization.{key}") if key in known else key.upper()) for key in keys
    ]
