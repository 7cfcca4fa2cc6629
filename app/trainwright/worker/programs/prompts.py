"""Virtual tokens before a frozen decoder, as PEFT trains them.

Follows PEFT 0.21 (``peft_model.py``, ``tuners/prompt_tuning``, ``tuners/prefix_tuning``
without projection): what it allocates, in its order. The virtual tokens are fp32.
"""

import inspect
from typing import Any

import torch
from refusal import Refusal
from subject import Subject
from torch import nn

_WITH_CONFIG = ("gemma2", "gemma3_text", "gemma4")
"""Kinds of models whose layers' caches PEFT makes by their configuration."""


def add_virtual_tokens(subject: Subject, task: str, count: int) -> None:
    """Freeze the subject's model and put so many trained tokens before its own.

    Raises:
        Refusal: the model does not generate.
    """
    if not subject.decodes:
        raise Refusal("worker.prompt-needs-decoder", task=task)
    subject.model.requires_grad_(False)
    kind = Prompted if task == "prompt" else Prefixed
    subject.model = kind(subject.model, subject.facts, count)


class Virtual(nn.Module):
    """A frozen model behind so many virtual tokens."""

    def __init__(self, model: nn.Module, count: int) -> None:
        super().__init__()
        self.model, self.count = model, count

    def get_output_embeddings(self) -> Any:
        """Return the model's head."""
        model: Any = self.model
        return model.get_output_embeddings()

    def numbers(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the numbers of the virtual tokens for each sample; made on the host."""
        numbers = torch.arange(self.count, device="cpu").unsqueeze(0)
        return numbers.expand(len(input_ids), -1).to(input_ids.device)


class Prompted(Virtual):
    """Trained embeddings before those of the text: prompt tuning (arXiv 2104.08691)."""

    def __init__(self, model: nn.Module, facts: dict[str, Any], count: int) -> None:
        super().__init__(model, count)
        self.embedding = nn.Embedding(count, facts["hidden"], dtype=torch.float32)

    def forward(self, input_ids: torch.Tensor) -> Any:
        """Return the model's output, scores of the virtual tokens first."""
        model: Any = self.model
        embedded = model.get_input_embeddings()(input_ids)
        prompts = self.embedding(self.numbers(input_ids)[:1]).repeat(len(input_ids), 1, 1)
        prompts = prompts.to(embedded.dtype)
        return model(inputs_embeds=torch.cat((prompts, embedded), dim=1))


def cache_keyword(model: nn.Module) -> str:
    """Return what a model of transformers calls the keys and values so far: renamed in 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


class Prefixed(Virtual):
    """Trained keys and values before every layer's own: prefix tuning (arXiv 2101.00190)."""

    def __init__(self, model: nn.Module, facts: dict[str, Any], count: int) -> None:
        super().__init__(model, count)
        self.layers, self.heads, self.size = (
            facts[name] for name in ("layers", "kv_heads", "head_dim")
        )
        width = self.layers * 2 * self.heads * self.size
        self.embedding = nn.Embedding(count, width, dtype=torch.float32)

    def forward(self, input_ids: torch.Tensor) -> Any:
        """Return the model's output for the text, which attends to the prefix."""
        model: Any = self.model
        cache = {cache_keyword(model): self._cache(input_ids, model)}
        return model(input_ids=input_ids, **cache)

    def _cache(self, input_ids: torch.Tensor, model: Any) -> Any:
        from transformers import DynamicCache

        past = self.embedding(self.numbers(input_ids)).to(model.dtype)
        past = past.view(len(past), self.count, self.layers * 2, self.heads, self.size)
        parts = past.permute([2, 0, 3, 1, 4]).split(2)
        if model.config.model_type not in _WITH_CONFIG:
            return DynamicCache(parts)
        cache = DynamicCache(config=model.config)
        for layer, (keys, values) in enumerate(parts):
            cache.update(keys, values, layer)
        return cache
