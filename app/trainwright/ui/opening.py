"""From a file that a person named to the plan that is open."""

from pathlib import Path

from trainwright import reading, saving
from trainwright.messages import Message, UserError
from trainwright.plan import file
from trainwright.plan.model import model_config
from trainwright.plan.schema import Plan
from trainwright.ui import plans
from trainwright.ui.session import Session
from trainwright.ui.yourcode import Code, for_code


def open_file(session: Session, path: Path, *, example: bool = False) -> bool:
    """Open a plan file, or a model's ``config.json`` into the present plan; return whether it is.

    A file that cannot be read leaves the document as it is and says so in one line. An
    example's file is not the plan's.
    """
    try:
        if path.name.endswith((".json", ".safetensors")) or path.is_dir():
            return take_model(session, path)
        digest = saving.digest(path)
        plan = file.read(path)
    except UserError as error:
        session.noticed.emit(error.message)
        return False
    if example:
        return session.open_plan(plan, None)
    return session.open_plan(plan, path.absolute(), digest=digest)


def take_model(session: Session, path: Path) -> bool:
    """Plan for the model of a ``config.json``, in a plan of its own where none is open.

    Raises:
        UserError: the plan cannot take it.
    """
    config = path / "config.json" if path.is_dir() else path
    if config.suffix == ".json":
        model_config(config)  # refused here, before it is the plan's
    base = session.plan or plans.starting_plan()
    changed = base.model_copy(update={"model": plans.hf_model(config.absolute())})
    return _take(session, changed, config.parent.name)


def can_be_read(session: Session, path: Path) -> bool:
    """Return whether a path leads to a file; say so where it does not."""
    try:
        with reading.opened(path, str(path)):
            return True
    except UserError as error:
        session.noticed.emit(error.message)
        return False


def take_code(session: Session, code: Code) -> bool:
    """Plan for the model of a file that a person chose, and allowed to run."""
    session.allow(str(code.file))
    changed = for_code(session.plan or plans.starting_plan(), code)
    return _take(session, changed, code.file.name)


def _take(session: Session, changed: Plan, model: str) -> bool:
    if session.plan is None:
        return session.open_plan(changed, None, saved=False)
    session.put(changed, Message.of("ui.edit.model", value=model), key="model")
    return True
