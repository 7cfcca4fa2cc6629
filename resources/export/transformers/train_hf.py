"""Trains with the Trainer of transformers, by training_args.json and script_args.json.

training_args.json holds nothing but TrainingArguments, under transformers' own names; what
concerns the model and the data is in script_args.json.
"""

import argparse
import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strict import HERE, InputError, read


@dataclass(frozen=True)
class ScriptArgs:
    """The model, its adapters and the data."""

    format: int
    gpus: int
    """Processes that train together."""
    effective: int
    """Samples an optimizer step."""
    strategy: Literal["single", "ddp", "fsdp2"]
    shard_degree: int | None
    """Of fsdp2: processes that share one copy of the weights; null: all of them."""
    shard_offload: bool
    """Of fsdp2: whether shares lie in pinned host memory, where the CPU moves them."""
    """fsdp2 shares weights, gradients and optimizer state between the processes."""
    task: Literal["pretrain", "full", "lora", "qlora", "prompt", "prefix"]
    config: str
    """Folder of config.json."""
    weights: str | None
    """Folder or hub id of pretrained weights; null starts from random ones."""
    dtype: Literal["float32", "bfloat16", "float16"]
    attention: Literal["eager", "sdpa", "sdpa_expanded", "flash_attention_2"]
    """sdpa_expanded: SDPA with keys and values repeated for each query head."""
    quantization: Literal["none", "int8", "nf4", "fp4"]
    """Of the frozen weights under LoRA."""
    double_quantization: bool
    """Whether the scales of 4-bit weights are quantised too."""
    kbit_preparation: Literal["none", "all", "norms"]
    """What of the weights that are not quantised is cast to fp32."""
    adapter_dtype: Literal["fp32", "weights"]
    input_gradients: bool
    """Whether the output of frozen embeddings gets a gradient."""
    lora_rank: int | None
    """null trains every weight."""
    lora_alpha: float | None
    lora_targets: list[str]
    """Names of linear layers; none means every one except the output head."""
    lora_variant: Literal["lora", "rslora", "dora"]
    lora_dropout: float
    frozen: list[str]
    """Parts of the model whose weights are left as they are: see freezing.py."""
    virtual_tokens: int
    """Trained tokens before the text; 0 where the task is neither prompt nor prefix."""
    channels_last: bool
    allocator: Literal["native", "expandable"]
    data: str | None
    tokenizer: str | None
    sequence_length: int
    packed: bool
    """Whether samples follow each other in rows of sequence_length tokens."""


