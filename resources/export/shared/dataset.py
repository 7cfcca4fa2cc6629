"""Samples: text, token arrays, image folders, or made-up ones for a first try.

A sample is asked for by (index, epoch), and what is random about it depends on the seed and on
these two alone. So a run that stopped goes on with exactly the samples that it would have seen,
whatever the number of workers or processes.
"""

import json
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from strict import InputError
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler, default_collate

IGNORED = -100
"""Label of positions that count for nothing in the loss, as torch's cross entropy has it."""
IMAGES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, which published image weights are normalised by."""

MASKED = 0.15
"""Share of tokens that a masked language model must guess: Devlin et al. 2019."""

Key = tuple[int, int]
Sample = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Text:
    """What a language model takes."""

    form: Literal["causal", "masked", "seq2seq"]
    vocabulary: int
    padding: int
    mask: int
    """Token that stands for one to be guessed; masked models only."""
    start: int
    """Token that the decoder starts from; seq2seq models only."""

    @classmethod
    def of(cls, config: Any, tokenizer: Any = None) -> "Text":
        """Return what the model of a transformers configuration takes."""
        names = " ".join(config.architectures or [])
        if config.is_encoder_decoder:
            form: Literal["causal", "masked", "seq2seq"] = "seq2seq"
        else:
            form = "masked" if "MaskedLM" in names else "causal"
        vocabulary = config.get_text_config().vocab_size
        padding = getattr(tokenizer, "pad_token_id", None) or config.pad_token_id or 0
        mask = getattr(tokenizer, "mask_token_id", None)
        start = getattr(config, "decoder_start_token_id", None) or padding
        return cls(form, vocabulary, padding, vocabulary - 1 if mask is None else mask, start)


class Order(Sampler[Key]):
    """The (index, epoch) keys of this process, from an optimizer step on, without end.

    Epochs follow each other without a gap, each in its own shuffled order. Step k takes
    positions k*effective to (k+1)*effective of that sequence; each process takes its own
    slice of them. So a step has the same samples however it is cut into micro-batches and
    processes.
    """

    def __init__(
        self, size: int, effective: int, rank: int, world: int, seed: int, step: int
    ) -> None:
        self.size, self.effective, self.rank, self.world = size, effective, rank, world
        self.seed, self.step = seed, step

    def __iter__(self) -> Iterator[Key]:
        share = self.effective // self.world
        epoch, order = -1, None
        position = self.step * self.effective + self.rank * share
        while True:
            for k in range(position, position + share):
                if k // self.size != epoch:
                    epoch = k // self.size
                    generator = torch.Generator().manual_seed(self.seed + epoch)
                    order = torch.randperm(self.size, generator=generator)
                yield int(order[k % self.size]), epoch
            position += self.effective


class Tokens(Dataset[Sample]):
    """One long array of tokens, cut into samples of equal length.

    A sequence-to-sequence model reads one stretch and writes the next.
    """

    def __init__(self, tokens: np.ndarray, length: int, form: str) -> None:
        self.tokens, self.length, self.form = tokens, length, form
        self.span = 2 * length if form == "seq2seq" else length

    def __len__(self) -> int:
        return len(self.tokens) // self.span

    def __getitem__(self, key: Key | int) -> Sample:
        start = index_of(key) * self.span
        ids = torch.from_numpy(self.tokens[start : start + self.span].astype(np.int64))
        return {"input_ids": ids[: self.length], "labels": ids[-self.length :]}


class Lines(Dataset[Sample]):
    """JSON lines, one sample each, of their own lengths.

    A line holds ``input_ids`` (and perhaps ``labels``), or ``text``, or ``prompt`` and
    ``completion`` (only the completion counts for the loss), or ``messages``.
    """

    def __init__(self, files: list[Path], length: int, form: str, tokenizer: Any) -> None:
        self.files, self.length, self.form, self.tokenizer = files, length, form, tokenizer
        self.offsets = [_line_offsets(file) for file in files]
        self.ends = list(accumulate(map(len, self.offsets)))

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, key: Key | int) -> Sample:
        index = index_of(key)
        number = bisect_right(self.ends, index)
        line = index - (self.ends[number - 1] if number else 0)
        with self.files[number].open("rb") as file:
            file.seek(self.offsets[number][line])
            text = file.readline()
        where = f"{self.files[number]}, line {line + 1}"
        try:
            ids, labels = self.encode(json.loads(text), where)
        except ValueError as error:
            raise InputError(f"{where}: not valid JSON: {error}") from error
        ids, labels = ids[: self.length], labels[: self.length]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(labels)}

    def encode(self, record: Any, where: str) -> tuple[list[int], list[int]]:
        """Return token ids and labels of a line."""
        record = record if isinstance(record, dict) else {}
        if "input_ids" in record:
            return record["input_ids"], record.get("labels", record["input_ids"])
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise InputError(f"{where}: no input_ids; name a tokenizer for text: data.tokenizer")
        end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
        if "text" in record:
            ids = tokenizer(record["text"])["input_ids"] + end
            return ids, ids
        if "prompt" in record and "completion" in record:
            prompt = tokenizer(record["prompt"])["input_ids"]
            answer = tokenizer(record["completion"], add_special_tokens=False)["input_ids"] + end
            if self.form == "seq2seq":
                return prompt, answer
            return prompt + answer, [IGNORED] * len(prompt) + answer
        if "messages" in record:
            chat = tokenizer.apply_chat_template(record["messages"], return_dict=True)
            return chat["input_ids"], chat["input_ids"]
        raise InputError(f"{where}: has none of input_ids, text, prompt + completion, messages")


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


def index_of(key: Key | int) -> int:
    """Return the index in a key; samplers of other libraries ask by the bare index."""
    return key if isinstance(key, int) else key[0]


def open_text(path: Path, length: int, text: Text, tokenizer: Any) -> Dataset[Sample]:
    """Return the samples of a text dataset: .npy, .bin, .jsonl, .txt, or a folder of them.

    Raises:
        InputError: nothing usable there.
    """
    if not path.exists():
        raise InputError(f"{path}: no such dataset; name one with --data PATH")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    arrays = [file for file in files if file.suffix in (".npy", ".bin")]
    lines = [file for file in files if file.suffix == ".jsonl"]
    texts = [file for file in files if file.suffix == ".txt"]
    if arrays:
        dataset: Any = Tokens(_join(arrays, text.vocabulary), length, text.form)
    elif lines:
        dataset = Lines(lines, length, text.form, tokenizer)
    elif texts:
        dataset = Tokens(_tokenised(texts, tokenizer), length, text.form)
    else:
        raise InputError(f"{path}: holds no .npy, .bin, .jsonl or .txt file")
    if len(dataset) == 0:
        raise InputError(f"{path}: too short for one sample of {length} tokens")
    return dataset


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
    classes of pictures: arrays named as the arguments of the model's forward, and ``labels``,
    or ``labels.NAME`` where the loss takes several.
    """

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, key: Key | int) -> dict[str, Any]:
        file = self.files[index_of(key)]
        with np.load(file) as arrays:
            tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        labels: Any = tensors.pop("labels", None)
        if labels is None:
            named = [name for name in tensors if name.startswith("labels.")]
            labels = {name.removeprefix("labels."): tensors.pop(name) for name in named}
        if not tensors or (isinstance(labels, dict) and not labels):
            raise InputError(f"{file}: needs arrays for the model's inputs, and labels")
        return {"inputs": tensors, "labels": labels}


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


