"""What fits at most: tokens and requests of a served model, GPUs that share a training."""

from dataclasses import replace

from trainwright.estimate.memory.device_memory import allocated_peak_bytes
from trainwright.estimate.memory.outside import bytes_outside
from trainwright.estimate.time.scaling import ScalingPoint, on_gpus
from trainwright.plan.evaluate import Facts, asked_of, memory_of, runs_out, served_in
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.serving import MOST_REQUESTS, MOST_TOKENS, Limits, holds, largest


def with_limits(plan: Plan, facts: Facts, report: Report) -> Report:
    """Return the report with what fits at most, and on which numbers of GPUs the plan fits.

    The context ends at the model's positions, and an engine's cache at its share of the memory.
    A profile that holds for one point only, and a model that does not generate, have no limits.
    """
    if report.time.scaling:
        points = tuple(replace(one, fits=_fits(plan, facts, one)) for one in report.time.scaling)
        return replace(report, time=replace(report.time, scaling=points))
    if report.serving is None or not facts.profile.exact or "decode" not in facts.profile.segments:
        return report
    return replace(report, serving=replace(report.serving, limits=_limits(plan, facts)))


def _fits(plan: Plan, facts: Facts, point: ScalingPoint) -> bool:
    """Return whether the plan fits on so many GPUs: the fewer share, the more each holds."""
    update = {"accumulation": point.accumulation}
    settings = on_gpus(facts.settings, point.gpus).model_copy(update=update)
    fewer = replace(facts, settings=settings)
    return not runs_out(plan, fewer, gpus=point.gpus)


def _limits(plan: Plan, facts: Facts) -> Limits:
    requests, new = facts.settings.micro_batch, facts.inputs.new_tokens or 1
    context = (facts.inputs.prompt_tokens or 0) + new
    most = facts.longest or MOST_TOKENS

    def at(count: int, tokens: int) -> Facts:
        inputs = facts.inputs.model_copy(update={"prompt_tokens": max(tokens - new, 1)})
        settings = facts.settings.model_copy(update={"micro_batch": count})
        return replace(facts, inputs=inputs, settings=settings)

    served = served_in(plan, facts)

    def fits(count: int, tokens: int) -> bool:
        memory = memory_of(plan, at(count, tokens))
        if served is not None and served.queues:  # its share, and not the margin, is the bound
            return holds(served, memory, count, max(tokens, new + 1))
        return not memory.out_of_memory and (
            memory.device_used_p95.value <= memory.device_total.value
        )

    # The quick peak is a little low and has no margin; it is scaled to the full answer here.
    known = memory_of(plan, facts)
    scale = known.device_used_p95.value / max(_quick_use(plan, facts), 1)

    def seems_to_fit(count: int, tokens: int) -> bool:
        return scale * _quick_use(plan, at(count, tokens)) <= known.device_total.value

    least = min(new + 1, most)
    near = largest(lambda tokens: seems_to_fit(requests, tokens), most, start=least) or least
    longest = largest(lambda tokens: fits(requests, tokens), most, start=least, guess=near)
    near = largest(lambda count: seems_to_fit(count, context), MOST_REQUESTS) or 1
    requests_most = largest(lambda count: fits(count, context), MOST_REQUESTS, guess=near)
    return Limits(longest, requests_most, longest == facts.longest)


def _quick_use(plan: Plan, facts: Facts) -> float:
    """Return device use without a replay."""
    peak = allocated_peak_bytes(asked_of(plan, facts))
    return float(peak[0]) + bytes_outside(facts.machine.gpu)
