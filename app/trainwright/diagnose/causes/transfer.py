"""Signs of batches that are copied to the device too slowly."""

from trainwright.diagnose.causes.rules import above, no, rules_of
from trainwright.diagnose.measures.figures import given, on_gpu, reading, step_share
from trainwright.diagnose.verdict import Cause

ASSUMED = "assumed"
_rule = rules_of(Cause.INPUT)

RULES = (
    _rule("steps.transfer", step_share("transfer"), "share", above(0.1, 2, ASSUMED),
          above(0.2, 3, ASSUMED), variant="transfer"),
    _rule("setup.pin_memory", given(on_gpu, reading("setup.pin_memory")), "yes-no",
          no(1, "PyTorch performance tuning guide: pin memory for asynchronous copies"),
          variant="transfer"),
)  # fmt: skip
