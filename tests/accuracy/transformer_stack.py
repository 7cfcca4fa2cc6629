"""Transformers of published workloads: configurations, heads and losses as their scripts have them.

Attention is written out (no fused kernel): all of them ran before, or without, one.

- BERT for SQuAD: NVIDIA DeepLearningExamples, ``PyTorch/LanguageModeling/BERT/run_squad.py``, that
  Lambda's benchmark runs too: two scores a token, cross-entropy of start and end, dropout 0.1. In
  fp16 the whole model is half (apex O2); LayerNorm and bias + GELU are one kernel each there.
- NeuSight's models: ``scripts/asplos/data/DLmodel_configs`` and ``neusight/Tracing/trace.py``:
  cross-entropy of all tokens on unshifted labels; inference of BERT classifies.
"""

from typing import Any

import step
import torch
from huggingface import _be_real
from subject import Subject
from torch.nn import functional

_BERT: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "vocab_size": 30522,
}
_LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
}
_SQUAD_VOCABULARY = {"vocab_size": 30528}
"""NVIDIA's script rounds the vocabulary up to a multiple of 8."""
_GPT: dict[str, Any] = {"model_type": "gpt2", "activation_function": "gelu_new"}

CONFIGS: dict[str, dict[str, Any]] = {
    "bert-base-squad": _BERT | _SQUAD_VOCABULARY | {"num_hidden_layers": 12},
    "bert-large-squad": _BERT | _LARGE | _SQUAD_VOCABULARY,
    "bert-large": _BERT | _LARGE,
    "gpt2-large": _GPT | {"n_embd": 1280, "n_head": 20, "n_layer": 36, "n_positions": 1024},
    "gpt3-xl": _GPT | {"n_embd": 3072, "n_head": 24, "n_layer": 24, "n_positions": 2048},
    "gpt3-2.7b": _GPT | {"n_embd": 2560, "n_head": 32, "n_layer": 32, "n_positions": 2048},
    "opt-1.3b": {
        "model_type": "opt",
        "activation_function": "relu",
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "ffn_dim": 8192,
        "hidden_size": 2048,
        "word_embed_proj_dim": 2048,
        "num_attention_heads": 32,
        "num_hidden_layers": 24,
        "max_position_embeddings": 2048,
        "vocab_size": 50272,
    },
}


def layers(name: str) -> int:
    """Return the number of blocks of a configuration."""
    config = CONFIGS[name]
    return int(config.get("num_hidden_layers") or config["n_layer"])


def build(name: str, task: str, half: bool, depth: int) -> Subject:
    """Return the model with ``depth`` blocks and the head that the task has there."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    fields = dict(CONFIGS[name])
    for key in ("num_hidden_layers", "n_layer"):
        if key in fields:
            fields[key] = depth
    config = CONFIG_MAPPING[fields["model_type"]].from_dict(fields)
    config.use_cache = False
    auto = _head(transformers, name, task)
    with torch.device("meta"):
        model = auto.from_config(config, dtype=torch.float32, attn_implementation="eager")
        model.to(torch.float16 if half else torch.float32)
    _be_real(transformers)
    masked = config.model_type == "bert"

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        inputs = {"input_ids": tokens}
        if masked:
            inputs["attention_mask"] = torch.ones_like(tokens)
        return step.Batch(inputs, torch.zeros_like(tokens))

    loss = _of_spans if name.endswith("squad") else _of_tokens
    return Subject(model, batch, loss, {"stack": "transformers", "family": config.model_type})


def _head(transformers: Any, name: str, task: str) -> Any:
    if name.endswith("squad"):
        return transformers.AutoModelForQuestionAnswering
    if not name.startswith("bert"):
        return transformers.AutoModelForCausalLM
    if task == "infer":
        return transformers.AutoModelForSequenceClassification
    return transformers.AutoModelForPreTraining


def _of_spans(output: Any, labels: torch.Tensor, _count: float) -> torch.Tensor:
    ends = (output.start_logits, output.end_logits)
    losses = [functional.cross_entropy(scores, labels[:, 0]) for scores in ends]
    return (losses[0] + losses[1]) / 2


def _of_tokens(output: Any, labels: torch.Tensor, _count: float) -> torch.Tensor:
    scores = output.prediction_logits if hasattr(output, "prediction_logits") else output.logits
    return functional.cross_entropy(scores.view(-1, scores.size(-1)), labels.view(-1))
