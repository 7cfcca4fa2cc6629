"""Models that a factory in the user's own file makes, after the user's consent.

The contract is stated in ``docs/own-models.md``. The file's text, and that of the neighbours
that it imports, must be the one that the question was asked about: what changed since is
refused, so what runs is what the profile is kept for.
"""

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import guess
import huggingface
import step
import torch
from refusal import Refusal
from subject import Subject, first_line
from torch import nn

SOURCE_BYTES = 1 << 20
"""Largest Python file; ``workload/sourcefiles.py`` has the same."""
PARTS = ("model", "inputs", "example_inputs", "labels", "loss", "longest")
"""What a factory may return beside, or around, its module."""


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return what the factory makes, called with its arguments.

    Raises:
        Refusal: the file changed, it or its factory raised, or what came back is not a model,
            or one whose inputs nobody knows.
    """
    source = spec["model"]
    module = _imported(Path(path), Path(source["root"]), json.loads(source["sources"]))
    factory = _factory(module, source["factory"], path)
    arguments = json.loads(source["args"])
    parts = _parts(_called(factory, arguments), source["factory"], path)
    model: nn.Module = parts["model"]
    model.to("meta")
    library = sys.modules.get("transformers")
    if library is not None and isinstance(model, library.PreTrainedModel) and len(parts) == 1:
        return huggingface.of_code(model, spec, path)
    return _subject(model, parts, spec, path)


def _called(factory: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call the factory on ``meta``; one that reads values while it builds gets real memory."""
    try:
        return factory(**arguments)
    except (RuntimeError, NotImplementedError) as error:
        if "meta" not in str(error).lower():
            raise
    with torch.device("cpu"):
        return factory(**arguments)


# The file


def _imported(file: Path, root: Path, hashes: dict[str, str]) -> ModuleType:
    """Return the user's module, with its folder first where imports are looked up."""
    sys.dont_write_bytecode = True  # nothing beside the user's files changes
    _make_room()
    sys.path.insert(0, str(root))
    sys.path_hooks.insert(0, _finders(root, hashes))
    sys.path_importer_cache.clear()
    parts = file.relative_to(root).with_suffix("").parts
    if len(parts) > 1:
        return importlib.import_module(".".join(parts))
    name = parts[0] if parts[0] not in sys.modules else f"_{parts[0]}"
    loader = _loader(root, hashes)(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None, "a loader was given"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _make_room() -> None:
    """Give up the names of the tracer's own modules: users have a ``models.py`` too."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    for name, module in list(sys.modules.items()):
        if os.path.dirname(getattr(module, "__file__", None) or "") == here:
            sys.modules[f"trainwright-{name}"] = sys.modules.pop(name)


def _finders(root: Path, hashes: dict[str, str]) -> Callable[[str], Any]:
    """Return a path hook for the folders of the user's own modules."""
    machinery = importlib.machinery
    folders = {str((root / name).parent) for name in hashes}
    source = (_loader(root, hashes), machinery.SOURCE_SUFFIXES)
    compiled = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES)

    def hook(folder: str) -> Any:
        if folder not in folders:
            raise ImportError(folder)
        return machinery.FileFinder(folder, compiled, source)

    return hook


def _loader(root: Path, hashes: dict[str, str]) -> type[importlib.machinery.SourceFileLoader]:
    """Return a loader that runs the text that was asked about, and no stored bytecode."""

    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            path = Path(self.get_filename(fullname))
            text = _text(path)
            known = hashes.get(path.relative_to(root).as_posix())
            if known is not None and hashlib.sha256(text).hexdigest() != known:
                raise Refusal("worker.code-changed", file=str(path))
            return compile(text, str(path), "exec", dont_inherit=True)

    return Loader


