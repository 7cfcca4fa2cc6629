"""Target ``trl``: the YAML file of ``trl sft``; of other objectives with a script that tries it."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import configs, hf_trainer, programs
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.model import USUAL_PROMPT
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import USUAL_COMPLETION
from trainwright.workload import FullSettings, Lora, Rollout

SCRIPTS = {"dpo": "train_pairs.py", "reward": "train_pairs.py", "grpo": "train_grpo.py"}
"""Objective -> the name of the script that runs it."""
BETA = 0.04
"""Weight of the distance from a reference, where grpo has one: DeepSeekMath (arXiv 2402.03300)."""
made_for: Mapping[str, str] = {
    "torch": ">=2.10,<2.14",
    "transformers": ">=5.23,<6",
    "trl": ">=1.16,<2",
    "peft": ">=0.17",
}


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return sft.yaml; of another objective its own file, and a script that tries it.

    Raises:
        UserError: the model or the task is not one of TRL's trainers.
    """
    configs.check_task(plan, "trl")
    kind = plan.workload.objective or "sft"
    file, parts = f"{kind}.yaml", batch(plan, settings)
    start = f"trl {kind} --config {file}"
    start += f" --num_processes {parts.gpus}" if parts.gpus > 1 else ""
    script = programs.torchrun(parts, SCRIPTS.get(kind, ""))
    tried = f"{script} --synthetic --steps 20 --selfcheck"
    text = configs.headed(
        plan,
        settings,
        reasons,
        language,
        arguments(plan, settings),
        commands=(start,) if kind == "sft" else (tried, start),
        made_for=made_for,
        lost=not_expressible(plan, settings),
    )
    if kind == "sft":
        return configs.single(file, text)
    return {file: text, **_script(plan, settings)}


def _script(plan: Plan, settings: FullSettings) -> Files:
    """Return the script that tries a file, what it makes up, and what its check compares with."""
    parts, given = batch(plan, settings), arguments(plan, settings)
    script = {
        "gpus": parts.gpus,
        "effective": parts.effective,
        "strategy": settings.strategy,
        "task": plan.workload.task,
        "attention": given["attn_implementation"],
        "quantization": carried(settings, _replaced(plan, settings), "quantization"),
        "reference": _written(plan),
        "allocator": "native",
        "frozen": [],
    }
    found = {name: given.get(name, False) for name in ("bf16", "fp16", "tf32", "optim")}
    asked = found | {"activation_checkpointing": given["gradient_checkpointing"]}
    objective = plan.workload.objective
    assert objective is not None, "asked for those that have a script"
    written = {"rewards.py": programs.own("trl/rewards.py")} if plan.workload.writes else {}
    described = {"objective": objective, "tokens": _tokens(plan)}
    return {
        SCRIPTS[objective]: programs.own("trl/train_objective.py"),
        **written,
        "asked.json": programs.configuration({**described, "script": script, "arguments": asked}),
        "selfcheck.py": programs.own("transformers/selfcheck.py"),
        "strict.py": programs.own("shared/strict.py"),
    }


