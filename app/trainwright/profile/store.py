"""Where profiles live: shipped with the presets, then the user's cache of traced ones."""

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from trainwright import reading, saving
from trainwright.messages import UserError
from trainwright.profile import codec, depth, interpreter, repeat, shipped
from trainwright.profile import trace as raw
from trainwright.profile.fit import StructureError, fit
from trainwright.profile.memo import KEPT
from trainwright.profile.presets import presets
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TRACER_VERSION, TraceSpec, kernel_points
from trainwright.worker import client

Progress = Callable[[float, str], None]
Point = tuple[int, int]
Runner = Callable[..., object]
"""Starts a program with a document, as ``worker.client.run`` does."""

TIMEOUT_S = 900.0
"""Seconds that one traced structure may take; assumed, SDXL needs about a minute."""
MEMORY_BYTES = 12 << 30
"""Address space that the child may take; torch alone reserves several GiB."""
SILENCE_S = 240.0
"""Seconds that a user's code may run without progress; assumed, libraries take half a minute
to be read from a slow disk."""
STORED_BYTES = 64 << 20
"""Largest stored profile; assumed, packed ones have some 100 KB."""
RESULT_BYTES = 512 << 20
"""Largest log that is read; assumed, that of a large model takes some tens of MiB."""
_OF_CODE = frozenset(
    f"worker.{ending}"
    for ending in ("timeout", "silent", "too-much-output", "out-of-memory", "killed", "no-answer")
)
"""Endings that are the doing of the user's code where it runs."""


def load(spec: TraceSpec) -> Profile | None:
    """Return the profile for the structure, or None where it must be traced.

    Raises:
        UserError: nothing ships, and the chosen interpreter cannot trace.
    """
    return next((found for found in _stored(spec) if _serves(found, spec)), None)


def trace(
    spec: TraceSpec,
    *,
    at: Point | None = None,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    keep: bool = True,
    run: Runner | None = None,
) -> Profile:
    """Trace in a child process, fit, check, keep in the cache, and return the profile.

    With ``at`` only that point is traced, and one step of it with the optimizer that is asked
    for: faster, and the profile answers for it alone. What generates is asked about at
    several lengths, and no other layout than the first ships: these are traced for all batches.
    Where the events do not fit polynomials, or change from point to point, it is traced
    at ``at`` (or the first point) and says so by ``exact``. ``run`` starts the child.

    Raises:
        UserError: the child failed, was cancelled, or ran into its limits.
    """
    spec = replace(spec, optimizers=_with_known(spec))
    tracer = _Tracer(spec, on_progress, cancelled, run or client.run)
    generates = spec.task == "infer" or spec.method.prompt > 0
    everywhere = spec.channels_last or (generates and spec.sequence)
    if at is not None and (spec.images or not everywhere):
        return tracer.alone(at)
    source = _source(spec)
    choices = kernel_points(spec, depth.positions(source), depth.window(source))
    for points in choices:
        try:
            profile = fit(tracer.everywhere(points))
        except StructureError:
            continue
        if profile.exact and keep:
            _keep(cache_path(spec), profile)
        if profile.exact:
            return profile
    return tracer.alone(at) if at is not None else fit(tracer.run((choices[0][0],)))


def trace_for(
    spec: TraceSpec,
    point: Point,
    *,
    at: Point | None = None,
    on_progress: Progress | None = None,
) -> Profile:
    """Trace as ``trace`` does, and again at ``point`` where what was traced does not answer there.

    A structure that changes from length to length answers for one point alone.

    Raises:
        UserError: as ``trace`` does.
    """
    profile = trace(spec, at=at, on_progress=on_progress)
    return profile if profile.answers(*point) else trace(spec, at=point, on_progress=on_progress)


