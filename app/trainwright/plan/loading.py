"""What loading a model takes of the system's memory, where that is less than the weights."""

from collections.abc import Iterator

from trainwright.machine.machine import Machine
from trainwright.messages import Message
from trainwright.profile.expand import model_bytes
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import WEIGHTS_SHARED

HALF = 2
"""Bytes of a parameter in the files that weights are quantised from: 16 bits, as published."""


def load_notes(machine: Machine, profile: Profile, settings: FullSettings) -> Iterator[Message]:
    """Yield whether the weights can be loaded, where they do not fit the system's memory.

    transformers' ``from_pretrained`` reads weights into system memory, in each process of its
    own. With bitsandbytes it reads safetensors tensor by tensor onto the GPU
    (``quantizer_bnb_4bit.py``, update_device_map). Other engines read as they like.
    """
    has, processes = machine.memory_bytes, machine.gpus_each
    if not settings.several or settings.strategy in WEIGHTS_SHARED:  # rank 0 loads for all
        processes = 1
    if has is None or machine.gpu.record.unified_memory or settings.engine != "transformers":
        return
    if settings.quantization == "none":
        need = processes * model_bytes(profile)
        if need > has:
            values = {"need": need, "total": has, "processes": processes}
            yield Message.of("plan.note.load-short", **values)
    elif (need := HALF * profile.model.get("parameters", 0)) > has:
        yield Message.of("plan.note.load-streamed", need=need, total=has)
