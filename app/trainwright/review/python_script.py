"""Python scripts as data: the calls that configure a run, parsed and never run."""

import ast
import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from trainwright.messages import UserError
from trainwright.review.notebook import plain
from trainwright.yamltext import Document, Place

CALLS: Mapping[str, tuple[str, str]] = {
    "TrainingArguments": ("training-arguments", ""),
    "Seq2SeqTrainingArguments": ("training-arguments", ""),
    "SFTConfig": ("trl-sft", ""),
    "DPOConfig": ("trl-dpo", ""),
    "RewardConfig": ("trl-reward", ""),
    "GRPOConfig": ("trl-grpo", ""),
    "KTOConfig": ("trl-kto", ""),
    "RLOOConfig": ("trl-rloo", ""),
    **dict.fromkeys(("LoraConfig", "PromptTuningConfig", "PrefixTuningConfig"), ("peft", "")),
    **dict.fromkeys(
        (
            *("AdaLoraConfig", "BOFTConfig", "FourierFTConfig", "IA3Config", "LNTuningConfig"),
            *("LoHaConfig", "LoKrConfig", "OFTConfig", "PromptEncoderConfig", "VeraConfig"),
        ),
        ("peft-other", ""),
    ),
    "BitsAndBytesConfig": ("bitsandbytes", ""),
    "LLM": ("vllm", ""),
    "Engine": ("sglang", ""),
    "prepare_model_for_kbit_training": ("kbit", ""),
    "TrainingConfig": ("torchtitan", "training"),
    "ParallelismConfig": ("torchtitan", "parallelism"),
    "ActivationCheckpointConfig": ("torchtitan", "activation_checkpoint"),
    "ActivationCheckpointingConfig": ("torchtitan", "activation_checkpoint"),
    "CompileConfig": ("torchtitan", "compile"),
    "Trainer": ("lightning", "trainer"),
    **dict.fromkeys(
        ("SFTTrainer", "DPOTrainer", "GRPOTrainer", "KTOTrainer", "RewardTrainer"), ("trainer", "")
    ),
    "Seq2SeqTrainer": ("hf-trainer", ""),
}
"""Name of what is called -> kind, and the section that its arguments belong to."""
CONFIGS: Mapping[str, tuple[str, str]] = {
    "Trainer": ("torchtitan", "model"),
    "OptimizersContainer": ("torchtitan", "optimizer"),
    "LRSchedulersContainer": ("torchtitan", "lr_scheduler"),
    "CheckpointManager": ("torchtitan", "checkpoint"),
    "MetricsProcessor": ("torchtitan", "metrics"),
}
"""Class whose ``Config`` is called, as torchtitan's registries do -> kind and section."""
METHODS: Mapping[str, str] = {
    "FastLanguageModel": "unsloth",
    "FastModel": "unsloth",
    "FastVisionModel": "unsloth",
}
_MODELS = re.compile(r"Auto(Peft)?Model\w*|(?!Auto)[A-Z]\w*(For[A-Z]\w+|LMHeadModel)")
"""Classes of models: transformers' and PEFT's automatic ones, and those of one architecture."""
_FIRST = {
    "from-pretrained": "pretrained_model_name_or_path",
    "unsloth": "model_name",
    **dict.fromkeys(("trainer", "vllm"), "model"),
}
"""Kind -> the argument that may stand first without its name."""
_SAID: Mapping[str, Mapping[str, Any]] = {
    "checkpointing-call": {"enabled": True},
}
"""Kind -> what the call says by being there."""
_PEFT_TYPES = {"PromptTuningConfig": "PROMPT_TUNING", "PrefixTuningConfig": "PREFIX_TUNING"}
_TRAINERS: Mapping[str, tuple[str, ...]] = {
    "trainer": ("dataset_num_proc", "dataset_text_field", "max_seq_length", "packing", "tokenizer"),
    "hf-trainer": ("tokenizer",),
}
"""Kind -> what trainers took up to some version, beside the model."""
_CONFIGS = ("quantization_config", "peft_config")
"""Arguments that take what another call made, which is read where it is made."""
COMPUTED = "$computed"
"""Stands in a mapping for a value that only a run knows, as for a shell's."""
_LIGHTNING = ("L", "pl", "lightning", "pytorch_lightning")

Found = tuple[str, Document, tuple[tuple[str, int], ...]]


