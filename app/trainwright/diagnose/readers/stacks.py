"""py-spy: ``dump`` (what each thread does now) and ``record --format speedscope`` or ``raw``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.measures.names import host_family
from trainwright.diagnose.readers.found import MOST_ROWS, Found, share
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line

_PROCESS = re.compile(r"^Process (\d+): ", re.MULTILINE)
_THREADS = re.compile(r"^Thread ", re.MULTILINE)
_THREAD = re.compile(
    r"^Thread (?P<id>\S+)(?: \((?P<state>[\w+ ]+)\))?(?:: \"(?P<name>[^\"\n]*)\")?\s*$"
)
_FRAME = re.compile(
    r"^ {2,}(?P<function>\S.{0,500}?) \((?P<file>[^()\n]{1,1000}?)(?::(?P<line>\d+))?\) {0,80}$"
)
_CALL = re.compile(r" \([^()]{1,500}\.py(?::\d{1,7})?\)$")
_LINE = re.compile(r"\.py:\d{1,7}\)$")
_SCHEMA = "speedscope.app/file-format-schema"
_WORKER = re.compile(r"_worker_loop \(")
FEW_STACKS = 10
"""Fewer are glances, which say only how large a share is at least; assumed."""
SURELY = 1.645
"""Standard deviations below which one value in twenty lies."""
MOST_NAME = 500

Stack = tuple[Sequence[str], float]
"""Calls, and how long or how often they were seen."""


def dump(text: str) -> Found | None:
    """Return what the main thread did: its shares of the time, and of few dumps the last in words.

    Of what ``py-spy dump`` prints.
    """
    if _PROCESS.search(text) is None or _THREADS.search(text) is None:
        return None
    every = [stack for stack in _main_stacks(text) if stack]
    # Workers of a loader, which --subprocesses shows, wait for orders most of the time.
    stacks = [stack for stack in every if not any(map(_WORKER.match, stack))] or every
    if not stacks:
        raise UserError.of("diagnose.file.no-stack")
    took = Message.of("diagnose.file.dumps", count=len(stacks))
    found = _shares(((stack, 1.0) for stack in stacks), len(stacks), took)
    return found if len(stacks) >= FEW_STACKS else replace(found, took=(took, _now(stacks[-1])))


def _main_stacks(text: str) -> Iterator[list[str]]:
    """Yield the stack of each dump's main thread, the innermost call first.

    The main thread is named so; without names it is the first, as py-spy lists it.
    """
    starts = [each.start() for each in _PROCESS.finditer(text)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        threads: list[tuple[str, list[str]]] = []
        for line in text[begin:end].splitlines():
            if (thread := _THREAD.match(line)) is not None:
                threads.append((thread["name"] or "", []))
            elif threads and (frame := _FRAME.match(line)) is not None:
                threads[-1][1].append(f"{frame['function']} ({frame['file']})"[:MOST_NAME])
        stacks = [stack for _, stack in sorted(threads, key=lambda each: each[0] != "MainThread")]
        yield from stacks[:1]


def _now(stack: Sequence[str]) -> Message:
    """Return a sentence on what the main thread was doing at that moment."""
    families = [family for name in stack if (family := host_family(name)) is not None]
    if "loader" in families:
        return Message.of("diagnose.file.now-loader")
    if families and families[0] == "waiting":
        return Message.of("diagnose.file.now-waiting")
    return Message.of("diagnose.file.now", function=one_line(stack[0], 80))


def _shares(stacks: Iterable[Stack], count: int, took: Message) -> Found:
    """Return each function's share of the time, what it calls included.

    Of few samples it is the share that is at least so, of functions whose purpose is known. Waits
    for a device are left out: loops that have no fault are seen in them most often.

    Raises:
        UserError: no time was spent.
    """
    total, inside = 0.0, dict[str, float]()
    for stack, weight in stacks:
        total += weight
        for name in dict.fromkeys(stack):
            inside[name] = inside.get(name, 0.0) + weight
    if total <= 0:
        raise UserError.of("diagnose.file.no-stack")
    few = count < FEW_STACKS
    if few:
        inside = {name: total * _at_least(weight / total, count) for name, weight in inside.items()
                  if host_family(name) not in (None, "waiting")}  # fmt: skip
    largest = sorted(inside, key=lambda name: -inside[name])
    known = [name for name in largest if host_family(name) is not None]
    kept = dict.fromkeys((*known[: MOST_ROWS // 2], *largest))
    rows = [{"name": name, "share": share(inside[name] / total)}
            for name in sorted([*kept][:MOST_ROWS], key=lambda name: -inside[name])]  # fmt: skip
    missed = [Message.of("diagnose.file.no-step-times")]
    missed += [Message.of("diagnose.file.few-dumps", count=FEW_STACKS)] if few else []
    return Found((took,), tuple(missed), {"profile": {"host_top": rows}} if rows else {})


def _at_least(part: float, count: int) -> float:
    """Return the share of the time that is at least so, where samples show this part of them.

    The lower end of Wilson's interval: one sample of one says 0.27, nine of nine 0.77.
    """
    doubt = SURELY**2 / count
    middle = part + doubt / 2
    return (middle - sqrt(doubt * (part * (1 - part) + doubt / 4))) / (1 + doubt)


def raw(text: str) -> Found | None:
    """Return the shares of the time in what ``py-spy record --format raw`` writes.

    A line holds calls from the outside in, and how often they were seen.
    """
    calls, _, count = text[:100_000].lstrip().partition("\n")[0].rpartition(" ")
    if not (count.isdigit() and ";" in calls and any(map(_CALL.search, calls.split(";")))):
        return None
    stacks: list[Stack] = []
    for line in text.splitlines():
        calls, _, count = line.rpartition(" ")
        if calls and count.isdigit() and len(count) < 10:
            names = [_LINE.sub(".py)", each)[:MOST_NAME] for each in calls.split(";")]
            stacks.append((names, float(count)))
    return _of_samples(stacks, int(sum(weight for _, weight in stacks)))


def _of_samples(stacks: Iterable[Stack], count: int) -> Found:
    return _shares(stacks, count, Message.of("diagnose.file.samples", count=count))


def speedscope(text: str) -> Found | None:
    """Return the shares of the main thread's time."""
    if not text.lstrip().startswith("{") or _SCHEMA not in text[:4096] + text[-4096:]:
        return None
    return texts.from_json(text, "speedscope", _profile)


def _profile(data: Any) -> Found:
    frames = [_frame(each) for each in data["shared"]["frames"]]
    profile = _main_profile(data["profiles"])
    return _of_samples(list(_weighted(profile, frames)), len(profile["samples"]))


def _main_profile(profiles: list[Any]) -> Any:
    sampled = [each for each in profiles if each["type"] == "sampled"]
    main = [each for each in sampled if "MainThread" in str(each["name"])]
    return (main or sorted(sampled, key=lambda each: -len(each["samples"])))[0]


def _frame(frame: Any) -> str:
    file = frame.get("file")
    name = str(frame["name"])
    return (f"{name} ({file})" if file and "(" not in name else name)[:MOST_NAME]


def _weighted(profile: Any, frames: list[str]) -> Iterator[Stack]:
    weights = profile.get("weights") or [1.0] * len(profile["samples"])
    for stack, weight in zip(profile["samples"], weights, strict=True):
        if not 0 <= float(weight) < 1e18:
            raise ValueError
        yield [frames[index] for index in stack], float(weight)
