"""FLUX.2 [klein] as PEFT's comparison of methods trains it.

Source: huggingface/peft, method_comparison/image-gen (run.py, utils.py, data.py). Latents and
prompts are computed ahead and stay on the GPU, and so does the DINOv2 that scores the images.
"""

from typing import Any

import torch

LATENT, TEXT, POSITIONS = 16, 512, 4
"""Pixels a token; tokens of a prompt (``max_sequence_length``); coordinates of a position."""


def build(_name: str, pixels: int) -> Any:
    """Return the 4 B transformer; its fields are those of the published configuration."""
    import step
    from diffusers import Flux2Transformer2DModel
    from subject import Subject

    with torch.device("meta"):
        model = Flux2Transformer2DModel(
            num_layers=5, num_single_layers=20, num_attention_heads=24, attention_head_dim=128,
            joint_attention_dim=7680, guidance_embeds=False,
        )  # fmt: skip
    tokens = (pixels // LATENT) ** 2

    def batch(size: int, length: int) -> Any:
        half = torch.bfloat16
        inputs = {
            "hidden_states": torch.zeros((size, tokens, 128), dtype=half),
            "encoder_hidden_states": torch.zeros((size, TEXT, 7680), dtype=half),
            "timestep": torch.zeros((size,)),
            "img_ids": torch.zeros((size, tokens, POSITIONS), dtype=torch.int64),
            "txt_ids": torch.zeros((size, TEXT, POSITIONS), dtype=torch.int64),
        }
        return step.Batch(inputs, torch.zeros((size, tokens, 128), dtype=half))

    return Subject(model, batch, step.noise_loss, {"stack": "diffusers", "family": "flux2"})
