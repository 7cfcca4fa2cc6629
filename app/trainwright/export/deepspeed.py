"""Target ``deepspeed``: the programs of ``plain``, run by DeepSpeed after its JSON file."""

from collections.abc import Mapping
from typing import Any

from trainwright.estimate.parallel.sharded import BUCKET_ELEMENTS, LIVE_ELEMENTS
from trainwright.export import programs, sharing
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import AFTER_BACKWARD, OUTPUT_CONVERTED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

OWN: Mapping[str, str] = {"deepspeed": ">=0.18,<0.20"}
"""``torch_autocast`` without ZeRO, and its gradient scaler, are those of these releases."""
made_for: Mapping[str, str] = {**programs.LIBRARIES, **OWN}
REPLACED: Replacements = {**programs.REPLACED, **AFTER_BACKWARD, **OUTPUT_CONVERTED}
REMARK = "export.remark.deepspeed"
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "zero1": ("deepspeed/zero", "deepspeed"),
    "zero2": ("deepspeed/zero", "deepspeed"),
    # What the first process alone loads is shared out here as fully_shard's programs do.
    "zero3": ("deepspeed/zero3", "deepspeed/zero", "deepspeed", programs.SHARDED),
}
"""Strategy -> where the programs for it lie."""

AUTOCAST = {"bf16-mixed": "bfloat16", "fp16-mixed": "float16"}


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: ds_config.json, train.py, plan.json, and what they need.

    Raises:
        UserError: the model's own file cannot be read.
    """
    written = programs.configuration(configuration(plan, settings))
    launch = programs.Launch(
        folders=FOLDERS.get(settings.strategy, ("deepspeed",)),
        start=programs.torchrun(batch(plan, settings)),
        made_for=OWN,
        head=Message.of("export.header.start"),
        remark=Message.of("export.remark.deepspeed-zero" if settings.shards else REMARK),
        replaced=sharing.replaced(settings, REPLACED),
        files={
            "ds_config.json": written,
            "check_config.py": programs.own("deepspeed/check_config.py"),
        },
    )
    return programs.files(plan, settings, reasons, language, launch)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return lost(plan, settings, sharing.replaced(settings, REPLACED))


def configuration(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return what ``deepspeed.initialize`` reads."""
    parts = batch(plan, settings)
    return {
        "train_batch_size": parts.effective,
        "train_micro_batch_size_per_gpu": parts.micro,
        "gradient_accumulation_steps": parts.accumulation,
        "gradient_clipping": programs.CLIP_NORM,
        "zero_optimization": zero(settings),
        **_precision(settings),
        # Ours is torch's SGD or AdamW, and of SGD alone DeepSpeed wants to hear that we mean it.
        **({"zero_allow_untested_optimizer": True} if settings.shards else {}),
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    }


def zero(settings: FullSettings) -> dict[str, Any]:
    """Return what is shared, with the buffers that the estimate counts; stage 0 shares nothing."""
    if not settings.shards:
        return {"stage": 0}
    stage = int(settings.strategy.removeprefix("zero"))
    found = {
        "stage": stage,
        "reduce_bucket_size": BUCKET_ELEMENTS,
        "contiguous_gradients": True,
        "overlap_comm": stage == 3,
    }
    if stage < 3:
        return found | {"allgather_bucket_size": BUCKET_ELEMENTS}
    return found | {
        "stage3_max_live_parameters": LIVE_ELEMENTS,
        "stage3_max_reuse_distance": LIVE_ELEMENTS,
    }


def _precision(settings: FullSettings) -> dict[str, Any]:
    """Return the types. Without sharing, mixed precision is torch's autocast over fp32 weights, as
    the plan has it; with it, DeepSpeed keeps 16-bit weights and fp32 copies of them.
    """
    precision = carried(settings, REPLACED, "precision")
    if settings.shards:
        return {
            "bf16": {"enabled": precision in ("bf16-mixed", "bf16")},
            "fp16": {"enabled": precision in ("fp16-mixed", "fp16")},
        }
    autocast: dict[str, Any] = {"enabled": precision in AUTOCAST}
    if precision in AUTOCAST:
        autocast["dtype"] = AUTOCAST[precision]
    return {"torch_autocast": autocast}
