"""fitcheck-llm 0.3.1 on the plans of ``steps``, where it is installed (``pip install .[test]``).

Its estimate is a closed form whose constants were fitted on its own runs on a T4: those rows are
its fit, not a test of it.
"""

import importlib
import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MIB = 1 << 20
OWN = "fitcheck-llm"
"""What the sources of its own rows are called."""
PRECISION = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}


def installed() -> bool:
    return find_spec("fitcheck") is not None


def estimate(row: dict[str, Any], config: Path) -> float | None:
    """Return the bytes that it says of a row's metric; None where it refuses the plan."""
    fitcheck = importlib.import_module("fitcheck")
    card = row["machine"]["gpus"][0]["id"]
    gpu = fitcheck.get_gpu("t4") if card == "t4" else fitcheck.get_gpu(card, vram_mib=80_000)
    try:
        model = _model(config)
        report = _report(fitcheck, model, row, gpu)
    except (ValueError, KeyError):
        return None
    outside = report.overhead_mib if row["metric"] == "allocated" else 0.0
    return float(report.total_mib - outside) * MIB


def _report(fitcheck: Any, model: Any, row: dict[str, Any], gpu: Any) -> Any:
    settings, workload = row["settings"], row["workload"]
    inputs, lora = workload["inputs"], workload.get("lora", {})
    precision = PRECISION.get(settings["precision"], settings["precision"])
    quantization = {"fp4": "nf4"}.get(settings.get("quantization", "none"), "nf4")
    if settings.get("quantization", "none") == "none":
        quantization = "none"
    nested = quantization == "nf4" and settings.get("double_quantization") is True
    common = {"precision": precision, "quantization": quantization, "double_quant": nested}
    if workload["task"] == "infer":
        length = inputs["prompt_tokens"] + inputs["new_tokens"]
        served = fitcheck.ServingConfig(
            **common, seq_len=length, num_concurrent=inputs["concurrent"]
        )
        return fitcheck.estimate_inference(model, served, gpu)
    adapts = workload["task"] in ("lora", "qlora")
    trained = fitcheck.TrainingConfig(
        **common,
        optimizer={"adamw": "adamw", "adamw-8bit": "adam8bit"}[settings["optimizer"]],
        optimizer_dtype="fp32" if precision == "fp32" or adapts else precision,
        batch_size=settings["micro_batch"],
        seq_len=inputs["sequence_length"],
        lora_rank=lora.get("rank", 16) if adapts else None,
        lora_targets=lora.get("targets") or _ALL_TARGETS,
        grad_checkpoint=settings["checkpointing"] == "full",
        flash_attn=settings.get("attention", "sdpa") != "eager",
    )
    return fitcheck.estimate(model, trained, gpu)


_ALL_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def _model(config: Path) -> Any:
    """Return its description of a model, from the file instead of the Hub."""
    parser = importlib.import_module("fitcheck.config_parser")
    raw = json.loads(config.read_text(encoding="utf-8"))
    parser._reject_unsupported(raw, config.stem)
    fields = parser._parse_fields(raw)
    known = asdict(fields)
    return parser.ModelConfig(name=config.stem, num_params=parser._count_params(fields), **known)