def calls(text: str, name: str) -> Iterator[Found]:
    """Yield kind, arguments and computed keys of the calls that configure a run.

    Raises:
        UserError: not Python, or nothing in it configures a run that we know.
    """
    try:
        tree = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = getattr(error, "msg", None) or type(error).__name__
        raise UserError.of(
            "review.not-parsed", file=name, format="Python", problem=problem
        ) from None
    constants = _constants(tree)
    trainer = CALLS["Trainer"] if _from_lightning(tree) else ("hf-trainer", "")
    none = True
    left_out = {id(node) for other in _runs(tree)[1:] for node in ast.walk(other)}
    for node in ast.walk(tree):
        if id(node) in left_out or not isinstance(node, ast.Call):
            continue
        called = ("torchtitan", "model") if _is_run(node) else _called(node.func)
        if called is None:
            continue
        if called[0] == "torchtitan" and "Controller.Config(" in text:
            raise UserError.of("review.other-tool", file=name, tool="torchtitan RL")
        none = False
        called = trainer if called == ("hf-trainer", "") else called
        kind, document, computed = _found(node, *called, constants)
        if _is_run(node):
            document, computed = _with_parts(node, document, computed, tree)
        yield kind, document, computed
    if none and (assigned := _of_nanogpt(tree)) is not None:
        yield assigned
        return
    if none and any(_imports(node, "xtuner") for node in tree.body):
        raise UserError.of("review.other-tool", file=name, tool="XTuner")
    if none:
        raise UserError.of("review.no-calls", file=name)


_SIZES = ("n_layer", "n_head", "n_embd")
_GPT2 = {(12, 12, 768): "gpt2", (24, 16, 1024): "gpt2-medium", (36, 20, 1280): "gpt2-large"}
"""Sizes of a model (``train.py``: the first where a file says none) -> its name."""


def _of_nanogpt(tree: ast.Module) -> Found | None:
    """Return the names that a configuration of nanoGPT assigns; None of another script.

    ``train.py`` executes the file over its own names, whose values here are those of the first
    commits: batch_size 12, gradient_accumulation_steps 40, n_layer and n_head 12, n_embd 768.
    """
    if any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in tree.body):
        return None
    lines: dict[Place, int] = {}
    data: dict[str, Any] = {}
    known = _constants(tree)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in known:
                data[name], lines[(name,)] = known[name], node.lineno
    if not {"batch_size", "block_size"} & data.keys() or not data.keys() & _OF_NANOGPT:
        return None
    given = {word.id for node in ast.walk(tree) for word in _names_given(node)}
    usual = {"gradient_accumulation_steps": 40, "batch_size": 12}
    counts = [data.get(name, None if name in given else one) for name, one in usual.items()]
    numbers = [one for one in counts if isinstance(one, int)]
    if len(numbers) == len(usual):
        data["global_batch_size"] = prod(numbers)
    sizes = tuple(data.get(name, usual) for name, usual in zip(_SIZES, (12, 12, 768), strict=True))
    if str(data.get("init_from", "scratch")) in ("scratch", "resume") and sizes in _GPT2:
        data["model"] = _GPT2[sizes]
    return "nanogpt", Document(data, lines), ()


