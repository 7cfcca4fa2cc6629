"""What is to be known beside a time: its interval, its power, what was measured and what is not."""

from collections.abc import Iterator

from trainwright.estimate.power import board_share, limit_share
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.compiling import Compiling, verdict
from trainwright.estimate.time.measured import usable
from trainwright.estimate.time.spread import Factor
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import Dataset, FullSettings, Workload


def _length_notes(workload: Workload) -> Iterator[Message]:
    """Yield what samples shorter than the longest, or of two answers, mean for the figures."""
    inputs = workload.inputs
    if workload.paired:
        yield Message.of("time.note.pairs")
    if workload.writes is not None:
        yield Message.of("time.note.answers", tokens=inputs.new_tokens)
    if workload.compared == "precomputed":
        yield Message.of("time.note.precomputed")
    if inputs.padding:
        yield Message.of("time.note.padding", share=inputs.padding, length=inputs.sequence_length)
    if inputs.batching == "packed":
        rows = workload.effective_batch or 1
        yield Message.of(
            "time.note.packed",
            length=inputs.sequence_length,
            rows=rows,
            samples=rows * inputs.samples_a_row,
        )


def measured(clock: Clock, settings: FullSettings) -> Iterator[Message]:
    """Yield which figures were measured on this computer."""
    gpu = usable(clock.situation.gpu.measured, settings.precision)
    host = clock.situation.around.measured
    parts = []
    if gpu is not None:
        parts += [each.rate for each in gpu.products]
        parts += [each for each in (gpu.copy, gpu.pinned, gpu.pageable) if each is not None]
    if host is not None:
        parts += [host.core] if host.core is not None else []
        parts += [host.drive.sequential] if host.drive is not None else []
    if parts:
        dates = sorted({part.source.partition(",")[0] for part in parts})
        yield Message.of("time.note.measured", parts=[part.name for part in parts], dates=dates)


def split(clock: Clock, profile: Profile, settings: FullSettings) -> Iterator[Message]:
    """Yield what the GPUs of a split layer wait for each other."""
    if (degree := settings.tensor_degree) is None or not clock.situation.workload.trains:
        return
    nbytes, seconds = clock.joined(profile, settings)
    link = clock.inside
    slow = "" if link.of_gpus else "-slow"
    values = {"degree": degree, "bytes": nbytes, "seconds": seconds}
    yield Message.of(f"time.note.split{slow}", link=Message.of(f"time.path.{link.path}"), **values)


def piped(clock: Clock, profile: Profile, settings: FullSettings, batch: int) -> Iterator[Message]:
    """Yield how much of a step pipeline stages have nothing to do, and what they hand on."""
    if (stages := settings.pipeline_stages) is None:
        return
    terms = clock.terms(profile, settings, batch)
    cost, where = clock.exchange_of(profile, settings, terms), clock.chain(settings)
    yield Message.of(
        "time.note.bubble",
        stages=stages,
        copies=where.copies,
        micro_batches=settings.accumulation,
        share=cost.bubble / terms.step,
        link=Message.of(f"time.path.{where.link.path}"),
        seconds=cost.wire - cost.between,
    )


def notes(
    clock: Clock,
    compiled: Compiling | None,
    workload: Workload,
    reason: Message | None,
    around: Factor,
) -> Iterator[Message]:
    """Yield what the figures rest on, for people."""
    record = clock.situation.gpu.record
    if reason is not None:
        yield reason
    else:
        yield Message.of(f"time.note.interval-{around.evidence}", factor=around.value)
    if workload.trains and not isinstance(workload.dataset, Dataset):
        yield Message.of("time.note.input-never-limits")
    if workload.trains:
        yield from _length_notes(workload)
    if compiled is not None:
        yield Message.of("time.note.compile")
        ending, values = verdict(compiled, workload)
        yield Message.of(f"time.note.compile-{ending}", **values)
    limit, tdp = clock.situation.gpu.power_limit_w, record.tdp_w
    if limit and tdp and limit < tdp.value:
        share = limit_share(record, limit)
        yield Message.of("time.note.power", limit=limit, tdp=tdp.value, share=share)
    if (board := board_share(record)) < 1:
        yield Message.of("time.note.board-power", gpu=record.name, share=board)
