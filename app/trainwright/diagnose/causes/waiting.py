"""Waiting: for batches, for other devices or for launches. No sign of it stands alone.

Whether a device waits for batches, for other devices or for launches, what stands beside tells.
"""

from trainwright.diagnose.causes.avoidable import UPDATE
from trainwright.diagnose.causes.parallelism import cores_make_batches, device_idles, fed_alone
from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    keeps_all_alone,
    loader_alone,
    offloads,
    short_steps_alone,
)
from trainwright.diagnose.measures.figures import (
    at_least,
    cores_of_usable,
    data_wait,
    given,
    is_word,
    less_than,
    number,
    on_gpu,
    step_share,
    step_time,
    uneven,
    utilisation,
)
from trainwright.diagnose.measures.hardware import another_gpu, on_the_processor
from trainwright.diagnose.measures.names import odd_takes_most
from trainwright.diagnose.measures.scaling import kept_by_fewer_devices, one_computer
from trainwright.diagnose.measures.sharing import drives_are_shared, lacks_cores, share_cores
from trainwright.diagnose.measures.trials import doubled_model, saved_by
from trainwright.diagnose.measures.work import (
    cores_a_worker,
    device_of_step,
    passes_timed,
    wait_of_slow_steps,
)
from trainwright.diagnose.verdict import Cause

_communication = rules_of(Cause.COMMUNICATION)
_input = rules_of(Cause.INPUT)
_parallelism = rules_of(Cause.PARALLELISM)
PICTURES = "assumed: a core decodes some 100 pictures a second, a GPU trains on more"
APART = "assumed: GPUs of several computers that rest wait for their network"
WHOLE = "assumed: what gives as much to few devices as to many is one for all: loader, cores, drive"
SHARED = "assumed: devices share the batches that the cores of one computer make"
LONG_IDLE = "assumed: 20,000 launches at 10 µs, which few steps have: it waits for data"


def _pictures_untimed(evidence: Evidence) -> bool:
    """Whether a GPU on one computer learns from pictures, and is not known to have its own."""
    pictures = evidence.setup is not None and evidence.setup.model_kind == "convolution"
    busy = at_least(0.7, utilisation)(evidence)
    known = busy or data_wait(evidence) is not None or fed_alone(evidence) or offloads(evidence)
    return on_gpu(evidence) and pictures and one_computer(evidence) and not known


def _many_pictures(evidence: Evidence) -> bool:
    """Whether an epoch of pictures takes minutes, so that hardly all of them are in memory."""
    steps = evidence.steps
    long = steps is not None and steps.unit == "epoch" and steps.seconds >= 600
    return long and _pictures_untimed(evidence)


def _waits_for_pictures(evidence: Evidence) -> bool:
    """Whether that GPU idles, so that it may be its pictures that it waits for."""
    return device_idles(evidence) and _pictures_untimed(evidence)


def _workers_wait(evidence: Evidence) -> bool:
    """Whether a GPU is not known to be busy or fed, and its run not to lack cores."""
    busy = at_least(0.8, utilisation)(evidence) or less_than(0.15, data_wait)(evidence)
    return not busy and not lacks_cores(evidence) and not offloads(evidence)


def _as_much_by_fewer(evidence: Evidence) -> bool:
    """Whether fewer GPUs of one computer, each with all weights, give as much all together.

    Of pictures, whose making is much work, and which more workers are not known to make no sooner.
    """
    setup, kept = evidence.setup, kept_by_fewer_devices(evidence)
    if setup is None or setup.strategy not in (None, "ddp") or setup.model_kind != "convolution":
        return False
    alone = on_gpu(evidence) and one_computer(evidence)
    same = kept is not None and 0.9 <= kept <= 1.15
    return alone and same and not less_than(0.05, saved_by("more_workers"))(evidence)


def _few_workers(evidence: Evidence) -> bool:
    return _pictures_untimed(evidence) and less_than(3, number("setup.num_workers"))(evidence)


def _makes_them_itself(evidence: Evidence) -> bool:
    """Whether a GPU run has no workers or convolves, and takes as long without the GPU as with it.

    A processor that convolves is never as fast as a GPU.
    """
    convolves = evidence.setup is not None and evidence.setup.model_kind == "convolution"
    itself = convolves or less_than(1, number("setup.num_workers"))(evidence)
    return itself and data_wait(evidence) is None and at_least(0.9, on_the_processor)(evidence)


