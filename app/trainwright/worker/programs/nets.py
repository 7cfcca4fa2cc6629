"""Networks of our own: plain torch, so that an exported script can carry them."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class DoubleConvolution(nn.Module):
    """Two 3x3 convolutions, each with batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (N, outputs, H, W) from (N, inputs, H, W)."""
        return self.layers(x)  # type: ignore[no-any-return]


class UNet(nn.Module):
    """The U-Net of Ronneberger et al. 2015 with padding and batch norm; scores a pixel.

    Args:
        channels: channels of the image.
        classes: scores a pixel.
        width: channels of the first level; each of the four below doubles them.
    """

    def __init__(self, channels: int = 3, classes: int = 2, width: int = 64) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(5)]
        self.down = nn.ModuleList(
            DoubleConvolution(inputs, outputs)
            for inputs, outputs in zip([channels, *widths], widths, strict=False)
        )
        self.widen = nn.ModuleList(
            nn.ConvTranspose2d(outputs * 2, outputs, 2, stride=2) for outputs in widths[3::-1]
        )
        self.up = nn.ModuleList(
            DoubleConvolution(outputs * 2, outputs) for outputs in widths[3::-1]
        )
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores (N, H, W, classes); H and W are multiples of 16."""
        skips = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            skips.append(x)
        skips.pop()
        for widen, block in zip(self.widen, self.up, strict=True):
            x = block(torch.cat([skips.pop(), widen(x)], dim=1))
        return self.head(x).permute(0, 2, 3, 1).contiguous()  # type: ignore[no-any-return]


class NatureActorCritic(nn.Module):
    """The network of Mnih et al. 2015 with a policy and a value head, for PPO.

    Args:
        actions: number of discrete actions; Pong has 6.
    """

    def __init__(self, actions: int = 6) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(),
        )
        self.policy = nn.Linear(512, actions)
        self.value = nn.Linear(512, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (action scores (N, actions), values (N,)) from frames (N, 4, 84, 84), uint8."""
        features = self.body(x.float() / 255)
        return self.policy(features), self.value(features).squeeze(-1)


CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.1, 0.5, 0.01
"""Of PPO on Atari, Schulman et al. 2017, table 5 (entropy weight and clip range)."""


def ppo_loss(
    output: tuple[torch.Tensor, torch.Tensor], rollout: dict[str, torch.Tensor], count: float
) -> torch.Tensor:
    """Clipped policy loss, value loss and entropy bonus, summed and divided by ``count``.

    The rollout has actions, log_probabilities, advantages and returns, each (N,).
    """
    scores, values = output
    log_probabilities = F.log_softmax(scores.float(), dim=-1)
    chosen = log_probabilities.gather(1, rollout["actions"].unsqueeze(1)).squeeze(1)
    ratio = (chosen - rollout["log_probabilities"]).exp()
    advantages = rollout["advantages"]
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP) * advantages
    policy = -torch.minimum(ratio * advantages, clipped).sum()
    value = 0.5 * F.mse_loss(values.float(), rollout["returns"], reduction="sum")
    entropy = -(log_probabilities.exp() * log_probabilities).sum()
    return (policy + VALUE_WEIGHT * value - ENTROPY_WEIGHT * entropy) / count
