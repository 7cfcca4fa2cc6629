"""Whether wishes can come true together; what contradicts is told before anything is searched."""

from trainwright.build.request import QUIET_W, Request, Wishes
from trainwright.build.sites import SIZES
from trainwright.catalog import list_parts
from trainwright.machine.power import CIRCUITS
from trainwright.messages import UserError

LEAST_W = 50.0
"""That the smallest computer with a card draws; assumed."""


def agree(request: Request) -> None:
    """Refuse wishes that no computer can fulfil together.

    Raises:
        UserError: naming both.
    """
    wishes = request.wishes
    _quiet(wishes)
    _small(wishes)
    _power(wishes)
    _batch(request)


def _batch(request: Request) -> None:
    gpus = request.wishes.gpus or 1
    for work in (request.plan, *(one.plan for one in request.also)):
        batch = work.workload.effective_batch
        if work.workload.trains and batch is not None and batch % gpus:
            raise UserError.of("planner.batch-and-gpus", batch=batch, gpus=gpus)


def _quiet(wishes: Wishes) -> None:
    if wishes.quiet and wishes.power_w is not None and wishes.power_w > QUIET_W:
        raise UserError.of("planner.quiet-and-power", watts=wishes.power_w, most=QUIET_W)


def _small(wishes: Wishes) -> None:
    if wishes.form is None or not wishes.gpus:
        return
    limit = SIZES.index(wishes.form)
    seats = [
        sum(slot.length == "x16" for slot in board.slots)
        for board in list_parts("board")
        if SIZES.index(board.form_factor) <= limit
    ]
    most = max(seats, default=1)
    if wishes.gpus > max(most, 1):
        raise UserError.of("planner.small-and-many", form=wishes.form, gpus=wishes.gpus, most=most)


def _power(wishes: Wishes) -> None:
    if wishes.power_w is None:
        return
    if wishes.power_w < LEAST_W:
        raise UserError.of("planner.power-too-low", watts=wishes.power_w, least=LEAST_W)
    if wishes.circuit is not None and wishes.power_w > CIRCUITS[wishes.circuit].rated_w:
        rated = CIRCUITS[wishes.circuit].rated_w
        raise UserError.of(
            "planner.power-and-circuit", watts=wishes.power_w, circuit=wishes.circuit, most=rated
        )