def _uneven_untimed(evidence: Evidence) -> bool:
    return data_wait(evidence) is None and at_least(2, uneven)(evidence)


def _drive_is_slow(evidence: Evidence) -> bool:
    """Whether the data's drive is full, or of a slow kind."""
    slow = is_word("loading.data_on", "hdd", "network", "object-store")(evidence) is not None
    return slow or at_least(0.7, number("host.drive_busy"))(evidence)


def _short_in_fp32(evidence: Evidence) -> bool:
    """Whether a processor's steps are short, and in no precision that makes them long."""
    odd = is_word("setup.precision", "fp64", "fp16", "bf16", "fp16-mixed", "bf16-mixed")(evidence)
    return short_steps_alone(evidence) and odd is None


def _from_afar(evidence: Evidence) -> bool:
    """Whether data lie on a slow drive, and the GPU is neither known to be fed nor to be busy."""
    busy = at_least(0.7, utilisation)(evidence)
    untimed = data_wait(evidence) is None and not fed_alone(evidence)
    return on_gpu(evidence) and _drive_is_slow(evidence) and untimed and not busy


def _cores_are_full(evidence: Evidence) -> bool:
    """Whether all cores of a GPU run's one computer are busy, and the GPUs are not known to be."""
    busy = at_least(0.6, utilisation)(evidence)
    used_up = at_least(0.95, cores_of_usable)(evidence) and on_gpu(evidence)
    full = cores_make_batches(evidence) or used_up
    return full and one_computer(evidence) and not busy


def _loader_is_full(evidence: Evidence) -> bool:
    """Whether the one loader gives no more than all devices take, or reads a slow drive."""
    full = less_than(1.3, loader_alone)(evidence) or _from_afar(evidence)
    return one_computer(evidence) and full


def _idle_seconds(evidence: Evidence) -> float | None:
    """Return the seconds of a step in which a GPU does nothing."""
    steps, busy = evidence.steps, device_of_step(evidence)
    idle = number("profile.idle")(evidence) if busy is None else 1 - busy
    if steps is None or steps.unit != "step" or idle is None or not on_gpu(evidence):
        return None
    return idle * steps.seconds


def _computers_apart(evidence: Evidence) -> bool:
    """Whether GPUs of several computers rest, and nobody timed or tried what for."""
    setup = evidence.setup
    several = setup is not None and (setup.nodes or 1) > 1
    timed = data_wait(evidence) is not None or number("profile.communication")(evidence) is not None
    known = timed or saved_by("single_device")(evidence) is not None
    return several and on_gpu(evidence) and not known and not offloads(evidence)


def _untimed_alone(evidence: Evidence) -> bool:
    """Whether one GPU keeps what it works on, and nobody timed or tried what it waits for."""
    steps = evidence.steps
    parts = steps is not None and steps.compute is not None
    timed = parts or data_wait(evidence) is not None or fed_alone(evidence)
    timed = timed or odd_takes_most(evidence)
    return _on_one_gpu(evidence) and not timed


def _on_one_gpu(evidence: Evidence) -> bool:
    """Whether one GPU has and keeps all that it works on."""
    return on_gpu(evidence) and keeps_all_alone(evidence)


def _short_without_pictures(evidence: Evidence) -> bool:
    """Whether one GPU's step may be launches, and no pictures: 2 s are 200,000 at 10 µs each."""
    short = not at_least(2, step_time)(evidence)
    return _on_one_gpu(evidence) and short and not _pictures_untimed(evidence)


def _passes_at_rest(evidence: Evidence) -> float | None:
    """Return the share of passes in what was timed where one GPU idles, or any would do.

    A loader is in none of them.
    """
    steps, unchanged = evidence.steps, less_than(0.1, another_gpu)(evidence)
    if steps is None or (steps.compute, steps.forward, steps.backward) == (None,) * 3:
        return None
    rests = less_than(0.3, utilisation)(evidence) or unchanged
    return passes_timed(evidence) if rests and _on_one_gpu(evidence) else None


