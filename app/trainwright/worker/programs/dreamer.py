"""DreamerV3 of Hafner et al., arXiv 2301.04104: a world model, and a player trained inside it."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

CODES, CLASSES = 32, 32
"""Categorical variables of the stochastic state, and values of each."""
BINS, REACH = 255, 20.0
"""Bins of rewards and values, from -REACH to REACH in symlog."""
MIX = 0.01
"""Share of the uniform distribution in every categorical one."""
HORIZON = 15
"""Imagined steps."""
DISCOUNT, LAMBDA = 1 - 1 / 333, 0.95
FREE_NATS, DYNAMICS, REPRESENTATION = 1.0, 0.5, 0.1
ENTROPY = 3e-4
PIXELS = 64
"""Side of the frames. All of these: the paper's table of hyperparameters."""

Outputs = dict[str, torch.Tensor]


def block(inputs: int, outputs: int) -> nn.Sequential:
    """Return a linear layer, normalised, with SiLU."""
    return nn.Sequential(nn.Linear(inputs, outputs, bias=False), nn.LayerNorm(outputs), nn.SiLU())


def head(inputs: int, hidden: int, layers: int, outputs: int) -> nn.Sequential:
    """Return blocks and a linear layer."""
    blocks = [block(inputs if not number else hidden, hidden) for number in range(layers)]
    return nn.Sequential(*blocks, nn.Linear(hidden, outputs))


def codes(inputs: int, hidden: int) -> nn.Sequential:
    """Return a block and the scores of the categorical variables."""
    scores = nn.Linear(hidden, CODES * CLASSES)
    return nn.Sequential(block(inputs, hidden), scores, nn.Unflatten(-1, (CODES, CLASSES)))


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of images."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, C, H, W)."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


def _scaled(convolution: nn.Module, channels: int) -> list[nn.Module]:
    return [convolution, ChannelNorm(channels), nn.SiLU()]


