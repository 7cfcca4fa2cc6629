"""What plain, accelerate and deepspeed share: programs around the step that was traced.

They differ in ``engine.py``, which runs the steps, and in what their own launcher reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import trainwright.worker
from trainwright.data import resources
from trainwright.export.batch import Batch, batch
from trainwright.export.bundle import bundle
from trainwright.export.header import Reasons, header
from trainwright.export.learning import learning_rate
from trainwright.export.lost import Replacements, carried, lost
from trainwright.export.model import Definition, adapting_libraries, definition
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.quoting import json_text, python_file
from trainwright.workload import FullSettings, Lora

LIBRARIES: Mapping[str, str] = {
    "python": ">=3.10",
    "torch": ">=2.10,<2.14",
    "transformers": ">=5.0",
    "timm": ">=1.0.20",
    "diffusers": ">=0.35",
    "peft": ">=0.17",
    "bitsandbytes": ">=0.48",
    "torchao": ">=0.15",
}
"""Version ranges that the exported files were made for, by library."""

PROGRAMS = Path(trainwright.worker.__file__).parent / "programs"
TUNING: Mapping[str, str] = {
    **dict.fromkeys(("lora", "qlora"), "tuning/adapters"),
    **dict.fromkeys(("prompt", "prefix"), "tuning/tokens"),
}
"""Task -> folder of the program that makes the trained part of a model of transformers."""
SPLIT = "plain/tensor"
"""Folder of the programs that split layers over GPUs."""
SHARDED = "sharded"
"""Folder of the programs around torch's ``fully_shard``."""
COMMON = ("run", "shared")
"""Folders of the programs that run the steps, and of those that the target transformers has too."""
OF_SOME = ("splitting", "stages", "shares", "ds_config", "parting")
"""Programs that only some targets and strategies have."""
TRACED = ("step", "updates", "freezing", "nets", "splits")
"""Programs that the tracer runs too."""
EARLY = """# torch reads this once, when it is imported.
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
"""
NEEDS = {
    "hf": ("transformers",),
    "diffusers": ("diffusers",),
    "timm": ("timm",),
    "builtin": (),
    "python": (),
}
CLIP_NORM = 1.0
"""Largest norm of all gradients together; common since Pascanu et al. 2013 (arXiv 1211.5063)."""
REPLACED: Replacements = {
    "precision": {"fp8": "bf16-mixed"},
    "quantization": {"int4": "nf4", "fp8": "int8"},
    "cross_entropy": {"fused": "chunked", "tiled": "chunked"},
}


@dataclass(frozen=True, slots=True)
class Launch:
    """How a target's run starts, and what is said of it."""

    folders: tuple[str, ...]
    """Below ``resources/export``: where its own programs lie, before those that all share."""
    start: str
    """Command before its arguments, or with ``{}`` where they stand."""
    made_for: Mapping[str, str]
    """Version ranges of the libraries that it needs beside the model's."""
    head: Message
    remark: Message
    files: Files
    """What its own launcher reads."""
    replaced: Replacements = field(default_factory=lambda: REPLACED)
    """What it writes instead of what it lacks."""


def files(
    plan: Plan, settings: FullSettings, reasons: Reasons, language: Language, launch: Launch
) -> Files:
    """Return the exported files: train.py, plan.json, and what they read.

    Raises:
        UserError: the model's own file cannot be read.
    """
    model, sizes = definition(plan), batch(plan, settings)
    rate = learning_rate(plan, settings, sizes.effective)
    head = header(
        plan,
        settings.model_copy(update={"learning_rate": rate.value}),
        {"learning_rate": rate.because, **reasons},
        title=model.title,
        start=launch.head,
        commands=commands(plan, model, launch.start),
        made_for={**libraries(plan, settings, model), **launch.made_for},
        lost=lost(plan, settings, launch.replaced),
        remarks=(launch.remark,),
        language=language,
    )
    early = EARLY if settings.allocator == "expandable" else ""
    folders = (*launch.folders, TUNING.get(plan.workload.task, "tuning/whole"))
    train = bundle(modules(folders, model), "train", early)
    return {
        "train.py": python_file(f"{head}\n{train}"),
        "plan.json": configuration(document(plan, settings, launch.replaced)),
        **launch.files,
        **model.files,
    }