def collator(text: Text) -> Callable[[list[Sample]], Sample]:
    """Return the function that stacks samples, padded to the longest of them.

    Padding does not count for the loss. A model that looks only backwards never sees it either,
    so that it needs no mask, and attention keeps its fast kernel.
    """
    return partial(_stacked, text=text)


def _stacked(samples: list[Sample], text: Text) -> Sample:
    ids = _padded([sample["input_ids"] for sample in samples], text.padding)
    labels = _padded([sample["labels"] for sample in samples], IGNORED)
    if text.form == "masked":
        # The mask must not depend on what else is in the batch, so it is drawn from the sample.
        masked = torch.stack([_chosen(row) for row in ids])
        labels = ids.masked_fill(~masked | (labels == IGNORED), IGNORED)
        ids = ids.masked_fill(labels != IGNORED, text.mask)
    batch = {"input_ids": ids, "labels": labels}
    if text.form == "seq2seq":
        before = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=text.start)
        batch["decoder_input_ids"] = before.masked_fill(before == IGNORED, text.padding)
    lengths = torch.tensor([len(sample["input_ids"]) for sample in samples])
    if text.form == "causal" or bool((lengths == ids.shape[1]).all()):
        return batch
    return batch | {"attention_mask": (torch.arange(ids.shape[1]) < lengths[:, None]).long()}


def _padded(rows: list[torch.Tensor], value: int) -> torch.Tensor:
    return pad_sequence(rows, batch_first=True, padding_value=value)


def _chosen(ids: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(int(ids.sum()))
    return torch.rand(len(ids), generator=generator) < MASKED


def _line_offsets(path: Path) -> list[int]:
    offsets, position = [], 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                offsets.append(position)
            position += len(line)
    return offsets


def _join(files: list[Path], vocabulary: int) -> np.ndarray:
    # A bare .bin holds 16-bit tokens where the vocabulary allows it, else 32-bit ones.
    width = np.uint16 if vocabulary <= 1 << 16 else np.uint32
    arrays = [
        np.load(file, mmap_mode="r").reshape(-1)
        if file.suffix == ".npy"
        else np.memmap(file, dtype=width, mode="r")
        for file in files
    ]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _tokenised(files: list[Path], tokenizer: Any) -> np.ndarray:
    if tokenizer is None:
        raise InputError(f"{files[0]}: text needs a tokenizer; name one in data.tokenizer")
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
    documents = [
        tokenizer(file.read_text(encoding="utf-8"), verbose=False)["input_ids"] + end
        for file in files
    ]
    return np.concatenate([np.asarray(document, dtype=np.uint32) for document in documents])
