"""From what the files say to a plan, with what had to be assumed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from trainwright.machine.choice import MOST_PIECES
from trainwright.messages import Message, UserError
from trainwright.plan import overrides
from trainwright.plan.file import validated
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import USUAL_COMPLETION
from trainwright.profile import presets
from trainwright.quoting import dotted, one_line
from trainwright.review.derived import (
    checkpointing,
    heavier,
    objective_of,
    offloads,
    precision_of,
    processes,
    product,
    quantized_by_name,
    replicas,
    says_processes,
    shares_aside,
    strategy,
    task,
    tensor_degree,
)
from trainwright.review.facts import AUTO, Facts
from trainwright.review.files import Source
from trainwright.review.kinds import KINDS
from trainwright.review.modelsource import model_of, targets_of, unknown_model, usual_of
from trainwright.review.serving import most_requests, named_weights
from trainwright.workload.recipes import RECIPES
from trainwright.workload.settings import StrategyWord

_PROMPT = 512
"""Tokens of a prompt before what is generated, where nobody says; assumed."""
_ANSWER = 256
"""Tokens of a context that are the answer where nobody says; assumed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What no file says: the plan's key, and what was taken for it."""

    key: str
    taken: Any
    """None where nothing can be: there is no plan without it."""
    default_of: str | None = None
    """The tool whose default it is; None where it is ours."""
    why: Literal["name", "most"] | None = None
    """What a file says that it is taken from: a word of the model's name, or an upper limit."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan as far as the files make one."""

    plan: Plan | None
    asked: tuple[Asked, ...]
    not_planned: tuple[Message, ...]
    """What the files say and a plan cannot yet."""
    refused: Message | None = None
    """Why what the files say is not a plan."""
    unknown: Message | None = None
    """What is named and not known: the model, or the adapters; None where nothing is."""


def planned(
    facts: Facts,
    sources: Sequence[Source],
    machine: Mapping[str, Any],
    changes: Sequence[str] = (),
) -> Planned:
    """Return the plan that the files make on a machine.

    ``machine`` is the plan's section.
    ``changes`` are ``key=value`` as ``--set`` takes them.

    Raises:
        UserError: one of the changes is not a key of a plan.
    """
    asked: list[Asked] = []
    data: dict[str, Any] = {"trainwright": 1, "name": _name(sources)}
    if (model := model_of(facts, sources)) is not None:
        data["model"] = model
    cards: Sequence[Mapping[str, Any]] = machine.get("gpus") or ({},)
    gpus = sum(int(card.get("count", 1)) for card in cards)
    data["workload"] = _workload(facts, asked, model, gpus)
    data["machine"] = dict(machine)
    data["settings"] = _settings(facts, data["workload"]["task"])
    served = data["workload"]["task"] == "infer" and "quantization" not in data["settings"]
    if served and (weights := named_weights(facts)) is not None:
        data["settings"]["quantization"] = weights
        asked.append(Asked("settings.quantization", weights, why="name"))
    asked += _guessed(facts)
    for text in changes:
        overrides.apply(data, overrides.parse_change(text))
    asked = [one for one in asked if not any(text.startswith(f"{one.key}=") for text in changes)]
    asked = [_with_length(one, data.get("model")) for one in asked]
    lost = tuple(_not_planned(facts, machine))
    if "model" not in data:
        return Planned(None, (Asked("model", None), *asked), lost, unknown=unknown_model(facts))
    if facts.value("adapter") == "other":
        unknown = Message.of("review.adapter-unplanned", name=str(facts.value("adapter_type")))
        return Planned(None, tuple(asked), lost, unknown=unknown)
    try:
        return Planned(validated(data, dotted), tuple(asked), lost)
    except UserError as error:
        return Planned(None, tuple(asked), lost, error.message)


def _with_length(one: Asked, model: Mapping[str, Any] | None) -> Asked:
    """Return what is asked with the preset's usual length, where that is taken."""
    if one.taken != "preset" or model is None or "preset" not in model:
        return one
    length = presets.find(model["preset"]).sequence_length
    return replace(one, taken=length) if length else one


def _guessed(facts: Facts) -> Iterator[Asked]:
    """Yield what is taken for a script whose defaults nobody knows."""
    for name in ("optimizer", "precision"):
        fact = facts.first(name)
        if fact is not None and fact.kind == "own-script" and not fact.given:
            yield Asked(f"settings.{name}", fact.value)


def _name(sources: Sequence[Source]) -> str:
    first = sources[0]
    return (first.path.stem if first.path is not None else first.kind.tool)[:100] or "review"