def modules(folders: tuple[str, ...], model: Definition) -> dict[str, str]:
    """Return the text of each program by its module's name; none uses one after it."""
    kinds = {"hf": ["hf_models"], "builtin": ["nets"]}.get(model.kind, [])
    built = ["tuning", "transformer"] if model.kind == "hf" else []
    split = ["splits"] if SPLIT in folders else []
    names = (
        *("strict", "plan_file", "world", "updates", "step", "freezing", "dataset", "folders"),
        *("made", *kinds, "networks", *built, "source", "making", "optimizers", "resumed", "saved"),
        *("selfcheck", "joining", *split, *OF_SOME, "engine", "loop", "train"),
    )
    found = {name: _module(name, folders, model) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def _module(name: str, folders: tuple[str, ...], model: Definition) -> str | None:
    """Return a program of the tracer's, or of the first folder that has one of this name."""
    if name in TRACED:
        return _program(f"{name}.py")
    if name == "source":
        return _text(f"sources/{model.kind}{'_images' if model.images else ''}.py")
    places = [f"{folder}/{name}.py" for folder in (*folders, *COMMON)]
    found = [place for place in places if _there(place)]
    return _text(found[0]) if found or name not in OF_SOME else None


def document(
    plan: Plan, settings: FullSettings, replaced: Replacements = REPLACED
) -> dict[str, Any]:
    """Return the content of plan.json, the file that the exported train.py reads strictly."""
    model, parts, workload = definition(plan), batch(plan, settings), plan.workload
    return {
        "format": 1,
        "name": plan.name,
        "made_for": dict(libraries(plan, settings, model)),
        "task": workload.task,
        "model": {
            "kind": model.kind,
            "where": model.where,
            "weights": None,
            "arguments": dict(model.arguments),
        },
        "inputs": {
            "sequence_length": workload.inputs.sequence_length or model.sequence_length,
            "image_size": workload.inputs.image_size or model.image_size,
            "packed": workload.inputs.batching == "packed",
        },
        "lora": _lora(plan),
        "virtual_tokens": workload.prompted,
        "frozen": list(workload.frozen),
        "batch": {
            "effective": parts.effective,
            "micro": parts.micro,
            "accumulation": parts.accumulation,
            "gpus": parts.gpus,
        },
        "settings": {name: carried(settings, replaced, name) for name in _CARRIED},
        "schedule": {
            "learning_rate": learning_rate(plan, settings, parts.effective).value,
            "warmup_steps": settings.warmup,
            "epochs": workload.epochs or 1.0,
            "steps": None,
            "final_ratio": 0.1,
            "weight_decay": 0.0 if workload.adapts else 0.01,
            "clip_norm": _clip_norm(settings, replaced),
        },
        "data": _data(plan, settings),
        "run": {"seed": 0, "output": "checkpoints", "save_every": 500, "keep": 2},
    }


_CARRIED = (
    *("precision", "quantization", "checkpointing", "double_quantization", "kbit_preparation"),
    *("adapter_dtype", "input_gradients", "optimizer", "optimizer_implementation", "momentum"),
    *("activation_offload", "cross_entropy", "optimizer_in_backward", "optimizer_offload"),
    *("attention", "expanded_heads", "compile", "channels_last", "allocator", "strategy"),
    *("reshard_after_forward", "shard_degree", "tensor_degree", "pipeline_stages"),
    "shard_offload",
)
"""Settings that the exported programs read."""


def _data(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    data = plan.workload.dataset
    return {
        "path": data.path if data is not None and data != "synthetic" else None,
        "tokenizer": None,
        "num_workers": settings.num_workers,
        "prefetch_factor": settings.prefetch_factor,
        "pin_memory": settings.pin_memory,
        "persistent_workers": settings.persistent_workers,
    }


def libraries(plan: Plan, settings: FullSettings, model: Definition) -> Mapping[str, str]:
    """Return the version ranges of the libraries that this plan's files import."""
    needed = {"python", "torch", *NEEDS[model.kind], *adapting_libraries(plan, settings)}
    return {name: versions for name, versions in LIBRARIES.items() if name in needed}


def commands(plan: Plan, model: Definition, start: str) -> tuple[str, ...]:
    """Return the lines that start the run, first the one to try without data."""
    tuned = plan.workload.task != "pretrain" and model.kind == "hf"
    weights = " --weights FOLDER-OR-HUB-ID" if tuned else ""
    # Quantized weights can only be made from trained ones.
    tried = weights if plan.workload.task == "qlora" else ""
    real = f"--data DATA{weights}"
    options = (f"--synthetic --steps 20 --selfcheck{tried}", real, f"{real} --resume")
    return tuple(start.format(one) if "{}" in start else f"{start} {one}" for one in options)


MEETING = "--rdzv-backend=c10d --rdzv-endpoint=FIRST-NODE:29500"
"""Where the nodes of a run meet, for a person to fill in."""


def torchrun(parts: Batch, program: str = "train.py", meeting: str = MEETING) -> str:
    """Return what starts a program on the plan's GPUs with torch alone; on each of its nodes."""
    if parts.gpus == 1:
        return f"python {program}"
    if parts.nodes == 1:
        return f"torchrun --standalone --nproc-per-node={parts.each} {program}"
    return f"torchrun --nnodes={parts.nodes} --nproc-per-node={parts.each} {meeting} {program}"


def own(name: str) -> str:
    """Return the text of one of our own exported programs."""
    return python_file(_text(name))


def program(name: str) -> str:
    """Return the text of a program that the tracer runs too."""
    return python_file(_program(name))


@cache
def _program(name: str) -> str:
    return (PROGRAMS / name).read_text(encoding="utf-8")


def headed(head: str, name: str) -> str:
    """Return one of our own exported programs below a block of comments."""
    return python_file(f"{head}\n{_text(name)}")


def configuration(values: Mapping[str, Any]) -> str:
    """Return the text of a JSON file that a program reads."""
    return json_text(values, indent=2) + "\n"


def _clip_norm(settings: FullSettings, replaced: Replacements) -> float:
    """Who moves parameters before all gradients are there cannot clip by their norm."""
    early = carried(settings, replaced, "optimizer_in_backward")
    offloaded = carried(settings, replaced, "optimizer_offload") == "cpu"
    return 0.0 if early or offloaded else CLIP_NORM


def _lora(plan: Plan) -> dict[str, Any] | None:
    if plan.workload.task not in ("lora", "qlora"):
        return None
    return (plan.workload.lora or Lora()).model_dump(mode="json")


@cache
def _text(name: str) -> str:
    return resources("export", *name.split("/")).read_text(encoding="utf-8")


@cache
def _there(name: str) -> bool:
    return resources("export", *name.split("/")).is_file()