def questions(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the traces that a document for the tracer's program asks for."""
    found: list[dict[str, Any]] = document.get("questions", [document])
    return found


def _with_known(spec: TraceSpec) -> tuple[str, ...]:
    """Return the updates to trace: none that the cached profile has is lost with it."""
    path = cache_path(spec)
    cached = _read(path, path.stat().st_mtime_ns) if path.is_file() else None
    known = cached.segments if cached is not None else ()
    names = [name.partition(":")[2] for name in known if name.startswith("optimizer:")]
    return tuple(dict.fromkeys((*spec.optimizers, *names)))


def cache_folder() -> Path:
    """Return where what was traced is kept; the variable ``TRAINWRIGHT_CACHE`` names another."""
    folder = os.environ.get("TRAINWRIGHT_CACHE") or user_cache_path("trainwright", "Trainwright")
    return Path(folder)


def cache_path(spec: TraceSpec) -> Path:
    """Return where a profile is kept that the chosen interpreter traced.

    Raises:
        UserError: that interpreter cannot trace.
    """
    return cache_folder() / "profiles" / f"{_key(spec, interpreter.current().versions)}.profile"


@lru_cache(maxsize=1024)
def _key(spec: TraceSpec, versions: tuple[tuple[str, str], ...]) -> str:
    """Return the cache key; a search asks for the same hundred structures again and again."""
    return spec.key(versions)


def _serves(profile: Profile, spec: TraceSpec) -> bool:
    """Return whether a stored profile knows the update that is asked for, and batch 1."""
    updates = spec.task == "infer" or f"optimizer:{spec.asked}" in profile.segments
    return updates and (not spec.single or _covers_single(profile))


def _stored(spec: TraceSpec) -> Iterator[Profile]:
    """Yield the profiles that may answer; what ships answers whatever the interpreter is.

    Of batch 1 the structure's own comes first, then that of larger batches.
    """
    for one in (spec, replace(spec, single=False)) if spec.single else (spec,):
        place = shipped.place(one)
        if place is not None and (found := shipped.profile(*place)) is not None:
            yield found
    path = cache_path(spec)
    if path.is_file() and (kept := _read(path, path.stat().st_mtime_ns)) is not None:
        yield kept


def _covers_single(profile: Profile) -> bool:
    return profile.covers_single or all(batch == 1 for batch, _ in profile.points)


@lru_cache(maxsize=KEPT)
def _read(path: Path, _modified: int) -> Profile | None:
    """Return a stored profile; a damaged or outdated one is traced again."""
    try:
        profile = codec.decode(reading.content(path, STORED_BYTES), path.name)
    except UserError:
        return None
    return profile if profile.versions.get("tracer") == str(TRACER_VERSION) else None


def _keep(path: Path, profile: Profile) -> None:
    """Write the profile beside the others; a cache that cannot be written is not an error."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(path, codec.encode(profile))


_CONFIGS = ("hf", "diffusers")
"""Kinds of models that a ``config.json`` states, of which copies with fewer layers are made."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One trace of a structure."""

    points: tuple[Point, ...]
    config: dict[str, Any] | None = None
    """In place of the model's own."""
    optimizers: tuple[str, ...] | None = None
    """Updates to trace; None for those of the structure."""
    check_repeat: bool = True


@dataclass(frozen=True, slots=True)
class _Tracer:
    """Runs of the tracer for one structure."""

    spec: TraceSpec
    on_progress: Progress | None
    cancelled: Callable[[], bool] | None
    start: Runner

    def alone(self, at: Point) -> Profile:
        """Return the profile of one step at one point; two shallow copies tell a deep model."""
        asked = _Question((at,), optimizers=(self.spec.asked,), check_repeat=False)
        if (stretched := self._stretched) is not None:
            *copies, times = stretched
            short, long = self.answers(*(replace(asked, config=copy) for copy in copies))
            with suppress(repeat.RepeatError):
                return fit(repeat.deeper(short, long, times))
        return fit(*self.answers(asked))

    def run(self, points: tuple[Point, ...]) -> raw.TraceResult:
        """Trace the model itself at the points."""
        return self.answers(_Question(points))[0]

    def everywhere(self, points: tuple[Point, ...]) -> raw.TraceResult:
        """Trace at every point; a deep model at the first, and the rest from a shallow copy.

        A deep model whose layers repeat is known by two shallow copies.
        """
        config = None if self._config is None else depth.shallow_config(self._config)
        if config is None:
            return self.run(points)
        shallow, main = _Question(points, config, optimizers=()), points[:1]
        stretched = self._stretched
        copies = (None,) if stretched is None else stretched[:2]
        few, *deep = self.answers(shallow, *(_Question(main, copy) for copy in copies))
        try:
            known = deep[0]
            if stretched is not None:
                known = repeat.deeper(deep[0], deep[1], stretched[2])
        except repeat.RepeatError:
            known = self.run(main)
        try:
            return depth.transferred(known, few)
        except depth.TransferError:
            return self.run(points)

    @property
    def _config(self) -> Path | None:
        """The file that states the model's depth; None where no copy with fewer layers serves."""
        source = _source(self.spec)
        kind = next((kind for kind in _CONFIGS if kind in source), None)
        whole = not self.spec.method.frozen  # names of deep parts mean nothing to a shallow copy
        return Path(source[kind]) if kind and whole else None

    @property
    def _stretched(self) -> tuple[dict[str, Any], dict[str, Any], int] | None:
        return None if self._config is None else depth.stretched_configs(self._config)

    def answers(self, *questions: "_Question") -> list[raw.TraceResult]:
        """Trace in one child process, which takes longer to import libraries than to trace.

        Errors name the model's own file in place of a copy's.
        """
        with tempfile.TemporaryDirectory(prefix="trainwright-") as name:
            folder = Path(name)
            documents = [self._document(one, folder, n) for n, one in enumerate(questions)]
            several = {"questions": documents} if len(documents) > 1 else {}
            try:
                self._started(documents[0] | several)
            except UserError as error:
                values = error.message.values
                if Path(str(values.get("file"))).parent != folder:
                    raise
                own = next(path for kind, path in _source(self.spec).items() if kind in _CONFIGS)
                raise UserError.of(error.message.id, **{**values, "file": own}) from None
            return [self._answer(Path(document["result_file"])) for document in documents]

    def _document(self, question: "_Question", folder: Path, number: int) -> dict[str, Any]:
        """Return what the child reads; a second step checks that the first repeats."""
        model, optimizers = _source(self.spec), question.optimizers
        if question.config is not None:
            path = folder / f"config-{number}.json"
            path.write_text(json.dumps(question.config), encoding="utf-8")
            model = {kind: str(path) for kind in model if kind in _CONFIGS}
        return self.spec.document() | {
            "model": model,
            "points": question.points,
            "optimizers": self.spec.optimizers if optimizers is None else optimizers,
            "check_repeat": question.check_repeat,
            "result_file": str(folder / f"trace-{number}.json.gz"),
        }

    def _answer(self, path: Path) -> raw.TraceResult:
        parsed = _result(path)
        parsed.versions["tracer"] = str(TRACER_VERSION)
        if not interpreter.current().own:
            parsed.versions["interpreter"] = interpreter.current().path
        return parsed

    def _started(self, document: dict[str, Any]) -> None:
        """Run the child; where it runs the user's code, an untimely end is told as that code's."""
        code = self.spec.runs_code
        try:
            self.start(
                "trace",
                document,
                timeout_s=TIMEOUT_S,
                silence_s=SILENCE_S if code else None,
                memory_bytes=MEMORY_BYTES,
                limits_required=code,
                on_progress=self.on_progress,
                cancelled=self.cancelled,
                interpreter=interpreter.tracing().path,
            )
        except UserError as error:
            message = error.message
            if not code or message.id not in _OF_CODE:
                raise
            ending = message.id.removeprefix("worker.")
            if ending == "no-answer" and not message.values.get("reason"):
                ending = "exited"
            values = dict(message.values) | {
                "file": self.spec.model[0][1],
                "limit": MEMORY_BYTES,
            }
            raise UserError.of(f"worker.code-{ending}", **values) from None


_SPOILED = (
    UserError, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError,
    ArithmeticError, RecursionError, zlib.error,
)  # fmt: skip
"""What reading a log that is none may raise."""


def _result(path: Path) -> raw.TraceResult:
    """Return the log that a child left; code in the child may have spoiled it.

    Raises:
        UserError: it is no such log.
    """
    try:
        with reading.opened(path, str(path)) as packed, gzip.open(packed, "rb") as file:
            text = file.read(RESULT_BYTES + 1)
        if len(text) > RESULT_BYTES:
            raise ValueError("too long")
        return raw.parse(json.loads(text))
    except _SPOILED as error:
        raise UserError.of("worker.bad-result", reason=type(error).__name__) from error


def _source(spec: TraceSpec) -> dict[str, str]:
    source = dict(spec.model)
    if "preset" in source:
        return presets()[source["preset"]].model()
    return source
