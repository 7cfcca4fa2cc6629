"""Signs of devices that wait for each other."""

from trainwright.diagnose.causes.rules import above, any_of, below, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    bubble,
    gradients_on_link,
    in_stages,
    offloads,
    power_share,
)
from trainwright.diagnose.measures.figures import (
    data_wait,
    exposed_communication,
    failed_for,
    given,
    is_word,
    less_than,
    number,
    on_gpu,
    ranks,
    step_share,
)
from trainwright.diagnose.measures.names import functions_of, kernels_of
from trainwright.diagnose.measures.scaling import (
    lost_by_doubling,
    normal_with_fewer,
)
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.verdict import Cause

TB = "torch-tb-profiler: communication above 10 % of the step"
DDP = "PyTorch: DistributedDataParallel in place of DataParallel; so torch-tb-profiler"
BACKEND = "torch-tb-profiler: NCCL for GPUs, not another backend"
ASSUMED = "assumed"
SCALES = "assumed: a twentieth for each doubling of the devices is what good runs lose"


_rule = rules_of(Cause.COMMUNICATION)


def _waits_for_stages(evidence: Evidence) -> bool:
    """Whether parts of a batch leave stages of a pipeline idle, as one device alone never is."""
    return in_stages(evidence) and (bubble(evidence) or 0) >= 0.15


def _exchanges_gradients(evidence: Evidence) -> bool:
    """Whether several devices add up gradients; of a pipeline more parts of a batch fill stages."""
    return _several(evidence) and not in_stages(evidence)


def _several(evidence: Evidence) -> bool:
    setup = evidence.setup
    known = setup.world_size if setup is not None else None
    nodes = setup.nodes if setup is not None else None
    named = setup is not None and setup.strategy not in (None, "single")
    return named or (nodes or 1) > 1 or (known or len(evidence.gpus or ())) > 1


def _alone(evidence: Evidence) -> float | None:
    setup = evidence.setup
    if setup is None or setup.strategy == "dp":
        return None
    if setup.strategy == "single":
        return 1.0
    return float(setup.world_size) if setup.world_size is not None else None


def _nodes(evidence: Evidence) -> int:
    return (evidence.setup.nodes if evidence.setup is not None else None) or 1


def _networked(evidence: Evidence) -> bool:
    setup = evidence.setup
    return _nodes(evidence) > 1 or (setup is not None and setup.link == "network")


def _idles_otherwise(evidence: Evidence) -> bool:
    """Whether devices wait for a pipeline's stages, or are timed to exchange next to nothing."""
    return _waits_for_stages(evidence) or less_than(0.02, step_share("communication"))(evidence)


def _in_shards(evidence: Evidence) -> bool:
    """Whether several devices hold a part of the weights each, and none offloads its own."""
    setup = evidence.setup
    sharded = setup is not None and setup.strategy in ("zero", "fsdp")
    return sharded and ranks(evidence) > 1 and not offloads(evidence)


def _spins(evidence: Evidence) -> bool:
    return _several(evidence) and (number("gpus.utilisation")(evidence) or 0) >= 0.8


def _unmeasured(evidence: Evidence) -> bool:
    """Whether a table of kernels is all that tells of collectives."""
    timed = evidence.steps is not None and evidence.steps.communication is not None
    traced = evidence.profile is not None and evidence.profile.communication is not None
    return not timed and not traced


def _beyond_the_bubble(evidence: Evidence) -> float | None:
    """Return the share of collectives in a table of kernels, less what stages wait for others.

    A stage of a pipeline that has nothing to compute waits in the kernel that receives.
    """
    share = kernels_of("communication")(evidence) if _unmeasured(evidence) else None
    waits = (bubble(evidence) or 0) if in_stages(evidence) else 0
    return None if share is None else max(0.0, share - waits)


