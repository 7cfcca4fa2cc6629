"""The serving side of a report as rows, for app and command line alike."""

from collections.abc import Iterator

from trainwright.estimate.time.serving_time import ServingTime
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.serving import Serving

Row = tuple[Message, Message | str]


def serving_rows(serving: Serving, time: ServingTime | None = None) -> tuple[Row, ...]:
    """Return (what, value) for each figure that is known, speed first."""
    speed = _speed(time, serving) if time is not None else ()
    return (*speed, *_rows(serving))


def _speed(time: ServingTime, serving: Serving) -> Iterator[Row]:
    requests = serving.running
    yield _row("first-token"), _measure("duration", time.first_token)
    if serving.concurrent > 1:
        yield (
            _row("first-token-all", requests=serving.concurrent),
            _measure("duration", time.first_token_all),
        )
    if time.per_request is not None and time.together is not None:
        yield _row("per-request"), _measure("rate", time.per_request)
        if requests > 1:
            yield _row("together", requests=requests), _measure("rate", time.together)
    if time.limit is not None:
        yield _row("limit"), Message.of(f"plan.serving.limit.{time.limit}")


def _measure(kind: str, figure: Quantity) -> Message:
    """Return a figure with its interval, as far as it has one."""
    if figure.interval is None:
        return Message.of(f"plan.serving.{kind}-bound", value=figure.value)
    low, high = figure.interval.low, figure.interval.high
    return Message.of(f"plan.serving.{kind}", value=figure.value, low=low, high=high)


def _rows(serving: Serving) -> Iterator[Row]:
    served = serving.served
    yield _row("engine"), served.engine.id
    if serving.waiting:
        values = {"running": serving.running, "requests": serving.concurrent}
        yield _row("running"), Message.of("plan.serving.running-value", **values)
    if served.shape is not None:
        yield _row("layers"), ", ".join(f"{n} {kind}" for kind, n in served.shape.counted().items())
        yield _row("per-token"), _bytes_each(served.token_bytes, served.lasting_token_bytes)
    if serving.cache_bytes is not None:
        yield (
            _row("cache", requests=serving.running, tokens=serving.context),
            _gib(serving.cache_bytes),
        )
    others = {name: n for name, n in serving.views.items() if n != serving.cache_bytes}
    for name, nbytes in others.items():
        yield _row("cache-elsewhere", engine=name), _gib(nbytes)
    if served.weights is not None:
        value = {"bytes": served.weights.nbytes, "bits": served.weights.bits_each}
        yield _row("weights"), Message.of("plan.serving.weights-value", **value)
    yield _row("prefill"), _gib(serving.prefill_bytes)
    yield _row("decode"), _gib(serving.decode_bytes)
    if serving.limits is not None:
        yield _row("largest-context", requests=serving.concurrent), _tokens(serving)
        most = serving.limits.most_concurrent
        yield _row("most-concurrent", tokens=serving.context), _count(most)
    if serving.taken_bytes is not None:
        yield _row("taken"), _gib(serving.taken_bytes)
    if serving.tokens_left is not None:
        yield _row("tokens-left"), _count(serving.tokens_left)


def _row(name: str, **values: object) -> Message:
    return Message.of(f"plan.serving.{name}", **values)


def _gib(nbytes: int) -> Message:
    return Message.of("plan.serving.gib", value=nbytes)


def _count(number: int | None) -> Message:
    if number is None:
        return Message.of("plan.serving.none-fits")
    return Message.of("plan.serving.count", value=number)


def _tokens(serving: Serving) -> Message:
    limits = serving.limits
    assert limits is not None, "asked for by the caller"
    if limits.bounded_by_model and limits.largest_context is not None:
        return Message.of("plan.serving.all-positions", value=limits.largest_context)
    return _count(limits.largest_context)


def _bytes_each(within: float | None, lasting: float | None) -> Message:
    if within == lasting:
        return Message.of("plan.serving.bytes-each", value=within)
    return Message.of("plan.serving.bytes-each-window", value=within, lasting=lasting)
