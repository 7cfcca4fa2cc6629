"""The report of Lightning's ``Trainer(profiler="simple")``: mean times and calls of its actions.

Actions by the names of lightning.pytorch from 1.6 to 2.6, where the report is a table with one
row an action; those of optimizer_step hold the forward and backward passes of its closure.
"""

import re

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import Found, step_budget
from trainwright.messages import Message, UserError

_HEADING = re.compile(r"\|[ \t]{0,80}Action[ \t]{1,500}\|[ \t]{0,80}Mean duration \(s\)")
_ACTIONS = {
    "batches": re.compile(r"run_training_batch$"),
    "data_wait": re.compile(r"train_dataloader_next$"),
    "transfer": re.compile(r"\[Strategy\]\w{1,99}\.batch_to_device$"),
    "forward": re.compile(r"\[Strategy\]\w{1,99}\.training_step$"),
    "backward": re.compile(r"\[Strategy\]\w{1,99}\.backward$"),
    "optimizer": re.compile(r"\[LightningModule\]\w{1,99}\.optimizer_step$"),
}


def read(text: str) -> Found | None:
    """Return the parts of a step."""
    if _HEADING.search(text) is None:
        return None
    rows: dict[str, tuple[float, float]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        action = next((a for a, name in _ACTIONS.items() if cells and name.search(cells[0])), None)
        if action is None or len(cells) < 4:
            continue
        number, total = texts.number(cells[2]), texts.number(cells[3])
        if number and total is not None and min(number, total) >= 0:
            rows[action] = number, total
    calls, inside = rows.pop("batches", (0.0, 0.0))
    if not calls or not inside:
        raise UserError.of("diagnose.file.no-rows")
    # Validation copies batches too, and an optimizer may step once in several batches.
    parts = {action: total / max(number, calls) for action, (number, total) in rows.items()}
    step = inside / calls + parts.get("data_wait", 0.0) + parts.get("transfer", 0.0)
    if "optimizer" in parts:
        passes = parts.get("forward", 0.0) + parts.get("backward", 0.0)
        parts["optimizer"] = max(0.0, parts["optimizer"] - passes)
    took = Message.of("diagnose.file.lightning-steps", count=int(calls))
    steps = {"steps": int(calls), "seconds": step} | parts
    return Found((took,), facts={"steps": steps}, budget=step_budget(step, parts))