def main() -> int:
    """Run the training; 2 where something must be put right first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="dataset: .npy, .bin, .jsonl, .txt, or a folder of them")
    parser.add_argument("--tokenizer", help="folder or hub id, for text that is not tokenised")
    parser.add_argument("--weights", help="folder or hub id of pretrained weights")
    parser.add_argument("--synthetic", action="store_true", help="made-up data, to try it out")
    parser.add_argument("--random-weights", action="store_true", help="train from scratch")
    parser.add_argument("--steps", type=int, help="stop after so many optimizer steps")
    parser.add_argument("--cpu", action="store_true", help="run without a GPU")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--selfcheck", action="store_true", help="say what is really active")
    options = parser.parse_args()
    try:
        script = read(ScriptArgs, HERE / "script_args.json")
        given = {key: getattr(options, key) for key in ("data", "tokenizer", "weights")}
        script = dataclasses.replace(script, **{k: v for k, v in given.items() if v is not None})
        if script.allocator == "expandable":
            # The allocator reads this once, when torch is imported.
            os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
        train(script, options)
    except InputError as error:
        sys.stderr.write(f"{error.line()}\n")
        return 2
    return 0


def train(script: ScriptArgs, options: argparse.Namespace) -> None:
    """Build everything and train."""
    import made
    import torch
    from dataset import Text, collator, open_text
    from transformers import AutoConfig, AutoTokenizer, Trainer, set_seed

    arguments = training_arguments(options)
    set_seed(arguments.seed)
    config = AutoConfig.from_pretrained(HERE / script.config)
    tokenizer = AutoTokenizer.from_pretrained(script.tokenizer) if script.tokenizer else None
    text = Text.of(config, tokenizer)
    if options.synthetic:
        dataset: Any = made.MadeTokens(text, script.sequence_length, arguments.seed)
    elif script.data is None:
        raise InputError("no dataset: name one with --data PATH, or try it with --synthetic")
    else:
        dataset = open_text(
            Path(script.data), script.sequence_length, text, tokenizer, packed=script.packed
        )
    model = build(script, config, options)
    if script.channels_last:
        model = model.to(memory_format=torch.channels_last)
    checks: list[Any] = []
    if options.selfcheck:
        from selfcheck import Selfcheck

        checks = [Selfcheck(script, read_values(HERE / "training_args.json"))]
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=dataset,
        data_collator=collator(text),
        processing_class=tokenizer,
        callbacks=checks,
    )
    for check in checks:
        check.trainer = trainer
    trainer.train(resume_from_checkpoint=options.resume or None)
    trainer.save_model()


def training_arguments(options: argparse.Namespace) -> Any:
    """Return TrainingArguments from the file; a misspelt key is refused by transformers."""
    from transformers import HfArgumentParser, TrainingArguments

    path = HERE / "training_args.json"
    values = read_values(path)
    if options.steps is not None:
        values["max_steps"] = options.steps
    if options.cpu:
        # No tf32 and no pinned memory without a GPU, and no fp16 gradient scaling.
        values |= {"use_cpu": True, "dataloader_pin_memory": False, "fp16": False}
        values.pop("tf32", None)
        values.pop("ddp_backend", None)
    try:
        if (sizes := values.get("parallelism_config")) is not None:
            from accelerate.parallelism_config import ParallelismConfig

            values["parallelism_config"] = ParallelismConfig(**sizes)
        (arguments,) = HfArgumentParser(TrainingArguments).parse_dict(values)
    except (ValueError, TypeError, ImportError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    return arguments


def read_values(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file."""
    import json

    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: {error}") from error


def build(script: ScriptArgs, config: Any, options: argparse.Namespace) -> Any:
    """Return the model, with adapters where the task is LoRA."""
    import hf_models
    import torch

    untrained = script.weights is None
    if untrained and script.quantization != "none":
        raise InputError("quantized weights are made from trained ones: name them with --weights")
    if (
        untrained
        and script.task != "pretrain"
        and not (options.synthetic or options.random_weights)
    ):
        raise InputError(
            f"task {script.task} starts from trained weights: name them with --weights "
            "FOLDER-OR-HUB-ID, or say --random-weights"
        )
    weights = hf_models.Weights(
        script.weights,
        getattr(torch, script.dtype),
        script.attention,
        script.quantization,
        script.double_quantization,
        script.kbit_preparation,
        script.strategy == "fsdp2",
    )
    model = hf_models.build_transformer(config, weights)
    if script.virtual_tokens:
        return hf_models.prompted(model, script.task, script.virtual_tokens)
    if script.lora_rank is None:
        return frozen_in_parts(model, script.frozen)
    adapters = hf_models.Adapters(
        script.lora_rank,
        script.lora_alpha,
        script.lora_targets,
        script.lora_variant,
        script.lora_dropout,
        script.adapter_dtype,
        script.input_gradients,
    )
    return hf_models.adapted(model, adapters)


def frozen_in_parts(model: Any, names: list[str]) -> Any:
    """Return the model, the named weights left as they are."""
    from freezing import UnknownNameError, frozen

    weights = dict(model.named_parameters(remove_duplicate=False))
    try:
        for path in frozen(weights, names):
            weights[path].requires_grad_(False)
    except UnknownNameError as error:
        raise InputError(f"frozen: {error}") from None
    return model


if __name__ == "__main__":
    sys.exit(main())