RULES = {
    Cause.INPUT: (
        _input("steps.idle_seconds", given(_untimed_alone, _idle_seconds), "seconds",
              above(0.2, 2, LONG_IDLE)),
        _input("setup.num_workers", given(_waits_for_pictures, number("setup.num_workers")),
              "number", below(3, 2, PICTURES)),
        _input("setup.num_workers", given(_many_pictures, number("setup.num_workers")), "number",
              below(1, 4, PICTURES)),
        _input("experiments.another_gpu", given(_few_workers, another_gpu), "share",
              below(0.1, 3, PICTURES)),
        _input("experiments.larger_model", given(_pictures_untimed, doubled_model), "times",
              below(1.2, 3, "assumed: pictures take as long to make for a model of any size")),
        _input("experiments.other_precision", given(_few_workers, saved_by("other_precision")),
              "share", below(0.05, 1, PICTURES)),
        _input("experiments.single_device", given(_cores_are_full, saved_by("single_device")),
              "share", above(0.2, 3, SHARED), variant="preprocessing"),
        _input("experiments.single_device", given(_loader_is_full, saved_by("single_device")),
              "share", above(0.2, 3, "assumed: devices share what their one loader gives")),
        _input("host.cores_a_worker", given(_workers_wait, cores_a_worker), "share",
              below(0.3, 2, "assumed: workers that make batches work, and those that wait read"),
              variant="fetch"),
        _input("experiments.single_device", given(_as_much_by_fewer, saved_by("single_device")),
              "share", above(0.2, 2, WHOLE)),
        _input("experiments.processor", given(_makes_them_itself, on_the_processor), "times",
              below(1.2, 4, "assumed: what is as fast on a GPU and without waits for neither")),
        _input("steps.data_wait_p95", given(_uneven_untimed, wait_of_slow_steps), "share",
              above(0.7, 3, "assumed: the steps that are slow are slow for their batches")),
        _input("host.drive_busy", given(drives_are_shared, number("host.drive_busy")), "share",
              above(0.7, -3, "assumed: a drive that others read all the time has little left")),
    ),
    Cause.COMMUNICATION: (
        _communication("host.utilisation", given(_cores_are_full, number("host.utilisation")),
              "share", above(0.95, -2, SHARED), variant="exposed"),
        _communication("loading.alone", given(one_computer, loader_alone), "times",
              below(1.3, -3, "assumed: alone the loader is hardly faster than the run"),
              variant="exposed"),
        _communication("experiments.single_device",
              given(_as_much_by_fewer, saved_by("single_device")), "share", above(0.2, -2, WHOLE),
              variant="exposed"),
        _communication("profile.idle", given(_computers_apart, number("profile.idle")), "share",
              above(0.4, 2, APART), variant="exposed"),
        _communication("steps.device_seconds", given(_computers_apart, device_of_step), "share",
              below(0.5, 2, APART), variant="exposed"),
        _communication("experiments.single_device", given(share_cores, saved_by("single_device")),
              "share",
              above(0.1, -2, "assumed: processes of one computer share its cores and its memory"),
              variant="exposed"),
    ),
    Cause.PARALLELISM: (
        _parallelism("setup.num_workers", given(_waits_for_pictures, number("setup.num_workers")),
              "number", below(3, -2, PICTURES)),
        _parallelism("experiments.larger_model", given(_pictures_untimed, doubled_model), "times",
              below(1.2, -2, "assumed: pictures take as long to make for a model of any size")),
        _parallelism("steps.optimizer", given(_short_in_fp32, step_share("optimizer")), "share",
              above(0.13, 2, UPDATE), variant="small-batch"),
        _parallelism(
            "experiments.larger_model",
            given(_short_without_pictures, doubled_model),
            "times",
            below(
                1.2,
                3,
                "assumed: a device takes twice the time for twice the model, where it is filled",
            ),
        ),
        _parallelism("steps.compute", _passes_at_rest, "share",
            above(0.9, 2, "assumed: the passes are all of the step, and the device rests in them"),
            variant="host-bound"),
        _parallelism("steps.idle_seconds", _idle_seconds, "seconds",
              above(2, -2, "assumed: at 10 µs for a launch, 200,000 of them, which few steps have"),
              variant="host-bound"),
    ),
}  # fmt: skip
