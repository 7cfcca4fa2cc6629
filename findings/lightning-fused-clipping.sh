#!/usr/bin/env bash
# Lightning refuses to clip gradients for a fused AdamW in bf16, which scales no gradients.
#
# Version: lightning 2.6.6, torch 2.13.0.
# Expected: gradient_clip_val works with AdamW(fused=True) under precision="bf16-mixed": only fp16
#   needs a gradient scaler, and so nothing has to be unscaled before clipping.
# Seen: a RuntimeError at the first step, in words about unscaling. With foreach=True, or in fp32,
#   the same run trains.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 lightning==2.6.6 numpy

cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self, way):
        super().__init__()
        self.layer, self.way = torch.nn.Linear(8, 1), way

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), **{self.way: True})


def ended(precision, way):
    trainer = lightning.Trainer(
        accelerator="cpu", precision=precision, gradient_clip_val=1.0, max_steps=2, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    try:
        trainer.fit(Net(way), DataLoader(TensorDataset(torch.randn(8, 8)), batch_size=4))
    except RuntimeError as error:
        return "refused" if "unscaling of gradients" in str(error) else repr(error)
    return "trained"


runs = (("bf16-mixed", "fused"), ("bf16-mixed", "foreach"), ("32-true", "fused"))
seen = {each: ended(*each) for each in runs}
print(seen)
assert list(seen.values()) == ["refused", "trained", "trained"], seen
PY
