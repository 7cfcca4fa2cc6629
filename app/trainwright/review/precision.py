"""The precision of a run, as a plan says it."""

from trainwright.review.facts import Facts


def precision_of(facts: Facts, kind: str) -> str | None:
    """Return the precision of a task; None where nothing says it."""
    precision: str | None = facts.value("precision")
    weights: str | None = facts.value("weights_dtype")
    if facts.value("no_autocast") and not facts.given("precision"):
        precision = "fp32"
    if precision == "fp32" and facts.value("tf32"):
        return "tf32"
    if kind in ("full", "pretrain") and precision in ("bf16-mixed", "fp16-mixed"):
        # No fp32 copy of the weights is kept where they are loaded in 16 bits.
        low = str(precision).removesuffix("-mixed")
        if weights in (low, "compute"):
            return low
    if precision == "fp32" and weights in ("bf16", "fp16"):
        return weights  # no autocast: all is computed as it is kept
    return precision
