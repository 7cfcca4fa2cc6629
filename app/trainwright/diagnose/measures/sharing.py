"""Figures of what a run shares a computer with: cores, drives, and processes of its own."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import decompositions
from trainwright.diagnose.measures.calls import operator_calls
from trainwright.diagnose.measures.figures import (
    at_least,
    cores_of_usable,
    data_wait,
    gpu_ratio,
    less_than,
    number,
    on_cpu,
    processes,
    ranks_here,
)
from trainwright.diagnose.measures.names import functions_of
from trainwright.diagnose.measures.work import achieved_of_matrix_rate, cores_a_worker

DIVIDED = 20
"""Operators shorter than so many calls, Python included, are too small for two threads; assumed, as
PyTorch gives each 32,768 numbers and more (GRAIN_SIZE), which it adds in 10 µs, or ten calls."""
DECOMPOSES = 0.2
"""Of a step in decompositions of matrices, of which LAPACK makes small ones in one thread;
assumed."""
WELL = 0.3
"""Of a plain product's rate, from which operators are well enough for a second thread to be worth
most; assumed, of nine runs with half of the threads, which reach 0.32 to 0.8."""
OF_THE_SYSTEM = 0.4
"""Share of the time on cores that the system works for one thread, which none other takes over;
assumed."""


def others_read(evidence: Evidence) -> float | None:
    """Return what other programs read a second."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    known = [each.read_bytes_s for each in others if each.read_bytes_s is not None]
    return sum(known) if known else None


def drives_are_shared(evidence: Evidence) -> bool:
    """Return whether other programs read all the time: 50 MB/s and more, assumed."""
    return (others_read(evidence) or 0) >= 50e6


def foreign_memory(evidence: Evidence) -> float | None:
    """Return the share of the GPUs' memory that other programs hold.

    Where nobody looked at whose it is: what one process did not reserve, and that is more than a
    context, libraries and a desktop take.
    """
    told = gpu_ratio("foreign_memory_bytes", "memory_total_bytes")(evidence)
    used, total = (number(f"gpus.memory_{each}_bytes")(evidence) for each in ("used", "total"))
    own = evidence.counters.reserved_bytes if evidence.counters is not None else None
    if told is not None or not own or not used or not total or processes(evidence) > 1:
        return told
    others = (used - own) / total
    return others if others >= MORE_THAN_CONTEXTS else None


MORE_THAN_CONTEXTS = 0.3
"""Share of a GPU's memory that no context, library and desktop take; assumed."""


def share_cores(evidence: Evidence) -> bool:
    """Return whether several processes of a run on processors are on one computer."""
    return on_cpu(evidence) and ranks_here(evidence) > 1


def cores_a_bound_worker(evidence: Evidence) -> float | None:
    """Return ``cores_a_worker`` where all workers together keep one core or two busy.

    Of data that lie on no slow drive, for which workers would wait on any cores.
    """
    host, loading = evidence.host, evidence.loading
    slow = loading is not None and loading.data_on in ("hdd", "network", "object-store")
    few = host is not None and host.run_cores is not None and host.run_cores < 2.2
    return cores_a_worker(evidence) if few and not slow else None


stopped = at_least(0.05, number("host.throttled_periods"))
"""Whether a quota stops a run in one period of twenty and more; assumed."""


def lacks_cores(evidence: Evidence) -> bool:
    """Whether a run is known to have fewer cores than it would keep busy."""
    used_up = at_least(0.9, cores_of_usable)(evidence)
    return stopped(evidence) or used_up or cores_a_bound_worker(evidence) is not None


def computes(evidence: Evidence) -> bool:
    """Whether a run on the processor spends its steps computing."""
    return on_cpu(evidence) and (data_wait(evidence) or 0) < 0.3


def computes_in_long_operators(evidence: Evidence) -> bool:
    """Whether a run on the processor spends its steps in what several threads could share.

    A step far below the rate of a plain product by as many threads loses more by its operators.
    """
    return (
        computes(evidence)
        and not _works_in_one_thread(evidence)
        and (operator_calls(evidence) or DIVIDED) >= DIVIDED
        and not less_than(WELL, achieved_of_matrix_rate)(evidence)
    )


def _works_in_one_thread(evidence: Evidence) -> bool:
    """Whether Python, the system or a decomposition takes much of a step, which threads leave."""
    return (
        at_least(0.2, functions_of("profiler", "anomaly"))(evidence)
        or at_least(DECOMPOSES, decompositions)(evidence)
        or at_least(OF_THE_SYSTEM, number("host.main_system_share"))(evidence)
    )
