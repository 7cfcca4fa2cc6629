"""The seconds of a step by stage, and the step that they make."""

from dataclasses import dataclass
from typing import Literal

Bottleneck = Literal["gpu", "launch", "storage", "decode", "transfer", "communication"]


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Seconds of one optimizer step on each GPU, before they are laid side by side."""

    gpu: dict[str, float]
    """Stage -> seconds that its kernels take."""
    host: float
    """Seconds that the CPU takes to launch them all."""
    communication: float
    """For the exchange of gradients in all, and for waiting for the slowest GPU."""
    exposed: float
    """By how much the step is longer for it: what backward does not hide."""
    input: dict[str, float]
    """load, decode, transfer -> seconds for the samples of one step."""
    workers: int
    """0: the training process itself loads and decodes."""
    feeds: tuple[tuple[float, float], ...] = ()
    """(share of the run, seconds until a step's samples are ready to be copied): reading may
    take longer in the first epoch than later."""

    @property
    def computing(self) -> float:
        """Seconds that one GPU would take for the step, were its samples on it."""
        return max(sum(self.gpu.values()), self.host)

    @property
    def device(self) -> float:
        """Seconds until the GPUs have done the step, were the input always there.

        The copy of the samples is one of them: it is on the kernels' stream.
        """
        return self.computing + self.exposed + self.input.get("transfer", 0.0)

    @property
    def waiting(self) -> float:
        """Seconds that the GPUs wait for input, on average over the run."""
        hidden = self.device if self.workers else 0.0
        return sum(share * max(0.0, seconds - hidden) for share, seconds in self.feeds)

    @property
    def preparing(self) -> str:
        """The slower of loading and decoding; empty without either."""
        made = {name: self.input[name] for name in ("load", "decode") if name in self.input}
        return max(made, key=made.__getitem__, default="")

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return self.device + self.waiting

    @property
    def bottleneck(self) -> Bottleneck:
        """What takes the largest share of the step."""
        kernels = sum(self.gpu.values())
        if self.waiting > kernels or (self.workers and self.waiting > 0):
            return "storage" if self.preparing == "load" else "decode"
        if self.input.get("transfer", 0.0) > max(kernels, self.host, self.exposed):
            return "transfer"
        if self.exposed > max(kernels, self.host):
            return "communication"
        return "launch" if self.host > kernels else "gpu"
