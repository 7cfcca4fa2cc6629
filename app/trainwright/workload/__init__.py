"""The workload and the training settings: values, and the rules that fill defaults."""

from trainwright.workload.settings import FullSettings, Loader, Settings
from trainwright.workload.workload import (
    Dataset,
    Inputs,
    Lora,
    ModelSource,
    PythonSource,
    Rollout,
    Workload,
)

__all__ = [
    "Dataset",
    "FullSettings",
    "Inputs",
    "Loader",
    "Lora",
    "ModelSource",
    "PythonSource",
    "Rollout",
    "Settings",
    "Workload",
]
