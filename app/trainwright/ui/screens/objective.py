"""Rows of the plan form: what a language model is trained for, and what it is compared with."""

from trainwright.messages import Message
from trainwright.ui.screens import applies, choices, values
from trainwright.ui.screens.choices import named
from trainwright.ui.screens.form import Group, Row, row_label
from trainwright.ui.session import Session
from trainwright.ui.widgets.controls import Combo


def add(group: Group, session: Session) -> None:
    """Add the objective, and whether a model of its own answers is compared with what it was."""
    own, *_ = choices.OBJECTIVES
    label = Message.of("ui.key.objective")
    objective = Combo(named("objective", choices.OBJECTIVES), own, name=label)
    objective.chosen.connect(
        lambda v: session.set_key("workload.objective", None if v == own else v)
    )
    group.add(Row("objective", row_label(label), objective,
                  value=lambda p, _: p.workload.objective or own,
                  applies=applies.has_objective))  # fmt: skip
    none, kept = choices.KEPT
    label = Message.of("ui.key.reference")
    compared = Combo(named("reference", choices.KEPT), none, name=label)

    def compare(chosen: str) -> None:
        if (plan := session.plan) is not None:
            session.set_key("workload.reference", values.reference(plan, chosen))

    compared.chosen.connect(compare)
    group.add(Row("kept", row_label(label), compared,
                  value=lambda p, _: none if p.workload.compared is None else kept,
                  applies=applies.writes))  # fmt: skip