def _tokens(plan: Plan) -> dict[str, int]:
    """Return the tokens of each part of a row that is made up."""
    inputs = plan.workload.inputs
    if plan.workload.writes is not None:
        return {"prompt": inputs.prompt_tokens or USUAL_PROMPT}
    length = configs.length(plan)
    answer = length - length // 2
    return {"prompt": length // 2, "chosen": answer, "rejected": answer}


def _written(plan: Plan) -> str | None:
    """Return what TRL's file compares with: adapters leave no other model than their own."""
    compared = plan.workload.compared
    return "adapter-off" if plan.workload.adapts and compared == "model" else compared


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the file leaves out or replaces, one message each."""
    own = {"recipe": f"trl-{plan.workload.objective or 'sft'}"}
    messages = lost(plan, settings, _replaced(plan, settings), own)
    if plan.workload.writes is not None:
        prompt = _tokens(plan)["prompt"]
        cut = Message.of("export.lost.prompt", setting="prompt_tokens", value=prompt)
        messages = (*messages, cut)
    if (compared := plan.workload.compared) == _written(plan):
        return messages
    values = {"setting": "reference", "value": compared, "instead": _written(plan)}
    return (*messages, Message.of("export.lost.replaced", **values))


def _replaced(plan: Plan, settings: FullSettings) -> Replacements:
    qlora = plan.workload.task == "qlora"
    own_adapters = "weights" if qlora else "fp32"
    own_gradients = plan.workload.adapts and settings.checkpointing != "none"
    return {
        **hf_trainer.REPLACED,
        # SFTTrainer's own head makes the loss, and Liger's is refused.
        "cross_entropy": _losses(plan),
        "kbit_preparation": {"all": "none", "norms": "none"},
        "adapter_dtype": {"fp32": own_adapters, "weights": own_adapters},
        "input_gradients": {not own_gradients: own_gradients},
        **MODEL_UNTOUCHED,
        "allocator": {"expandable": "native"},
        "quantization": {"int4": "nf4", "fp8": "int8", "fp4": "nf4"},
    }


def _losses(plan: Plan) -> Mapping[str, str]:
    """Return what is written instead of a loss: a reward model has no scores of tokens."""
    own = "full" if plan.workload.objective == "reward" else "tiled"
    return dict.fromkeys({"full", "chunked", "fused", "tiled"} - {own}, own)


def arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of ScriptArguments, ModelConfig and that of the trainer."""
    replaced = _replaced(plan, settings)
    found = trainer_arguments(plan, settings)
    if plan.workload.objective is not None:  # their lengths are not known when they are sampled
        found.pop("train_sampling_strategy", None)
    return {
        "model_name_or_path": configs.model_name(plan),
        "dtype": hf_trainer.weights_dtype(plan, settings),
        "attn_implementation": hf_trainer.ATTENTION[settings.attention],
        **_adapters(plan, settings, replaced),
        "dataset_name": configs.data_name(plan),
        **({} if plan.workload.writes else {"max_length": configs.length(plan)}),
        **found,
        **_of_objective(plan, settings),
    }


def trainer_arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of TrainingArguments that TRL's configs have, by their names there."""
    found = hf_trainer.training_arguments(plan, settings)
    found.pop("use_liger_kernel", None)
    found.pop("liger_kernel_config", None)
    found["gradient_checkpointing"] = found.pop("activation_checkpointing", False)
    if (how := found.pop("activation_checkpointing_kwargs", None)) is not None:
        found["gradient_checkpointing_kwargs"] = how
    return found


def _of_objective(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys that the trainer of the objective alone has."""
    if plan.workload.objective is None:
        return {"packing": plan.workload.inputs.batching == "packed"}
    if plan.workload.objective == "reward":  # PEFT then trains the new head too
        return {"lora_task_type": "SEQ_CLS"} if plan.workload.adapts else {}
    if plan.workload.writes is not None:
        return _of_answers(plan, settings, plan.workload.writes)
    return {"precompute_ref_log_probs": plan.workload.compared == "precomputed"}


def _of_answers(plan: Plan, settings: FullSettings, writes: Rollout) -> dict[str, Any]:
    """Return the keys of GRPOConfig alone, and the function that rates answers."""
    answer = plan.workload.inputs.new_tokens or USUAL_COMPLETION
    found: dict[str, Any] = {
        "reward_funcs": ["rewards.reward"],
        "num_generations": writes.generations,
        "max_completion_length": answer,
        "steps_per_generation": writes.updates * batch(plan, settings).accumulation,
        "num_iterations": writes.iterations,
        "beta": BETA if plan.workload.compared is not None else 0.0,
        "use_vllm": settings.generation != "transformers",
    }
    if settings.generation == "vllm-server":
        return found | {"vllm_mode": "server"}
    if settings.beside:
        found |= {
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": settings.beside,
            "vllm_enable_sleep_mode": settings.generation == "vllm-sleep",
            "vllm_max_model_length": _tokens(plan)["prompt"] + answer,
        }
    return found


def _adapters(plan: Plan, settings: FullSettings, replaced: Replacements) -> dict[str, Any]:
    quantization = carried(settings, replaced, "quantization")
    found: dict[str, Any] = {}
    if plan.workload.low_rank:
        lora = plan.workload.lora or Lora()
        found = {
            "use_peft": True,
            "lora_r": lora.rank,
            "lora_alpha": round(lora.alpha),
            "lora_dropout": lora.dropout,
            "lora_target_modules": configs.adapted(plan, "TRL", experts=True) or "all-linear",
        }
        if lora.variant != "lora":
            found[f"use_{lora.variant}"] = True
    if quantization in ("nf4", "int8"):
        found["load_in_4bit" if quantization == "nf4" else "load_in_8bit"] = True
    if quantization == "nf4" or not settings.double_quantization:
        found["use_bnb_nested_quant"] = settings.double_quantization
    return found
