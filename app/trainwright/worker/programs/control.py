"""Networks and losses of reinforcement learning, in plain torch.

Where a paper takes several optimizers in turn, the losses are added up and go backward once:
no loss reaches the parameters of another, so that the gradients are the same.
"""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

Outputs = dict[str, torch.Tensor]


def perceptron(inputs: int, hidden: int, layers: int, outputs: int) -> nn.Sequential:
    """Return linear layers with ReLU between them."""
    widths = [inputs, *[hidden] * layers]
    parts: list[nn.Module] = []
    for before, after in pairwise(widths):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(hidden, outputs))


# Soft actor-critic


class SoftActorCritic(nn.Module):
    """Actor, two critics and their slow copies of Haarnoja et al., arXiv 1812.05905.

    Args:
        observations: numbers that describe a state; HalfCheetah has 17.
        actions: numbers of an action; HalfCheetah has 6.
        hidden: width of the two hidden layers.
    """

    def __init__(self, observations: int = 17, actions: int = 6, hidden: int = 256) -> None:
        super().__init__()
        self.actor = perceptron(observations, hidden, 2, 2 * actions)
        critics = [perceptron(observations + actions, hidden, 2, 1) for _ in range(4)]
        self.critics, self.slow = nn.ModuleList(critics[:2]), nn.ModuleList(critics[2:])
        self.log_alpha = nn.Parameter(torch.zeros(()))
        self.target_entropy = -float(actions)

    def forward(
        self, states: torch.Tensor, actions: torch.Tensor, next_states: torch.Tensor
    ) -> Outputs:
        """Return what the losses read, each (N,) or (2, N), of transitions (N, ...)."""
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_actions, next_log = self._act(next_states)
            ahead = _values(self.slow, next_states, next_actions).amin(0) - alpha * next_log
        chosen, log = self._act(states)
        return {
            "values": _values(self.critics, states, actions),
            "ahead": ahead,
            "policy": alpha * log - _values(self.critics, states, chosen, fixed=True).amin(0),
            "temperature": -self.log_alpha * (log + self.target_entropy).detach(),
        }

    def _act(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return squashed Gaussian actions and their log-probabilities."""
        mean, log_scale = self.actor(states).float().chunk(2, dim=-1)
        log_scale = log_scale.clamp(-20, 2)
        noise = torch.randn_like(mean)
        actions = torch.tanh(mean + log_scale.exp() * noise)
        density = -0.5 * noise.square() - log_scale - 0.5 * math.log(2 * math.pi)
        squash = torch.log(1 - actions.square() + 1e-6)
        return actions, (density - squash).sum(-1)


def _values(
    critics: nn.ModuleList, states: torch.Tensor, actions: torch.Tensor, fixed: bool = False
) -> torch.Tensor:
    """Return (critics, N); ``fixed`` lets gradients reach the actions alone."""
    x = torch.cat([states, actions], dim=-1)
    found = []
    for critic in critics:
        own = {name: value.detach() for name, value in critic.named_parameters()}
        value = torch.func.functional_call(critic, own, (x,)) if fixed else critic(x)
        found.append(value.squeeze(-1).float())
    return torch.stack(found)


def sac_loss(output: Outputs, seen: dict[str, torch.Tensor], count: float) -> torch.Tensor:
    """Losses of critics, actor and temperature; ``seen`` has rewards and continues, (N,)."""
    goal = seen["rewards"] + 0.99 * seen["continues"] * output["ahead"]
    critics = F.mse_loss(output["values"], goal.expand_as(output["values"]), reduction="sum")
    return (critics + output["policy"].sum() + output["temperature"].sum()) / count


# Decision transformer


class DecisionBlock(nn.Module):
    """A block of GPT-2 with ReLU."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, T, width)."""
        dropout = self.dropout if self.training else 0.0
        parts = self.attend(self.before(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        found = self.project(found.transpose(1, 2).flatten(2))
        x = x + F.dropout(found, self.dropout, self.training)
        found = self.narrow(F.relu(self.widen(self.between(x))))
        return x + F.dropout(found, self.dropout, self.training)


class DecisionTransformer(nn.Module):
    """The policy of Chen et al., arXiv 2106.01345: three tokens a moment, actions predicted.

    Args:
        states: numbers that describe a state; Hopper has 11.
        actions: numbers of an action; Hopper has 3.
        width: of the blocks (table 9, as the next three).
        layers: blocks.
        heads: of attention.
        dropout: share.
        moments: longest episode, for the embedding of time.
    """

    def __init__(
        self,
        states: int = 11,
        actions: int = 3,
        width: int = 128,
        layers: int = 3,
        heads: int = 1,
        dropout: float = 0.1,
        moments: int = 1000,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.time = nn.Embedding(moments, width)
        self.of_return = nn.Linear(1, width)
        self.of_state = nn.Linear(states, width)
        self.of_action = nn.Linear(actions, width)
        self.first = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(DecisionBlock(width, heads, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.predict_state = nn.Linear(width, states)
        self.predict_action = nn.Linear(width, actions)
        self.predict_return = nn.Linear(width, 1)

    def forward(
        self,
        returns: torch.Tensor,
        states: torch.Tensor,
        actions: torch.Tensor,
        moments: torch.Tensor,
    ) -> torch.Tensor:
        """Return actions (N, T, actions) from returns-to-go, states, actions and time steps."""
        time = self.time(moments)
        embedded = (
            self.of_return(returns) + time,
            self.of_state(states) + time,
            self.of_action(actions) + time,
        )
        x = torch.stack(embedded, dim=2).flatten(1, 2)
        x = F.dropout(self.first(x), self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        x = self.last(x).unflatten(1, (-1, 3))
        # The paper's code computes all three and trains the actions alone.
        self.predict_return(x[:, :, 2]), self.predict_state(x[:, :, 2])
        return torch.tanh(self.predict_action(x[:, :, 1]))


def imitation_loss(output: torch.Tensor, actions: torch.Tensor, count: float) -> torch.Tensor:
    """Squared error of the actions."""
    return F.mse_loss(output.float(), actions, reduction="sum") / count
