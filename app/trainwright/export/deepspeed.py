"""Target ``deepspeed``: the programs of ``plain``, run by DeepSpeed after its JSON file."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import programs
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

AUTOCAST = {"bf16-mixed": "bfloat16", "fp16-mixed": "float16"}


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: ds_config.json, train.py, plan.json, and what they need.

    Raises:
        UserError: the model's own file cannot be read.
    """
    written = programs.configuration(configuration(plan, settings))
    launch = programs.Launch(
        folders=("deepspeed",),
        start=programs.torchrun(batch(plan, settings).gpus),
        made_for=OWN,
        head=Message.of("export.header.start"),
        remark=Message.of("export.remark.deepspeed"),
        replaced=REPLACED,
        files={
            "ds_config.json": written,
            "check_config.py": programs.own("deepspeed/check_config.py"),
        },
    )
    return programs.files(plan, settings, reasons, language, launch)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return lost(plan, settings, REPLACED)


def configuration(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return what ``deepspeed.initialize`` reads.

    Nothing is sharded (stage 0). Mixed precision is torch's own autocast over fp32 weights, as
    the plan has it: DeepSpeed's ``bf16`` would keep 16-bit weights with fp32 copies instead.
    """
    parts = batch(plan, settings)
    precision = carried(settings, REPLACED, "precision")
    autocast: dict[str, Any] = {"enabled": precision in AUTOCAST}
    if precision in AUTOCAST:
        autocast["dtype"] = AUTOCAST[precision]
    return {
        "train_batch_size": parts.effective,
        "train_micro_batch_size_per_gpu": parts.micro,
        "gradient_accumulation_steps": parts.accumulation,
        "gradient_clipping": programs.CLIP_NORM,
        "zero_optimization": {"stage": 0},
        "torch_autocast": autocast,
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    }
