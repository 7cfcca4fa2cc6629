"""Trains with Lightning: lightning.yaml says the Trainer, the optimizer, the model and the data."""

import math
from pathlib import Path
from typing import Any, Literal

import hf_models
import made
import torch
from dataset import Text, collator, open_text
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from strict import InputError
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoTokenizer

FINAL = 0.1
"""Share of the learning rate that the cosine ends at."""


class Model(LightningModule):
    """A language model of transformers, with adapters where ``lora`` is given."""

    def __init__(
        self,
        model_name_or_path: str,
        random_weights: bool = False,
        dtype: Literal["float32", "bfloat16", "float16"] = "float32",
        attn_implementation: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa",
        quantization: Literal["none", "int8", "nf4", "fp4"] = "none",
        double_quantization: bool = True,
        kbit_preparation: Literal["none", "all", "norms"] = "none",
        lora: hf_models.Adapters | None = None,
        gradient_checkpointing: bool = False,
        torch_compile: bool = False,
        tf32: bool = False,
        warmup_steps: float = 0.03,
    ) -> None:
        """``warmup_steps`` below 1 is a share of all steps."""
        super().__init__()
        self.strict_loading = False  # a checkpoint has the trained weights alone
        self.warmup_steps = warmup_steps
        if tf32:
            torch.set_float32_matmul_precision("high")
        weights = hf_models.Weights(
            None if random_weights else model_name_or_path,
            getattr(torch, dtype),
            attn_implementation,
            quantization,
            double_quantization,
            kbit_preparation,
        )
        config = AutoConfig.from_pretrained(model_name_or_path)
        self.net = hf_models.build_transformer(config, weights)
        if gradient_checkpointing:
            self.net.gradient_checkpointing_enable({"use_reentrant": False})
        if lora is not None:
            self.net = hf_models.adapted(self.net, lora)
        if torch_compile:
            self.net.compile()

    def on_fit_start(self) -> None:
        """Train what ``from_pretrained`` left in evaluation."""
        self.net.train()

    def training_step(self, batch: dict[str, torch.Tensor], _number: int) -> torch.Tensor:
        """Return the loss of a micro-batch."""
        loss: torch.Tensor = self.net(**batch).loss
        self.log("loss", loss, prog_bar=True)
        return loss

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the trained weights alone."""
        trained = {name for name, one in self.named_parameters() if one.requires_grad}
        state = checkpoint["state_dict"]
        checkpoint["state_dict"] = {name: state[name] for name in state if name in trained}

    def on_fit_end(self) -> None:
        """Write the model, or its adapters, as transformers and PEFT read them."""
        if self.trainer.is_global_zero:
            self.net.save_pretrained(Path(self.trainer.default_root_dir) / "model")


class Data(LightningDataModule):
    """Samples of text: .npy, .bin, .jsonl, .txt, or a folder of them."""

    def __init__(
        self,
        model_name_or_path: str,
        path: str | None = None,
        synthetic: bool = False,
        tokenizer: str | None = None,
        max_length: int = 1024,
        packed: bool = False,
        batch_size: int = 1,
        num_workers: int = 0,
        prefetch_factor: int | None = None,
        pin_memory: bool = True,
        persistent_workers: bool = False,
    ) -> None:
        """``synthetic`` makes data up, to try a run."""
        super().__init__()
        self.loading: dict[str, Any] = {
            "batch_size": batch_size,
            "num_workers": num_workers,
            "prefetch_factor": prefetch_factor,
            "pin_memory": pin_memory,
            "persistent_workers": persistent_workers,
        }
        reads = AutoTokenizer.from_pretrained(tokenizer) if tokenizer else None
        self.text = Text.of(AutoConfig.from_pretrained(model_name_or_path), reads)
        if synthetic:
            self.samples: Any = made.MadeTokens(self.text, max_length, 0)
        elif path is None:
            raise InputError("no dataset: name one with --data.path, or try --data.synthetic true")
        else:
            self.samples = open_text(Path(path), max_length, self.text, reads, packed=packed)

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the batches, in an order of chance; Lightning shares them between processes."""
        return DataLoader(
            self.samples,
            shuffle=True,
            drop_last=True,
            collate_fn=collator(self.text),
            **self.loading,
        )


class Program(LightningCLI):
    """Adds the schedule: a warmup, then a cosine."""

    @staticmethod
    def configure_optimizers(
        lightning_module: LightningModule,
        optimizer: torch.optim.Optimizer,
        lr_scheduler: Any = None,
    ) -> Any:
        """Return the optimizer of lightning.yaml with a schedule of steps."""
        steps = lightning_module.trainer.estimated_stepping_batches
        warmup = lightning_module.warmup_steps
        warmup = math.ceil(warmup * steps) if warmup < 1 else warmup

        def rate(step: int) -> float:
            if step < warmup:
                return (step + 1) / warmup
            done = min(1.0, (step - warmup) / max(1, steps - warmup))
            return FINAL + (1 - FINAL) * (1 + math.cos(math.pi * done)) / 2

        schedule = {"scheduler": LambdaLR(optimizer, rate), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": schedule}


if __name__ == "__main__":
    Program(Model, Data, save_config_callback=None)
