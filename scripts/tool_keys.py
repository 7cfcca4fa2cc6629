"""Write resources/review/keys.json: the keys and defaults that training tools declare.

The packages are read as text and never imported, so that one folder can hold them all:

    pip install --no-deps --target TOOLS transformers accelerate deepspeed peft trl axolotl \
        llamafactory torchtitan lightning sglang unsloth
    python scripts/tool_keys.py TOOLS [MORE-FOLDERS...]
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "resources" / "review" / "keys.json"
HF = "transformers/training_args.py:TrainingArguments"

CLASSES: dict[str, tuple[str, ...]] = {
    "training-arguments": (HF,),
    "trl-sft": (HF, "trl/trainer/base_config.py:_BaseConfig", "trl/trainer/sft_config.py:SFTConfig",
                "trl/scripts/utils.py:ScriptArguments", "trl/trainer/model_config.py:ModelConfig"),
    "trl-dpo": (HF, "trl/trainer/base_config.py:_BaseConfig", "trl/trainer/dpo_config.py:DPOConfig",
                "trl/scripts/utils.py:ScriptArguments", "trl/trainer/model_config.py:ModelConfig"),
    "trl-reward": (HF, "trl/trainer/base_config.py:_BaseConfig",
                   "trl/trainer/reward_config.py:RewardConfig",
                   "trl/scripts/utils.py:ScriptArguments",
                   "trl/trainer/model_config.py:ModelConfig"),
    "trl-grpo": (HF, "trl/trainer/base_config.py:_BaseConfig",
                 "trl/trainer/grpo_config.py:GRPOConfig", "trl/scripts/grpo.py:GRPOScriptArguments",
                 "trl/scripts/utils.py:ScriptArguments", "trl/trainer/model_config.py:ModelConfig"),
    "trl-kto": (HF, "trl/trainer/base_config.py:_BaseConfig", "trl/trainer/kto_config.py:KTOConfig",
                "trl/scripts/utils.py:ScriptArguments", "trl/trainer/model_config.py:ModelConfig"),
    "trl-rloo": (HF, "trl/trainer/base_config.py:_BaseConfig",
                 "trl/trainer/rloo_config.py:RLOOConfig", "trl/scripts/rloo.py:RLOOScriptArguments",
                 "trl/scripts/utils.py:ScriptArguments", "trl/trainer/model_config.py:ModelConfig"),
    "axolotl": (
        "axolotl/utils/schemas/config.py:AxolotlInputConfig",
        # What its plug-ins add, where they are listed in the file.
        *(
            f"axolotl/integrations/{plugin}/args.py:{arguments}"
            for plugin, arguments in {
                **{"cut_cross_entropy": "CutCrossEntropyArgs", "liger": "LigerArgs"},
                **{"kernels": "KernelsArgs", "expert_parallel": "ExpertParallelArgs"},
                **{"diffusion": "DiffusionArgs", "kd": "KDArgs", "swanlab": "SwanLabConfig"},
                **{"llm_compressor": "LLMCompressorArgs", "lm_eval": "LMEvalArgs"},
                **{"spectrum": "SpectrumArgs", "densemixer": "DenseMixerArgs"},
                **{"grokfast": "GrokfastArgs", "mora": "MoraArgs", "nemo_gym": "NemoGymArgs"},
                **{"hatchery": "HatcheryArgs"},
            }.items()
        ),
    ),
    "llamafactory": (
        HF,
        "transformers/training_args_seq2seq.py:Seq2SeqTrainingArguments",
        "llamafactory/hparams/model_args.py:ModelArguments",
        "llamafactory/hparams/data_args.py:DataArguments",
        "llamafactory/hparams/training_args.py:TrainingArguments",
        "llamafactory/hparams/finetuning_args.py:FinetuningArguments",
        "llamafactory/hparams/generating_args.py:GeneratingArguments",
    ),
    "peft": ("peft/tuners/lora/config.py:LoraConfig",),
    "accelerate": ("accelerate/commands/config/config_args.py:ClusterConfig",),
    "deepspeed.zero_optimization": ("deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig",),
}  # fmt: skip
"""Kind of file, and a dotted section where it has some -> the classes that declare its keys."""
SUBSCRIPTS = {
    "accelerate": "accelerate/commands/config/cluster.py",
}
"""Kind -> the file that fills sections of it by ``section["key"] = ...``."""
CONSTANTS = {"deepspeed": "deepspeed/runtime/constants.py"}
"""Kind -> the file that names its first-level keys."""
CALLS = {
    "lightning": ("trainer.", "lightning/pytorch/trainer/trainer.py:Trainer.__init__"),
    "unsloth": (
        "",
        "unsloth/models/loader.py:FastLanguageModel.from_pretrained",
        "unsloth/models/llama.py:FastLlamaModel.get_peft_model",
    ),
}
"""Kind -> what stands before its keys, and the methods that take them."""
SECTIONS = {"torchtitan": "torchtitan/config/job_config.py:JobConfig"}
"""Kind -> the class whose fields are sections, classes of the same file."""


def main(folders: list[Path]) -> None:
    found: dict[str, dict[str, Any]] = {}
    for kind, classes in CLASSES.items():
        name, _, section = kind.partition(".")
        for each in classes:
            path, _, wanted = each.partition(":")
            add(found, name, path, folders)
            plugin = "/integrations/" in path  # its defaults hold only where it is listed
            for key, default in fields(located(path, folders), wanted, folders):
                put(found[name], f"{section}.{key}" if section else key, ... if plugin else default)
    for kind, path in SUBSCRIPTS.items():
        for section, key in re.findall(r'(\w+_config)\["(\w+)"\]', text(path, folders)):
            put(found[kind], f"{section}.{key}", ...)
    for kind, path in CONSTANTS.items():
        for key in re.findall(r'^[A-Z_0-9]+ = "([a-z0-9_]+)"', text(path, folders), re.MULTILINE):
            put(found[kind], key, ...)
    for kind, (before, *methods) in CALLS.items():
        for each in methods:
            path, _, wanted = each.partition(":")
            add(found, kind, path, folders)
            for key, default in arguments(located(path, folders), *wanted.split(".")):
                put(found[kind], f"{before}{key}", default)
    for kind, each in SECTIONS.items():
        path, _, wanted = each.partition(":")
        add(found, kind, path, folders)
        for key, default in sections(located(path, folders), wanted):
            put(found[kind], key, default)
    OUT.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f" {json.dumps(kind)}: {json.dumps(one)}" for kind, one in found.items())
    OUT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def add(found: dict[str, dict[str, Any]], kind: str, path: str, folders: list[Path]) -> None:
    """Start a kind, and note the version of a package that it was read from."""
    one = found.setdefault(kind, {"read_from": {}, "keys": [], "defaults": {}})
    package = path.partition("/")[0]
    for folder in folders:
        for information in folder.glob(f"{package}-*.dist-info"):
            version = information.name.removesuffix(".dist-info").rpartition("-")[2]
            one["read_from"].setdefault(package, version)


def put(one: dict[str, Any], key: str, default: Any) -> None:
    if key not in one["keys"]:
        one["keys"].append(key)
    if default is not ...:
        one["defaults"][key] = default


def located(path: str, folders: list[Path]) -> Path:
    return next(folder / path for folder in folders if (folder / path).is_file())


def text(path: str, folders: list[Path]) -> str:
    return located(path, folders).read_text(encoding="utf-8")


@cache
def classes_of(path: Path) -> dict[str, ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


@cache
def imports_of(path: Path) -> dict[str, str]:
    """Return name -> file, below the folder of the packages, that it is imported from."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: f"{node.module.replace('.', '/')}.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def fields(path: Path, wanted: str, folders: list[Path]) -> Iterator[tuple[str, Any]]:
    """Yield the annotated fields of a class and of its bases, with literal defaults."""
    node = classes_of(path).get(wanted)
    if node is None:
        return
    for base in node.bases:
        name = getattr(base, "id", "")
        if name in classes_of(path):
            yield from fields(path, name, folders)
        elif (source := imports_of(path).get(name)) is not None:
            for folder in folders:
                for place in (folder / source, path.parent / Path(source).name):
                    if place.is_file() and name in classes_of(place):
                        yield from fields(place, name, folders)
                        break
                else:
                    continue
                break
    yield from own_fields(node)


