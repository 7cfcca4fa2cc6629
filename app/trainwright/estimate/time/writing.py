"""Seconds that writing and scoring answers add to each optimizer step of grpo.

Answers are written once for several steps, and each is taken to be as long as it may be.
"""

import numpy as np

from trainwright.estimate.serving.serving_pass import calibration
from trainwright.estimate.time.operator_clock import OperatorClock
from trainwright.estimate.time.serving_time import engine_model, engine_round
from trainwright.profile.profile import Floats, Profile
from trainwright.profile.rollout import SCORES
from trainwright.workload import FullSettings

FACTOR = 2.0
"""Of the 90 % interval at least: no real run was timed, and answers end early. Assumed."""


def writing_seconds(
    clock: OperatorClock, profile: Profile, settings: FullSettings, batch: int
) -> dict[str, float]:
    """Return the seconds of one optimizer step, by stage; empty where answers are given."""
    workload = clock.situation.workload
    writes = workload.writes
    if writes is None or "decode" not in profile.segments:
        return {}
    times = clock.operators(profile, settings, batch, clock.situation.sequence)
    passes = settings.accumulation / writes.iterations
    score = sum(
        float(_runs(profile, name) @ times.seconds) for name in SCORES if name in profile.segments
    )
    found = {"generate": _generating(clock, profile, settings, batch) / writes.steps}
    return found | ({"score": passes * score} if score else {})


def _generating(
    clock: OperatorClock, profile: Profile, settings: FullSettings, batch: int
) -> float:
    """Return the seconds of writing all answers of one GPU."""
    served, new = clock.situation.written, clock.new_tokens
    situation = clock.situation
    if served is not None:
        model = engine_model(situation.gpu, served, width=settings.itemsize)
        if model is not None:
            vendor, prompt = situation.gpu.record.vendor, situation.workload.inputs.prompt_tokens
            requests = answers_at_once(clock, settings, batch)
            found = engine_round(
                model, served, vendor, requests=requests, prompt=prompt or 1, new=new
            )
            return found.prefill.seconds + found.decode.seconds
    times = clock.operators(profile, settings, batch, situation.sequence)
    counts = _runs(profile, "prefill") + (new - 1) * _runs(profile, "decode")
    kernels = float(counts @ times.seconds)
    if settings.generation != "transformers":  # an engine replays recorded launches
        return kernels
    return max(kernels, float(counts @ times.launches) * calibration().eager_s_per_kernel)


def answers_at_once(clock: OperatorClock, settings: FullSettings, batch: int) -> int:
    """Return the answers that one engine writes at once: those of all GPUs on a server."""
    writes = clock.situation.workload.writes
    assert writes is not None, "asked for answers that are written"
    each = batch * settings.accumulation * writes.updates
    return each * (clock.situation.gpu_count if settings.generation == "vllm-server" else 1)


def _runs(profile: Profile, segment: str) -> Floats:
    rows = len(profile.ops.name)
    return np.bincount(profile.segments[segment].ops, minlength=rows).astype(np.float64)
