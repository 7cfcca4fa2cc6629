"""The question that a plan puts to the tracer: which structure, of which model, at what inputs."""

import json
from dataclasses import dataclass
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.estimate.optimizers import traced_as
from trainwright.messages import Message, UserError
from trainwright.plan.method import method
from trainwright.plan.model import USUAL_ANSWER, USUAL_PROMPT, Model, model_in
from trainwright.plan.schema import Plan
from trainwright.plan.staging import check_stages
from trainwright.profile import windows
from trainwright.profile.spec import (
    OPTIMIZERS,
    SHORTEST,
    Kernel,
    TraceSpec,
)
from trainwright.workload import FullSettings, Inputs, Lora


@dataclass(frozen=True, slots=True)
class Question:
    """What must be known of the model, and at which inputs it is evaluated."""

    spec: TraceSpec
    inputs: Inputs
    """With every key that the model and the task have; the others are None."""
    notes: tuple[Message, ...]
    config: str = ""
    """The text of the model's ``config.json``; empty where it has none."""
    longest: int | None = None
    """Positions that the model has."""


def question(plan: Plan, settings: FullSettings, record: GpuRecord) -> Question:
    """Return the structure to trace and the inputs to evaluate it at.

    Raises:
        UserError: the model is unknown, its file is missing or no model, or the task or
            the inputs do not suit it.
    """
    model = model_in(plan)
    inputs, notes = _inputs(plan, model)
    if plan.workload.routing is not None and not model.mixed:
        raise UserError.of("plan.no-experts", key="workload.routing")
    check_stages(model, settings)
    workload = plan.workload
    adapters = (workload.lora if workload.low_rank else None) or Lora()
    asked = traced_as(settings.update)
    spec = TraceSpec(
        model=model.pairs,
        digest=model.digest,
        task="full" if workload.task == "pretrain" else workload.task,
        precision=_traced_precision(settings, workload.trains),
        kernel=kernel(settings, record),
        channels_last=settings.channels_last,
        checkpointing="selective" if settings.checkpointing == "selective" else "none",
        quantization=_traced_quantization(settings, workload.trains),
        lora=(adapters.rank, adapters.targets if model.mixed or model.refused else adapters.named),
        image_size=inputs.image_size or 0,
        frames=inputs.frames or 0,
        images=inputs.images or 0,
        sequence=model.has_sequence,
        routing=workload.routing or "balanced",
        # Answers are written for several rows at once, and one trace is of both.
        single=settings.micro_batch == 1 and workload.writes is None,
        beyond=_window_below(model, settings, inputs, workload.trains),
        in_backward=asked if settings.optimizer_in_backward else "",
        optimizers=tuple(dict.fromkeys((*OPTIMIZERS, asked))),
        asked=asked,
        method=method(
            workload,
            settings,
            model.config,
            inputs.sequence_length or 0 if model.has_sequence else None,
            (inputs.prompt_tokens or 0) if workload.trains else 0,
        ),
    )
    return Question(spec, inputs, (*model.notes, *notes), model.config, model.longest)


def _window_below(model: Model, settings: FullSettings, inputs: Inputs, trains: bool) -> int:
    """Return the window that a sequence reaches; 0 where it reaches none, or it does not matter.

    transformers then hand attention a mask of all pairs (``masking_utils.py``), and torch
    takes another kernel; engines have kernels of their own for windows. A step without a
    fused kernel has masks anyway.
    """
    config = json.loads(model.config) if model.config and model.has_sequence else {}
    masked = trains and (settings.attention == "eager" or windows.always_masked(config))
    if masked or not (trains or settings.engine == "transformers"):
        return 0
    window = windows.first_partial(config)
    length = inputs.sequence_length or inputs.prompt_tokens or 0
    return window if SHORTEST <= window <= length else 0


def _traced_quantization(settings: FullSettings, trains: bool) -> str:
    """Return the weights of the structure; engines hold theirs by rule, run as 16 bits.

    fp4 has the sizes of nf4.
    """
    if not trains and settings.engine != "transformers":
        return "none"
    return "nf4" if settings.quantization == "fp4" else settings.quantization


def _traced_precision(settings: FullSettings, trains: bool) -> str:
    """Return the precision whose events are the same.

    tf32 only changes how matrix products run; serving has no master copy in any precision.
    """
    if settings.precision == "tf32":
        return "fp32"
    if settings.casts_shares:
        # fully_shard's MixedPrecisionPolicy and DeepSpeed compute in 16 bits without autocast.
        return settings.precision.removesuffix("-mixed")
    whole = settings.precision in ("bf16", "fp16") and not trains
    return f"{settings.precision}-mixed" if whole else settings.precision


def kernel(settings: FullSettings, record: GpuRecord) -> Kernel:
    """Return the attention kernel that torch takes first on the GPU.

    Flash for 16-bit operands from compute capability 8.0 on, else memory-efficient
    (``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``); the tracer still steps on to
    the next where the model's shapes rule one out.
    """
    if settings.attention == "eager":
        return "eager"
    capability = record.compute_capability
    recent = capability is None or capability >= (8, 0)
    return "flash" if recent and settings.precision not in ("fp32", "tf32") else "efficient"


