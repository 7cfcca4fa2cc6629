"""The plan's own data through a real DataLoader, read as the exported programs read it."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import step
import torch
from subject import Subject
from torch.utils.data import DataLoader, RandomSampler


class UnusableError(Exception):
    """The data cannot be read for this model; says why."""


def batches(
    given: dict[str, Any], subject: Subject, like: step.Batch, question: dict[str, Any]
) -> Iterator[step.Batch]:
    """Return micro-batches without end.

    Raises:
        UnusableError: nothing usable there.
    """
    # Last: whatever the user's own modules are called, they come first.
    sys.path += [folder for folder in given["programs"] if folder not in sys.path]
    strict: Any = importlib.import_module("strict")
    try:
        dataset, collate = _samples(given, subject, like, question)
    except strict.InputError as error:
        raise UnusableError(str(error)) from error
    except ImportError as error:
        raise UnusableError(f"{error}") from error
    workers: dict[str, Any] = {}
    if given["num_workers"]:
        keys = ("prefetch_factor", "persistent_workers")
        workers = {key: given[key] for key in keys}
    loader = DataLoader(
        dataset,
        question["batch"],
        sampler=RandomSampler(dataset, replacement=True, num_samples=1 << 30),
        num_workers=given["num_workers"],
        collate_fn=collate,
        pin_memory=given["pin_memory"] and torch.cuda.is_available(),
        **workers,
    )
    return _endless(loader, strict.InputError)


def _endless(loader: Any, input_error: type[Exception]) -> Iterator[step.Batch]:
    try:
        for batch in loader:
            yield step.Batch(**batch)
    except (input_error, RuntimeError, OSError, KeyError) as error:
        raise UnusableError(str(error).strip().splitlines()[-1]) from error


def _samples(
    given: dict[str, Any], subject: Subject, like: step.Batch, question: dict[str, Any]
) -> tuple[Any, Any]:
    folders: Any = importlib.import_module("folders")
    path, names = Path(given["path"]), list(like.inputs)
    if "input_ids" in names and subject.config is not None:
        return _text(given, subject, path, question["sequence"])
    if question["image_size"] and names in (["x"], ["pixel_values"]):
        return folders.open_images(path, names[0], question["image_size"], 0), folders.stacked
    return folders.open_arrays(path), folders.stacked


def _text(given: dict[str, Any], subject: Subject, path: Path, length: int) -> tuple[Any, Any]:
    dataset: Any = importlib.import_module("dataset")
    text = dataset.Text.of(subject.config)
    samples = dataset.open_text(path, length, text, None, packed=given["packed"])
    collate = dataset.collator(text)

    def split(rows: list[Any]) -> dict[str, Any]:
        inputs = collate(rows)
        return {"labels": inputs.pop("labels"), "inputs": inputs}

    return samples, split
