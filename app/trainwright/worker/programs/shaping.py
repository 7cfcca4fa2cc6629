"""Gives a built model the types, adapters, layout and checkpoints that its spec asks for."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import experts
import freezing
import fused
import policy
import preference
import step
import tensorparallel
import tiled
import torch
from adapters import add_lora
from prompts import add_virtual_tokens
from quantized import prepare, quantize
from refusal import Refusal
from subject import Subject
from torch import nn

COMPUTE = {
    "bf16": torch.bfloat16,
    "bf16-mixed": torch.bfloat16,
    "fp16-mixed": torch.float16,
    "fp16": torch.float16,
}
"""Type of frozen and of served weights by precision; fp32 for the others."""


# Long: the changes depend on their order, which is read best in one place.
def shape(subject: Subject, spec: dict[str, Any]) -> step.StepSettings:
    """Change the model, still on ``meta``, and return the settings of its step.

    Trained weights are fp32 but for ``bf16`` and ``fp16``; frozen and served ones have the compute
    type, and adapters the one that the method says.

    Raises:
        Refusal: no layer has a name among the adapters' targets.
    """
    model, task = subject.model, spec["task"]
    method = spec.get("method", {})
    dtype = COMPUTE.get(spec["precision"], torch.float32)
    # Served weights are in the compute type, and what comes in takes the type of the weights.
    served = spec["precision"].removesuffix("-mixed") if task == "infer" else None
    settings = step.StepSettings(
        precision=served or spec["precision"],
        checkpointing=spec["checkpointing"],
        channels_last=spec["channels_last"],
    )
    frozen: nn.Module | None = None
    with torch.device("meta"):
        if method.get("position_tables"):
            _keep_positions(model)
        if method.get("separate_experts"):
            experts.separate(model)
            subject.facts |= {"experts_implementation": "separate"}
        if task != "full":
            model.to(dtype)
        if kind := _weights(spec):
            nested, unpacked = method.get("nested", True), method.get("unpacked", ())
            quantize(model, kind, dtype, subject.head, nested=nested, unpacked=unpacked)
        if (cast := method.get("kbit", "none")) != "none":
            prepare(model, dtype, cast)
        if method.get("reference") == preference.MODEL:
            frozen = copy.deepcopy(model)
        if task in ("lora", "qlora"):
            rank, targets = spec["lora"]
            dora, dropout = method.get("dora", False), method.get("dropout", False)
            own = dtype if method.get("adapters") == "weights" else torch.float32
            if not add_lora(
                model, rank, targets, subject.head, dora=dora, dropout=dropout, dtype=own
            ):
                raise Refusal("worker.no-targets", targets=", ".join(targets))
        if task in ("prompt", "prefix"):
            add_virtual_tokens(subject, task, method["virtual_tokens"])
            model = subject.model
    if (degree := method.get("tensor", 1)) > 1:
        tensorparallel.split(model, degree)
    if names := method.get("frozen", ()):
        _freeze(model, names)
    if method.get("input_gradients"):
        _ask_for_gradients(model)
    if method.get("rewards"):
        preference.reward(subject)
    elif prompt := method.get("prompt", 0):
        _check_head(subject, "worker.preference-head", "worker.preference-scores")
        compared, rows = method.get("reference", ""), method.get("tile", 0)
        policy.reinforce(subject, compared, prompt, rows, frozen)
    elif reference := method.get("reference"):
        _check_head(subject, "worker.preference-head", "worker.preference-scores")
        preference.prefer(subject, reference, method.get("tile", 0), frozen)
    elif (kind := method.get("cross_entropy", "full")) != "full":
        subject.loss = _cross_entropy(subject, kind, method.get("tile", 0))
    elif subject.loss is step.next_token_loss:
        subject.loss = step.NEXT_TOKEN[method.get("scores", "upcast")]
        if method.get("loss_in_model"):
            subject.loss = _in_model(subject.model, subject.loss)
    pure = settings.precision in step.PURE and task == "full"
    step.prepare(model, replace(settings, precision=settings.precision if pure else "fp32"), "meta")
    if task == "infer":
        model.eval()
    return settings


_KEEP_POSITIONS = (
    *("llama", "mistral", "mixtral", "olmo", "persimmon", "phi", "qwen2", "qwen2_moe", "stablelm"),
    *("starcoder2", "gpt_neox", "gpt_neox_japanese", "falcon"),
)
"""Types of models with ``cos_cached`` and ``sin_cached`` in transformers 4.40."""


def _keep_positions(model: nn.Module) -> None:
    """Give each block a cosine and a sine of every position and rotated channel.

    Source: transformers 4.40, modeling_llama.py, ``LlamaRotaryEmbedding.__init__``.
    """
    config: Any = getattr(model, "config", None)
    angles = [b for name, b in model.named_buffers() if name.endswith("inv_freq")]
    if not angles or config.model_type not in _KEEP_POSITIONS:
        return
    for block in step.blocks(model):
        for name in ("cos_cached", "sin_cached"):
            table = torch.empty(config.max_position_embeddings, 2 * angles[0].numel())
            block.register_buffer(name, table, persistent=False)


def _ask_for_gradients(model: nn.Module) -> None:
    """Let the output of the embedding have a gradient: ``enable_input_require_grads``."""
    find = getattr(model, "get_input_embeddings", None)
    if find is not None:  # models of images have none, and PEFT's call does nothing there
        find().register_forward_hook(lambda module, given, output: output.requires_grad_(True))


def _in_model(model: nn.Module, loss: step.Loss) -> step.Loss:
    """Return the loss as the model itself would make it: what goes into its head lives so long."""
    held: list[torch.Tensor] = []
    model.get_output_embeddings().register_forward_pre_hook(  # type: ignore[operator]
        lambda module, given: held.append(given[0])
    )

    def inside(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
        value = loss(output, labels, count)
        held.clear()
        return value

    return inside


def update(name: str) -> dict[str, Any]:
    """Return the settings of an update by its name: ``adamw-foreach``, ``sgd-plain-fused``."""
    optimizer, _, how = name.partition("-")
    plain = how.startswith("plain")
    found = {"optimizer": optimizer, "implementation": how.removeprefix("plain").lstrip("-")}
    return found | ({"momentum": 0.0} if plain else {})


def _freeze(model: nn.Module, names: Sequence[str]) -> None:
    """Leave the named weights as they are; nothing is computed for those before the first other.

    Raises:
        Refusal: a name stands for nothing, or all together for everything.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))
    try:
        found = freezing.frozen(weights, names)
    except freezing.UnknownNameError as error:
        raise Refusal(
            "worker.frozen-unknown", name=error.name, near=", ".join(error.near)
        ) from None
    for path in found:
        weights[path].requires_grad_(False)
    if not any(weight.requires_grad for weight in weights.values()):
        raise Refusal("worker.frozen-everything")