def _inputs(plan: Plan, model: Model) -> tuple[Inputs, tuple[Message, ...]]:
    """Return the inputs with the model's usual ones filled in, and what was assumed."""
    given = plan.workload.inputs
    if given.images is not None and not model.reads_images:
        text = plan.model.preset if model.has_sequence else None
        id = "plan.no-images" if text is None else "plan.text-alone"
        raise UserError.of(id, key="workload.inputs.images", preset=text)
    if given.images is not None and not plan.workload.trains:
        raise UserError.of("plan.images-served", key="workload.inputs.images")
    sees = model.has_image or given.images is not None
    if given.image_size is not None and not sees:
        id = "plan.images-of-text" if model.reads_images else "plan.no-images"
        raise UserError.of(id, key="workload.inputs.image_size")
    lengths = ("sequence_length", "mean_tokens", "batching", "prompt_tokens", "new_tokens")
    if given.frames is not None and not model.has_frames:
        raise UserError.of("plan.no-frames", key="workload.inputs.frames")
    for name in lengths if not model.has_sequence else ():
        if getattr(given, name) is not None:
            raise UserError.of("plan.no-sequence", key=f"workload.inputs.{name}")
    if given.new_tokens is not None and not model.generates:
        raise UserError.of("plan.no-generation", key="workload.inputs.new_tokens")
    filled: dict[str, Any] = {}
    if model.has_image:
        filled["image_size"] = given.image_size or model.usual.image_size
    if given.images is not None:
        filled |= {"images": given.images, "image_size": given.image_size}
    if model.has_frames:
        filled["frames"] = given.frames or model.usual.frames
    if model.has_sequence:
        filled |= _served(given, model) if not plan.workload.trains else _trained(plan, model)
    inputs = Inputs.model_validate(filled)
    _check_length(plan, inputs, model)
    _check_image(inputs, model)
    length = _positions(plan, inputs)
    beyond = model.longest is not None and length > model.longest
    note = Message.of("plan.note.beyond-positions", length=length, longest=model.longest)
    notes = _assumptions(given, inputs, model)
    return inputs, (*notes, note) if beyond else tuple(notes)


USUAL_COMPLETION = 512
"""``max_completion_length`` of trl 1.16, trainer/grpo_config.py."""


def _positions(plan: Plan, inputs: Inputs) -> int:
    """Return the positions that a sample takes."""
    length = inputs.sequence_length or (inputs.prompt_tokens or 0) + (inputs.new_tokens or 0)
    return length + plan.workload.prompted


def _trained(plan: Plan, model: Model) -> dict[str, Any]:
    given, written = plan.workload.inputs, {}
    length = given.sequence_length or model.usual.sequence_length
    if plan.workload.writes is not None:
        prompt, answer = given.prompt_tokens or USUAL_PROMPT, given.new_tokens or USUAL_COMPLETION
        written, length = {"prompt_tokens": prompt, "new_tokens": answer}, prompt + answer
    if given.batching == "packed" and given.mean_tokens is None:
        raise UserError.of("plan.packed-of-what", key="workload.inputs.mean_tokens")
    if given.mean_tokens is not None and length is not None and given.mean_tokens > length:
        raise UserError.of(
            "plan.mean-too-long",
            key="workload.inputs.mean_tokens",
            mean=given.mean_tokens,
            length=length,
        )
    return {
        "sequence_length": length,
        "mean_tokens": given.mean_tokens,
        "batching": given.batching,
        **written,
    }


def _served(given: Inputs, model: Model) -> dict[str, int | None]:
    return {
        "prompt_tokens": given.prompt_tokens or USUAL_PROMPT,
        "new_tokens": (given.new_tokens or USUAL_ANSWER) if model.generates else None,
    }


def _check_length(plan: Plan, inputs: Inputs, model: Model) -> None:
    length = _positions(plan, inputs)
    if model.longest is not None and length > model.longest and not model.rotates:
        generates = plan.workload.writes is not None or not plan.workload.trains
        key = "prompt_tokens" if generates else "sequence_length"
        raise UserError.of(
            "plan.too-long", key=f"workload.inputs.{key}", length=length, longest=model.longest
        )


def _check_image(inputs: Inputs, model: Model) -> None:
    size, step = inputs.image_size, model.image_step
    if size is None or (size >= model.image_least and size % step == 0):
        return
    least = -(-model.image_least // step) * step
    below = max(least, size // step * step)
    raise UserError.of(
        "plan.image-size" if step == 1 else "plan.image-step",
        key="workload.inputs.image_size",
        size=size,
        least=least,
        step=step,
        near=list(dict.fromkeys((below, max(least, below + step if size > below else below)))),
    )


def _assumptions(given: Inputs, inputs: Inputs, model: Model) -> list[Message]:
    """Return a note for each input that is our guess and neither plan's nor preset's."""
    ours = {"prompt_tokens", "new_tokens"} | (
        {"sequence_length", "image_size", "frames"} if model.assumed else set()
    )
    return [
        Message.of("plan.note.assumed-input", key=f"workload.inputs.{name}", value=value)
        for name, value in inputs.model_dump(exclude_none=True).items()
        if name in ours
        and getattr(given, name) is None
        # The tokens of a row are those of a prompt and its answer, where these are written.
        and not (name == "sequence_length" and inputs.prompt_tokens)
    ]
