"""Datasets that are folders: pictures by class, or arrays for any other model."""

import math
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dataset import Key, index_of
from strict import InputError
from torch.utils.data import Dataset, default_collate

IMAGES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, which published image weights are normalised by."""


class Images(Dataset[dict[str, Any]]):
    """A folder with one folder of pictures for each class; ``name`` is the model's argument."""

    def __init__(self, folder: Path, name: str, size: int, seed: int) -> None:
        self.name, self.size, self.seed = name, size, seed
        self.classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        self.files = [
            (path, number)
            for number, name in enumerate(self.classes)
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in IMAGES
        ]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, key: Key | int) -> dict[str, Any]:
        from PIL import Image

        index, epoch = (key, 0) if isinstance(key, int) else key
        path, number = self.files[index]
        chance = random.Random(f"{self.seed} {epoch} {index}")
        with Image.open(path) as image:
            image = image.convert("RGB").resize(
                (self.size, self.size), Image.Resampling.BILINEAR, box=_crop(image.size, chance)
            )
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)
        if chance.random() < 0.5:
            pixels = pixels.flip(1)
        pixels = (pixels - torch.tensor(MEAN)) / torch.tensor(SPREAD)
        return {
            "inputs": {self.name: pixels.permute(2, 0, 1)},
            "labels": torch.tensor(number),
        }


def _crop(size: tuple[int, int], chance: random.Random) -> tuple[float, float, float, float]:
    """Return a box of 25 to 100 % of the area and a ratio of sides of 3:4 to 4:3."""
    area = size[0] * size[1] * chance.uniform(0.25, 1)
    ratio = math.exp(chance.uniform(math.log(3 / 4), math.log(4 / 3)))
    width, height = min(size[0], math.sqrt(area * ratio)), min(size[1], math.sqrt(area / ratio))
    left, top = chance.uniform(0, size[0] - width), chance.uniform(0, size[1] - height)
    return left, top, left + width, top + height


def open_images(path: Path, name: str, size: int, seed: int) -> Images:
    """Return the samples of an image folder.

    Raises:
        InputError: no folder of pictures there.
    """
    if not path.exists():
        raise InputError(f"{path}: no such dataset; name one with --data PATH")
    if not path.is_dir():
        raise InputError(f"{path}: not a folder; images are read from one folder for each class")
    dataset = Images(path, name, size, seed)
    if len(dataset) == 0:
        raise InputError(f"{path}: no pictures; expected {path.name}/CLASS/picture.jpg")
    return dataset


class Arrays(Dataset[dict[str, Any]]):
    """A folder of .npz files, one sample each, for models whose samples are neither text nor
    classes of pictures.

    Arrays are named as the arguments of the model's forward, and ``labels``; where one of them
    holds several, ``labels.actions``, ``added_cond_kwargs.time_ids``.
    """

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, key: Key | int) -> dict[str, Any]:
        file = self.files[index_of(key)]
        inputs: dict[str, Any] = {}
        try:
            with np.load(file) as arrays:
                for name, array in arrays.items():
                    group, _, last = name.rpartition(".")
                    place = inputs.setdefault(group, {}) if group else inputs
                    place[last] = torch.from_numpy(array)
        except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise InputError(f"{file}: not readable as .npz: {error}") from error
        if "labels" not in inputs or len(inputs) == 1:
            raise InputError(f"{file}: needs arrays for the model's inputs, and labels")
        return {"labels": inputs.pop("labels"), "inputs": inputs}


def open_arrays(path: Path) -> Arrays:
    """Return the samples of a folder of .npz files.

    Raises:
        InputError: there are none.
    """
    files = sorted(path.glob("*.npz"))
    if not files:
        raise InputError(f"{path}: no such dataset; expected a folder of .npz files, see Arrays")
    return Arrays(files)


stacked = default_collate
"""Collation of samples of one shape."""
