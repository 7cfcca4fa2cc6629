"""The formats that are read: how each is recognised, and its reader."""

from collections.abc import Callable
from dataclasses import dataclass

from trainwright.diagnose.readers import (
    columns,
    gpu_monitors,
    host_tools,
    lightning_report,
    nvidia_query,
    nvidia_report,
    nvidia_smi,
    operator_table,
    stacks,
    training_log,
    wandb_events,
)
from trainwright.diagnose.readers.found import Found


@dataclass(frozen=True, slots=True)
class Format:
    """A format of text."""

    id: str
    """Its name is the message ``diagnose.format.<id>``."""
    recognised: Callable[[str], bool]
    read: Callable[[str], Found]


FORMATS = (
    Format("speedscope", stacks.is_speedscope, stacks.read_speedscope),
    Format("operator-table", operator_table.recognised, operator_table.read),
    Format("nvidia-report", nvidia_report.recognised, nvidia_report.read),
    Format("nvidia-smi", nvidia_smi.recognised, nvidia_smi.read),
    Format("nvitop", gpu_monitors.is_nvitop, gpu_monitors.read_nvitop),
    Format("gpustat", gpu_monitors.is_gpustat, gpu_monitors.read_gpustat),
    Format("nvidia-query", nvidia_query.recognised, nvidia_query.read),
    Format("nvidia-topology", nvidia_smi.is_matrix, nvidia_smi.read_matrix),
    Format("columns", columns.recognised, columns.read),
    Format("py-spy", stacks.is_dump, stacks.read_dump),
    Format("py-spy-raw", stacks.is_raw, stacks.read_raw),
    Format("iostat", host_tools.is_iostat, host_tools.read_iostat),
    Format("vmstat", host_tools.is_vmstat, host_tools.read_vmstat),
    Format("free", host_tools.is_free, host_tools.read_free),
    Format("wandb", wandb_events.recognised, wandb_events.read),
    Format("lightning", lightning_report.recognised, lightning_report.read),
    Format("training-log", training_log.recognised, training_log.read),
)
"""Every format that a text has is read: a file may hold several tools' output."""
