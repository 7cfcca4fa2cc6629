"""Made-up samples with something to learn in them, to try a run without data."""

from typing import Any

import torch
from dataset import Key, Sample, Text, index_of
from torch.utils.data import Dataset

SIZE = 10_000
"""Samples in a made-up dataset."""


class Made(Dataset[Any]):
    """Samples that depend on seed and index alone."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, key: Key | int) -> Any:
        index = index_of(key)
        return self.make(index, torch.Generator().manual_seed(self.seed * SIZE + index))

    def make(self, index: int, chance: torch.Generator) -> Any:
        """Return the sample of this number."""
        raise NotImplementedError


class MadeTokens(Made):
    """Each token is its forerunner plus one or two."""

    def __init__(self, text: Text, length: int, seed: int) -> None:
        super().__init__(seed)
        self.text, self.length = text, length

    def make(self, index: int, chance: torch.Generator) -> Sample:
        """Return token ids, which are the labels too."""
        steps = torch.randint(1, 3, (self.length,), generator=chance)
        first = torch.randint(self.text.vocabulary, (1,), generator=chance)
        ids = (first + steps.cumsum(0)) % self.text.vocabulary
        return {"input_ids": ids, "labels": ids}


class Pictures(Made):
    """Noise whose brightness tells the class."""

    def __init__(self, name: str, size: int, classes: int, seed: int) -> None:
        super().__init__(seed)
        self.name, self.size, self.classes = name, size, range(classes)

    def make(self, index: int, chance: torch.Generator) -> Any:
        """Return an image and its class."""
        label = index % len(self.classes)
        image = torch.randn(3, self.size, self.size, generator=chance)
        return {
            "inputs": {self.name: image + label / len(self.classes)},
            "labels": torch.tensor(label),
        }


class Masks(Made):
    """Noise, and where it is bright."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__(seed)
        self.size = size

    def make(self, index: int, chance: torch.Generator) -> Any:
        """Return an image and a class for each pixel."""
        image = torch.randn(3, self.size, self.size, generator=chance)
        return {"inputs": {"x": image}, "labels": (image.mean(0) > 0).long()}


class Rollout(Made):
    """Frames of a game, with what the player did and what came of it."""

    def __init__(self, actions: int, seed: int) -> None:
        super().__init__(seed)
        self.actions = actions

    def make(self, index: int, chance: torch.Generator) -> Any:
        """Return stacked frames, and what PPO needs to know of that moment."""
        frames = torch.randint(0, 256, (4, 84, 84), dtype=torch.uint8, generator=chance)
        labels = {
            "actions": torch.randint(self.actions, (), generator=chance),
            "log_probabilities": -torch.rand((), generator=chance),
            "advantages": torch.randn((), generator=chance),
            "returns": torch.randn((), generator=chance),
        }
        return {"inputs": {"x": frames}, "labels": labels}


class Latents(Made):
    """Noised latents of a diffusion model with text, and the noise in them."""

    def __init__(self, config: dict[str, Any], pixels: int, seed: int) -> None:
        super().__init__(seed)
        self.config, self.side = config, pixels // 8

    def make(self, index: int, chance: torch.Generator) -> Any:
        """Return what UNet2DConditionModel takes, and the noise."""
        config = self.config
        noise = torch.randn(config["in_channels"], self.side, self.side, generator=chance)
        text = torch.randn(77, config["cross_attention_dim"], generator=chance)
        inputs: dict[str, Any] = {
            "sample": noise,
            "timestep": torch.randint(1000, (), generator=chance),
            "encoder_hidden_states": text,
        }
        if config.get("addition_embed_type") == "text_time":
            times = 6 * config["addition_time_embed_dim"]
            pooled = config["projection_class_embeddings_input_dim"] - times
            inputs["added_cond_kwargs"] = {
                "text_embeds": torch.randn(pooled, generator=chance),
                "time_ids": torch.zeros(6),
            }
        return {"inputs": inputs, "labels": noise}
