"""How a plan's training departs from the plain step of its task."""

import json

from trainwright.messages import UserError
from trainwright.plan.packing import packing
from trainwright.profile.spec import Method
from trainwright.workload import FullSettings, Lora, Workload

TILE_TOKENS = 4096
"""Tokens of a tile of TRL's head: ``TOKEN_CHUNK_SIZE`` (trl 1.16, kernels/chunked_logprob.py)."""


def method(
    workload: Workload,
    settings: FullSettings,
    config: str,
    sequence: int | None,
    prompt: int = 0,
) -> Method:
    """Return what of the plan changes forward and backward; what it leaves alone is the default.

    ``config`` is the text of the model's ``config.json``, empty without one. ``sequence`` is the
    tokens of a sample; None where the model has none. ``prompt`` is those before an answer that
    the model writes; 0 where it writes none.

    Raises:
        UserError: the model has no tokens, and a key speaks of them.
    """
    if workload.objective is not None and sequence is None:
        key, objective = "workload.objective", workload.objective
        raise UserError.of("plan.objective-of-text", key=key, objective=objective)
    if settings.cross_entropy != "full" and sequence is None:
        value = settings.cross_entropy
        raise UserError.of("plan.no-tokens", key="settings.cross_entropy", value=value)
    if workload.prompted and sequence is None:
        raise UserError.of("plan.no-text", key="workload.task", task=workload.task)
    lora = workload.lora or Lora()
    cast = workload.low_rank and settings.casts_shares
    return Method(
        dora=lora.variant == "dora",
        # TRL switches every dropout off (disable_dropout of DPOConfig and RewardConfig).
        dropout=lora.dropout > 0 and not workload.paired,
        frozen=tuple(sorted(set(workload.frozen))),
        virtual_tokens=workload.prompted,
        cross_entropy=settings.cross_entropy,
        tile=_tile_tokens(settings, workload.rows, (sequence or 0) - max(prompt, 1)),
        kbit=settings.kbit_preparation,
        nested=settings.double_quantization,
        unpacked=_unpacked(settings, config),
        # fully_shard's MixedPrecisionPolicy and DeepSpeed cast them with all the other weights.
        adapters="weights" if cast else settings.adapter_dtype,
        input_gradients=settings.input_gradients,
        scores=settings.scores_upcast,
        loss_in_model=settings.loss_in_model,
        # Flash attention's own kernel groups heads, and what is written out repeats them anyway.
        expanded_heads=settings.expanded_heads and settings.attention == "sdpa",
        softmax_inputs=settings.softmax_inputs,
        position_tables=settings.position_tables,
        separate_experts=settings.separate_experts,
        reference=workload.compared or "",
        rewards=workload.objective == "reward",
        prompt=prompt,
        outputs=settings.output_kept != "no",
        tensor=(settings.tensor_degree or 1) if workload.trains else 1,
    )


def _tile_tokens(settings: FullSettings, rows: int, predicts: int) -> int:
    """Return the tokens of a tile of the loss; 0 where one holds the whole micro-batch.

    ``predicts`` is the tokens of a row that are predicted: all but the first, or an answer's.
    """
    predicted = settings.micro_batch * rows * predicts
    several = settings.cross_entropy == "tiled" and predicted > TILE_TOKENS
    return TILE_TOKENS if several else 0


def _unpacked(settings: FullSettings, config: str) -> tuple[str, ...]:
    """Return the modules that a checkpoint of bitsandbytes leaves in 16 bits."""
    if settings.quantization not in ("nf4", "fp4", "int8") or not config:
        return ()
    found = packing(json.loads(config))
    return found.kept if found is not None and found.by_bitsandbytes else ()
