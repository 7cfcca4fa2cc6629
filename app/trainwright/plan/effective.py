"""The settings in force: what a plan fixes, what a search chose for the rest, and the defaults."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.messages import Message, UserError
from trainwright.plan.chosen import Chosen, with_values
from trainwright.plan.schema import Plan
from trainwright.workload.defaults import filled
from trainwright.workload.settings import FullSettings, Settings

_BATCH = ("micro_batch", "accumulation")


def in_force(plan: Plan) -> Settings:
    """Return the settings with what was chosen for the keys that are open."""
    return with_values(plan.settings, {key: one.value for key, one in open_choices(plan)})


def open_choices(plan: Plan) -> Iterator[tuple[str, Chosen]]:
    """Yield what was chosen for keys that the plan does not fix."""
    for key, one in plan.chosen.items():
        section, _, name = key.rpartition(".")
        if getattr(plan.settings.loader if section else plan.settings, name) is None:
            yield key, one


def completed(
    plan: Plan, record: GpuRecord, gpu_count: int, cores: int | None
) -> tuple[FullSettings, tuple[Message, ...]]:
    """Return the complete settings, and what must be said of choices that were left out.

    After an edit a choice may not go with the plan any more: first the batch gives way, then all.

    Raises:
        UserError: what the plan fixes contradicts itself, the workload or the GPU.
    """
    values = {key: one.value for key, one in open_choices(plan)}
    rest = {key: value for key, value in values.items() if key not in _BATCH}
    for kept in (values, rest) if values else ():
        try:
            settings = with_values(plan.settings, kept)
            full = filled(settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)
        except UserError:
            continue
        dropped = Message.of("plan.note.choices-dropped")
        return full, () if kept is values else (dropped,)
    full = filled(plan.settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)
    return full, (Message.of("plan.note.choices-dropped"),) if values else ()


def completed_with(
    plan: Plan, values: Mapping[str, Any], record: GpuRecord, gpu_count: int, cores: int | None
) -> FullSettings:
    """Return the complete settings with values for keys that the plan leaves open.

    Raises:
        UserError: they contradict the rest, the workload or the GPU.
    """
    open_ = {key: one for key, one in values.items() if getattr(plan.settings, key) is None}
    settings = with_values(plan.settings, open_)
    return filled(settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)
