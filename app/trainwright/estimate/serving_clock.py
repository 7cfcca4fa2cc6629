"""A round of requests on the clock: an engine's own passes, or the kernels of the trace."""

from trainwright.estimate.operator_clock import OperatorClock
from trainwright.estimate.serving import Served
from trainwright.estimate.serving_pass import calibration
from trainwright.estimate.serving_time import Round, engine_model, engine_round, traced_round
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

_WIDE = ("fp32", "tf32")


def round_of(
    clock: OperatorClock, profile: Profile, settings: FullSettings, batch: int, served: Served
) -> Round:
    """Return the round of so many requests that arrive together."""
    situation = clock.situation
    gpu, vendor = situation.gpu, situation.gpu.record.vendor
    width = 4 if settings.precision in _WIDE else 2
    model = engine_model(gpu, served, width=width)
    if model is not None:
        return engine_round(
            model,
            served,
            vendor,
            requests=served.each(batch),
            prompt=situation.sequence,
            new=clock.new_tokens,
        )

    def stages(requests: int) -> dict[str, tuple[float, float]]:
        return {
            name: (float(counts @ times.seconds), float((counts @ times.launches).sum()))
            for name, times, counts in clock.stages(profile, settings, requests)
        }

    return traced_round(
        stages,
        vendor,
        requests=served.each(batch),
        s_per_kernel=_launch_s(clock, profile, settings, served),
    )


def _launch_s(
    clock: OperatorClock, profile: Profile, settings: FullSettings, served: Served
) -> float:
    """Return the seconds in which the CPU launches a kernel; 0 where a recorded graph does."""
    if served.engine.id != "transformers":
        return 0.0
    generates = "decode" in profile.segments
    known = clock.efficiency
    each = calibration().eager_s_per_kernel if generates else known.host_s_per_kernel.value
    return each * (known.compile_launches.value if settings.compile else 1.0)