def _names_given(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that an assignment gives a value."""
    if isinstance(node, ast.Assign):
        yield from (target for target in node.targets if isinstance(target, ast.Name))


_OF_NANOGPT = frozenset(
    {"max_iters", "lr_decay_iters", "eval_interval", "n_layer", "wandb_log", "eval_iters"}
)
"""Names beside the batch by which a file is one of nanoGPT's."""


def runs(text: str) -> tuple[str, ...]:
    """Return the functions of a script that each configure a run of torchtitan's."""
    return tuple(function.name for function in _runs(_tree(text)))


def _runs(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return a registry's functions, of which each is a run of its own."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [each for each in functions if any(map(_is_run, ast.walk(each))) or _is_variant(each)]


def _is_run(node: ast.AST) -> bool:
    """Return whether a call makes a run's configuration: of ``Trainer`` or a class made of it."""
    if not isinstance(node, ast.Call):
        return False
    given = {word.arg for word in node.keywords}
    return ast.unparse(node.func).endswith("Config") and given >= {"training", "lr_scheduler"}


def _is_variant(function: ast.FunctionDef) -> bool:
    """Return whether a function changes another run: ``def small() -> Trainer.Config``."""
    returned = ast.unparse(function.returns) if function.returns is not None else ""
    return returned.endswith(("Trainer.Config", "TrainerConfig")) and not function.args.args


_CHECKPOINTING = {"SelectiveAC": "selective", "FullAC": "full", "MemoryBudgetAC": "memory_budget"}


def _with_parts(
    node: ast.Call, document: Document, computed: tuple[tuple[str, int], ...], tree: ast.Module
) -> tuple[Document, tuple[tuple[str, int], ...]]:
    """Return a run of torchtitan 0.3 with what its parts say by the names of their classes."""
    data, lines = dict(document.data), dict(document.lines)
    known: set[str] = set()
    for word in node.keywords:
        value = _assigned(word.value, tree)
        if not isinstance(value, ast.Call):
            continue
        name, line = ast.unparse(value.func), word.value.lineno
        given = {one.arg: _plain(one.value, {})[1] for one in value.keywords if one.arg}
        if word.arg == "activation_checkpoint" and name.removesuffix(".Config") in _CHECKPOINTING:
            mode = _CHECKPOINTING[name.removesuffix(".Config")]
            data["activation_checkpoint"] = {"mode": mode}
            lines[("activation_checkpoint", "mode")] = line
        elif word.arg == "optimizer" and name.rpartition(".")[2] == "default_adamw":
            data["optimizer"] = {"name": "AdamW", **given}
            lines |= {("optimizer", key): line for key in data["optimizer"]}
        elif word.arg == "model_spec" and value.args:
            flavor = _plain(value.args[0], {})[1]
            data["model"] = {**data.get("model", {}), "flavor": flavor}
            lines[("model", "flavor")] = line
        else:
            continue
        known.add(f"model.{word.arg}")
    return Document(data, lines), tuple(one for one in computed if one[0] not in known)


def _assigned(value: ast.expr, tree: ast.Module) -> ast.expr:
    """Return what a name was given last above its use; other values as they are."""
    if not isinstance(value, ast.Name):
        return value
    given = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == value.id
        and node.lineno < value.lineno
    ]
    return max(given, key=lambda node: node.lineno).value if given else value


def _tree(text: str) -> ast.Module:
    """Return the script, parsed; with lines for IPython where a notebook was saved as one."""
    try:
        return ast.parse(text)
    except SyntaxError:
        if (script := plain(text)) == text:
            raise
        return ast.parse(script)


def _imports(node: ast.stmt, package: str) -> bool:
    module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
    return str(module).partition(".")[0] == package


def _from_lightning(tree: ast.Module) -> bool:
    """Return whether the script's bare ``Trainer`` is Lightning's."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(("lightning", "pytorch_lightning"))
        and "Trainer" in [name.name for name in node.names]
        for node in ast.walk(tree)
    )


def _called(function: ast.expr) -> tuple[str, str] | None:
    """Return kind and section of what is called."""
    if isinstance(function, ast.Name):
        return CALLS.get(function.id) if function.id != "Trainer" else ("hf-trainer", "")
    if not isinstance(function, ast.Attribute):
        return None
    above = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr == "gradient_checkpointing_enable":
        return "checkpointing-call", ""
    if above in METHODS and function.attr in ("from_pretrained", "get_peft_model"):
        return METHODS[above], ""
    if _MODELS.fullmatch(above) and function.attr == "from_pretrained":
        return "from-pretrained", ""
    if function.attr == "Config":
        return CONFIGS.get(above)
    if function.attr == "Trainer":
        return CALLS["Trainer"] if above in _LIGHTNING else ("hf-trainer", "")
    return CALLS.get(function.attr)


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return names that are given a plain value exactly once."""
    found: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    constants: dict[str, Any] = {}
    for name, values in found.items():
        known, plain = _plain(values[0], {}) if len(values) == 1 else (False, None)
        if known:
            constants[name] = plain
    return constants | _options(tree)


def _options(tree: ast.Module) -> dict[str, Any]:
    """Return the defaults of ``add_argument("--name", default=...)``, by name."""
    found = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
            continue
        words = {word.arg: word.value for word in node.keywords}
        names = [a.value for a in node.args if isinstance(a, ast.Constant)]
        flag = next((n for n in names if isinstance(n, str) and n.startswith("--")), None)
        default = words.get("default")
        if flag is None or not isinstance(default, ast.Constant):
            continue
        found[f"args.{flag.lstrip('-').replace('-', '_')}"] = default.value
    return found


def _found(node: ast.Call, kind: str, section: str, constants: Mapping[str, Any]) -> Found:
    data: dict[str, Any] = {**_SAID.get(kind, {})}
    if kind in ("peft", "peft-other"):
        name = ast.unparse(node.func).rpartition(".")[2]
        data["peft_type"] = _PEFT_TYPES.get(name, name.removesuffix("Config").upper())
    lines: dict[Place, int] = {}
    computed: list[tuple[str, int]] = []
    first = _FIRST.get(kind)
    pairs = [(word.arg or "**", word.value) for word in node.keywords]
    if kind in ("vllm", "sglang"):  # whose options are known as those of a command line
        pairs = [(name.replace("_", "-"), value) for name, value in pairs]
    if node.args and first and isinstance(node.args[0], (ast.Constant, ast.Name, ast.Attribute)):
        pairs.insert(0, (first, node.args[0]))
    if kind in _TRAINERS:  # they say which model; the rest is made elsewhere
        pairs = [pair for pair in pairs if pair[0] in (first, *_TRAINERS[kind])]
    for key, value in pairs:
        known, plain = _plain(value, constants)
        if key == "**" and isinstance(plain, dict):
            data |= plain
            lines |= {(section, name) if section else (name,): value.lineno for name in plain}
        elif known:
            data[key] = plain
            lines[(section, key) if section else (key,)] = value.lineno
        elif isinstance(value, ast.Call) and _called(value.func) is not None:
            continue  # read where it is made
        elif key == "model_spec" and isinstance(value, ast.Call) and value.args:
            data["flavor"] = _plain(value.args[0], constants)[1]  # model_registry("8B")
        elif key == "tokenizer":  # that it is there is what counts
            data[key], lines[(key,)] = ast.unparse(value), value.lineno
        elif not (isinstance(value, ast.Name) and key in (first, *_CONFIGS)):
            computed.append((f"{section}.{key}" if section else key, value.lineno))
    return kind, Document({section: data} if section else data, lines), tuple(computed)


def _mapping(value: ast.expr) -> dict[str, ast.expr] | None:
    """Return what ``{"name": ...}`` or ``dict(name=...)`` holds; None for all else."""
    if isinstance(value, ast.Dict):
        names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        pairs = dict(zip(names, value.values, strict=True))
        named = all(isinstance(name, str) and name for name in names)
        return {str(name): one for name, one in pairs.items()} if named else None
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        return {word.arg: word.value for word in value.keywords if word.arg}
    return None


def _plain(value: ast.expr, constants: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return whether a value is written in the script, and what it is."""
    if isinstance(value, ast.Name) and value.id in constants:
        return True, constants[value.id]
    if isinstance(value, ast.Attribute) and ast.unparse(value) in constants:  # args.rank
        return True, constants[ast.unparse(value)]
    if isinstance(value, ast.Call) and (name := ast.unparse(value.func)).endswith("Strategy"):
        given = {word.arg: _plain(word.value, constants) for word in value.keywords if word.arg}
        plain = {key: one for key, (known, one) in given.items() if known}
        return True, {"class_path": name, "init_args": plain}  # as Lightning's CLI writes it
    if (inner := _mapping(value)) is not None:
        plain = {name: _plain(one, constants) for name, one in inner.items()}
        return True, {name: one if known else COMPUTED for name, (known, one) in plain.items()}
    if isinstance(value, ast.Attribute):  # torch.bfloat16
        return (
            (True, ast.unparse(value)) if ast.unparse(value).startswith("torch.") else (False, None)
        )
    if isinstance(value, ast.BinOp):
        return _product(value, constants)
    try:
        return True, ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError):
        return False, None


_FACTORS, _LARGEST = 8, 10**9
"""Factors of a product, and the largest of them, that are believed; assumed."""


def _product(value: ast.expr, constants: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return whether ``5 * 8`` is one of known numbers, and what it is; no other sum is made."""
    product: float = 1
    for _factor in range(_FACTORS):
        last = value.right if isinstance(value, ast.BinOp) else value
        known, number = (False, None) if isinstance(last, ast.BinOp) else _plain(last, constants)
        if not known or not isinstance(number, (int, float)) or abs(number) > _LARGEST:
            break
        product *= number
        if not isinstance(value, ast.BinOp):
            return True, product
        if not isinstance(value.op, ast.Mult):
            break
        value = value.left
    return False, None
