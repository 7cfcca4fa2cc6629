"""What pipeline stages cost a step: the slowest one, the bubble, and what they hand on."""

from dataclasses import dataclass

import numpy as np

from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.parallel.communication import (
    Exchange,
    Link,
    gradient_bytes,
    over_network,
    ring,
    straggling,
)
from trainwright.estimate.parallel.stages import Stage, handed_row, parameters_of, stages_of
from trainwright.machine.network import Cluster
from trainwright.profile.expand import op_counts
from trainwright.profile.profile import SCALE, Floats, Profile, monomials
from trainwright.workload import FullSettings

_OUTSIDE, _HEAD = -1, -2
"""Regions of ``OpTable``: before the blocks, and after the last one."""


def bubble_share(stages: int, micro_batches: int) -> float:
    """Return the share of a step in which a GPU of equal stages has nothing to do.

    Source: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters
    Using Megatron-LM" (arXiv 2104.04473), section 2.2: (p - 1) / m of what is computed.
    """
    return (stages - 1) / (micro_batches + stages - 1)


def slowest(
    profile: Profile,
    settings: FullSettings,
    names: tuple[str, ...],
    counts: Floats,
    seconds: Floats,
) -> Floats:
    """Return how often each op row runs on the stage that sets the pace; (names, rows) from such.

    ``seconds`` are those of each row, run once. A stage updates its own weights.
    """
    stages = stages_of(settings, profile)
    number = int(passes(profile, settings, seconds).argmax())
    updates = np.array([name == "optimizer" for name in names])[:, None]
    mine = _shares(profile, stages)[number]
    return counts * np.where(updates, weights_share(profile, stages[number]), mine[None])


def passes(profile: Profile, settings: FullSettings, seconds: Floats) -> Floats:
    """Return the seconds of each stage's passes of a micro-batch; (stages,)."""
    once, twice = (
        op_counts(
            profile,
            accumulation=number,
            checkpointing=settings.recomputing,
            optimizer=traced_name(profile, settings.update),
        )
        for number in (1, 2)
    )
    one = sum((twice[name] - once[name] for name in once), np.zeros(len(seconds)))
    return _shares(profile, stages_of(settings, profile)) @ (one * seconds)


def _shares(profile: Profile, stages: tuple[Stage, ...]) -> Floats:
    """Return which share of each op row's runs in a pass are a stage's; (stages, rows).

    A stage has its blocks, the first one what lies before all, the last one what follows.
    """
    region = np.array(profile.ops.region)
    found = np.empty((len(stages), len(region)))
    for number, stage in enumerate(stages):
        found[number] = (stage.end - stage.begin) / profile.blocks
        found[number, region == _OUTSIDE] = stage.first
        found[number, region == _HEAD] = stage.last
    return found


def weights_share(profile: Profile, stage: Stage) -> float:
    """Return the share of the model's weights that a stage has: its layers, a table at each end."""
    table, layer = parameters_of(profile)
    mine = layer * (stage.end - stage.begin) + table * (stage.first + stage.last)
    return mine / float(profile.model["parameters"])


@dataclass(frozen=True, slots=True)
class Chain:
    """How stages and their copies lie on the GPUs: the copies of a stage side by side."""

    stages: int
    copies: int
    link: Link
    """Between two stages: the slowest."""
    among: Link
    """Between the copies of a stage."""


def chain(settings: FullSettings, count: int, inside: Link, cluster: Cluster | None) -> Chain:
    """Return how ``count`` GPUs hand on; ``inside`` joins those of one computer.

    Where stages lie in several computers, the copies of a stage send through the same ports.
    """
    stages = settings.pipeline_stages or 1
    copies = count // stages
    if cluster is None or cluster.used(count) < 2:
        return Chain(stages, copies, inside, inside)
    rate = cluster.network.bytes_per_s / min(copies, cluster.each)
    link = Link("network", rate, assumed=False, computers=2)
    return Chain(stages, copies, link, over_network(inside, copies, cluster))


def handed_bytes(profile: Profile, batch: int, sequence: int) -> float:
    """Return the bytes that a stage hands on of a micro-batch: what the next layer is given."""
    return float(profile.sizes[handed_row(profile)] @ monomials(batch, sequence)) / SCALE


def summed_bytes(profile: Profile, settings: FullSettings) -> float:
    """Return the bytes of gradients that the copies of the largest stage add up."""
    stages = stages_of(settings, profile)
    share = max(weights_share(profile, stage) for stage in stages)
    return share * gradient_bytes(profile, settings, adapts=False)


def waiting(
    profile: Profile, settings: FullSettings, where: Chain, seconds: Floats, sequence: int
) -> Exchange:
    """Return what a step of 1F1B waits for beside the passes of its slowest stage.

    ``seconds`` are those of each stage's passes of a micro-batch. The pipeline fills and drains
    while one micro-batch goes through the other stages: the bubble. Each micro-batch waits twice,
    for an activation and for a gradient, both ways at once. Nothing hides it, since
    ``Schedule1F1B`` waits for each pair (torch 2.13). A pair passes as many bytes each way as an
    all-reduce of two GPUs. Copies add up their gradients after the last backward pass.
    """
    several = settings.accumulation
    nbytes = handed_bytes(profile, settings.micro_batch, sequence)
    handed = 2 * (several + where.stages - 1) * ring(2, where.link).seconds(nbytes)
    summed = 0.0
    if where.copies > 1:
        summed = ring(where.copies, where.among).seconds(summed_bytes(profile, settings))
    bubble = float(seconds.sum() - seconds.max())
    waits = straggling(where.stages * where.copies) * several * float(seconds.max())
    return Exchange(handed + summed, 0.0, 0.0, 0.0, 0.0, waits, summed, bubble=bubble)
