"""Python scripts as data: the calls that configure a run, parsed and never run."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.messages import UserError
from trainwright.yamltext import Document, Place

CALLS: Mapping[str, tuple[str, str]] = {
    "TrainingArguments": ("training-arguments", ""),
    "Seq2SeqTrainingArguments": ("training-arguments", ""),
    "SFTConfig": ("trl-sft", ""),
    "DPOConfig": ("trl-dpo", ""),
    "RewardConfig": ("trl-reward", ""),
    "GRPOConfig": ("trl-grpo", ""),
    "LoraConfig": ("peft", ""),
    "BitsAndBytesConfig": ("bitsandbytes", ""),
    "prepare_model_for_kbit_training": ("kbit", ""),
    "TrainingConfig": ("torchtitan", "training"),
    "ParallelismConfig": ("torchtitan", "parallelism"),
    "ActivationCheckpointConfig": ("torchtitan", "activation_checkpoint"),
    "ActivationCheckpointingConfig": ("torchtitan", "activation_checkpoint"),
    "CompileConfig": ("torchtitan", "compile"),
    "Trainer": ("lightning", "trainer"),
}
"""Name of what is called -> kind, and the section that its arguments belong to."""
METHODS: Mapping[str, str] = {
    "FastLanguageModel": "unsloth",
    "FastModel": "unsloth",
    "FastVisionModel": "unsloth",
}
_CONFIGS = ("quantization_config", "peft_config")
"""Arguments that take what another call made, which is read where it is made."""
_LIGHTNING = ("L", "pl", "lightning", "pytorch_lightning")

Found = tuple[str, Document, tuple[tuple[str, int], ...]]


def calls(text: str, name: str) -> Iterator[Found]:
    """Yield kind, arguments and computed keys of the calls that configure a run.

    Raises:
        UserError: not Python, or nothing in it configures a run that we know.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = getattr(error, "msg", None) or type(error).__name__
        raise UserError.of(
            "review.not-parsed", file=name, format="Python", problem=problem
        ) from None
    constants = _constants(tree)
    none = True
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (called := _called(node.func)) is not None:
            none = False
            yield _found(node, *called, constants)
    if none:
        raise UserError.of("review.no-calls", file=name)


def _called(function: ast.expr) -> tuple[str, str] | None:
    """Return kind and section of what is called."""
    if isinstance(function, ast.Name):
        # A bare Trainer is transformers'.
        return CALLS.get(function.id) if function.id != "Trainer" else None
    if not isinstance(function, ast.Attribute):
        return None
    above = function.value.id if isinstance(function.value, ast.Name) else ""
    if above in METHODS and function.attr in ("from_pretrained", "get_peft_model"):
        return METHODS[above], ""
    if above.startswith("AutoModel") and function.attr == "from_pretrained":
        return "from-pretrained", ""
    if function.attr == "Trainer":
        return CALLS["Trainer"] if above in _LIGHTNING else None
    return CALLS.get(function.attr)


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return names that are given a plain value exactly once."""
    found: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    constants = {}
    for name, values in found.items():
        if len(values) == 1:
            try:
                constants[name] = ast.literal_eval(values[0])
            except (ValueError, TypeError, RecursionError):
                continue
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
    data: dict[str, Any] = {"peft_type": "LORA"} if kind == "peft" else {}
    lines: dict[Place, int] = {}
    computed: list[tuple[str, int]] = []
    first = {"from-pretrained": "pretrained_model_name_or_path", "unsloth": "model_name"}
    pairs = [(word.arg or "**", word.value) for word in node.keywords]
    if node.args and kind in first and isinstance(node.args[0], (ast.Constant, ast.Name)):
        pairs.insert(0, (first[kind], node.args[0]))
    for key, value in pairs:
        known, plain = _plain(value, constants)
        if known:
            data[key] = plain
            lines[(section, key) if section else (key,)] = value.lineno
        elif not (isinstance(value, ast.Name) and key in (first.get(kind), *_CONFIGS)):
            computed.append((f"{section}.{key}" if section else key, value.lineno))
    return kind, Document({section: data} if section else data, lines), tuple(computed)


def _plain(value: ast.expr, constants: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return whether a value is written in the script, and what it is."""
    if isinstance(value, ast.Name) and value.id in constants:
        return True, constants[value.id]
    if isinstance(value, ast.Attribute) and ast.unparse(value) in constants:  # args.rank
        return True, constants[ast.unparse(value)]
    if isinstance(value, ast.Attribute):  # torch.bfloat16
        return (
            (True, ast.unparse(value)) if ast.unparse(value).startswith("torch.") else (False, None)
        )
    try:
        return True, ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError):
        return False, None
