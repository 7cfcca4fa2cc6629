"""Target ``accelerate``: the programs of ``plain``, run by accelerate after its own YAML file."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import programs, sharing
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import AFTER_BACKWARD, OUTPUT_CONVERTED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.yamltext import dump

OWN: Mapping[str, str] = {"accelerate": ">=1.12"}
made_for: Mapping[str, str] = {**programs.LIBRARIES, **OWN}
REPLACED: Replacements = {**programs.REPLACED, **AFTER_BACKWARD, **OUTPUT_CONVERTED}
REMARK = "export.remark.accelerate"
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "fsdp2": ("accelerate/fsdp2", "accelerate", programs.SHARDED)
}
"""Strategy -> where the programs for it lie."""

PRECISION = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: accelerate.yaml, train.py, plan.json, and what they need.

    Raises:
        UserError: the model's own file cannot be read.
    """
    written = dump(configuration(plan, settings))
    start = "accelerate launch --config_file accelerate.yaml"
    if batch(plan, settings).nodes > 1:  # which the file, the same on all nodes, cannot say
        start += " --machine_rank NUMBER --main_process_ip FIRST-NODE --main_process_port 29500"
    launch = programs.Launch(
        folders=FOLDERS.get(settings.strategy, ("accelerate",)),
        start=f"{start} train.py",
        made_for=OWN,
        head=Message.of("export.header.start"),
        remark=Message.of("export.remark.accelerate-fsdp2" if settings.shards else REMARK),
        replaced=sharing.replaced(settings, REPLACED),
        files={
            "accelerate.yaml": written,
            "check_config.py": programs.own("accelerate/check_config.py"),
        },
    )
    return programs.files(plan, settings, reasons, language, launch)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return lost(plan, settings, sharing.replaced(settings, REPLACED))


def configuration(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return what ``accelerate launch --config_file`` reads.

    Accumulation, clipping and the loader have no keys there: they stand in plan.json. Under fsdp2
    the blocks have their types from train.py, and accelerate casts nothing.
    """
    parts = batch(plan, settings)
    precision = carried(settings, REPLACED, "precision")
    found: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if parts.gpus > 1 else "NO",
        "mixed_precision": PRECISION.get(precision, "no"),
        "num_machines": parts.nodes,
        "machine_rank": 0,
        # Of all machines together.
        "num_processes": parts.gpus,
        "main_training_function": "main",
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
        "debug": False,
    }
    if settings.strategy == "fsdp2":
        found |= {
            "distributed_type": "FSDP",
            "mixed_precision": "no",
            "fsdp_config": {
                "fsdp_version": 2,
                "fsdp_reshard_after_forward": settings.reshard_after_forward,
                "fsdp_offload_params": settings.shard_offload,
                "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            },
        }
    if settings.shard_degree is not None:
        found["parallelism_config"] = {
            "parallelism_config_dp_replicate_size": parts.gpus // settings.shard_degree,
            "parallelism_config_dp_shard_size": settings.shard_degree,
        }
    if settings.compile:
        found["dynamo_config"] = {"dynamo_backend": "INDUCTOR"}
    return found
