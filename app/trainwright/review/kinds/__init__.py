"""The kinds of files that are read, one idea of a tool a module."""

from collections.abc import Mapping

from trainwright.review.kinds.accelerate import ACCELERATE
from trainwright.review.kinds.axolotl import AXOLOTL
from trainwright.review.kinds.deepspeed import DEEPSPEED
from trainwright.review.kinds.exported import PLAN, SCRIPT_ARGUMENTS
from trainwright.review.kinds.huggingface import (
    TRAINING_ARGUMENTS,
    TRL_DPO,
    TRL_GRPO,
    TRL_KTO,
    TRL_REWARD,
    TRL_RLOO,
    TRL_SFT,
)
from trainwright.review.kinds.kind import Key, Kind, declared
from trainwright.review.kinds.lightning import LIGHTNING
from trainwright.review.kinds.litgpt import FOUNDRY, LITGPT, NANOGPT
from trainwright.review.kinds.llamafactory import LLAMAFACTORY, LLAMAFACTORY_V1
from trainwright.review.kinds.models import (
    BITS_AND_BYTES,
    GENERATION_CONFIG,
    MODEL_CONFIG,
    OF_PLANS,
    OTHER_ADAPTERS,
    PEFT,
)
from trainwright.review.kinds.options import (
    DIFFUSERS_SCRIPT,
    MEGATRON_SWIFT,
    NEMO,
    OPENRLHF,
    OWN_SCRIPT,
    SCRIPT,
    SWIFT,
    TIMM,
    VERL,
)
from trainwright.review.kinds.scripts import (
    CHECKPOINTING_CALL,
    FROM_PRETRAINED,
    HF_TRAINER,
    KBIT,
    TRAINER,
    UNSLOTH,
)
from trainwright.review.kinds.serving import (
    DEVICES,
    LAUNCH,
    LLAMA_SERVER,
    MODELFILE,
    SGLANG,
    TGI,
    TRTLLM,
    VLLM,
)
from trainwright.review.kinds.torchtitan import TORCHTITAN
from trainwright.review.kinds.torchtune import TORCHTUNE

__all__ = ["KINDS", "OF_PLANS", "Key", "Kind", "declared"]

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        TRAINING_ARGUMENTS,
        TRL_SFT,
        TRL_DPO,
        TRL_REWARD,
        TRL_GRPO,
        TRL_KTO,
        TRL_RLOO,
        AXOLOTL,
        LLAMAFACTORY,
        LLAMAFACTORY_V1,
        TORCHTUNE,
        TORCHTITAN,
        LIGHTNING,
        LITGPT,
        FOUNDRY,
        NANOGPT,
        ACCELERATE,
        DEEPSPEED,
        PEFT,
        OTHER_ADAPTERS,
        MODEL_CONFIG,
        GENERATION_CONFIG,
        BITS_AND_BYTES,
        VLLM,
        SGLANG,
        TGI,
        TRTLLM,
        LLAMA_SERVER,
        MODELFILE,
        LAUNCH,
        DEVICES,
        SCRIPT,
        SWIFT,
        MEGATRON_SWIFT,
        OPENRLHF,
        VERL,
        NEMO,
        TIMM,
        OWN_SCRIPT,
        DIFFUSERS_SCRIPT,
        FROM_PRETRAINED,
        CHECKPOINTING_CALL,
        KBIT,
        TRAINER,
        HF_TRAINER,
        UNSLOTH,
        PLAN,
        SCRIPT_ARGUMENTS,
    )
}
"""By name; of kinds that fit a file equally well, the first is taken."""
