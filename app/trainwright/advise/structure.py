"""What of a candidate decides which profile answers, which layout it has, and how long it takes."""

from collections.abc import Iterator, Sequence

from trainwright.advise.space import Candidate
from trainwright.estimate.optimizers import traced_as, traced_name
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED


def structure(candidate: Candidate, *, alone: bool | None = None) -> tuple[object, ...]:
    """Return what decides which profile answers; ``alone``: for samples one by one, or not."""
    traced = "selective" if candidate.checkpointing == "selective" else "derived"
    single = candidate.micro_batch == 1 if alone is None else alone
    return (
        *(candidate.precision, candidate.attention, candidate.expanded_heads),
        *(candidate.channels_last, traced),
        *(single, traced_as(candidate.optimizer), candidate.strategy in SHARDED),
        *(candidate.cross_entropy, candidate.optimizer_in_backward),
    )


def by_structure(group: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """Yield points that differ in the batch in groups: batch 1 is a structure of its own."""
    for alone in (False, True):
        if alike := [one for one in group if (one.micro_batch == 1) == alone]:
            yield alike


def structure_of(settings: FullSettings) -> tuple[object, ...]:
    """Return the same of a plan's own settings."""
    return (
        *(settings.precision, settings.attention, settings.expanded_heads, settings.channels_last),
        "selective" if settings.checkpointing == "selective" else "derived",
        *(settings.micro_batch == 1, traced_as(settings.optimizer), settings.shards),
        *(settings.cross_entropy, settings.optimizer_in_backward),
    )


def updates(profile: Profile, optimizer: str) -> bool:
    """Return whether the profile knows what the optimizer does."""
    return f"optimizer:{traced_name(profile, optimizer)}" in profile.segments


def layout(candidate: Candidate) -> tuple[object, ...]:
    """Return what decides the order of births and deaths."""
    return (
        *structure(candidate),
        *(candidate.checkpointing, candidate.activation_offload),
        *(candidate.optimizer, candidate.optimizer_offload),
        *(candidate.strategy, candidate.shard_degree, candidate.tensor_degree),
        min(candidate.accumulation, 2),
    )


def work(candidate: Candidate) -> tuple[object, ...]:
    """Return what decides the time, beside the structure."""
    return (
        *(candidate.micro_batch, candidate.accumulation),
        *(candidate.checkpointing, candidate.activation_offload),
        *(candidate.optimizer, candidate.optimizer_offload),
        *(candidate.strategy, candidate.shard_degree, candidate.tensor_degree),
    )


def answers(profile: Profile, candidate: Candidate, sequence: int) -> bool:
    """Return whether the profile holds for the candidate's point."""
    return profile.exact or (candidate.micro_batch, sequence) in profile.points
