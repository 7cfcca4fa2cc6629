"""The export targets by name. One plan, files for each; ``write`` puts them into a folder."""

import contextlib
from collections.abc import Mapping
from typing import Protocol

from trainwright.export import (
    accelerate,
    axolotl,
    clusters,
    deepspeed,
    hf_trainer,
    lightning,
    llamafactory,
    plain,
    serving,
    slurm,
    torchtitan,
    trl,
    unsloth,
)
from trainwright.export.header import Reasons
from trainwright.export.sharing import require_runnable
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.messages.nearest import nearest
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings


class Target(Protocol):
    """What a target's module offers. All of it is pure and quick, for a live preview."""

    @property
    def made_for(self) -> Mapping[str, str]:
        """Version ranges by library."""

    def files(
        self, plan: Plan, settings: FullSettings, reasons: Reasons, language: Language
    ) -> Files:
        """Return the text of each file, by its path below the export folder."""

    def not_expressible(self, plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
        """Return what the files leave out or replace; each names its ``setting``."""


TARGETS: Mapping[str, Target] = {
    "plain": plain,
    "transformers": hf_trainer,
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "slurm": slurm,
}
"""Programs of ours that run a plan."""
CLUSTERS: Mapping[str, Target] = {
    "skypilot": clusters.SKYPILOT,
    "dstack": clusters.DSTACK,
    "kubeflow": clusters.KUBEFLOW,
    "ray": clusters.RAY,
}
"""The programs of plain, with a file that starts them on computers of others."""
CONFIGS: Mapping[str, Target] = {
    "trl": trl,
    "axolotl": axolotl,
    "llamafactory": llamafactory,
    "unsloth": unsloth,
    "lightning": lightning,
    "torchtitan": torchtitan,
    "vllm": serving.VLLM,
    "sglang": serving.SGLANG,
    "ollama": serving.OLLAMA,
}
"""Tools whose own file is all that they need."""
PREFERENCES = ("trl",)
"""Targets that train for an objective other than the next token."""
ALL: Mapping[str, Target] = {**TARGETS, **CLUSTERS, **CONFIGS}


def target(name: str) -> Target:
    """Return the target of this name.

    Raises:
        UserError: there is none.
    """
    if name in ALL:
        return ALL[name]
    near = nearest(name, ALL, 1)
    id = "export.unknown-target-near" if near else "export.unknown-target"
    raise UserError.of(id, name=name, near=near, known=tuple(ALL))


def suiting(plan: Plan, settings: FullSettings) -> str:
    """Return the first target that can take a plan; the first of all where none can."""
    for name in ALL:
        with contextlib.suppress(UserError):
            files(name, plan, settings, {}, "en")
            return name
    return next(iter(ALL))


def files(
    name: str, plan: Plan, settings: FullSettings, reasons: Reasons, language: Language
) -> Files:
    """Return the files of a plan for a target.

    Args:
        name: Of the target.
        plan: What is exported.
        settings: With every key decided; those of the report, or of a choice of ``advise``.
        reasons: Why a setting has its value, where something is known beside "as the plan
            says" and "the default".
        language: Of the comments.

    Raises:
        UserError: no such target, the plan does not train, or the target cannot take its model or
            its strategy.
    """
    chosen = target(name)
    if not plan.workload.trains and not isinstance(chosen, serving.Server):
        able = [other for other, one in ALL.items() if isinstance(one, serving.Server)]
        raise UserError.of("export.no-inference", name=name, able=able)
    if plan.workload.objective is not None and name not in PREFERENCES:
        values = {"name": name, "objective": plan.workload.objective}
        raise UserError.of("export.objective", **values, able=list(PREFERENCES))
    require_runnable(name, plan, settings)
    return chosen.files(plan, settings, reasons, language)