class Dreamer(nn.Module):
    """World model, actor, critic and the critic's slow copy; size S by default.

    Args:
        actions: discrete ones; Pong has 6.
        deter: units of the recurrent state.
        hidden: width of dense layers.
        layers: dense layers of each head.
        channels: of the first convolution.
    """

    def __init__(
        self,
        actions: int = 6,
        deter: int = 512,
        hidden: int = 512,
        layers: int = 2,
        channels: int = 32,
    ) -> None:
        super().__init__()
        stoch = CODES * CLASSES
        feature = deter + stoch
        widths = [channels * 2**level for level in range(4)]
        seen = widths[-1] * (PIXELS // 16) ** 2
        self.deter, self.widest = deter, widths[-1]
        parts: list[nn.Module] = []
        for before, after in zip([3, *widths], widths, strict=False):
            parts += _scaled(nn.Conv2d(before, after, 4, 2, 1, bias=False), after)
        self.encoder = nn.Sequential(*parts, nn.Flatten())
        parts = []
        for before, after in zip(widths[:0:-1], widths[-2::-1], strict=True):
            parts += _scaled(nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), after)
        parts.append(nn.ConvTranspose2d(widths[0], 3, 4, 2, 1))
        self.spread, self.decoder = nn.Linear(feature, seen), nn.Sequential(*parts)
        self.enter = block(stoch + actions, hidden)
        self.gates = nn.Linear(deter + hidden, 3 * deter, bias=False)
        self.norm = nn.LayerNorm(3 * deter)
        self.prior = codes(deter, hidden)
        self.posterior = codes(deter + seen, hidden)
        self.reward = head(feature, hidden, layers, BINS)
        self.proceed = head(feature, hidden, layers, 1)
        self.actor = head(feature, hidden, layers, actions)
        self.critic = head(feature, hidden, layers, BINS)
        self.slow = head(feature, hidden, layers, BINS)

    def forward(self, frames: torch.Tensor, actions: torch.Tensor, first: torch.Tensor) -> Outputs:
        """Return what the losses read.

        Args:
            frames: (N, T, 3, 64, 64), uint8.
            actions: (N, T, actions), one-hot, each taken before its frame.
            first: (N, T), 1 where an episode begins.
        """
        samples, steps = frames.shape[:2]
        images = frames.flatten(0, 1).float() / 255
        seen = self.encoder(images - 0.5).unflatten(0, (samples, steps))
        deter, stoch, posterior = self._observed(seen, actions, 1 - first)
        feature = torch.cat([deter, stoch], dim=-1)
        spread = self.spread(feature.flatten(0, 1)).unflatten(-1, (self.widest, 4, 4))
        outputs = {
            "images": images,
            "decoded": self.decoder(spread) + 0.5,
            "rewards": self.reward(feature),
            "proceeds": self.proceed(feature).squeeze(-1),
            "posterior": posterior,
            "prior": _logits(self.prior(deter)),
        }
        return outputs | self._imagined(deter.detach(), stoch.detach())

    def _observed(
        self, seen: torch.Tensor, actions: torch.Tensor, keep: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return deterministic states, stochastic states and their logits, (N, T, ...)."""
        samples, steps = keep.shape
        deter = seen.new_zeros((samples, self.deter))
        stoch = seen.new_zeros((samples, CODES * CLASSES))
        found = []
        for now in range(steps):
            kept = keep[:, now, None]
            deter = self._moved(deter * kept, stoch * kept, actions[:, now] * kept)
            logits = _logits(self.posterior(torch.cat([deter, seen[:, now]], dim=-1)))
            stoch = _sampled(logits)
            found.append((deter, stoch, logits))
        deters, stochs, all_logits = (torch.stack(part, dim=1) for part in zip(*found, strict=True))
        return deters, stochs, all_logits

    def _moved(
        self, deter: torch.Tensor, stoch: torch.Tensor, action: torch.Tensor
    ) -> torch.Tensor:
        """Return the next deterministic state: a GRU whose gates are normalised together."""
        entered = self.enter(torch.cat([stoch, action], dim=-1))
        gates = self.norm(self.gates(torch.cat([deter, entered], dim=-1)))
        reset, candidate, update = gates.chunk(3, dim=-1)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        update = torch.sigmoid(update - 1)
        return update * candidate + (1 - update) * deter

    def _imagined(self, deter: torch.Tensor, stoch: torch.Tensor) -> Outputs:
        """Return what actor and critic learn from: paths that start at every state seen."""
        with torch.no_grad():
            features, actions = self._played(deter.flatten(0, 1), stoch.flatten(0, 1))
            rewards = _mean(self.reward(features))
            proceeds = torch.sigmoid(self.proceed(features).squeeze(-1).float()) * DISCOUNT
            slow = _mean(self.slow(features))
            goal = _returns(rewards, proceeds, _mean(self.critic(features)))
        return {
            "weights": torch.cumprod(proceeds, 0)[:-1] / DISCOUNT,
            "goal": goal,
            "slow": slow[:-1],
            "taken": actions[:-1],
            "values": self.critic(features[:-1]),
            "policy": _logits(self.actor(features[:-1])[..., None, :]).squeeze(-2),
        }

    def _played(
        self, deter: torch.Tensor, stoch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features and actions, (HORIZON + 1, N, ...), as the actor plays."""
        features, actions = [], []
        for _ in range(HORIZON + 1):
            feature = torch.cat([deter, stoch], dim=-1)
            action = _sampled(_logits(self.actor(feature)[..., None, :]))
            features.append(feature)
            actions.append(action)
            deter = self._moved(deter, stoch, action)
            stoch = _sampled(_logits(self.prior(deter)))
        return torch.stack(features), torch.stack(actions)


def _logits(scores: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities (..., variables, values), a little of the uniform mixed in."""
    probabilities = (1 - MIX) * scores.float().softmax(-1) + MIX / scores.size(-1)
    return probabilities.log()


def _sampled(logits: torch.Tensor) -> torch.Tensor:
    """Return one-hot samples, flattened, through which gradients pass straight."""
    probabilities = logits.exp()
    chosen = torch.multinomial(probabilities.detach().flatten(0, -2), 1).view(*logits.shape[:-1], 1)
    hot = torch.zeros_like(logits).scatter_(-1, chosen, 1.0)
    return (hot + probabilities - probabilities.detach()).flatten(-2)


def symlog(x: torch.Tensor) -> torch.Tensor:
    """Return sign(x) log(1 + |x|)."""
    return x.sign() * x.abs().log1p()


def _bins(like: torch.Tensor) -> torch.Tensor:
    return torch.linspace(-REACH, REACH, BINS, device=like.device)


def _mean(scores: torch.Tensor) -> torch.Tensor:
    """Return the expected value over the bins, in its own scale."""
    x = (scores.float().softmax(-1) * _bins(scores)).sum(-1)
    return x.sign() * x.abs().expm1()


def _two_hot(x: torch.Tensor) -> torch.Tensor:
    """Return weights over the bins: on the two next to the value."""
    place = (symlog(x).clamp(-REACH, REACH) + REACH) / (2 * REACH) * (BINS - 1)
    below = place.floor().clamp(max=BINS - 2)
    share = (place - below).unsqueeze(-1)
    index = below.long().unsqueeze(-1)
    weights = torch.zeros((*x.shape, BINS), device=x.device)
    return weights.scatter_(-1, index, 1 - share).scatter_(-1, index + 1, share)


def _missed(scores: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of binned values."""
    return -(_two_hot(x) * F.log_softmax(scores.float(), dim=-1)).sum(-1)


def _returns(rewards: torch.Tensor, proceeds: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return lambda-returns (HORIZON, N)."""
    ahead, found = values[-1], []
    for now in range(HORIZON - 1, -1, -1):
        mixed = (1 - LAMBDA) * values[now + 1] + LAMBDA * ahead
        ahead = rewards[now + 1] + proceeds[now + 1] * mixed
        found.append(ahead)
    return torch.stack(found[::-1])


def _divergence(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the KL divergence of the states, no less than the free nats."""
    return (one.exp() * (one - other)).sum((-2, -1)).clamp(min=FREE_NATS)


def dreamer_loss(output: Outputs, seen: dict[str, torch.Tensor], count: float) -> torch.Tensor:
    """Losses of world model, actor and critic; ``seen`` has rewards and proceeds, (N, T)."""
    prior, posterior = output["prior"], output["posterior"]
    model = (
        F.mse_loss(output["decoded"].float(), output["images"], reduction="sum")
        + _missed(output["rewards"], seen["rewards"]).sum()
        + F.binary_cross_entropy_with_logits(output["proceeds"], seen["proceeds"], reduction="sum")
        + DYNAMICS * _divergence(posterior.detach(), prior).sum()
        + REPRESENTATION * _divergence(posterior, prior.detach()).sum()
    )
    goal, values, policy = output["goal"], output["values"], output["policy"]
    with torch.no_grad():
        spread = (torch.quantile(goal, 0.95) - torch.quantile(goal, 0.05)).clamp(min=1.0)
        advantages = (goal - _mean(values)) / spread
    chosen = (policy * output["taken"]).sum(-1)
    entropy = -(policy.exp() * policy).sum(-1)
    actor = -(output["weights"] * (chosen * advantages + ENTROPY * entropy)).sum()
    missed = _missed(values, goal) + _missed(values, output["slow"])
    critic = (output["weights"] * missed).sum()
    return (model + actor + critic) / count
