"""Command lines as people keep them: a launcher, a script, and its options. Nothing is run."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os.path import exists
from typing import Any

from trainwright.review.shell import SEEN, commands
from trainwright.yamltext import scalar

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "fabric")
BEGUN = {"accelerate": "launch", "fabric": "run"}
"""Their words before the options."""
SUBCOMMANDS = {
    ("vllm", "serve"): "vllm",
    ("sglang", "serve"): "sglang",
    ("trl", "sft"): "trl-sft",
    ("trl", "dpo"): "trl-dpo",
    ("trl", "reward"): "trl-reward",
    ("trl", "grpo"): "trl-grpo",
    ("trl", "kto"): "trl-kto",
    ("trl", "rloo"): "trl-rloo",
    ("trl", "vllm-serve"): "vllm",
    ("llamafactory-cli", "train"): "llamafactory",
    ("axolotl", "train"): "axolotl",
    **{("swift", stage): "swift" for stage in ("sft", "pt", "rlhf")},
    **{("megatron", stage): "megatron-swift" for stage in ("sft", "pt", "rlhf")},
}
PROGRAMS = {
    "llama-server": "llama-server",
    "llama-cli": "llama-server",
    "text-generation-launcher": "tgi",
    "trtllm-serve": "trtllm",
    "run_train.sh": "torchtitan",
}
"""Programs that take their options at once."""
IMAGES = {"vllm-openai": "vllm", "text-generation-inference": "tgi", "llama.cpp": "llama-server"}
"""Containers that start a server by themselves, by a part of the image's name."""
MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "sglang.launch_server": "sglang",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "axolotl.cli.train": "axolotl",
}
"""What ``python -m`` starts."""
SCRIPTS = {
    name: f"trl-{kind}"
    for kind in ("sft", "dpo", "reward", "grpo", "kto", "rloo")
    for name in (f"{kind}.py", f"trl.scripts.{kind}")
} | {
    "torchtitan.train": "torchtitan",
    **{
        f"openrlhf.cli.train_{stage}": "openrlhf"
        for stage in ("sft", "dpo", "kto", "rm", "ppo_ray", "kd", "prm")
    },
    **{f"verl.trainer.{name}": "verl" for name in ("main_ppo", "fsdp_sft_trainer", "sft_trainer")},
}
"""Scripts of a tool's own, as files and as modules."""
_OF_DIFFUSERS = re.compile(r"(?:\w{1,40}_)?train(?:_\w{1,80})?\.py")
_OF_TIMM = frozenset(
    {
        *("opt", "sched", "drop_path", "model_ema", "amp", "native_amp", "aa", "reprob", "mixup"),
        *("warmup_lr", "img_size", "input_size", "crop_pct", "pin_mem", "smoothing"),
    }
)
_OF_DEVICES = ("per_device_train_", "per_device_eval_", "per_gpu_")
_OF_TRAINER = frozenset({"do_train", "optim", "gradient_checkpointing_kwargs"})
"""Options that TrainingArguments has, and hardly a script without them."""
SWITCHES = frozenset(
    {
        *("standalone", "multi_gpu", "use_deepspeed", "use_fsdp", "no_python", "m", "module"),
        *("use_cpu", "cpu", "debug", "quiet", "no_local_rank", "enable_each_rank_log", "q"),
    }
)
"""Options of launchers that take no value."""
_PYTHON = re.compile(r"(.*/)?python[0-9.]*(\.exe)?")
_FLAG = re.compile(r"-[bBdEiIOPqsSuvxWX]+")
"""Python's own, before a script or ``-m``."""
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=\S*")
_PREFIXES = ("nohup", "time", "env", "sudo", "exec", "srun", "uv", "run", "poetry", "CMD", "-")


@dataclass(frozen=True, slots=True)
class Command:
    """The options of one program of a command line."""

    kind: str
    options: dict[str, Any]
    line: int = 1
    version: str = ""
    """Of the tool, where a container's tag names it."""


def is_command(argument: str) -> bool:
    """Return whether an argument is a command line and not a path."""
    asks = re.search(r"\s(-{1,2}[A-Za-z]|serve\s|train\s|run\s|[\w.]+=)", argument.strip())
    return asks is not None and not exists(argument)


def parsed(text: str) -> tuple[Command, ...]:
    """Return what the command lines in a text start; nothing of other commands."""
    return tuple(command for words, number in commands(text) for command in _command(words, number))


_ALLOTTED = ("nodes", "N", "gres", "gpus-per-node", "gpus", "G")
"""Options of sbatch that say how many GPUs a job has."""


