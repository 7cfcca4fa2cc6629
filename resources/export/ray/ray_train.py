"""Starts train.py for each GPU of a Ray cluster; what follows the name are options of train.py.

ray job submit --runtime-env runtime_env.yaml -- python ray_train.py --data DATA --output FOLDER
"""

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig, get_context
from ray.train.collective import broadcast_from_rank_zero
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from ray.util import get_node_ip_address


def work(config: dict[str, Any]) -> None:
    """Run train.py as one of the processes; they meet at the first one's computer.

    A process of its own, since train.py ends on signals, which only a main thread is sent. Ray
    shows it one GPU, which is its first.

    Raises:
        RuntimeError: train.py did not end well; its output says why.
    """
    context = get_context()
    address, port = broadcast_from_rank_zero(meeting())
    place = {"RANK": context.get_world_rank(), "WORLD_SIZE": context.get_world_size()}
    place |= {"LOCAL_RANK": 0, "MASTER_ADDR": address, "MASTER_PORT": port}
    environment = os.environ | {name: str(value) for name, value in place.items()}
    spec = find_spec("train")  # workers import from the job's folder, and start elsewhere
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path.cwd()
    command = [sys.executable, "train.py", *config["options"]]
    done = subprocess.run(command, cwd=folder, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"train.py ended with {done.returncode}; its output is above")


def meeting() -> tuple[str, int]:
    """Return this computer's address and a port of it that is free."""
    with socket.socket() as free:
        free.bind(("", 0))
        return get_node_ip_address(), free.getsockname()[1]


if __name__ == "__main__":
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    trainer = DataParallelTrainer(
        work,
        train_loop_config={"options": sys.argv[1:]},
        scaling_config=ScalingConfig(
            num_workers=plan["batch"]["gpus"], use_gpu="--cpu" not in sys.argv
        ),
    )
    trainer.fit()
