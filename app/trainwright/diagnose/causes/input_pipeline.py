"""Signs of a step that waits for batches, and of what the making of batches waits for."""

from collections.abc import Callable

from trainwright.diagnose.causes.rules import above, any_of, below, no, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import copies_slowly, late_batch, loader_alone, offloads
from trainwright.diagnose.measures.figures import (
    at_least,
    data_wait,
    failed_for,
    given,
    input_keeps_up,
    is_word,
    least_busy,
    less_than,
    number,
    on_gpu,
    reading,
    swing,
    threads_of_cores,
    time_share,
    utilisation,
)
from trainwright.diagnose.measures.hardware import another_gpu
from trainwright.diagnose.measures.names import HostFamily, functions_of, reads_within
from trainwright.diagnose.measures.scaling import one_computer
from trainwright.diagnose.measures.trials import saved_by, waits_by_samples
from trainwright.diagnose.measures.work import (
    workers_starve_computing,
)
from trainwright.diagnose.verdict import Cause

TB = "torch-tb-profiler: DataLoader above 5 % of the step"
DS = "DS-Analyzer (arXiv 2007.06775): the step without loading, compared"
LIGHTNING = "Lightning: warns of 2 workers or fewer where there are more cores"
ASSUMED = "assumed"
FAR = f"{TB}; how far above, assumed"

_FED = below(0.05, -4, TB)
_WAITS = (
    above(0.05, 1, TB),
    above(0.15, 2, FAR),
    above(0.2, 3, FAR),
    above(0.5, 4, FAR),
)  # fmt: skip
_SAVED = (
    below(0.05, -4, DS),
    above(0.05, 1, DS),
    above(0.15, 2, DS),
    above(0.3, 3, DS),
    above(0.45, 4, DS),
)  # fmt: skip
_rule = rules_of(Cause.INPUT)


def _waits(evidence: Evidence) -> bool:
    """Whether something says that the step waits for batches."""
    return (
        not input_keeps_up(evidence)
        or (loader_alone(evidence) or 9) < 1.2
        or (number("loading.queue_empty")(evidence) or 0) >= 0.3
        or (_makes_batches(evidence) or 0) >= 0.2
        or (saved_by("synthetic_batch")(evidence) or 0) >= 0.15
        or late_batch(evidence) is not None
        or workers_starve_computing(evidence)
    )


def _named(*families: HostFamily) -> Callable[[Evidence], float | None]:
    """Return the share of functions that make batches; a wait that was timed says more."""

    def share(evidence: Evidence) -> float | None:
        wait = data_wait(evidence)
        waits = wait is None or wait >= 0.1 or reads_within(evidence)
        return functions_of(*families)(evidence) if waits else None

    return share


_makes_batches = _named("loader", "fetch", "preprocess")


def _collects_meanwhile(evidence: Evidence) -> float | None:
    """Return the collector's share of the time where it is most of the wait for batches."""
    collecting, wait = time_share("garbage_seconds")(evidence), data_wait(evidence)
    return collecting if collecting and wait and collecting >= 0.6 * wait else None


def _idle(evidence: Evidence) -> bool:
    idle = number("profile.idle")
    return less_than(0.7, utilisation)(evidence) or at_least(0.3, idle)(evidence)


def _may_wait(evidence: Evidence) -> bool:
    """Whether the step waits for batches, or a device idles and nobody timed for what."""
    return _waits(evidence) or (_idle(evidence) and data_wait(evidence) is None)


def _never_busy(evidence: Evidence) -> bool:
    """Whether a run on one computer, of which a step or a rate is known, waits for no other."""
    nodes = (evidence.setup.nodes if evidence.setup is not None else None) or 1
    timed = evidence.steps is not None or evidence.throughput is not None
    return timed and nodes == 1 and not offloads(evidence)


def _late(evidence: Evidence) -> bool:
    """Whether batches, drives or networks were looked at, and not the GPU's ups and downs alone."""
    parts = (evidence.steps, evidence.host, evidence.profile, evidence.throughput)
    waits = number("loading.drive_wait_share")(evidence) or 0
    rests = at_least(0.7, number("gpus.idle_share"))(evidence)
    seen = rests or any(part is not None for part in parts) or bool(evidence.trials)
    return seen or _waits(evidence) or waits >= 0.3


def _cores_are_its_own(evidence: Evidence) -> bool:
    """Whether a GPU run of untimed waits, as far as it is known, has the cores to itself."""
    host = evidence.host
    others = host is not None and (host.foreign_cores or host.other_programs or host.foreign_top)
    crowd = host is not None and (host.load_average or host.run_threads or host.starved_share)
    crowd = crowd or (threads_of_cores(evidence) or 0) >= 3
    alone = not others and not crowd and not offloads(evidence)
    return on_gpu(evidence) and alone and not _waits(evidence)


def _makes_them_itself(evidence: Evidence) -> bool:
    """Whether the training process of a GPU run has no workers to make its batches."""
    return on_gpu(evidence) and evidence.setup is not None and evidence.setup.num_workers == 0


def _slow_for_its_gpu(evidence: Evidence) -> bool:
    """Whether a GPU idles, or others reach more on the same, and batches were not timed."""
    slow = (number("throughput.expected_times")(evidence) or 1) >= 1.5
    idlest, rests = least_busy(evidence), at_least(0.4, number("gpus.idle_share"))(evidence)
    idles = (rests or (idlest is not None and idlest < 0.5)) and _late(evidence)
    return data_wait(evidence) is None and (slow or idles)


def _main_cores(evidence: Evidence) -> float | None:
    """Return the cores of a training process that has no workers."""
    return number("host.main_process_cores")(evidence) or number("host.run_cores")(evidence)