RULES = (
    _rule("setup.world_size", _alone, "number", below(2, -9, "one device talks to nobody"),
          above(2, 1, "assumed: several devices exchange something every step")),
    _rule("steps.communication", step_share("communication"), "share", below(0.05, -3, TB),
          above(0.1, 2, TB), above(0.2, 3, ASSUMED), above(0.4, 4, ASSUMED), variant="exposed"),
    _rule("profile.communication", exposed_communication, "share", below(0.05, -3, TB),
          above(0.1, 2, TB), above(0.2, 3, ASSUMED), above(0.4, 4, ASSUMED), variant="exposed"),
    _rule("setup.strategy", is_word("setup.strategy", "dp"), "word", any_of(3, DDP),
          variant="data-parallel"),
    _rule("setup.backend", given(on_gpu, is_word("setup.backend", "gloo", "mpi")), "word",
          any_of(3, BACKEND), variant="backend"),
    _rule("steps.slowest_rank",
          given(lambda evidence: (data_wait(evidence) or 0) < 0.15, number("steps.slowest_rank")),
          "times", above(1.15, 2, ASSUMED), above(1.4, 3, ASSUMED), variant="straggler"),
    _rule("experiments.single_device",
          given(lambda evidence: not _idles_otherwise(evidence), saved_by("single_device")),
          "share", below(0.05, -3, ASSUMED), above(0.1, 2, ASSUMED), above(0.25, 3, ASSUMED),
          variant="exposed"),
    _rule("experiments.each_doubling", given(_several, lost_by_doubling), "share",
          below(0.055, -2, SCALES), variant="exposed"),
    _rule("experiments.fewer_devices", given(_several, normal_with_fewer), "word",
          any_of(3, "assumed: several devices exchange something every step"), variant="exposed"),
    _rule("setup.link", given(_several, is_word("setup.link", "pcie", "network")), "word",
          any_of(1, "assumed: links slower than NVLink"), variant="exposed"),
    _rule("gpus.utilisation", given(_several, number("gpus.utilisation")), "share",
          below(0.5, 1, "torch-tb-profiler: utilisation below 50 %")),
    _rule("profile.communication", _beyond_the_bubble, "share", above(0.15, 2, TB),
          above(0.3, 3, ASSUMED), variant="exposed"),
    _rule("profile.host_communication", functions_of("communication"), "share",
          above(0.15, 2, ASSUMED), above(0.4, 3, ASSUMED), variant="exposed"),
    _rule("setup.gradients_on_link", gradients_on_link, "share",
          below(0.03, -2, "NCCL: a ring all-reduce sends 2 (n - 1) / n of the gradients"),
          above(0.2, 2, "NCCL: a ring all-reduce sends 2 (n - 1) / n of the gradients"),
          above(0.5, 3, "NCCL: a ring all-reduce sends 2 (n - 1) / n of the gradients"),
          variant="exposed"),
    _rule("steps.blocked", given(_several, step_share("blocked")), "share",
          above(0.15, 2, "assumed: within the step a rank waits for other ranks only"),
          above(0.3, 3, "assumed: within the step a rank waits for other ranks only"),
          variant="exposed"),
    _rule("experiments.accumulation", given(_exchanges_gradients, saved_by("accumulation")),
          "share", above(0.1, 2, "assumed: fewer exchanges a sample, and little else, save time"),
          above(0.3, 3, "assumed: fewer exchanges a sample, and little else, save time"),
          variant="exposed"),
    _rule("gpus.power", given(_spins, power_share), "share",
          below(0.5, 2,
                "assumed: NCCL's kernels wait on the device, which looks busy and draws little"),
          variant="exposed"),
    _rule("steps.optimizer", given(_in_shards, step_share("optimizer")), "share",
          above(0.25, 2, "ZeRO: after the update every device is sent the weights of the others"),
          above(0.5, 3, "ZeRO: after the update every device is sent the weights of the others"),
          variant="exposed"),
    _rule("setup.link_bytes_s", given(_networked, number("setup.link_bytes_s")), "bytes",
          below(1.3e9, 2, "assumed: 10 Gb/s carry the gradients of 100 million weights in 0.3 s"),
          below(1.3e8, 3, "assumed: 1 Gb/s carries the gradients of 100 million weights in 3 s"),
          variant="exposed"),
    _rule("failure.communication",
          failed_for("watchdog caught collective", "nccl error", "nccl timeout", "ncclsystemerror"),
          "yes-no", yes(3, "the run's own error"), variant="exposed"),
    _rule("setup.nodes", given(lambda evidence: _nodes(evidence) > 1, number("setup.nodes")),
          "number", above(2, 1, "assumed: networks are slower than links within a computer"),
          variant="exposed"),
    _rule("throughput.expected", given(_in_shards, number("throughput.expected_times")), "times",
          above(3, 2, "assumed: weights in shards are sent in every layer, and all wait for each"),
          variant="exposed"),
)  # fmt: skip
