"""Tiny configurations of diffusers' denoisers: one of each way to lay out and feed latents."""

JOINT = {"kernel": "math", "image_size": 64}
FILM = {"kernel": "math", "image_size": 64, "frames": 9}
BUILT = {"built": True}
"""The real step is of a model that diffusers builds with its memory."""
SOUND = {"kernel": "math"}
SHORT, ONE, STEPS = (8, 0), (2, 0), (4, 96)
HEADS = {"attention_head_dim": 32, "num_attention_heads": 4}
WAN = {
    "in_channels": 4, "out_channels": 4, "text_dim": 96, "freq_dim": 64, "ffn_dim": 256,
    "num_layers": 3, "rope_max_seq_len": 64, **HEADS,
}  # fmt: skip
BLOCKS = {"block_out_channels": [32, 64], "layers_per_block": 1, "cross_attention_dim": 96}

CASES = {
    "chroma": ({
        "_class_name": "ChromaTransformer2DModel", "in_channels": 16, "num_layers": 2,
        "num_single_layers": 3, "joint_attention_dim": 96, "axes_dims_rope": [8, 12, 12],
        "approximator_num_channels": 64, "approximator_hidden_dim": 64, "approximator_layers": 1,
        **HEADS,
    }, JOINT, SHORT),
    "qwen-image": ({
        "_class_name": "QwenImageTransformer2DModel", "in_channels": 16, "out_channels": 4,
        "num_layers": 3, "joint_attention_dim": 96, "axes_dims_rope": [8, 12, 12], **HEADS,
    }, JOINT | BUILT, SHORT),
    "z-image": ({
        "_class_name": "ZImageTransformer2DModel", "in_channels": 4, "dim": 128, "n_layers": 3,
        "n_refiner_layers": 1, "n_heads": 4, "n_kv_heads": 4, "cap_feat_dim": 96,
        "axes_dims": [8, 12, 12], "axes_lens": [1024, 64, 64],
    }, JOINT, SHORT),
    "lumina-2": ({
        "_class_name": "Lumina2Transformer2DModel", "in_channels": 4, "hidden_size": 128,
        "num_layers": 3, "num_refiner_layers": 1, "num_attention_heads": 4, "num_kv_heads": 2,
        "cap_feat_dim": 96, "axes_dim_rope": [8, 12, 12], "sample_size": 8,
    }, JOINT | BUILT, SHORT),
    "pixart": ({
        "_class_name": "PixArtTransformer2DModel", "in_channels": 4, "out_channels": 8,
        "num_layers": 3, "cross_attention_dim": 128, "caption_channels": 96, "sample_size": 8,
        **HEADS,
    }, JOINT, SHORT),
    "sana": ({
        "_class_name": "SanaTransformer2DModel", "in_channels": 4, "out_channels": 4,
        "num_layers": 3, "num_cross_attention_heads": 4, "cross_attention_head_dim": 32,
        "cross_attention_dim": 128, "caption_channels": 96, "sample_size": 8, **HEADS,
    }, JOINT | {"image_size": 256}, SHORT),
    "hunyuan-image": ({
        "_class_name": "HunyuanImageTransformer2DModel", "in_channels": 16, "out_channels": 16,
        "num_layers": 2, "num_single_layers": 2, "num_refiner_layers": 1, "text_embed_dim": 96,
        "rope_axes_dim": [16, 16], **HEADS,
    }, JOINT | {"image_size": 256}, SHORT),
    "dit": ({
        "_class_name": "DiTTransformer2DModel", "num_layers": 3, "sample_size": 8,
        "dropout": 0.0, "num_embeds_ada_norm": 10, **HEADS,
    }, JOINT, SHORT),
    "krea-2": ({
        "_class_name": "Krea2Transformer2DModel", "in_channels": 16, "num_layers": 3,
        "num_key_value_heads": 2, "intermediate_size": 256, "timestep_embed_dim": 32,
        "text_hidden_dim": 96, "num_text_layers": 2, "text_num_attention_heads": 3,
        "text_num_key_value_heads": 3, "text_intermediate_size": 128,
        "num_layerwise_text_blocks": 1, "num_refiner_text_blocks": 1,
        "axes_dims_rope": [8, 12, 12], **HEADS,
    }, JOINT, SHORT),
    "unconditional": ({
        "_class_name": "UNet2DModel", "in_channels": 3, "out_channels": 3, "sample_size": 32,
        "block_out_channels": [32, 64], "layers_per_block": 1, "norm_num_groups": 8,
        "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
    }, JOINT | {"image_size": 32}, SHORT),
    "wan": ({"_class_name": "WanTransformer3DModel", **WAN}, FILM, ONE),
    "wan-from-image": ({
        "_class_name": "WanTransformer3DModel", **WAN, "in_channels": 12, "image_dim": 64,
        "added_kv_proj_dim": 128,
    }, FILM, ONE),
    "wan-vace": ({
        "_class_name": "WanVACETransformer3DModel", **WAN, "vace_layers": [0, 2],
        "vace_in_channels": 8,
    }, FILM, ONE),
    "framepack": ({
        "_class_name": "HunyuanVideoFramepackTransformer3DModel", "in_channels": 4,
        "out_channels": 4, "num_layers": 2, "num_single_layers": 2, "num_refiner_layers": 1,
        "text_embed_dim": 96, "pooled_projection_dim": 32, "rope_axes_dim": [8, 12, 12],
        "image_condition_type": "latent_concat", "has_clean_x_embedder": True,
        "has_image_proj": True, "image_proj_dim": 48, **HEADS,
    }, FILM, ONE),
    "stable-audio": ({
        "_class_name": "StableAudioDiTModel", "in_channels": 8, "out_channels": 8,
        "num_layers": 3, "num_key_value_attention_heads": 2, "cross_attention_dim": 96,
        "cross_attention_input_dim": 96, "global_states_input_dim": 48, "time_proj_dim": 64,
        **HEADS,
    }, SOUND, STEPS),
    "ace-step": ({
        "_class_name": "AceStepTransformer1DModel", "in_channels": 24,
        "audio_acoustic_hidden_dim": 8, "hidden_size": 128, "intermediate_size": 256,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32,
    }, SOUND, STEPS),
    "longcat-audio": ({
        "_class_name": "LongCatAudioDiTTransformer", "dit_dim": 128, "dit_depth": 3,
        "dit_heads": 4, "dit_text_dim": 96, "latent_dim": 8,
    }, SOUND | BUILT, STEPS),
    "hunyuan-video": ({
        "_class_name": "HunyuanVideoTransformer3DModel", "in_channels": 4, "out_channels": 4,
        "num_layers": 2, "num_single_layers": 2, "num_refiner_layers": 1, "text_embed_dim": 96,
        "pooled_projection_dim": 64, "rope_axes_dim": [8, 12, 12], **HEADS,
    }, FILM, ONE),
    "ltx": ({
        "_class_name": "LTXVideoTransformer3DModel", "in_channels": 16, "out_channels": 16,
        "num_layers": 3, "cross_attention_dim": 128, "caption_channels": 96, **HEADS,
    }, FILM | {"image_size": 256}, ONE),
    "mochi": ({
        "_class_name": "MochiTransformer3DModel", "in_channels": 4, "num_layers": 3,
        "pooled_projection_dim": 64, "text_embed_dim": 96, "time_embed_dim": 32,
        "max_sequence_length": 32, **HEADS,
    }, FILM | {"frames": 7}, ONE),
    "kandinsky-5": ({
        "_class_name": "Kandinsky5Transformer3DModel", "in_text_dim": 96, "in_text_dim2": 64,
        "time_dim": 64, "model_dim": 128, "ff_dim": 256, "num_text_blocks": 1,
        "num_visual_blocks": 2, "axes_dims": [8, 12, 12],
    }, FILM | BUILT, ONE),
    "cosmos": ({
        "_class_name": "CosmosTransformer3DModel", "in_channels": 4, "out_channels": 4,
        "num_layers": 3, "text_embed_dim": 96, "adaln_lora_dim": 32, "max_size": [16, 32, 32],
        **HEADS,
    }, FILM, ONE),
    "text-to-video": ({
        "_class_name": "UNet3DConditionModel", **BLOCKS, "norm_num_groups": 8,
        "attention_head_dim": 8, "down_block_types": ["CrossAttnDownBlock3D", "DownBlock3D"],
        "up_block_types": ["UpBlock3D", "CrossAttnUpBlock3D"],
    }, FILM, ONE),
    "animate-diff": ({
        "_class_name": "UNetMotionModel", **BLOCKS, "norm_num_groups": 8,
        "down_block_types": ["CrossAttnDownBlockMotion", "DownBlockMotion"],
        "up_block_types": ["UpBlockMotion", "CrossAttnUpBlockMotion"],
    }, FILM, ONE),
    "stable-video": ({
        "_class_name": "UNetSpatioTemporalConditionModel", **BLOCKS, "num_frames": 9,
        "block_out_channels": [32, 64], "addition_time_embed_dim": 32,
        "projection_class_embeddings_input_dim": 96, "num_attention_heads": [2, 4],
        "down_block_types": ["CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"],
        "up_block_types": ["UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"],
    }, FILM, ONE),
}  # fmt: skip
"""Name -> configuration, options of its question, (batch, 0)."""
CONVOLUTIONS = ("unconditional", "text-to-video")
"""Networks of convolutions alone, which unfold their inputs on the CPU (im2col). Measured there,
so small a step takes 6.4 % and 2.1 % more than the trace, which has no such scratch."""