def _text(path: Path) -> bytes:
    """Return a file's content, read once; a pipe is not waited for."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refusal("worker.code-changed", file=str(path))
        return file.read(SOURCE_BYTES + 1)


def _factory(module: ModuleType, name: str, path: str) -> Callable[..., Any]:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    own = [
        key
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    raise Refusal("worker.no-factory", file=path, factory=name, known=", ".join(own) or "-")


# What it returned


def _parts(made: Any, factory: str, path: str) -> dict[str, Any]:
    """Return the parts that the factory gave, by name."""
    if isinstance(made, nn.Module):
        return {"model": made}
    if isinstance(made, Mapping):
        parts = {name: made[name] for name in PARTS if made.get(name) is not None}
    else:
        parts = {name: getattr(made, name) for name in PARTS if getattr(made, name, None)}
    if not isinstance(parts.get("model"), nn.Module):
        kind = type(parts.get("model", made)).__name__
        raise Refusal("worker.not-a-module", file=path, factory=factory, kind=kind)
    return parts


def _subject(model: nn.Module, parts: dict[str, Any], spec: dict[str, Any], path: str) -> Subject:
    facts: dict[str, Any] = {"stack": "plain", "family": type(model).__name__}
    if spec["image_size"]:
        facts["image_size"] = spec["image_size"]
    if "inputs" in parts:
        feed = _fed_by(parts["inputs"], "inputs", model, spec, path)
    elif "example_inputs" in parts:
        feed = guess.repeated(_named(parts["example_inputs"], model, path))
    else:
        feed = guess.inputs(model, spec, facts, path)
    label, loss = _judged(model, parts, feed, spec, facts, path)

    def batch(size: int, length: int) -> step.Batch:
        return step.Batch(feed(size, length), label(size, length))

    longest = int(parts.get("longest", 0))
    return Subject(model, batch, loss, facts, guess.head(model), longest=longest)


def _judged(
    model: nn.Module,
    parts: dict[str, Any],
    feed: guess.Feed,
    spec: dict[str, Any],
    facts: dict[str, Any],
    path: str,
) -> tuple[guess.Feed, step.Loss]:
    """Return what makes the labels, and the loss."""
    own = parts.get("loss")
    if "labels" in parts:
        labels = _fed_by(parts["labels"], "labels", None, spec, path)
        return labels, _loss(own) if own is not None else step.token_loss
    if own is not None:
        return lambda size, length: {}, _loss(own)
    return guess.labels(model, feed, spec, facts, path)


def _loss(own: Callable[..., Any]) -> step.Loss:
    """Return the user's loss as the step calls it; the count is left out where it is not taken."""
    taken = inspect.signature(own).parameters.values()
    if len(taken) >= 3 or any(each.kind is each.VAR_POSITIONAL for each in taken):
        return own
    return lambda output, labels, count: own(output, labels)


def _fed_by(
    function: Any, part: str, model: nn.Module | None, spec: dict[str, Any], path: str
) -> guess.Feed:
    """Return what calls the user's function with those of batch, sequence and size it takes."""
    if not callable(function):
        raise Refusal("worker.not-callable", file=path, part=part)
    parameters = inspect.signature(function).parameters
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    required = {n for n, each in parameters.items() if each.default is each.empty}
    if "sequence" in required and not spec["sequence"]:
        raise Refusal("worker.needs-length", file=path)
    if "image_size" in required and not spec["image_size"]:
        raise Refusal("worker.needs-size", file=path)

    def feed(size: int, length: int) -> Any:
        given = {"batch": size}
        if spec["sequence"]:
            given["sequence"] = length
        if spec["image_size"]:
            given["image_size"] = spec["image_size"]
        made = function(**{n: v for n, v in given.items() if anything or n in parameters})
        return _on_host(made, part, path) if model is None else _named(made, model, path)

    return feed


def _named(made: Any, model: nn.Module, path: str) -> step.Tensors:
    """Return inputs by the name that forward has for them."""
    if isinstance(made, torch.Tensor):
        made = (made,)
    if isinstance(made, (tuple, list)):
        taken = guess.positional(model)
        if len(made) > len(taken):
            raise Refusal("worker.too-many-inputs", file=path, given=len(made), taken=len(taken))
        made = dict(zip(taken, made, strict=False))
    if not isinstance(made, Mapping) or not made:
        raise Refusal("worker.not-tensors", file=path, part="inputs", kind=type(made).__name__)
    return _on_host(made, "inputs", path)  # type: ignore[no-any-return]


def _on_host(value: Any, part: str, path: str) -> Any:
    """Return tensors on the CPU, in dicts; nothing else can be moved to a device."""
    if isinstance(value, Mapping):
        return {str(name): _on_host(item, part, path) for name, item in value.items()}
    if not isinstance(value, torch.Tensor):
        raise Refusal("worker.not-tensors", file=path, part=part, kind=type(value).__name__)
    return torch.empty_like(value, device="cpu") if value.device.type != "cpu" else value


# What it raised


@contextlib.contextmanager
def blaming(spec: dict[str, Any]) -> Iterator[None]:
    """Turn what goes wrong while a user's code runs into a line that names its place.

    Raises:
        Refusal: in place of any other exception, an exit of the interpreter among them.
        MemoryError: the limit was reached, whoever said so.
    """
    source = spec["model"]
    if not {"python", "pt2"} & source.keys():
        yield
        return
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except BaseException as error:
        if "can't allocate memory" in str(error):  # torch's allocator
            raise MemoryError from error
        raise _blame(error, source) from error


def _blame(error: BaseException, source: dict[str, str]) -> Refusal:
    file, root = next(iter(source.values())), source.get("root")
    if isinstance(error, SyntaxError) and error.filename:
        place, line = error.filename, error.lineno or 0
        return Refusal("worker.code-raised", file=place, line=line, reason=first_line(error))
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return Refusal("worker.code-package", file=file, package=package)
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if root and Path(frame.filename).is_relative_to(root)
        if "site-packages" not in frame.filename
    ]
    reason = first_line(error)
    if not own:
        return Refusal("worker.code-failed", file=file, reason=reason)
    return Refusal(
        "worker.code-raised", file=own[-1].filename, line=own[-1].lineno or 0, reason=reason
    )
