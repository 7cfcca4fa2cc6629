"""Samples of text, and the order in which a run takes samples of any kind.

A sample is asked for by (index, epoch), and what is random about it depends on the seed and on
these two alone. So a run that stopped goes on with exactly the samples that it would have seen,
whatever the number of workers or processes.
"""

import json
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
from torch.utils.data import Dataset, Sampler

UNCOUNTED = -100
"""Label of positions that count for nothing in the loss, as torch's cross entropy has it."""

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

    def __init__(self, tokens: np.ndarray, length: int, text: Text, where: Path) -> None:
        self.tokens, self.length, self.text, self.where = tokens, length, text, where
        self.span = 2 * length if text.form == "seq2seq" else length

    def __len__(self) -> int:
        return len(self.tokens) // self.span

    def __getitem__(self, key: Key | int) -> Sample:
        start = index_of(key) * self.span
        ids = torch.from_numpy(self.tokens[start : start + self.span].astype(np.int64))
        _check_tokens(ids, self.text, f"{self.where}, from token {start}")
        return {"input_ids": ids[: self.length], "labels": ids[-self.length :]}


class Lines(Dataset[Sample]):
    """JSON lines, one sample each, of their own lengths.

    A line holds ``input_ids`` (and perhaps ``labels``), or ``text``, or ``prompt`` and
    ``completion`` (only the completion counts for the loss), or ``messages``.
    """

    def __init__(self, files: list[Path], length: int, text: Text, tokenizer: Any) -> None:
        self.files, self.length, self.text, self.tokenizer = files, length, text, tokenizer
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
            content = file.readline()
        where = f"{self.files[number]}, sample {line + 1}"
        try:
            record = json.loads(content)
        except ValueError as error:
            raise InputError(f"{where}: not valid JSON: {error}") from error
        ids, labels = (self.tensor(tokens, where) for tokens in self.encode(record, where))
        _check_tokens(ids, self.text, where)
        if self.text.form != "seq2seq" and len(ids) != len(labels):
            raise InputError(f"{where}: {len(ids)} input_ids, but {len(labels)} labels")
        return {"input_ids": ids, "labels": labels}

    def tensor(self, tokens: Any, where: str) -> torch.Tensor:
        """Return token numbers, cut to the sequence length."""
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise InputError(f"{where}: input_ids and labels must be lists of whole numbers")
        return torch.tensor(tokens[: self.length], dtype=torch.int64)

    def encode(self, record: Any, where: str) -> tuple[list[int], list[int]]:
        """Return token ids and labels of a line."""
        record = record if isinstance(record, dict) else {}
        if "input_ids" in record:
            return record["input_ids"], record.get("labels", record["input_ids"])
        tokenizer = self.tokenizer
        if not record.keys() & {"text", "prompt", "messages"}:
            raise InputError(f"{where}: has none of input_ids, text, prompt + completion, messages")
        if tokenizer is None:
            raise InputError(f"{where}: no input_ids; name a tokenizer for text: data.tokenizer")
        end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
        if "text" in record:
            ids = tokenizer(record["text"])["input_ids"] + end
            return ids, ids
        if "prompt" in record and "completion" in record:
            prompt = tokenizer(record["prompt"])["input_ids"]
            answer = tokenizer(record["completion"], add_special_tokens=False)["input_ids"] + end
            if self.text.form == "seq2seq":
                return prompt, answer
            return prompt + answer, [UNCOUNTED] * len(prompt) + answer
        if "messages" in record:
            chat = tokenizer.apply_chat_template(record["messages"], return_dict=True)
            return chat["input_ids"], chat["input_ids"]
        raise InputError(f"{where}: has a prompt, but no completion")