_COUNTS = {"NPROC_PER_NODE": "nproc_per_node", "NNODES": "nnodes"}
"""Variables that ms-swift and LLaMA-Factory start torchrun with."""
_TAKE_COUNTS = ("swift", "megatron", "llamafactory-cli")


def _command(words: list[str], line: int) -> Iterator[Command]:
    """Yield what a command starts, below what starts it for its part."""
    if words and words[0] == "srun":
        own, inner = options(words[1:]), [*_command(_from_program(words[1:]), line)]
        asked = {key: own[key] for key in ("nodes", "N") if own.get(key)}
        yield from (Command("launch", asked, line),) if asked and inner else ()
        yield from inner
        return
    if "--" in words and words[0] not in LAUNCHERS:  # ray job submit -- python3 -m ...
        after = words[words.index("--") + 1 :]
        words = after if _from_program(after[:1]) else words
    shell = words[0].rpartition("/")[2] if words else ""
    if len(words) > 2 and shell in ("bash", "sh") and words[1] in ("-c", "-lc"):
        text = words[2] if " " in words[2] else shlex.join(words[2:])
        yield from (replace(inner, line=line) for inner in parsed(text))
        return
    given: dict[str, str] = {}
    while words and (_ENVIRONMENT.fullmatch(words[0]) or words[0] in _PREFIXES):
        name, _, value = words[0].partition("=")
        if name == SEEN:
            yield Command("devices", {name: value}, line)
        given[name] = value
        words = words[1:]
    if words:
        yield from _program(words, given, line)


def _program(words: list[str], given: Mapping[str, str], line: int) -> Iterator[Command]:
    """Yield what a program starts, whose name stands first; ``given`` is its environment."""
    head, rest = words[0].rpartition("/")[2], words[1:]
    counts = {key: _value(given[name]) for name, key in _COUNTS.items() if name in given}
    if counts and head in _TAKE_COUNTS:
        yield Command("launch", counts, line)
    if head == "sbatch":
        found = {key: value for key, value in options(rest).items() if key in _ALLOTTED}
        yield from (Command("launch", found, line),) if found else ()
    elif head in ("docker", "podman") and rest[:1] == ["run"]:
        yield from _in_container(rest[1:], line)
    elif head == "tune" and rest[:1] == ["run"]:
        yield from _of_torchtune(rest[1:], line)
    elif head == "distributed_train.sh" and len(rest) > 1:  # of timm
        yield Command("launch", {"nproc_per_node": _value(rest[0])}, line)
        yield from _script(["train.py", *rest[1:]], line)
    elif head == "litgpt" and rest:
        yield from _of_litgpt(rest[0], rest[1:], line)
    elif _PYTHON.fullmatch(words[0]):
        yield from _of_python(rest, line)
    elif head in PROGRAMS:
        started = _of_kind(PROGRAMS[head], rest, line)
        config = given.get("CONFIG_FILE") if head == "run_train.sh" else None  # of torchtitan
        above = {"job.config_file": config} if config else {}
        yield replace(started, options=above | started.options)
    elif rest and (kind := SUBCOMMANDS.get((head, rest[0]))) is not None:
        yield _of_kind(kind, rest[1:], line)
    elif head in LAUNCHERS:
        yield from _launch(head, rest, line)


def _of_python(words: list[str], line: int) -> Iterator[Command]:
    """Yield what Python starts: a module that is known here, or a script that trains."""
    while words and _FLAG.fullmatch(words[0]):
        words = words[2 if words[0] in ("-W", "-X") else 1 :]
    if words[:1] == ["-m"] and len(words) > 1:
        head = MODULES.get(words[1], "")
        if head in ("vllm", "sglang", "axolotl"):
            yield _of_kind(head, words[2:], line)
        elif words[1] in SCRIPTS or (not head and _trains(words[1:])):
            yield from _script(words[1:], line)
        elif head in LAUNCHERS:
            yield from _launch(head, words[2:], line)
    elif words and words[0].endswith(".py") and _trains(words):
        yield from _script(words, line)


def _launch(head: str, rest: list[str], line: int) -> Iterator[Command]:
    """Yield a launcher's own options, and those of the script that it starts."""
    rest = rest[1:] if rest[:1] == [BEGUN.get(head)] else rest
    own, script = _launched(rest)
    yield Command("launch", options(own), line)
    yield from _script(script, line)


