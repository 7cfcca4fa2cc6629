"""What the files of a server say apart from its settings: weights by name, and requests at once."""

from trainwright.plan.serving import MOST_REQUESTS
from trainwright.review.facts import Facts
from trainwright.review.names import quantization_of


def named_weights(facts: Facts) -> str | None:
    """Return the weights that the served model's name tells; None where it has no such word."""
    model = facts.first("model")
    return None if model is None else quantization_of(str(model.value))


def most_requests(facts: Facts) -> int | None:
    """Return the requests that a server runs at once at most; None where its file does not say.

    A plan may name no more than ``MOST_REQUESTS``. llama.cpp divides its context among them, so
    that theirs are not requests of a whole context.
    """
    fact = next(iter(facts.given("most_requests")), None)
    if fact is None or fact.kind == "llama-server":
        return None
    return min(int(fact.value), MOST_REQUESTS)
