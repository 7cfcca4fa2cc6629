"""What the rows of the plan form offer, in their order."""

from trainwright.workload.engines import GGUF, WEIGHTS
from trainwright.workload.recipes import RECIPES as RECIPE_DATA

TASKS = ("pretrain", "full", "lora", "qlora", "prompt", "prefix", "infer")
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
STRATEGIES = ("single", "ddp", "fsdp2", "zero1", "zero2", "zero3")
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