class Packed(Dataset[Sample]):
    """Samples one after the other, cut into rows of equal length; a shorter rest is left out.

    A token sees all before it in its row, those of other samples too.
    """

    def __init__(self, samples: Lines, length: int) -> None:
        self.samples, self.length = samples, length
        counts = (len(samples[index]["input_ids"]) for index in range(len(samples)))
        self.ends = list(accumulate(counts))

    def __len__(self) -> int:
        return self.ends[-1] // self.length if self.ends else 0

    def __getitem__(self, key: Key | int) -> Sample:
        start = index_of(key) * self.length
        number = bisect_right(self.ends, start)
        begin = start - (self.ends[number - 1] if number else 0)
        found = [self.samples[number]]
        while self.ends[number] < start + self.length:
            number += 1
            found.append(self.samples[number])
        return {
            name: torch.cat([sample[name] for sample in found])[begin : begin + self.length]
            for name in ("input_ids", "labels")
        }


def _check_tokens(ids: torch.Tensor, text: Text, where: str) -> None:
    if len(ids) == 0:
        raise InputError(f"{where}: no tokens")
    largest = int(ids.max())
    if largest >= text.vocabulary:
        raise InputError(
            f"{where}: token {largest} is not in the model's vocabulary of {text.vocabulary}; "
            "was it made with another tokenizer?"
        )


def index_of(key: Key | int) -> int:
    """Return the index in a key; samplers of other libraries ask by the bare index."""
    return key if isinstance(key, int) else key[0]


def open_text(
    path: Path, length: int, text: Text, tokenizer: Any, *, packed: bool = False
) -> Dataset[Sample]:
    """Return the samples of a text dataset: .npy, .bin, .jsonl, .txt, or a folder of them.

    ``packed`` joins the lines of .jsonl into full rows; the others fill their rows anyhow.

    Raises:
        InputError: nothing usable there, or a model whose samples cannot follow each other.
    """
    if packed and text.form != "causal":
        raise InputError("packed rows are for models that predict the next token; use padded")
    if not path.exists():
        raise InputError(f"{path}: no such dataset; name one with --data PATH")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    arrays = [file for file in files if file.suffix in (".npy", ".bin")]
    lines = [file for file in files if file.suffix == ".jsonl"]
    texts = [file for file in files if file.suffix == ".txt"]
    if arrays:
        dataset: Any = Tokens(_join(arrays, text.vocabulary), length, text, path)
    elif lines:
        dataset = Lines(lines, length, text, tokenizer)
        dataset = Packed(dataset, length) if packed else dataset
    elif texts:
        dataset = Tokens(_tokenised(texts, tokenizer), length, text, path)
    else:
        raise InputError(f"{path}: holds no .npy, .bin, .jsonl or .txt file")
    if len(dataset) == 0:
        raise InputError(f"{path}: too short for one sample of {length} tokens")
    return dataset


def collator(text: Text) -> Callable[[list[Sample]], Sample]:
    """Return the function that stacks samples, padded to the longest of them.

    Padding does not count for the loss. A model that looks only backwards never sees it either,
    so that it needs no mask, and attention keeps its fast kernel.
    """
    return partial(_stacked, text=text)


def _stacked(samples: list[Sample], text: Text) -> Sample:
    ids = _padded([sample["input_ids"] for sample in samples], text.padding)
    labels = _padded([sample["labels"] for sample in samples], UNCOUNTED)
    if text.form == "masked":
        # The mask must not depend on what else is in the batch, so it is drawn from the sample.
        masked = torch.stack([_chosen(row) for row in ids])
        labels = ids.masked_fill(~masked | (labels == UNCOUNTED), UNCOUNTED)
        ids = ids.masked_fill(labels != UNCOUNTED, text.mask)
    batch = {"input_ids": ids, "labels": labels}
    if text.form == "seq2seq":
        before = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=text.start)
        batch["decoder_input_ids"] = before.masked_fill(before == UNCOUNTED, text.padding)
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
    arrays = []
    for file in files:
        try:
            if file.suffix == ".npy":
                arrays.append(np.load(file, mmap_mode="r").reshape(-1))
            else:
                arrays.append(np.memmap(file, dtype=width, mode="r"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: not readable as tokens: {error}") from error
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
