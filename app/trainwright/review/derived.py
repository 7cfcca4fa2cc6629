"""What the facts of a run come to: its task, its processes, how they share the work."""

from math import inf

from trainwright.review.facts import Facts
from trainwright.review.names import quantization_of
from trainwright.workload import objectives
from trainwright.workload.engines import SHARING

OBJECTIVES = {"sft": None, "pt": None, "pretrain": None}
"""What trains by one forward and backward pass of one model; others take more."""
_LIGHTER = (
    *("low_rank_gradients", "unsloth", "cpu_checkpointing", "offload_gib", "layers_on_gpu"),
    "experts_elsewhere",
)
"""Facts that take memory off the GPU, or need less, and that no figure counts."""


def says_processes(facts: Facts) -> bool:
    """Return whether the files say how many processes train."""
    if facts.value("shard_rest"):  # all GPUs that there are
        return bool(facts.given("processes") or facts.given("devices"))
    named = ("processes", "devices", "engine", "replicate", "shard", "tensor", "pipeline")
    return any(facts.given(name) for name in (*named, "context_parallel"))


def processes(facts: Facts) -> int:
    """Return the GPUs of all nodes that the files start a process on; 1 where none says it."""
    nodes = facts.value("nodes", 1)
    launched = facts.first("strategy")
    if launched is not None and (launched.kind, launched.value) == ("accelerate", "single"):
        return 1  # distributed_type: "NO" starts one process, whatever num_processes says
    if (total := facts.first("processes")) is not None:
        return int(total.value)
    if (devices := facts.first("devices")) is not None:
        return int(devices.value) * int(nodes)
    if facts.first("engine") is not None:
        return product(facts, "tensor", "pipeline", "replicas")
    return product(facts, "replicate", "shard", "tensor", "pipeline", "context_parallel")


def implied_processes(facts: Facts) -> int:
    """Return the same, from the batch of a DeepSpeed file where nothing else says it."""
    if not says_processes(facts) and (whole := facts.first("global_batch")) is not None:
        each = int(facts.value("micro_batch", 0)) * int(facts.value("accumulation", 0) or 0)
        if whole.kind == "deepspeed" and each and whole.value % each == 0:
            return int(whole.value) // each
    return processes(facts)


def product(facts: Facts, *names: str) -> int:
    """Return the product of degrees; one that no file says is 1."""
    product = 1
    for name in names:
        product *= int(facts.value(name, 1) or 1)
    return product


