"""One file of any known format."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from trainwright import reading
from trainwright.diagnose import record, texts
from trainwright.diagnose.outofmemory import explain, snapshot
from trainwright.diagnose.outofmemory.forms import UNREAD
from trainwright.diagnose.readers import (
    chrome_trace,
    columns,
    gpu_monitors,
    host_tools,
    loop_tables,
    nvidia_query,
    nvidia_report,
    nvidia_smi,
    operator_table,
    stacks,
    trace_stream,
    training_log,
)
from trainwright.diagnose.readers.found import Found
from trainwright.messages import Message, UserError

MOST_TEXT = 256 << 20
"""Largest text other than a trace; assumed: months of a log."""
HEAD = 1 << 16
"""Bytes at the start of a file by which a trace is told from other texts."""


FORMATS: Mapping[str, Callable[[str], Found | None]] = {
    "speedscope": stacks.speedscope,
    "operator-table": operator_table.read,
    "nvidia-report": nvidia_report.read,
    "nvidia-smi": nvidia_smi.read,
    "nvitop": gpu_monitors.nvitop,
    "nvtop": gpu_monitors.nvtop,
    "gpustat": gpu_monitors.gpustat,
    "nvidia-query": nvidia_query.read,
    "nvidia-topology": nvidia_smi.read_matrix,
    "nvidia-list": nvidia_smi.read_list,
    "columns": columns.read,
    "py-spy": stacks.dump,
    "py-spy-raw": stacks.raw,
    **{tool: partial(host_tools.read, tool) for tool in host_tools.TOOLS},
    "free": host_tools.free,
    "windows-counters": host_tools.counters,
    "task-manager": host_tools.task_manager,
    "wandb": gpu_monitors.wandb,
    "lightning": loop_tables.lightning,
    "metrics": loop_tables.metrics,
    "training-log": training_log.read,
}
"""Readers by the message ``diagnose.format.<id>``. Each returns None where a text is not of its
tool, and raises UserError where it is one without figures, or a damaged one. Every format that a
text has is read: a file may hold several tools' output."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file: what it is, and what was taken from it."""

    name: str
    formats: tuple[Message, ...]
    took: tuple[Message, ...]
    missed: tuple[Message, ...]


def read(source: Path | str, name: str) -> tuple[FileRead, list[Found]]:
    """Return what one file is and says, in every format that it holds; ``-`` is standard input.

    Raises:
        UserError: it cannot be read, or is of no known format.
    """
    if str(source) == "-":
        return _from_text(reading.content(source, MOST_TEXT, name, or_stdin=True), name)
    with reading.opened(Path(source), name) as stream:
        head = stream.read(HEAD)
        stream.seek(0)
        if not head.startswith(b"\x1f\x8b") and not chrome_trace.recognised(texts.decoded(head)):
            data = stream.read(MOST_TEXT + 1)
            if len(data) > MOST_TEXT:
                raise UserError.of("reading.too-large", file=name, limit=MOST_TEXT)
            return _from_text(data, name)
        pieces = trace_stream.texts(stream)
        with _naming(name, "chrome-trace"):
            first = next(pieces, "")
            if chrome_trace.recognised(first):
                return _from_trace(chain([first], pieces), name)
            stream.seek(0)
            unpacked = "".join(trace_stream.texts(stream, MOST_TEXT))
    return _from_text(unpacked.encode(), name)


def _from_trace(pieces: Iterator[str], name: str) -> tuple[FileRead, list[Found]]:
    with _naming(name, "chrome-trace"):
        found = chrome_trace.read(pieces)
    kind = Message.of("diagnose.format.chrome-trace")
    return FileRead(name, (kind,), found.took, found.missed), [found]


@contextmanager
def _naming(name: str, format: str) -> Iterator[None]:
    """Put the file and its format before a reader's complaint."""
    try:
        yield
    except UserError as error:
        if not error.message.id.startswith("diagnose.file."):
            raise
        kind = Message.of(f"diagnose.format.{format}")
        raise UserError.of(
            "diagnose.file-refused", file=name, format=kind, problem=error.message
        ) from None


def _from_text(data: bytes, name: str) -> tuple[FileRead, list[Found]]:
    if data.startswith(snapshot.MARK):
        raise UserError.of("diagnose.file-is-snapshot", file=name)
    decoded = texts.decoded(data)
    if decoded.lstrip()[:1] == "{" and '"trainwright_record"' in decoded[:HEAD]:
        return _from_record(decoded, name)
    if chrome_trace.recognised(decoded[:HEAD]):  # on standard input, or in UTF-16
        return _from_trace(iter([decoded]), name)
    text = texts.plain(decoded)
    kinds, parts, refused = [], list[Found](), list[UserError]()
    for id, read_from in FORMATS.items():
        try:
            with _naming(name, id):
                found = read_from(text)
        except UserError as error:
            refused.append(error)
            continue
        if found is not None:
            kinds.append(Message.of(f"diagnose.format.{id}"))
            parts.append(found)
    if not parts:
        raise refused[0] if refused else _unknown(text, name)
    took = tuple(each for found in parts for each in found.took)
    missed = tuple(dict.fromkeys(each for found in parts for each in found.missed))
    ended = explain(text[-HEAD:]) if training_log.ERROR in missed else None
    if ended is not None and ended.kind not in ("none", "other"):
        missed = tuple(each for each in missed if each != training_log.ERROR)
        fixes = [each.says for each in ended.fixes]
        took += (Message.of("diagnose.file.log-ended", error=ended.says, fixes=fixes),)
    return FileRead(name, tuple(kinds), took, missed), parts


def _from_record(text: str, name: str) -> tuple[FileRead, list[Found]]:
    evidence = record.parsed(text.lstrip("\ufeff"), name)
    facts = evidence.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    facts.pop("trainwright_record", None)
    facts["made_by"] = evidence.made_by  # also where it says nothing: a person wrote it
    kind = Message.of("diagnose.format.record")
    return FileRead(name, (kind,), (), ()), [Found((), facts=facts)]


def _unknown(text: str, name: str) -> UserError:
    """Return why a file is refused: an error's text has a place of its own."""
    if not text.strip():
        return UserError.of("diagnose.file-empty", file=name)
    for why, words in UNREAD.items():
        if words.search(text[:HEAD]):
            return UserError.of(f"diagnose.file-{why}", file=name)
    if explain(text[-HEAD:]).kind != "none":
        return UserError.of("diagnose.file-is-error", file=name)
    if training_log.without_times(text):
        return UserError.of("diagnose.file-no-times", file=name)
    formats = [Message.of(f"diagnose.format.{each}") for each in FORMATS]
    known = [Message.of("diagnose.format.chrome-trace"), *formats]
    return UserError.of("diagnose.file-unknown", file=name, known=known)