def own_fields(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name, default = line.target.id, ...
            if name.startswith("_") or "ClassVar" in ast.unparse(line.annotation):
                continue
            if line.value is not None:
                name, default = called(name, line.value)
            yield name, default


def called(name: str, value: ast.expr) -> tuple[str, Any]:
    """Return the name that files use, and the default, of ``= value`` or ``= Field(...)``."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("field", "Field"):
        given = {word.arg: word.value for word in value.keywords}
        if "alias" in given:
            name = str(literal(given["alias"]))
        if value.args:
            return name, literal(value.args[0])
        return name, literal(given["default"]) if "default" in given else ...
    return name, literal(value)


def literal(value: ast.expr) -> Any:
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "pp_int":
        value = value.args[0]
    try:
        found = ast.literal_eval(value)
        json.dumps(found, allow_nan=False)
        return found
    except (ValueError, TypeError, SyntaxError):
        return ...


def arguments(path: Path, wanted: str, method: str) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a method that have a default, or are given by name alone."""
    (found,) = (
        node.args
        for node in classes_of(path)[wanted].body
        if isinstance(node, ast.FunctionDef) and node.name == method
    )
    placed = found.args[len(found.args) - len(found.defaults) :]
    pairs = [*zip(placed, found.defaults, strict=True)]
    pairs += zip(found.kwonlyargs, found.kw_defaults, strict=True)
    for argument, default in pairs:
        yield argument.arg, literal(default) if default is not None else ...


def sections(path: Path, wanted: str) -> Iterator[tuple[str, Any]]:
    for line in classes_of(path)[wanted].body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            section, kind = line.target.id, ast.unparse(line.annotation)
            yield section, ...
            if (node := classes_of(path).get(kind)) is not None:
                for key, default in own_fields(node):
                    yield f"{section}.{key}", default


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