def replicas(facts: Facts) -> int:
    """Return the processes that see different samples."""
    apart = product(facts, "tensor", "pipeline", "context_parallel")
    return max(1, processes(facts) // apart)


def tensor_degree(facts: Facts) -> int | None:
    """Return over how many GPUs each layer is split, where a plan can say it; None where not."""
    degree = int(facts.value("tensor", 1) or 1)
    if task(facts) == "infer":
        alone = facts.value("engine") in SHARING and facts.value("pipeline", 1) == 1
        return degree if degree > 1 and alone else None
    others = product(facts, "pipeline", "context_parallel", "replicate") > 1
    plain = strategy(facts) == "fsdp2" and task(facts) in ("pretrain", "full")
    aside = facts.value("compile") or facts.value("offload_params") or objective_of(facts)
    return degree if degree > 1 and plain and not others and not aside else None


def strategy(facts: Facts) -> str | None:
    """Return how several GPUs share the work, as the most telling file says it."""
    words = [f.value for name in ("strategy", "stage", "sharding") for f in facts.given(name)]
    known = [word for word in words if word not in ("deepspeed", "ddp", "single")]
    if "fsdp2" in known and (narrow := [w for w in known if w != "fsdp2"]):
        return str(narrow[0])
    if known:
        return str(known[0])
    rest = [word for word in words if word != "deepspeed"]
    return str(rest[0]) if rest else facts.value("strategy")


def task(facts: Facts) -> str:
    """Return the plan's task."""
    if facts.first("engine") is not None and not facts.given("micro_batch"):
        return "infer"
    adapter = facts.value("adapter", "none")
    if adapter in ("lora", "qlora"):
        low = facts.value("quantization") in ("nf4", "int8")
        return "qlora" if adapter == "qlora" or low else "lora"
    if adapter in ("prompt", "prefix"):
        return str(adapter)
    return "pretrain" if facts.value("objective") in ("pt", "pretrain") else "full"


def objective_of(facts: Facts) -> str | None:
    """Return what a run of TRL's trains for, where that is not the next token.

    None where no plan knows it.
    """
    objective = str(facts.value("objective"))
    trained = objectives.RECIPE.get(objective) in facts.kinds  # kinds and recipes have one name
    shared = strategy(facts) not in (None, *objectives.STRATEGIES)
    return objective if trained and not shared and task(facts) in objectives.TASKS else None


def checkpointing(facts: Facts) -> str | None:
    """Return which activations are made again, as a plan says it."""
    found: str | None = facts.value("checkpointing")
    if facts.value("fsdp_checkpointing"):
        found = "full"
    every = facts.first("every")
    # torchtitan checkpoints each k-th layer in its mode "selective", the Trainer in its only one.
    counts = "selective" if every is not None and every.kind == "torchtitan" else "full"
    if every is not None and found == counts:
        return "full" if every.value == 1 else f"every-{every.value}"
    return found


def shares_aside(facts: Facts) -> bool:
    """Return whether FSDP keeps its shares in system memory."""
    offloads = facts.value("offload_params") not in (None, False, "none")
    return offloads and str(strategy(facts)).startswith("fsdp2")


def offloads(facts: Facts) -> tuple[str, ...]:
    """Return what DeepSpeed keeps in system memory, which no plan says: figures count it."""
    if shares_aside(facts):
        return ()
    names = ("offload_params", "offload_optimizer")
    return tuple(name for name in names if facts.value(name) not in (None, False, "none"))


def lighter(facts: Facts, layers: int | None) -> tuple[str, ...]:
    """Return the keys that make a run need less than its figures say.

    More layers on the GPU than the model has (-ngl 99), and the head with them, are all of it.
    """
    given = [fact for name in _LIGHTER for fact in facts.given(name) if fact.value]
    whole = inf if layers is None else layers
    given = [fact for fact in given if fact.name != "layers_on_gpu" or fact.value <= whole]
    given += [fact for fact in facts.given("adapter") if fact.value == "freeze"]
    given += facts.given("model") if quantized_by_name(facts) else ()
    if task(facts) != "infer" and tensor_degree(facts) is None:  # each GPU holds a part
        split = [fact for name in ("tensor", "pipeline") for fact in facts.given(name)]
        given += [fact for fact in split if fact.value > 1]
    return tuple(dict.fromkeys(fact.key for fact in given))


def quantized_by_name(facts: Facts) -> str | None:
    """Return the weights that training begins with, as the model's name alone says them."""
    if task(facts) == "infer" or facts.given("quantization"):
        return None
    return quantization_of(str(facts.value("model", "")))


def heavier(facts: Facts) -> str | None:
    """Return the objective whose step takes more than the figures of supervised training."""
    objective = facts.value("objective")
    plain = objective is None or objective in OBJECTIVES or objective_of(facts) is not None
    return None if plain else str(objective)


def precision_of(facts: Facts, kind: str) -> str | None:
    """Return the precision of a task; None where nothing says it."""
    precision: str | None = facts.value("precision")
    weights: str | None = facts.value("weights_dtype")
    if facts.value("no_autocast") and not facts.given("precision"):
        precision = "fp32"
    if precision == "fp32" and facts.value("tf32"):
        return "tf32"
    if kind in ("full", "pretrain") and precision in ("bf16-mixed", "fp16-mixed"):
        # No fp32 copy of the weights is kept where they are loaded in 16 bits.
        low = str(precision).removesuffix("-mixed")
        if weights in (low, "compute"):
            return low
    if precision == "fp32" and weights in ("bf16", "fp16"):
        return weights  # no autocast: all is computed as it is kept
    return precision
