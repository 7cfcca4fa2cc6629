"""The training loop that settings stand for."""

from trainwright.profile.expand import Loop
from trainwright.workload import FullSettings


def loop_of(settings: FullSettings) -> Loop:
    """Return what the plan's loop holds longer than the step needs."""
    return Loop(
        settings.output_kept,
        settings.gradients_cleared,
        settings.loss_in_model,
        writes=settings.generation == "transformers",
    )
