"""Target ``unsloth``: a script that adapts a language model on one GPU."""

import textwrap
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from trainwright.export import configs, hf_trainer, trl
from trainwright.export.comments import WIDTH
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.schema import Plan
from trainwright.quoting import python_file, quoted
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {
    "torch": ">=2.10,<2.15",
    "unsloth": ">=2026.10.9,<2027",
    "transformers": ">=5.2,<=5.17",
    "trl": ">=0.24,<=1.15",
    "peft": ">=0.18",
}
"""What unsloth 2026.10.9 asks for, from the version on that has the keys written here."""
FILE = "train_unsloth.py"
BUILDERS = {
    **dict.fromkeys((".json", ".jsonl"), "json"),
    ".parquet": "parquet",
    ".csv": "csv",
    ".txt": "text",
}
"""Ending of a file of data -> what ``load_dataset`` reads it with."""
NOT_THERE = ("train_sampling_strategy", "gradient_checkpointing_kwargs")
"""Of the Trainer's keys, one that its earlier versions lack, and one of unsloth's own making."""
PROGRAM = """\
from unsloth import FastLanguageModel

# unsloth changes the libraries below while it is imported.
# isort: split
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer


def main() -> None:
{body}

if __name__ == "__main__":
    main()
"""


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return train_unsloth.py.

    Raises:
        UserError: the model or the task is not one that unsloth adapts, or GPUs share the work.
    """
    configs.check_task(plan, "unsloth")
    if not plan.workload.adapts:
        raise UserError.of("export.not-of-target", target="unsloth", task=plan.workload.task)
    if settings.several:
        values = {"name": "unsloth", "strategy": settings.strategy}
        raise UserError.of("export.one-gpu", **values, able=["trl", "axolotl", "llamafactory"])
    above = configs.head(
        plan,
        settings,
        reasons,
        language,
        commands=(f"python {FILE}",),
        made_for=made_for,
        lost=not_expressible(plan, settings),
        remarks=(Message.of("export.remark.unsloth"),),
    )
    return configs.single(FILE, python_file(f"{above}\n{_program(plan, settings)}"))


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the script leaves out or replaces, one message each."""
    own = {"recipe": "trl-sft", "loss_in_model": True, "reentrant": True}
    found = lost(plan, settings, _replaced(settings), own)
    if settings.attention == "sdpa":
        return found
    chosen = {"setting": "attention", "value": settings.attention, "name": "unsloth"}
    return (*found, Message.of("export.lost.own-choice", **chosen))


def _replaced(settings: FullSettings) -> Replacements:
    checkpointed = settings.checkpointing != "none"
    in_4_bits = settings.quantization in ("nf4", "int4", "fp4")
    return {
        **hf_trainer.REPLACED,
        # Adapters are kept in fp32, and autocast computes in the type of the weights.
        "precision": {
            **dict.fromkeys(("fp32", "tf32", "bf16", "fp8"), "bf16-mixed"),
            "fp16": "fp16-mixed",
        },
        "quantization": {"int4": "nf4", "fp4": "nf4", "fp8": "int8"},
        "checkpointing": {"selective": "full", **{f"every-{k}": "full" for k in range(2, 100)}},
        # What it offloads are the inputs of checkpointed blocks.
        "activation_offload": {} if checkpointed else {True: False},
        "cross_entropy": dict.fromkeys(("full", "fused", "tiled"), "chunked"),
        "kbit_preparation": {"all": "none", "norms": "none"},
        "adapter_dtype": {"weights": "fp32"},
        "input_gradients": {not checkpointed: checkpointed},
        "double_quantization": {False: True} if in_4_bits else {},
        "compile": {True: False},
        **MODEL_UNTOUCHED,
        "allocator": {"expandable": "native"},
    }


def _program(plan: Plan, settings: FullSettings) -> str:
    """Return the script below its comments."""
    data = configs.data_name(plan)
    builder = BUILDERS.get(PurePath(data).suffix.lower())
    place = quoted(data)
    source = f'"{builder}", data_files={place}' if builder else place
    parts = (
        "model, tokenizer = FastLanguageModel.from_pretrained(",
        *_keywords(loading(plan, settings)),
        ")",
        "model = FastLanguageModel.get_peft_model(",
        "    model,",
        *_keywords(adapters(plan, settings)),
        ")",
        "arguments = SFTConfig(",
        *_keywords(arguments(plan, settings)),
        ")",
        f'data = load_dataset({source}, split="train")',
        "trainer = SFTTrainer(",
        "    model=model, processing_class=tokenizer, train_dataset=data, args=arguments",
        ")",
        "trainer.train()",
        'trainer.save_model("adapters")',
    )
    return PROGRAM.format(body=textwrap.indent("\n".join(parts) + "\n", "    "))


def loading(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the arguments of ``FastLanguageModel.from_pretrained``."""
    quantization = carried(settings, _replaced(settings), "quantization")
    fp16 = carried(settings, _replaced(settings), "precision") == "fp16-mixed"
    return {
        "model_name": configs.model_name(plan),
        "max_seq_length": configs.length(plan),
        "dtype": "float16" if fp16 else "bfloat16",
        "load_in_4bit": quantization == "nf4",
        "load_in_8bit": quantization == "int8",
    }


def adapters(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the arguments of ``FastLanguageModel.get_peft_model``, beside the model.

    Raises:
        UserError: all layers are meant, and PEFT would take some that the plan leaves alone.
    """
    lora = plan.workload.lora or Lora()
    found = {
        "r": lora.rank,
        "lora_alpha": round(lora.alpha),
        "lora_dropout": lora.dropout,
        "target_modules": configs.adapted(plan, "unsloth", experts=True) or "all-linear",
        "use_gradient_checkpointing": _checkpointing(settings),
    }
    if lora.variant != "lora":
        found[f"use_{lora.variant}"] = True
    return found


def _checkpointing(settings: FullSettings) -> bool | str:
    if settings.checkpointing == "none":
        return False
    return "unsloth" if settings.activation_offload else True


def arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the arguments of TRL's ``SFTConfig``."""
    replaced = _replaced(settings)
    names = ("precision", "compile", "checkpointing")
    written = settings.model_copy(
        update={name: carried(settings, replaced, name) for name in names}
    )
    found = trl.trainer_arguments(plan, written)
    kept = {key: value for key, value in found.items() if key not in NOT_THERE}
    packs = plan.workload.inputs.batching == "packed"
    return {"max_length": configs.length(plan), "packing": packs, **kept}


def _keywords(values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a call's arguments, as formatters lay them out."""
    return [line for name, value in values.items() for line in _keyword(name, value)]


def _keyword(name: str, value: Any) -> list[str]:
    line = f"    {name}={_literal(value)},"
    if len(line) + 4 <= WIDTH or not isinstance(value, list):
        return [line]
    return [f"    {name}=[", *(f"        {_literal(one)}," for one in value), "    ],"]


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_literal(key)}: {_literal(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)
