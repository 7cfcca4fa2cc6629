"""What models, GPUs and settings are called, and how they are found by typing."""

from functools import lru_cache
from typing import Any

from trainwright.messages import UserError
from trainwright.messages.units import GIB, count, number
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import model_name
from trainwright.ui.i18n import language, tr
from trainwright.ui.options import Option, plain
from trainwright.ui.plans import UNNAMED


def search_models(text: str) -> list[Option]:
    """Return the presets that match every word, by name, family or alias."""
    from trainwright.profile.presets import presets

    words = [plain(word) for word in text.split()]
    found: list[Option] = []
    for preset in presets().values():
        searched = plain(" ".join((preset.id, preset.name, preset.family, *preset.aliases)))
        if all(word in searched for word in words):
            found.append(Option(preset.id, preset.name, count(preset.parameters, language())))
    return found


def search_gpus(text: str) -> list[Option]:
    """Return the GPUs of the catalog that match, those people own first."""
    from trainwright.catalog.query import list_gpus

    found = [
        Option(gpu.id, gpu.name, f"{number(round(gpu.memory_bytes.value / GIB))} GiB")
        for gpu in list_gpus(text, sort="launch")
    ]
    # "3090" means the RTX 3090 before its Ti.
    return sorted(found, key=lambda option: not plain(option.title).endswith(plain(text)))


def search_machines(text: str) -> list[Option]:
    """Return the same, and computers that clouds rent out where their name is typed."""
    from trainwright.catalog.instances import instance, instances
    from trainwright.catalog.names import name_key

    typed = name_key(text)
    # Their files are read with the second letter, not when the list opens.
    found = [name for name in instances() if typed in name_key(name)] if len(typed) > 1 else []
    rented = [Option(name, name, instance(name).provider) for name in found]
    return [*search_gpus(text), *rented]


def rented_name(name: str) -> tuple[str, str]:
    """Return the name of a cloud's computer and its facts in a line."""
    from trainwright.catalog.instances import instance

    one = instance(name)
    gpus = tr("ui.machine.gpus", count=one.gpus, name=gpu_name(one.gpu)[0])
    threads = tr("ui.machine.vcpus", count=one.vcpus)
    return one.name, " · ".join((gpus, threads, f"{one.memory_gib:g} GiB", one.provider))


def plan_name(plan: Plan) -> str:
    """Return what the plan is called; in the reader's language where nobody named it."""
    return tr("ui.plan.unnamed") if plan.name == UNNAMED else plan.name


@lru_cache(maxsize=256)
def gpu_name(id: str) -> tuple[str, str]:
    """Return the name of a GPU and its facts in a line."""
    from trainwright.catalog.query import find_gpu

    try:
        record = find_gpu(id).record
    except UserError:
        return id, ""
    facts = [
        f"{number(round(record.memory_bytes.value / GIB))} GiB",
        f"{number(round(record.bandwidth_bytes_per_s.value / 1e9))} GB/s",
        record.architecture,
    ]
    return record.name, " · ".join(facts)


def model_facts(plan: Plan, model: dict[str, Any], *, packed: bool) -> str:
    """Return what is known of the plan's model, in a line.

    A profile of packed weights counts bytes that hold two parameters each, so the number
    then comes from the preset or is left out.
    """
    from trainwright.profile.presets import presets

    preset = presets().get(plan.model.preset or "")
    facts: list[str] = []
    parameters = preset.parameters if preset else None if packed else model.get("parameters")
    if parameters:
        facts.append(tr("ui.form.parameters", value=parameters))
    if layers := model.get("layers"):
        facts.append(tr("ui.form.layers", count=layers))
    return " · ".join(facts)


def machine_line(plan: Plan) -> str:
    """Return model and machine in a line: GPUs, memory."""
    machine = plan.machine
    parts = [tr("ui.form.this-computer")] if machine.local else []
    parts += [machine.cloud] if machine.cloud else []
    for gpu in machine.gpus:
        name = gpu_name(gpu.id)[0]
        parts.append(tr("ui.machine.gpus", count=gpu.count, name=name) if gpu.count > 1 else name)
    if machine.memory_gib:
        parts.append(f"{machine.memory_gib:g} GiB")
    if machine.nodes > 1:
        parts.append(tr("ui.machine.nodes", count=machine.nodes))
    return " · ".join([model_name(plan), *parts])