def _in_container(words: list[str], line: int) -> Iterator[Command]:
    """Yield what a container starts: a server's image takes its options, others a command."""
    for word, following in pairwise((*words, "")):
        option, equals, value = word.partition("=")
        if option == "--gpus":
            yield Command("devices", {"gpus": value if equals else following}, line)
    for number, word in enumerate(words):
        kind = next((kind for name, kind in IMAGES.items() if f"/{name}:" in f"/{word}:"), None)
        if kind is not None and words[number + 1 : number + 2] == _from_program(words)[:1]:
            break  # a program in place of the image's own
        if kind is not None:
            served = _of_kind(kind, words[number + 1 :], line)
            yield replace(served, version=_tag(word))
            return
    yield from _command(_from_program(words), line)


def _from_program(words: list[str]) -> list[str]:
    """Return the words from the first that is a program known here; none where there is none."""
    programs = {*LAUNCHERS, *PROGRAMS, "tune", "litgpt", "bash", "sh"}
    programs |= {head for head, _ in SUBCOMMANDS}
    for number, word in enumerate(words):
        if word.rpartition("/")[2] in programs or _PYTHON.fullmatch(word):
            return words[number:]
    return []


def _tag(image: str) -> str:
    """Return the version in an image's tag; empty for ``latest`` and the like."""
    found = re.match(r"v?([0-9]+(\.[0-9]+)+)", image.rpartition("/")[2].partition(":")[2])
    return found[1] if found is not None else ""


def _of_torchtune(words: list[str], line: int) -> Iterator[Command]:
    """Yield torchrun's options, the config, and what ``key=value`` changes of it, which holds."""
    own, recipe = _launched(words)
    head = recipe[0].rpartition("/")[2] if recipe else ""
    changes = dict(word.split("=", 1) for word in recipe if "=" in word and word[0] != "-")
    if (builder := _builder(str(options(recipe[1:3]).get("config", "")))) is not None:
        changes.setdefault("model._component_", builder)
    if head.removesuffix(".py").endswith("_distributed"):
        changes["recipe"] = head
    if changes:
        found = {key: _value(value) for key, value in changes.items()}
        yield Command("torchtune", found, line)
    yield Command("launch", options(own) | options(recipe[1:3]), line)


_SHIPPED = re.compile(r"(?P<family>[a-z][a-z0-9_]*)/(?P<size>[0-9.]+B)_(?P<how>q?lora|full)\w*")
"""A config that torchtune brings: ``llama3_1/8B_lora_single_device``."""


def is_shipped(config: str) -> bool:
    """Return whether a config of torchtune is one that it brings."""
    return _SHIPPED.fullmatch(config) is not None


def _builder(config: str) -> str | None:
    """Return the model's builder in a config of torchtune's own; None of a file."""
    found = _SHIPPED.fullmatch(config)
    if found is None:
        return None
    family, how = found["family"], "" if found["how"] == "full" else f"{found['how']}_"
    return f"torchtune.models.{family}.{how}{family}_{found['size'].lower().replace('.', '_')}"


def _of_litgpt(task: str, words: list[str], line: int) -> Iterator[Command]:
    """Yield the options of a task, with the model that may stand before them."""
    if task not in ("finetune", "finetune_lora", "finetune_full", "pretrain"):
        return
    found = options(words)
    if words and not words[0].startswith("-"):
        found["checkpoint_dir"] = words[0]
    if task == "finetune_lora":
        found.setdefault("lora_r", 8)  # litgpt/finetune/lora.py, setup
    yield Command("litgpt", found, line)


_SHORT = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "q": "quantization",
}
"""Short options of vLLM, of which SGLang has the first three as they are."""


def _of_kind(kind: str, rest: list[str], line: int) -> Command:
    found = options(rest)
    if rest and not rest[0].startswith("-"):
        found.setdefault(
            "config" if rest[0].endswith((".yaml", ".yml", ".json")) else "model", rest[0]
        )
    if kind in ("vllm", "sglang", "tgi", "llama-server", "trtllm"):
        found = {_SHORT.get(key, key.replace("_", "-")): value for key, value in found.items()}
        return Command(kind, found, line)
    named = set(found) <= {"config", "model"}
    return Command("launch" if named else kind, found, line)


def _launched(words: list[str]) -> tuple[list[str], list[str]]:
    """Return a launcher's own words, and those after the script's name."""
    skip = False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word.startswith("-"):
            bare = word.lstrip("-")
            skip = "=" not in bare and bare.replace("-", "_") not in SWITCHES
        else:
            return words[:number], words[number:]
    return words, []


_CONFIGS = (".yaml", ".yml", ".json", ".py")
"""Endings of a file that stands first after a script: nanoGPT's are Python."""
_HYDRA = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@]*)=(.*)", re.DOTALL)
"""``trainer.devices=8``, as Hydra's scripts take it."""


