"""A part of the catalog becomes a part of the plan's machine."""

from trainwright.machine.parts import with_part
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
    changed = plan.model_copy(update={"machine": with_part(plan.machine, kind, record.id)})
    label = Message.of("ui.edit.set", name=Message.of(f"pc.one.{kind}"), value=record.name)
    session.put(changed, label)
    session.noticed.emit(Message.of("pc.catalog.used", name=record.name))
