"""Trains with TRL's DPOTrainer, RewardTrainer or GRPOTrainer, by the YAML file of its objective.

The file holds nothing but TRL's own keys, and "trl dpo --config dpo.yaml" runs it too. This program
can also try it on made-up data or without a GPU, and say what is really active. Further keys of
TRL may follow: --model_name_or_path FOLDER.
"""

import argparse
import importlib
import json
import random
import sys
from types import SimpleNamespace
from typing import Any

from strict import HERE, InputError

NAMES = {"dpo": "DPO", "reward": "Reward", "grpo": "GRPO"}
"""Objective -> how the names of its trainer and its configuration begin."""
WITHOUT_GPU = {
    "use_cpu": "true",
    "fp16": "false",
    "tf32": "false",
    "dataloader_pin_memory": "false",
}
MADE_UP = 256
"""Rows that are made up."""


def main() -> int:
    """Run the training; 2 where something must be put right first."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--synthetic", action="store_true", help="made-up data, to try it out")
    parser.add_argument("--steps", type=int, help="stop after so many optimizer steps")
    parser.add_argument("--cpu", action="store_true", help="run without a GPU")
    parser.add_argument("--selfcheck", action="store_true", help="say what is really active")
    options, rest = parser.parse_known_args()
    try:
        train(options, rest)
    except InputError as error:
        sys.stderr.write(f"{error.line()}\n")
        return 2
    return 0


def train(options: argparse.Namespace, rest: list[str]) -> None:
    """Build everything and train."""
    import trl
    from transformers import AutoTokenizer

    asked = json.loads((HERE / "asked.json").read_text(encoding="utf-8"))
    script, arguments, model = read(options, rest, asked["objective"])
    try:
        tokenizer = AutoTokenizer.from_pretrained(model.model_name_or_path)
    except (OSError, ValueError) as error:
        raise InputError(f"{model.model_name_or_path}: {error}") from error
    arguments.model_init_kwargs = {
        "dtype": model.dtype,
        "attn_implementation": model.attn_implementation,
        **(arguments.model_init_kwargs or {}),
    }
    checks: list[Any] = []
    if options.selfcheck:
        from selfcheck import Selfcheck

        checks = [Selfcheck(SimpleNamespace(**asked["script"]), asked["arguments"])]
    trainer = getattr(trl, f"{NAMES[asked['objective']]}Trainer")(
        model=model.model_name_or_path,
        args=arguments,
        train_dataset=rows(options, asked, script, tokenizer),
        processing_class=tokenizer,
        quantization_config=trl.get_quantization_config(model),
        peft_config=trl.get_peft_config(model),
        callbacks=checks,
        **rewards(script),
    )
    for check in checks:
        check.trainer = trainer
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
    trainer.save_model()


def read(options: argparse.Namespace, rest: list[str], objective: str) -> Any:
    """Return TRL's arguments from the file; a misspelt key is refused by TRL."""
    import trl

    path = HERE / f"{objective}.yaml"
    further = dict(WITHOUT_GPU) if options.cpu else {}
    if options.steps is not None:
        further["max_steps"] = str(options.steps)
    words = [word for key, value in further.items() for word in (f"--{key}", value)]
    kinds = getattr(trl, f"{NAMES[objective]}Config"), trl.ModelConfig
    parser = trl.TrlParser((script_arguments(objective), *kinds))
    try:
        return parser.parse_args_and_config(["--config", str(path), *rest, *words])
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error


def script_arguments(objective: str) -> Any:
    """Return TRL's own arguments of a script, which of grpo name the rewards too."""
    if objective != "grpo":
        import trl

        return trl.ScriptArguments
    from trl.scripts.grpo import GRPOScriptArguments

    return GRPOScriptArguments


def rewards(script: Any) -> dict[str, Any]:
    """Return the functions that rate answers, by their names in the file; grpo alone has them."""
    names = getattr(script, "reward_funcs", None)
    if names is None:
        return {}
    found = []
    for name in names:
        module, _, function = name.rpartition(".")
        try:
            found.append(getattr(importlib.import_module(module or "trl.rewards"), function))
        except (ImportError, AttributeError) as error:
            raise InputError(f"reward_funcs: {name}: {error}") from error
    return {"reward_funcs": found}


def rows(options: argparse.Namespace, asked: dict[str, Any], script: Any, tokenizer: Any) -> Any:
    """Return pairs, each a prompt with a chosen and a rejected answer; of grpo prompts alone."""
    from datasets import Dataset, load_dataset

    if options.synthetic:
        made = (made_up(asked["tokens"], tokenizer, seed) for seed in range(MADE_UP))
        return Dataset.from_list([*made])
    try:
        found = load_dataset(script.dataset_name, name=script.dataset_config)
    except (OSError, ValueError) as error:
        raise InputError(f"{script.dataset_name}: {' '.join(str(error).split())}") from error
    data = found[script.dataset_train_split]
    longest = asked["tokens"]["prompt"]
    if asked["objective"] != "grpo":
        return data
    return data.filter(lambda row: len(tokenizer(text(row, tokenizer))["input_ids"]) <= longest)


def text(row: dict[str, Any], tokenizer: Any) -> str:
    """Return a prompt as the model reads it, from messages too."""
    prompt = row["prompt"]
    if isinstance(prompt, str):
        return prompt
    made = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    return str(made)


def made_up(tokens: dict[str, int], tokenizer: Any, seed: int) -> dict[str, str]:
    """Return a row of random words, about as long as the plan's samples."""
    dice = random.Random(seed)

    def words(count: int) -> str:
        numbers = [dice.randrange(len(tokenizer)) for _ in range(max(1, count))]
        return str(tokenizer.decode(numbers, skip_special_tokens=True))

    return {name: words(count) for name, count in tokens.items()}


if __name__ == "__main__":
    sys.exit(main())
