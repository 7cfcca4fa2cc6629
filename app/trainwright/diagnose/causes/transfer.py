"""Signs of batches that are copied to the device too slowly."""

from trainwright.diagnose.causes.rules import above, less_than, no, rules_of
from trainwright.diagnose.measures.cost import offloads
from trainwright.diagnose.measures.figures import given, number, on_gpu, reading, step_share
from trainwright.diagnose.measures.names import functions_of, kernels_of
from trainwright.diagnose.verdict import Cause

ASSUMED = "assumed"
_rule = rules_of(Cause.INPUT)

RULES = (
    _rule("steps.transfer", step_share("transfer"), "share", above(0.1, 2, ASSUMED),
          above(0.2, 3, ASSUMED), variant="transfer"),
    _rule("profile.copies", reading("profile.copies"), "share", above(0.1, 2, ASSUMED),
          above(0.3, 3, ASSUMED), variant="transfer"),
    _rule("setup.pin_memory", given(on_gpu, reading("setup.pin_memory")), "yes-no",
          no(1, "PyTorch performance tuning guide: pin memory for asynchronous copies"),
          variant="transfer"),
    _rule("gpus.received_bytes_s",
          given(less_than(0.3, number("gpus.sm_active")), reading("gpus.received_bytes_s")),
          "bytes", above(1e9, 2, "KempnerPulse: PCIe at 1 GB/s and SMs active below 30 %"),
          variant="transfer"),
    _rule("profile.copies", given(lambda evidence: not offloads(evidence), kernels_of("copy")),
          "share", above(0.15, 2, ASSUMED), above(0.3, 3, ASSUMED), variant="transfer"),
    _rule("profile.host_copy",
          given(lambda evidence: on_gpu(evidence) and not offloads(evidence), functions_of("copy")),
          "share", above(0.2, 2, ASSUMED), variant="transfer"),
)  # fmt: skip