def _workload(
    facts: Facts, asked: list[Asked], model: Mapping[str, Any] | None, gpus: int
) -> dict[str, Any]:
    kind = task(facts)
    if kind == "infer":
        return _served(facts, asked)
    objective = objective_of(facts)
    writes = objective == "grpo"
    inputs = _answers(facts, asked) if writes else _inputs(facts, asked, model, kind)
    data: dict[str, Any] = {"task": kind, "inputs": inputs}
    micro = _taken(facts, "micro_batch", "settings.micro_batch", 1, asked)
    steps = facts.value("accumulation", 1)
    apart = product(facts, "tensor", "pipeline", "context_parallel")
    copies = replicas(facts) if says_processes(facts) else max(1, gpus // apart)
    whole = facts.value("global_batch") or facts.value("sampled_batch")
    total = whole or micro * steps * copies
    if apart > 1 and tensor_degree(facts) is None:  # the plan has each GPU see its own samples
        total = micro * steps * (processes(facts) if says_processes(facts) else gpus)
    data["effective_batch"] = int(total)
    for key in ("epochs", "samples", "virtual_tokens"):
        if (value := facts.value(key)) is not None and (
            key != "virtual_tokens" or kind in ("prompt", "prefix")
        ):
            data[key] = value
    alpha = facts.value("alpha")
    if objective is not None:
        data |= {"objective": objective, **_compared(facts, objective, kind)}
        data |= {"rollout": _rollout(facts)} if writes else {}
    if kind in ("lora", "qlora"):
        data["lora"] = {
            **{
                key: facts.value(key)
                for key in ("rank", "alpha", "dropout", "variant")
                if facts.value(key)
            },
            **({"targets": targets} if (targets := targets_of(facts, model)) else {}),
            **({"alpha": usual} if (usual := facts.value("usual_alpha")) and not alpha else {}),
        }
    return data


def _answers(facts: Facts, asked: list[Asked]) -> dict[str, Any]:
    """Return the tokens of prompts, which files for TRL below 1.0 alone say, and of answers."""
    prompt = facts.value("prompt")
    if prompt is None:
        asked.append(Asked("workload.inputs.prompt_tokens", _PROMPT))
    answer = facts.value("completion") or USUAL_COMPLETION
    return {"prompt_tokens": prompt or _PROMPT, "new_tokens": answer}


def _rollout(facts: Facts) -> dict[str, Any]:
    """Return how often answers are written, in whole optimizer steps."""
    found = {
        "generations": facts.value("generations"),
        "updates": _updates(facts)[0],
        "iterations": facts.value("iterations"),
    }
    return {name: value for name, value in found.items() if value}


def _updates(facts: Facts) -> tuple[int, int, int]:
    """Return (optimizer steps that answers last for, micro-batches of these, and of one step).

    ``grpo_config.py``, __post_init__.
    """
    accumulation = int(facts.value("accumulation", 1))
    each = int(facts.value("micro_batch", 8)) * max(1, processes(facts))
    batch = facts.value("generation_batch")
    steps = int(facts.value("generation_steps") or (batch // each if batch else accumulation))
    return max(1, -(-steps // accumulation)), steps, accumulation


def _inputs(
    facts: Facts, asked: list[Asked], model: Mapping[str, Any] | None, kind: str
) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    if facts.value("image_size"):
        return {"image_size": facts.value("image_size")}
    usual = usual_of(model, kind)
    if usual is not None and usual.image_size and not usual.sequence_length:
        asked.append(Asked("workload.inputs.image_size", usual.image_size))
        return {}
    fact = facts.first("length")
    if fact is not None:
        inputs["sequence_length"] = fact.value
        if not fact.given:
            asked.append(
                Asked("workload.inputs.sequence_length", fact.value, KINDS[fact.kind].tool)
            )
    elif (completion := facts.value("completion")) is not None:
        inputs["sequence_length"] = (facts.value("prompt") or _PROMPT) + completion
        if facts.value("prompt") is None:
            asked.append(Asked("workload.inputs.sequence_length", _PROMPT + completion))
    else:
        asked.append(Asked("workload.inputs.sequence_length", "preset"))
    if facts.value("packing"):
        inputs["batching"] = "packed"
        if fact is not None:
            # Where nobody says how long samples are, a row counts as one sample.
            inputs["mean_tokens"] = fact.value
            asked.append(Asked("workload.inputs.mean_tokens", fact.value))
    return inputs


def _taken(facts: Facts, name: str, key: str, otherwise: Any, asked: list[Asked]) -> Any:
    """Return a value, and note where it is a default."""
    fact = facts.first(name)
    if fact is None:
        asked.append(Asked(key, otherwise))
        return otherwise
    if not fact.given:
        asked.append(Asked(key, fact.value, KINDS[fact.kind].tool))
    return fact.value


def _served(facts: Facts, asked: list[Asked]) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    context = facts.value("context") or facts.value("positions")
    if context is not None:
        answer = min(int(facts.value("new_tokens", 0) or _ANSWER), max(1, context // 2))
        inputs = {"prompt_tokens": max(1, context - answer), "new_tokens": answer}
    else:
        asked.append(Asked("workload.inputs.prompt_tokens", "preset"))
    most = most_requests(facts)
    inputs["concurrent"] = most or 1
    asked.append(Asked("workload.inputs.concurrent", most or 1, why="most" if most else None))
    return {"task": "infer", "inputs": inputs}


_OF_TRAINING = (
    *("micro_batch", "accumulation", "optimizer", "optimizer_implementation"),
    *("learning_rate", "cross_entropy", "optimizer_in_backward"),
)
_OF_PLANS = ("attention", "compile", "channels_last", "allocator", "optimizer_offload")
_LOADER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


def _settings(facts: Facts, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kind == "infer":
        names = ("engine", "memory_share", "kv_cache", "precision")
        found = {name: facts.value(name) for name in names}
        found["tensor_degree"] = tensor_degree(facts)
        found["quantization"] = facts.value("weights") or facts.value("packed")
        return {key: value for key, value in found.items() if value is not None}
    found = {name: facts.value(name) for name in _OF_TRAINING}
    # transformers/integrations/deepspeed.py: an optimizer in its file replaces the Trainer's.
    found["optimizer"] = facts.value("deepspeed_optimizer") or found["optimizer"]
    if facts.value("fused") and found["optimizer"] in ("adamw", "sgd"):
        found["optimizer_implementation"] = "fused"
    elif facts.value("foreach") and found["optimizer"] in ("adamw", "sgd"):
        found["optimizer_implementation"] = "foreach"
    for name in _OF_PLANS:
        found[name] = facts.value(name)
    found["precision"] = precision_of(facts, kind)
    found["recipe"] = _recipe(facts)
    if objective_of(facts):  # the objective has a recipe, whose head makes the loss
        found["recipe"] = found["cross_entropy"] = None
        found |= _generation(facts, objective_of(facts))
    found["checkpointing"] = checkpointing(facts)
    if found["checkpointing"] == "full":
        found["reentrant"] = facts.value("reentrant")
    if facts.value("activation_offload") and found["checkpointing"] == "full":
        found["activation_offload"] = True
    warmup = facts.value("warmup")
    if warmup is not None and warmup >= 1:
        found["warmup"] = int(warmup)
    if kind == "qlora":
        found["quantization"] = facts.value("quantization", "nf4")
        for name in ("double_quantization", "kbit_preparation"):
            found[name] = facts.value(name)
    word = strategy(facts)
    word = {"fsdp2-no-reshard": "fsdp2", "hybrid": "fsdp2"}.get(word or "", word)
    if word in get_args(StrategyWord) and (word != "ddp" or processes(facts) > 1):
        found["strategy"] = word
    if word == "fsdp2":
        kept = strategy(facts) == "fsdp2-no-reshard" or facts.value("reshard") is False
        found["reshard_after_forward"] = False if kept else None
        found["shard_offload"] = True if shares_aside(facts) else None
        found["tensor_degree"] = tensor_degree(facts)
        found["shard_degree"] = None if found["tensor_degree"] else _shard_degree(facts)
    loader = {name: facts.value(name) for name in _LOADER}
    if not loader["num_workers"]:
        loader.pop("prefetch_factor")
        loader.pop("persistent_workers")
    found["loader"] = {key: value for key, value in loader.items() if value is not None}
    return {key: value for key, value in found.items() if value is not None}


def _recipe(facts: Facts) -> str | None:
    """Return whose loop runs the step; accelerate's own only where no trainer is there."""
    kinds = dict.fromkeys(fact.kind for fact in facts.all)
    found = [name for kind in kinds if (name := KINDS[kind].recipe) in RECIPES]
    return next((name for name in found if name != "accelerate"), found[0] if found else None)


def _shard_degree(facts: Facts) -> int | None:
    """Return how many GPUs share one copy; None where all do."""
    whole = processes(facts)
    if strategy(facts) == "hybrid":  # a copy in each computer
        degree = whole // int(facts.value("nodes", 1))
    else:
        degree = int(facts.value("shard", whole) or whole)
    return degree if 1 < degree < whole and whole % degree == 0 else None


_NOT_COUNTED = (
    *("modules_to_save", "low_rank_gradients", "unsloth", "cpu_checkpointing", "zero_buffers"),
    *("bucket_size", "gather_bucket_size", "offload_gib", "adapter_file", "unplanned"),
    "experts_elsewhere",
)
"""Facts that change memory or time, and that no plan says."""
_OF_ANSWERS = ("generations", "uses_vllm", "vllm_share")
"""The same where a run writes its answers and no plan does."""


def _not_planned(facts: Facts, machine: Mapping[str, Any]) -> Iterator[Message]:
    """Yield what the files say and a plan does not, one line each."""
    auto = [fact.key for fact in facts.all if fact.given and fact.value == AUTO]
    if auto and facts.kinds <= {"deepspeed", "launch", "devices", "accelerate"}:
        yield Message.of("review.auto-alone", keys=auto)
    writes = objective_of(facts) == "grpo"
    names = _NOT_COUNTED if writes else (*_NOT_COUNTED, *_OF_ANSWERS)
    given = [fact for name in names for fact in facts.given(name)]
    given += [] if most_requests(facts) else facts.given("most_requests")
    if keys := list(dict.fromkeys(f.key for f in given if f.value not in (AUTO, False, None))):
        yield Message.of("review.not-planned.keys", count=len(keys), keys=keys)
    if (objective := heavier(facts)) is not None:
        yield Message.of("review.not-planned.objective", value=objective)
    if facts.value("on_cpu"):
        yield Message.of("review.not-planned.on-cpu")
    updates, steps, accumulation = _updates(facts)
    if writes and steps != updates * accumulation:
        values = {"steps": steps, "accumulation": accumulation, "updates": updates}
        yield Message.of("review.not-planned.generation", **values)
    if facts.value("liger_layers"):
        yield Message.of("review.not-planned.liger")
    serves = task(facts) == "infer"
    if (weights := quantized_by_name(facts)) is not None:
        model = one_line(str(facts.value("model")), 100)
        yield Message.of("review.not-planned.named-weights", name=model, weights=weights)
    if facts.value("adapter") == "freeze":
        yield Message.of("review.not-planned.freeze")
    for name in offloads(facts):
        yield Message.of(f"review.not-planned.{name.replace('_', '-')}")
    if not serves and (degree := facts.value("tensor", 1)) > 1 and not tensor_degree(facts):
        yield Message.of("review.not-planned.tensor", degree=degree)
    split = serves and tensor_degree(facts) is None
    for name in (*(("tensor",) if split else ()), "pipeline", "context_parallel"):
        if facts.value(name, 1) > 1:
            kind = name.removesuffix("_parallel")
            yield Message.of("review.not-planned.degree", name=kind, degree=facts.value(name))
    planned_nodes = machine.get("nodes", 1) > 1
    if processes(facts) > MOST_PIECES and not planned_nodes:
        yield Message.of("review.not-planned.gpus", wanted=processes(facts), most=MOST_PIECES)
    if facts.value("nodes", 1) > 1 and not planned_nodes:
        yield Message.of("review.not-planned.nodes", nodes=facts.value("nodes"))
    word = strategy(facts)
    if word is not None and word not in get_args(StrategyWord) and word != "fsdp2-no-reshard":
        yield Message.of("review.not-planned.strategy", value=word)
    if facts.value("replicas", 1) > 1:
        yield Message.of("review.not-planned.replicas", count=facts.value("replicas"))


def _compared(facts: Facts, objective: str, kind: str) -> dict[str, Any]:
    """Return what the files compare with, where that is not the objective's default."""
    if objective == "grpo":
        own = "adapter-off" if kind in ("lora", "qlora") else "model"
        return {"reference": own} if facts.value("beta") else {}
    return {"reference": "precomputed"} if facts.value("precomputed") else {}


def _generation(facts: Facts, objective: str | None) -> dict[str, Any]:
    """Return what writes the answers of grpo, where that is not the trained model."""
    if objective != "grpo" or not facts.value("uses_vllm"):
        return {}
    if facts.value("vllm_mode") == "server":
        return {"generation": "vllm-server"}
    kind = "vllm-sleep" if facts.value("vllm_sleeps") else "vllm"
    return {"generation": kind, "memory_share": facts.value("vllm_share")}
