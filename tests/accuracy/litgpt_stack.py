"""litgpt's own models, adapters and loss for the tracer; imported only where profiles are built.

Facts of the versions that were measured, where they differ from what transformers and PEFT do:

- The whole model is bf16, adapters too; AdamW is torch's default, foreach.
- Logits are made in chunks of 128 tokens and, as every output, converted to fp32 (Lightning's
  ``HalfPrecision.convert_output``), and scored so.
- ``finetune/lora.py`` keeps ``logits`` and ``loss`` in local variables, so that they live until
  the next batch has its own.
- NF4 weights are quantised from fp16, so that products dequantise to fp16 and convert
  (Lightning's ``BitsandbytesPrecision``); every linear layer is quantised, the head too.
- ``MatMul4Bit`` of bitsandbytes 0.41 and 0.42 keeps its input as a plain attribute, which
  autograd does not release: it lives as long as the graph, hence as long as ``loss``.
"""

from typing import Any

import step
import torch
from quantized import BLOCK, NESTED_BLOCK
from subject import Subject
from torch import nn
from torch.nn import functional

CHUNK = 128
"""``lm_head_chunk_size`` and the chunk of the loss in ``finetune/lora.py``."""
DROPOUT = 0.05

HELD: dict[str, Any] = {}
"""The training loop's variables ``logits`` and ``loss``."""


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the model of a litgpt configuration with the adapters that the spec names."""
    from litgpt import lora, model
    from litgpt.utils import chunked_cross_entropy

    # Windows are longer than every batch here, and their masks no larger than causal ones.
    options: dict[str, Any] = {"sliding_window_size": None}
    trains = spec["task"] != "infer"
    with torch.device("meta"):
        if spec["task"] in ("lora", "qlora"):
            rank, targets = spec["lora"]
            options |= {f"lora_{target}": True for target in targets}
            options |= {"lora_r": rank, "lora_alpha": 16, "lora_dropout": DROPOUT}
            built = lora.GPT(lora.Config.from_name(name, **options))
            published = built.config
        else:
            built = model.GPT(model.Config.from_name(name, **options))
            published = built.config
    _, longest = spec["points"][0]
    built.max_seq_length = longest
    count = sum(p.numel() for n, p in built.named_parameters() if "lora_" not in n)
    head = published.padded_vocab_size * published.n_embd
    facts = {
        "stack": "litgpt",
        "family": name,
        "layers": published.n_layer,
        "hidden": published.n_embd,
        "vocabulary": published.padded_vocab_size,
        "heads": published.n_head,
        "base_parameters": count,
        "head_parameters": head,
    }

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        labels = torch.zeros((size, length), dtype=torch.int64)
        return step.Batch({"idx": tokens}, labels)

    def loss(chunks: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
        HELD["logits"] = chunks
        chunks[-1] = chunks[-1][..., :-1, :]
        HELD["loss"] = chunked_cross_entropy(chunks, labels[..., 1:])
        return HELD["loss"] / count

    forward, chunk = built.forward, CHUNK if trains else 0

    def converted(idx: torch.Tensor) -> Any:
        output = forward(idx, lm_head_chunk_size=chunk)
        return [part.float() for part in output] if trains else output.float()

    built.forward = converted
    return Subject(built, batch, loss, facts=facts)


def shape(subject: Subject, spec: dict[str, Any]) -> step.StepSettings:
    """Give the model its types, its NF4 weights, and its trainable parameters."""
    model, trains = subject.model, spec["task"] != "infer"
    quantised = spec["quantization"]
    model.requires_grad_(spec["task"] == "full")
    with torch.device("meta"):
        for module in model.modules():
            for key, parameter in list(module.named_parameters(recurse=False)):
                trainable = parameter.requires_grad or key.startswith("lora_")
                lower = parameter.detach().to(torch.bfloat16)
                setattr(module, key, nn.Parameter(lower, requires_grad=trainable))
        if quantised != "none":
            _quantise(model, nested=quantised == "nf4-dq")
        if not trains:
            model.set_kv_cache(1, dtype=torch.bfloat16)
    model.train(trains)
    return step.StepSettings(precision="bf16" if trains else spec["precision"])


def _quantise(model: nn.Module, nested: bool) -> None:
    linears = [
        (name, module) for name, module in model.named_modules() if type(module) is nn.Linear
    ]
    for name, module in linears:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, Nf4Linear(module, nested))


class Nf4Linear(nn.Module):
    """A linear layer of bitsandbytes 0.41 with weights quantised from fp16."""

    def __init__(self, linear: nn.Linear, nested: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        count = linear.weight.numel()
        scales = -(-count // BLOCK)
        self.nested = nested
        self.weight = _frozen(((count + 1) // 2, 1), torch.uint8)
        self.scales = _frozen((scales,), torch.uint8 if nested else torch.float32)
        self.code = _frozen((256,), torch.float32)
        if nested:
            self.second = _frozen((-(-scales // NESTED_BLOCK),), torch.float32)
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product; the input is kept for the backward pass."""
        return _Product.apply(x, self.bias, self)  # type: ignore[no-any-return,no-untyped-call]

    def dequantised(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight in fp16 and then in ``dtype``."""
        ops, scales = torch.ops.trainwright, self.scales
        if self.nested:
            scales = ops.dequantize_scales(self.scales, self.code, self.second)
        shape = (self.out_features, self.in_features)
        return ops.dequantize_nf4(self.weight, scales, shape, torch.float16).to(dtype)  # type: ignore[no-any-return]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, bias: Any, layer: Nf4Linear) -> torch.Tensor:
        result = functional.linear(x, layer.dequantised(x.dtype), bias)
        ctx.layer = layer
        if ctx.needs_input_grad[0]:
            ctx.kept = x
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        grad = grads[0]
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return torch.matmul(grad, ctx.layer.dequantised(grad.dtype)), None, None


class ForeachAdamW(torch.optim.AdamW):
    """AdamW as torch makes it by default; the step ends with what the loop still holds."""

    def __init__(self, model: nn.Module, settings: step.StepSettings) -> None:
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        super().__init__(trainable, lr=settings.learning_rate, foreach=True)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, and the variables: the profile's steps begin without them."""
        super().zero_grad(set_to_none)
        HELD.clear()


def _frozen(shape: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=dtype, device="meta"), requires_grad=False)
