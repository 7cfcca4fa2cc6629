"""Blocks of models measured alone: the experts of a mixture, as in the benchmark of Liger.

Source: linkedin/Liger-Kernel, benchmark/scripts/benchmark_fused_moe.py at ead96b61, provider
"huggingface": transformers' loop over the experts, forward and backward, gradients that stay.
Weights there are a leaf times 0.02, so that leaf and product are both held.
"""

from typing import Any

import torch
from torch import nn


def build(name: str) -> Any:
    """Return the experts layer that the name gives: TOKENS-EXPERTS-HIDDEN-INTERMEDIATE-EACH."""
    from subject import Subject

    tokens, experts, hidden, intermediate, each = map(int, name.split("-"))
    with torch.device("meta"):
        model = Differentiated(tokens, experts, hidden, intermediate, each)

    def batch(size: int, length: int) -> Any:
        import step

        chosen = torch.zeros((tokens, each), dtype=torch.int64)
        gradient = torch.zeros((tokens, hidden), dtype=torch.bfloat16)
        return step.Batch({"chosen": chosen}, gradient)

    return Subject(model, batch, given_gradient, {"stack": "component", "family": "experts"})


class Differentiated(nn.Module):
    """The experts of Qwen3-MoE with what is differentiated beside them."""

    def __init__(
        self, tokens: int, experts: int, hidden: int, intermediate: int, each: int
    ) -> None:
        from transformers.models.qwen3_moe import Qwen3MoeConfig
        from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts

        super().__init__()
        config = Qwen3MoeConfig(
            hidden_size=hidden, moe_intermediate_size=intermediate, num_experts=experts,
            num_experts_per_tok=each,
        )  # fmt: skip
        config._experts_implementation = "eager"
        self.experts = Qwen3MoeExperts(config)
        self.x = nn.Parameter(torch.empty(tokens, hidden))
        self.weights = nn.Parameter(torch.empty(tokens, each))

    def forward(self, chosen: torch.Tensor) -> torch.Tensor:
        """Return the experts' sum, (tokens, hidden)."""
        scaled = {name: weight * 0.02 for name, weight in self.experts.named_parameters()}
        given = (self.x, chosen, self.weights)
        return torch.func.functional_call(self.experts, scaled, given)


class _Given(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Any, gradient: Any) -> Any:
        ctx.save_for_backward(gradient)
        return output.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return ctx.saved_tensors[0], None


def given_gradient(output: Any, gradient: Any, count: float) -> Any:
    """A loss whose gradient is the one given: the benchmark starts backward from the output."""
    return _Given.apply(output, gradient)


def still(model: nn.Module, settings: Any) -> torch.optim.Optimizer:
    """Return an optimizer without state or copies: the benchmark has none."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.SGD(trained, lr=0.0, foreach=False)