def _fed_by_itself(evidence: Evidence) -> bool:
    """Whether a short wait says that batches are in time: on all ranks, and whole, and copied."""
    late = (number("steps.slowest_rank")(evidence) or 0) >= 1.4
    elsewhere = late and (saved_by("synthetic_batch")(evidence) or 0) >= 0.3
    return not (elsewhere or copies_slowly(evidence) or reads_within(evidence))


RULES = (
    _rule("steps.data_wait", waits_by_samples, "share", *_WAITS),
    _rule("steps.data_wait", given(_fed_by_itself, data_wait), "share", _FED),
    _rule("profile.data_loader", reading("profile.data_loader"), "share", _FED, *_WAITS),
    _rule("experiments.synthetic_batch", saved_by("synthetic_batch"), "share", *_SAVED),
    _rule("gpus.utilisation", given(_waits, utilisation), "share",
          below(0.5, 1, "torch-tb-profiler: utilisation below 50 %"),
          above(0.9, -1, "MLPerf Storage: an accelerator that is busy 90 % is fed well enough")),
    _rule("gpus.utilisation", given(_never_busy, utilisation), "share",
          below(0.03, 2,
                "assumed: kernels that are launched late still run for a tenth of the time")),
    _rule("gpus.idle_share", given(on_gpu, reading("gpus.idle_share")), "share",
          above(0.15, 1, ASSUMED)),
    _rule("gpus.swing", given(less_than(0.6, utilisation), swing), "share",
        above(0.6, 2, "assumed: a GPU that is fully busy and fully idle by turns is fed by turns")),
    _rule("setup.non_blocking", given(on_gpu, reading("setup.non_blocking")), "yes-no",
          no(1, "PyTorch performance tuning guide: non_blocking copies overlap computing")),
    _rule(
        "setup.world_size",
        given(
            lambda evidence: (
                evidence.setup is not None
                and one_computer(evidence)
                and evidence.setup.strategy != "dp"
            ),
            reading("setup.world_size"),
        ),
        "number",
        above(4, 1, "assumed: one computer makes the batches of several devices"),
    ),
    _rule("loading.batch_seconds", late_batch, "seconds",
          above(0.2, 3, "assumed: a GPU that rests would be done with most batches in that time")),
    _rule("setup.num_workers", reading("setup.num_workers"), "number", below(3, 1, LIGHTNING)),
    _rule("loading.cpu_share", given(_may_wait, reading("loading.cpu_share")), "share",
          above(0.6, 2, ASSUMED), variant="preprocessing"),
    _rule("loading.cpu_share", given(_may_wait, reading("loading.cpu_share")), "share",
          below(0.4, 2, ASSUMED), variant="fetch"),
    _rule("host.utilisation", given(_cores_are_its_own, number("host.utilisation")), "share",
          above(0.95, 2, "assumed: all that a run on GPUs needs all cores for is its batches"),
          variant="preprocessing"),
    _rule("loading.drive_wait_share", reading("loading.drive_wait_share"), "share",
          above(0.3, 2, ASSUMED), variant="fetch"),
    _rule("host.pressure_io", reading("host.pressure_io"), "share", above(0.1, 2, ASSUMED),
          variant="fetch"),
    _rule("host.io_wait", reading("host.io_wait"), "share", above(0.1, 2, ASSUMED),
          variant="fetch"),
    _rule("host.drive_busy", reading("host.drive_busy"), "share", above(0.7, 2, ASSUMED),
          variant="fetch"),
    _rule("experiments.more_workers", saved_by("more_workers"), "share", above(0.05, 2, ASSUMED),
          above(0.2, 3, ASSUMED)),
    _rule("host.throttled_periods", reading("host.throttled_periods"), "share",
          above(0.25, -2, "assumed: the quota makes loading slow, not loading itself")),
    _rule("loading.alone", loader_alone, "times",
          below(1.2, 3, "assumed: alone the loader is hardly faster than the run"),
          above(2, -3, "assumed: alone the loader is twice as fast as the run")),
    _rule("loading.queue_empty",
          given(lambda evidence: not copies_slowly(evidence), reading("loading.queue_empty")),
          "share", above(0.3, 2, ASSUMED), above(0.5, 3, ASSUMED), below(0.05, -3, ASSUMED)),
    _rule("loading.data_on",
          given(_slow_for_its_gpu, is_word("loading.data_on", "hdd", "network", "object-store")),
          "word", any_of(2, "assumed: slower than what GPUs read, and this one is not kept busy"),
          variant="fetch"),
    _rule("profile.host_loader", _makes_batches, "share", above(0.2, 2, ASSUMED),
          above(0.3, 3, ASSUMED)),
    _rule("profile.host_loader", _named("preprocess"), "share", above(0.2, 2, ASSUMED),
          above(0.4, 3, ASSUMED), variant="preprocessing"),
    _rule("host.main_process", given(_makes_them_itself, _main_cores), "number",
          above(0.9, 2, "assumed: the thread that launches makes the batches too")),
    _rule("failure.loader", failed_for("dataloader timed out"), "yes-no",
          yes(3, "the run's own error")),
    _rule("experiments.another_gpu", another_gpu, "share",
          below(0.1, 1, "assumed: what another GPU does not change is no GPU's")),
    _rule("experiments.faster_cpu", saved_by("faster_cpu"), "share",
          above(0.15, 1, "assumed: the processor holds the run back"), below(0.03, -1, ASSUMED)),
    _rule("counters.garbage_seconds", _collects_meanwhile, "share",
        above(0.1, -9, "assumed: batches that wait for Python's collector are made in time else")),
)  # fmt: skip
