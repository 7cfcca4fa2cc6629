"""The plan's own data through a real DataLoader, read as the exported programs read it."""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import step
import torch
from subject import Subject
from torch.utils.data import DataLoader, RandomSampler


class UnusableError(Exception):
    """The data cannot be read for this model; says why."""


@dataclass(frozen=True)
class Readers:
    """The modules of the exported programs that read data."""

    strict: Any
    dataset: Any
    folders: Any

    @classmethod
    def loaded(cls, programs: Sequence[str]) -> "Readers":
        """Import them before any user's code, and give up their names, which users take too."""
        before = set(sys.modules)
        sys.path[:0] = programs
        try:
            found = [importlib.import_module(name) for name in ("strict", "dataset", "folders")]
        finally:
            del sys.path[: len(programs)]
        for name in set(sys.modules) - before:
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") in programs:
                del sys.modules[name]
        return cls(*found)


def batches(
    readers: Readers,
    given: dict[str, Any],
    subject: Subject,
    like: step.Batch,
    question: dict[str, Any],
) -> Iterator[step.Batch]:
    """Return micro-batches without end.

    Raises:
        UnusableError: nothing usable there.
    """
    try:
        dataset, collate = _samples(readers, given, subject, like, question)
    except (readers.strict.InputError, ImportError) as error:
        raise UnusableError(str(error)) from error
    workers: dict[str, Any] = {}
    if given["num_workers"]:
        keys = ("prefetch_factor", "persistent_workers")
        workers = {key: given[key] for key in keys}
        if sys.platform == "linux":  # another way to start would look for the readers by name
            workers["multiprocessing_context"] = "fork"
    loader = DataLoader(
        dataset,
        question["batch"],
        sampler=RandomSampler(dataset, replacement=True, num_samples=1 << 30),
        num_workers=given["num_workers"],
        collate_fn=collate,
        pin_memory=given["pin_memory"] and torch.cuda.is_available(),
        **workers,
    )
    return _endless(loader, readers.strict.InputError)


def _endless(loader: Any, input_error: type[Exception]) -> Iterator[step.Batch]:
    try:
        for batch in loader:
            yield step.Batch(**batch)
    except (input_error, RuntimeError, OSError, KeyError) as error:
        raise UnusableError(str(error).strip().splitlines()[-1]) from error


def _samples(
    readers: Readers,
    given: dict[str, Any],
    subject: Subject,
    like: step.Batch,
    question: dict[str, Any],
) -> tuple[Any, Any]:
    folders = readers.folders
    path, names = Path(given["path"]), list(like.inputs)
    if "input_ids" in names and subject.config is not None:
        return _text(readers.dataset, given, subject, path, question["sequence"])
    if question["image_size"] and names in (["x"], ["pixel_values"]):
        return folders.open_images(path, names[0], question["image_size"], 0), folders.stacked
    return folders.open_arrays(path), folders.stacked


def _text(
    dataset: Any, given: dict[str, Any], subject: Subject, path: Path, length: int
) -> tuple[Any, Any]:
    text = dataset.Text.of(subject.config)
    samples = dataset.open_text(path, length, text, None, packed=given["packed"])
    collate = dataset.collator(text)

    def split(rows: list[Any]) -> dict[str, Any]:
        inputs = collate(rows)
        return {"labels": inputs.pop("labels"), "inputs": inputs}

    return samples, split