_TRAINING = re.compile(r"train|tun|sft|dpo|ppo|rl|pretrain|fit|run", re.IGNORECASE)
"""In the name of a script that trains; assumed."""
_OF_TRAINING = frozenset(
    {
        *("per_device_train_batch_size", "train_batch_size", "batch_size", "micro_batch_size", "b"),
        *("learning_rate", "lr", "num_train_epochs", "epochs", "max_steps", "max_train_steps"),
        *("gradient_accumulation_steps", "opt", "optim", "optimizer", "do_train", "train_iters"),
    }
)
"""Options that only training has."""


def _trains(words: Sequence[str]) -> bool:
    """Return whether a script trains, by its name or an option: others convert or measure."""
    if _TRAINING.search(words[0].rpartition("/")[2]) is not None:
        return True
    changes = (_HYDRA.fullmatch(word) for word in words[1:])
    keys = [*options(words[1:]), *(change[1] for change in changes if change is not None)]
    return any(re.split(r"[./]", key)[-1].replace("-", "_") in _OF_TRAINING for key in keys)


def _script(words: list[str], line: int) -> Iterator[Command]:
    """Yield the options of a script, whose name stands first."""
    name, words = words[0].rpartition("/")[2] if words else "", words[1:]
    if words and words[0] in ("fit", "validate", "test"):  # Lightning CLI
        yield Command("lightning", options(words[1:]), line)
        return
    found = {key.replace("-", "_"): value for key, value in options(words).items()}
    for word in words:
        if (change := _HYDRA.fullmatch(word)) is not None:
            found[change[1]] = _value(change[2])
    if found.get("amp") and found.get("amp_dtype"):  # of timm: the second names the first's type
        del found["amp"]
    if found.get("fp8_format"):  # of Megatron: the layers' type, where bf16 is that of the rest
        found.pop("bf16", None)
    if _OF_DIFFUSERS.fullmatch(name) and "lora" in name:  # the name alone says it
        found.setdefault("use_lora", True)
    if words and not words[0].startswith("-") and words[0].endswith(_CONFIGS):
        found["config"] = words[0]
        if len(found) == 1:
            yield Command("launch", found, line)
            return
    if found:
        of_swift = found.keys() & {"train_type", "tuner_type", "sft_type"}
        kind = "swift" if of_swift else SCRIPTS.get(name) or _kind_of(name, found)
        if kind == "openrlhf" and (stage := re.search(r"train_(\w+?)(_ray)?(\.py)?$", name)):
            found["stage"] = stage[1]
        if kind == "verl" and any(key.startswith("actor_rollout_ref.") for key in found):
            found.setdefault("algorithm.adv_estimator", "gae")  # what main_ppo does by itself
        if kind in ("own-script", "timm"):
            named = {"b": "batch_size", "j": "workers"}
            found = {named.get(key, key): value for key, value in found.items()}
        yield Command(kind, found, line)


def _kind_of(script: str, found: Mapping[str, Any]) -> str:
    if "job.config_file" in found:
        return "torchtitan"
    if "finetuning_type" in found:  # src/train.py
        return "llamafactory"
    if {"pretrain", "micro_train_batch_size"} <= found.keys():  # train_sft.py
        return "openrlhf"
    if any(key.startswith("actor_rollout_ref.") for key in found):
        return "verl"
    if "model" in found and len(_OF_TIMM & found.keys()) > 1:
        return "timm"
    if _OF_DIFFUSERS.fullmatch(script) and "pretrained_model_name_or_path" in found:
        return "diffusers-script"
    if any(key.startswith(_OF_DEVICES) or key in _OF_TRAINER for key in found):
        return "script"
    return "own-script"


_NEGATED = re.compile(r"no[-_]")
"""Before a switch: of most engines, and of each switch that is on by itself in HfArgumentParser."""
_NOT_NEGATED = {*SWITCHES, "no_cuda"}


def options(words: Sequence[str]) -> dict[str, Any]:
    """Return ``--key value``, ``--key=value`` and ``--switch`` as data; the last one holds."""
    found: dict[str, Any] = {}
    key = None
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            key, equals, value = word.lstrip("-").partition("=")
            if _NEGATED.match(key) and not equals and key not in _NOT_NEGATED:
                found[key[3:]], key = False, None
            else:
                found[key] = _value(value) if equals else True
                key = None if equals else key
        elif key is not None and not (_HYDRA.fullmatch(word) and "." in word.partition("=")[0]):
            before = found[key]
            if before is True:
                found[key] = _value(word)
            else:
                found[key] = [*(before if isinstance(before, list) else [before]), _value(word)]
    return found


def _value(text: str) -> Any:
    try:
        return scalar(text) if text else ""
    except ValueError:
        return text
