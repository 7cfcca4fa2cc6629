"""The GPT of "Build a Large Language Model (From Scratch)", chapter 5: the head is not tied.

``own`` writes norm and activation out, and ``fused`` takes torch's attention.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

WIDTH, LAYERS, HEADS, CONTEXT, DROPPED = 768, 12, 12, 1024, 0.1


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.shift = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(variance + 1e-5)) + self.shift


class Gelu(nn.Module):
    def forward(self, x):
        inner = torch.sqrt(torch.tensor(2.0 / torch.pi)) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inner))


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out, self.drop = nn.Linear(WIDTH, WIDTH), nn.Dropout(DROPPED)

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = (
            layer(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = self._kernel(query, key, value) if self.fused else self._written(query, key, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def _kernel(self, query, key, value):
        dropped = DROPPED if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropped)

    def _written(self, query, key, value):
        length = query.shape[2]
        later = torch.triu(torch.ones(length, length, device=query.device), diagonal=1).bool()
        scores = query @ key.transpose(2, 3)
        scores.masked_fill_(later, -torch.inf)
        weights = torch.softmax(scores / math.sqrt(key.shape[-1]), dim=-1)
        return self.drop(weights) @ value


class Block(nn.Module):
    def __init__(self, fused, own):
        super().__init__()
        self.attention = Attention(fused)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.activation = Gelu() if own else nn.GELU(approximate="tanh")
        self.norms = nn.ModuleList(Norm() if own else nn.LayerNorm(WIDTH) for _ in range(2))
        self.drop = nn.Dropout(DROPPED)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norms[0](x)))
        return x + self.drop(self.narrow(self.activation(self.wide(self.norms[1](x)))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, fused, own):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.drop = nn.Dropout(DROPPED)
        self.blocks = nn.Sequential(*(Block(fused, own) for _ in range(LAYERS)))
        self.norm = Norm() if own else nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.tokens(tokens) + self.positions(places))
        return self.head(self.norm(self.blocks(x)))


def build(vocabulary=50257, fused=True, own=False):
    return {"model": Gpt(vocabulary, fused, own), "inputs": inputs, "longest": CONTEXT}


def inputs(batch, sequence):
    return {"tokens": torch.zeros(batch, sequence, dtype=torch.int64)}