_AFTER_HEAD = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")
"""Keys of configurations whose models change the scores that their head returns."""


def _cross_entropy(subject: Subject, kind: str, rows: int) -> step.Loss:
    """Return the loss that runs the head itself, in chunks of tokens or in tiles of ``rows``.

    Raises:
        Refusal: the model has no head to take aside, or changes what it returns.
    """
    head = _check_head(subject, "worker.chunked-loss", "worker.scores-changed")
    if kind == "tiled":
        return tiled.TiledLoss(head, rows)
    return fused.FusedLoss(head) if kind == "fused" else step.ChunkedLoss(head)


def _check_head(subject: Subject, lacks: str, changes: str) -> nn.Module:
    """Return the head of a model whose scores the loss may make itself.

    Raises:
        Refusal: with the ids given: the model has no head to take aside, or changes what it
            returns.
    """
    head = subject.model.get_output_embeddings() if subject.decodes else None
    if head is None:
        raise Refusal(lacks, family=str(subject.facts.get("family", "")))
    for key in _AFTER_HEAD:
        if getattr(subject.config, key, None) not in (None, 1):
            raise Refusal(changes, key=key)
    return head  # type: ignore[no-any-return]


def _weights(spec: dict[str, Any]) -> str:
    """Return the type of quantised weights, empty where they are not quantised."""
    if spec["quantization"] == "int8":
        return "int8"
    four_bits = spec["task"] == "qlora" or spec["quantization"] in ("nf4", "int4")
    return "nf4" if four_bits else ""
