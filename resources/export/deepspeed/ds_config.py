"""What ds_config.json says, for this run."""

import json
from typing import Any

from plan_file import Plan
from strict import HERE, InputError
from world import World

CONFIG = HERE / "ds_config.json"


def read_configuration(plan: Plan, world: World) -> dict[str, Any]:
    """Return ds_config.json with the accumulation that this number of processes needs.

    Raises:
        InputError: it contradicts plan.json.
    """
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    batch = plan.batch
    wanted = {
        "train_batch_size": batch.effective,
        "train_micro_batch_size_per_gpu": batch.micro,
        "gradient_clipping": plan.schedule.clip_norm,
    }
    for key, value in wanted.items():
        if config.get(key) != value:
            raise InputError(f"ds_config.json: {key} {config.get(key)}, but plan.json says {value}")
    rounds = batch.effective // (world.size * batch.micro)
    return config | {"gradient_accumulation_steps": rounds}
