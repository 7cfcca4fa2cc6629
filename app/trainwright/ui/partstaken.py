"""A part of the catalog becomes a part of the plan's machine."""

from trainwright.catalog.part_kinds import PartKind
from trainwright.machine.parts import left_out, with_part
from trainwright.messages import Message
from trainwright.ui.columns import Record, kind_of
from trainwright.ui.plans import starting_plan
from trainwright.ui.session import Session


def take_part(session: Session, record: Record) -> None:
    """Put the part into the plan's machine, or into a new plan's; undoable."""
    if session.plan is None:
        session.open_plan(starting_plan(), None)
    plan = session.plan
    assert plan is not None
    kind = kind_of(record)
    if plan.machine.local and kind != "gpu":
        session.noticed.emit(Message.of("pc.machine.local-first"))
        return
    label = Message.of("ui.edit.set", name=Message.of(f"pc.one.{kind}"), value=record.name)
    if not put_part(session, kind, record.id, label):
        session.noticed.emit(Message.of("pc.catalog.used", name=record.name))


def put_part(
    session: Session, kind: PartKind, id: str, label: Message, *, instead: str = ""
) -> tuple[str, ...]:
    """Put a part into the open plan's machine; say and return which others do not go with it."""
    plan = session.plan
    if plan is None:
        return ()
    machine = with_part(plan.machine, kind, id, instead=instead)
    session.put(plan.model_copy(update={"machine": machine}), label)
    gone = left_out(plan.machine, machine) if kind == "gpu" else ()
    if gone:
        session.noticed.emit(Message.of("pc.machine.left-out", gpu=id, parts=list(gone)))
    return gone
