"""Situations that people ask advice for, and what an expert expects, in words.

Written before the search was run on them. Some were corrected after it, and say what they had
overlooked. Columns: name; preset; task; inputs; GPU; GPUs; system memory in GiB; effective batch;
whether it fits as asked; the effect that has to be accepted; words.
"""

from typing import NamedTuple


class Situation(NamedTuple):
    """One row."""

    name: str
    preset: str
    task: str
    inputs: dict[str, int]
    gpu: str
    count: int
    memory: int
    batch: int
    fits: bool
    effect: str
    expects: str


def _text(tokens: int) -> dict[str, int]:
    return {"sequence_length": tokens}


def _served(prompt: int, new: int, concurrent: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "new_tokens": new, "concurrent": concurrent}


SITUATIONS = tuple(Situation(*row) for row in (
    ("qlora-8b-12", "llama-3.1-8b", "qlora", _text(4096), "rtx-3060-12gb", 1, 32, 16, True, "same",
     "As asked: full checkpointing and the loss in chunks."),
    ("qlora-8b-16", "llama-3.1-8b", "qlora", _text(2048), "rtx-4080", 1, 32, 16, True, "same",
     "As asked, checkpointed, micro-batch of a few."),
    ("qlora-8b-24", "llama-3.1-8b", "qlora", _text(2048), "rtx-4090", 1, 64, 16, True, "same",
     "As asked with a larger micro-batch; checkpointing only as far as it pays."),
    ("qlora-7b-12-short", "qwen-2.5-7b", "qlora", _text(512), "rtx-3060-12gb", 1, 32, 16, True,
     "same", "As asked; the large vocabulary wants the loss in chunks."),
    ("qlora-8b-8", "llama-3.1-8b", "qlora", _text(2048), "rtx-4060", 1, 32, 16, True, "same",
     "Just so, at micro-batch 1 with everything that saves; or a way out if not."),
    ("qlora-mixtral-24", "mixtral-8x7b", "qlora", _text(1024), "rtx-4090", 1, 128, 8, False, "same",
     "47 billion weights in 4 bits take 24 GB by themselves: nothing fits."),
    ("qlora-mixtral-48", "mixtral-8x7b", "qlora", _text(1024), "rtx-a6000", 1, 128, 8, False,
     "same",
     "transformers 5 stacks experts in a parameter, which bitsandbytes leaves in 16 bits: 85 GiB."),
    ("lora-8b-12", "llama-3.1-8b", "lora", _text(2048), "rtx-3060-12gb", 1, 32, 16, False, "same",
     "16 GB of weights: QLoRA is the way out."),
    ("lora-8b-24", "llama-3.1-8b", "lora", _text(2048), "rtx-4090", 1, 64, 16, True, "same",
     "As asked: checkpointing, chunked loss or micro-batch 1 or 2."),
    ("lora-8b-80", "llama-3.1-8b", "lora", _text(2048), "h100-80gb", 1, 256, 16, True, "same",
     "No checkpointing at a few samples."),
    ("lora-8b-4x12", "llama-3.1-8b", "lora", _text(2432), "rtx-3060-12gb", 4, 64, 16, False, "same",
     "Does not fit under DDP; QLoRA on all four is the first way out."),
    ("lora-8b-2x24", "llama-3.1-8b", "lora", _text(2048), "rtx-4090", 2, 64, 16, True, "same",
     "DDP over both."),
    ("lora-1b-8", "llama-3.2-1b", "lora", _text(2048), "rtx-4060", 1, 32, 16, True, "same",
     "As asked."),
    ("lora-3b-12", "llama-3.2-3b", "lora", _text(2048), "rtx-3060-12gb", 1, 32, 16, True, "same",
     "As asked, checkpointed, the loss in chunks."),
    ("lora-14b-24", "qwen-2.5-14b", "lora", _text(1024), "rtx-4090", 1, 64, 16, False, "same",
     "28 GB of weights: QLoRA or a smaller model."),
    ("lora-14b-48", "qwen-2.5-14b", "lora", _text(1024), "rtx-a6000", 1, 128, 16, True, "same",
     "As asked with checkpointing."),
    ("lora-moe-80", "qwen-3-30b-a3b", "lora", _text(1024), "h100-80gb", 1, 256, 8, True, "same",
     "61 GB of weights, checkpointed, small micro-batch."),
    ("lora-moe-16b-48", "deepseek-v2-lite", "lora", _text(1024), "rtx-a6000", 1, 128, 8, True,
     "same", "31 GB of weights leave room for some samples."),
    ("full-1b-24", "llama-3.2-1b", "full", _text(1024), "rtx-4090", 1, 64, 16, True, "same",
     "20 GB of state: as asked with checkpointing and the loss in chunks."),
    ("full-1b-12", "llama-3.2-1b", "full", _text(1024), "rtx-3060-12gb", 1, 64, 16, True,
     "different",
     "AdamW in fp32 does not fit, nor in 8 bits: weights in bf16, or the update on the CPU."),
    ("full-1b-16", "llama-3.2-1b", "full", _text(1024), "rtx-4080", 1, 64, 16, True, "different",
     "State in 8 bits takes the last 0.2 GiB: p95 is over the card. Weights in bf16 with AdamW."),
    ("full-1b-80", "llama-3.2-1b", "full", _text(2048), "h100-80gb", 1, 256, 16, True, "same",
     "No checkpointing needed at a few samples."),
    ("full-3b-24", "llama-3.2-3b", "full", _text(1024), "rtx-4090", 1, 64, 16, True,
     "different", "Weights and gradients in fp32 alone take 26 GB; in bf16 they take 13 GB."),
    ("full-3b-80", "llama-3.2-3b", "full", _text(2048), "h100-80gb", 1, 256, 16, True, "same",
     "52 GB of state: as asked with some checkpointing."),
    ("full-8b-80", "llama-3.1-8b", "full", _text(2048), "h100-80gb", 1, 256, 16, True,
     "different",
     "128 GB of state on one card, 80 GB in 8 bits. Weights in bf16 with AdamW take 64 GB."),
    ("full-0.5b-12", "qwen-2.5-0.5b", "full", _text(1024), "rtx-3060-12gb", 1, 32, 16, True, "same",
     "8 GB of state: the loss in chunks, as the vocabulary is large."),
    ("full-0.5b-8", "qwen-2.5-0.5b", "full", _text(512), "rtx-4060", 1, 32, 16, True, "nearly",
     "8 bits of state, little else left."),
    ("gpt2-12", "gpt2", "pretrain", _text(1024), "rtx-3060-12gb", 1, 32, 48, True, "same",
     "As asked, no checkpointing, a few samples a micro-batch."),
    ("gpt2-xl-24", "gpt2-xl", "full", _text(1024), "rtx-4090", 1, 64, 16, True, "nearly",
     "25 GB of AdamW state: 8 bits."),
    ("gpt2-4x24", "gpt2", "pretrain", _text(1024), "rtx-4090", 4, 64, 96, True, "same",
     "DDP, no checkpointing."),
    ("encoder-8", "bert-base", "full", _text(512), "rtx-4060", 1, 32, 32, True, "same",
     "As asked, without checkpointing or with little."),
    ("encoder-large-12", "bert-large", "full", _text(512), "rtx-3060-12gb", 1, 32, 32, True, "same",
     "As asked, a small micro-batch."),
    ("encoder-t4", "roberta-base", "full", _text(256), "t4", 1, 32, 32, True, "same",
     "fp16 on Turing, as there is no bf16."),
    ("resnet-224", "resnet50", "pretrain", {"image_size": 224}, "rtx-4090", 1, 64, 256, True,
     "same",
     "The whole batch at once or in two, mixed precision."),
    ("resnet-224-8", "resnet50", "pretrain", {"image_size": 224}, "rtx-4060", 1, 32, 256, True,
     "same", "Accumulation."),
    ("vit-224", "vit-b16", "full", {"image_size": 224}, "rtx-3060-12gb", 1, 32, 256, True, "same",
     "Accumulation rather than checkpointing."),
    ("vit-h-224", "vit-h14", "full", {"image_size": 224}, "rtx-4090", 1, 64, 64, True, "same",
     "10 GB of state; checkpointing where it lets the micro-batch grow, else none."),
    ("convnext-224", "convnext-b", "full", {"image_size": 224}, "l4", 1, 64, 128, True, "same",
     "As asked with accumulation."),
    ("sdxl-1024-lora-24", "sdxl-unet", "lora", {"image_size": 1024}, "rtx-4090", 1, 64, 8, True,
     "same", "As asked."),
    ("sdxl-1024-lora-12", "sdxl-unet", "lora", {"image_size": 1024}, "rtx-3060-12gb", 1, 32, 8,
     True, "same", "As asked, one sample at a time with checkpointing."),
    ("sd15-512-lora-8", "sd-1.5-unet", "lora", {"image_size": 512}, "rtx-4060", 1, 16, 8, True,
     "same", "As asked."),
    ("flux-1024-lora-24", "flux-dit", "lora", {"image_size": 1024}, "rtx-4090", 1, 64, 4, False,
     "same", "24 GB of weights do not fit 24 GB: 4-bit weights or a larger card."),
    ("serve-8b-24-long", "llama-3.1-8b", "infer", _served(16_384, 512, 1), "rtx-4090", 1, 64, 1,
     True, "same", "16 GB of weights and 2 GB of cache fit."),
    ("serve-8b-12", "llama-3.1-8b", "infer", _served(2048, 256, 1), "rtx-3060-12gb", 1, 32, 1,
     False, "same", "16-bit weights do not fit; fewer bits are the way out."),
    ("host-scarce", "llama-3.2-1b", "full", _text(1024), "rtx-3060-12gb", 1, 4, 16, True,
     "different", "4 GiB of system memory hold no optimizer: weights in bf16, and no offloading."),
    ("nothing-at-all", "llama-3.1-70b", "lora", _text(4096), "rtx-3060-12gb", 1, 32, 16, False,
     "same", "140 GB of weights: other hardware or a far smaller model."),
))  # fmt: skip
