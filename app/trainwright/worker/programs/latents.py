"""What a denoiser of diffusers is fed: by the parameters of its forward and its configuration.

``FEEDS`` has a function for each parameter that is known. One that returns None leaves out its
parameter, which the configuration then has no use for.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import known
import torch
from pipelines import Usual
from torch import nn

IMAGE, VIDEO, FRAMES, TOKENS, LAST = "image", "video", "frames", "tokens", "last"
"""Layouts: (batch, channels, height, width), (batch, channels, frames, height, width), frames
before channels, (batch, places, channels), and (batch, frames, height, width, channels)."""

CLIP_PATCHES = 257
"""Tokens of an image from CLIP's ViT-L/14 and ViT-H/14, at 224 pixels and with its class."""
SIGLIP_PATCHES = 729
"""Tokens of an image from SigLIP's so400m/14, at 384 pixels: ``HunyuanVideo15``'s and others'."""
HISTORY = {"clean": 2, "history_2x": 2, "history_4x": 16}
"""Latent frames that FramePack's pipeline keeps of what was made before, by how it thins them."""
CHANNELS = ("in_channels", "in_visual_dim", "in_dim", "latent_channel")
TEXT = (
    *("text_dim", "text_embed_dim", "joint_attention_dim", "caption_channels", "cap_feat_dim"),
    *("cross_attention_input_dim", "text_in_dim", "in_text_dim", "context_in_dim"),
    *("llm_features_dim", "text_hidden_dim", "encoder_hid_dim", "encoder_hidden_size"),
    *("cond_token_dim", "cross_attention_dim", "condition_dim", "encoder_hidden_states_channels"),
)
POOLED = ("pooled_projection_dim", "in_text_dim2", "cond_embed_dim")
"""Keys of configurations for one size, as the classes call it; the first that is there counts."""


@dataclass(frozen=True)
class Canvas:
    """Size of what is denoised."""

    height: int
    width: int
    """In latents."""
    frames: int = 1
    """In latents; 1 for images."""


@dataclass(frozen=True)
class Scene:
    """A micro-batch of a denoiser that is to be fed."""

    config: Any
    usual: Usual
    layout: str
    canvas: Canvas
    batch: int

    def size(self, *keys: str) -> int:
        """Return the first of the keys that the configuration gives as a whole number, or 0."""
        found = [self.config.get(key) for key in keys]
        found = [each[0] if isinstance(each, (list, tuple)) and each else each for each in found]
        return next((each for each in found if type(each) is int), 0)

    @property
    def places(self) -> int:
        """Tokens that the pipeline makes of the latents."""
        side = packing(self.config, self.usual)
        return self.canvas.frames * (self.canvas.height // side) * (self.canvas.width // side)

    @property
    def patches(self) -> int:
        """Tokens that the model makes of the latents of an image."""
        side = patch(self.config)
        return (self.canvas.height // side) * (self.canvas.width // side)

    @property
    def text(self) -> int:
        """Tokens of a sample's text."""
        keys = ("max_text_seq_length", "text_len", "max_sequence_length", "num_embeddings")
        return self.size(*keys) or self.usual.text

    def vector(self, width: int) -> torch.Tensor | None:
        """Return a vector a sample; None where it has no width."""
        return torch.zeros((self.batch, width)) if width else None

    def words(self, width: int, length: int = 0) -> torch.Tensor | None:
        """Return a vector a token of text; None where it has no width."""
        return torch.zeros((self.batch, length or self.text, width)) if width else None

    def latents(self, channels: int) -> torch.Tensor:
        """Return what is denoised, with as many channels."""
        place = (self.canvas.height, self.canvas.width)
        film = (self.canvas.frames, *place)
        row = self.places + (self.text if "llm_features_dim" in self.config else 0)
        shapes = {
            IMAGE: (channels, *place),
            VIDEO: (channels, *film),
            FRAMES: (film[0], channels, *place),
            LAST: (*film, channels),
            TOKENS: (row, channels),
        }
        return torch.zeros((self.batch, *shapes[self.layout]))


def layout(model: Any, channels: int) -> str:
    """Return how a class lays out its latents, by its forward and its first layers."""
    taken, config = inspect.signature(model.forward).parameters, model.config
    own = [each for each in model.children() if isinstance(each, nn.Linear)]
    embeds = any(each.in_features == channels for each in own[:1])
    if embeds or ({"img_ids", "img_shapes"} & taken.keys() and "img_sizes" not in taken):
        return TOKENS
    if "visual_rope_pos" in taken:
        return LAST
    name = type(model).__name__
    if {"temporal_compression_ratio", "num_frames"} & config.keys() or "r_timestep" in taken:
        return FRAMES
    return VIDEO if is_video(name) else IMAGE


def is_video(name: str) -> bool:
    """Return whether a class denoises videos; ``plan/model.py`` has the same."""
    return any(word in name for word in ("3D", "Video", "Motion", "SpatioTemporal", "I2VGen"))


def packing(config: Any, usual: Usual) -> int:
    """Return the latents a side of a token that the pipeline makes."""
    return 1 if "vae_scale_factors" in config or "patch_size_t" in config else usual.packing


def patch(config: Any) -> int:
    """Return the latents a side of a token that the model makes; 1 for convolutions."""
    found = next((config[k] for k in ("patch_size", "all_patch_size") if config.get(k)), 1)
    return int(found[-1] if isinstance(found, (list, tuple)) else found)


# Feeds


def _noisy(scene: Scene) -> torch.Tensor:
    """Return what is denoised; Kandinsky's has a first frame and its mask behind it."""
    channels = scene.size(*CHANNELS)
    return scene.latents(2 * channels + 1 if scene.config.get("visual_cond") else channels)


def _text(scene: Scene) -> Any:
    width = scene.size(*TEXT)
    if "llm_features_dim" in scene.config:  # Ideogram: text and image in one row
        return scene.words(width, scene.text + scene.places)
    if "motion_max_seq_length" in scene.config:  # AnimateDiff's pipeline repeats it a frame
        return torch.zeros((scene.batch * scene.canvas.frames, scene.text, width))
    if (blocks := scene.config.get("injection_layer_ids")) is not None:  # Bria's FIBO 2
        return torch.zeros((scene.batch, 1 + len(blocks), scene.text, width))
    if layers := scene.size("num_text_layers"):
        return torch.zeros((scene.batch, scene.text, layers, width))
    return scene.words(width)


def _mask(scene: Scene, length: int = 0) -> torch.Tensor:
    """Return that all tokens of the text count; a trace knows it."""
    return known.whole([[True] * (length or scene.text)] * scene.batch)


def _second(scene: Scene) -> Any:
    """Return a second encoder's text, where the model has a width for it."""
    return scene.words(scene.size("text_embed_2_dim"), scene.usual.second)


def _layers(scene: Scene) -> list[Any] | None:
    """Return what each layer of the text encoder made, for a block each."""
    blocks = scene.size("num_layers") + scene.size("num_single_layers")
    return [scene.words(scene.size("text_encoder_dim"))] * blocks


def _time(scene: Scene) -> torch.Tensor:
    """Return how far each sample's noise is, or each frame's where the steps are of frames."""
    frames = (scene.canvas.frames,) if "deltatime_type" in scene.config else ()
    return torch.zeros((scene.batch, *frames))


def _guidance(scene: Scene) -> torch.Tensor | None:
    return torch.zeros((scene.batch,)) if scene.config.get("guidance_embeds") else None


def _ids(places: int, scene: Scene) -> torch.Tensor | None:
    """Return positions: with three axes the same for all samples, FLUX.2's four of each."""
    if scene.layout != TOKENS:  # HiDream makes them itself
        return None
    axes = len(scene.config.get("axes_dims_rope") or scene.config.get("axes_dims"))
    each = axes > 3 and "timestep_guidance_channels" in scene.config
    return torch.zeros((scene.batch, places, axes) if each else (places, axes))


def _shapes(scene: Scene) -> list[Any]:
    side = packing(scene.config, scene.usual)
    grid = (scene.canvas.frames, scene.canvas.height // side, scene.canvas.width // side)
    return [[grid]] * scene.batch


def _classes(scene: Scene) -> torch.Tensor | None:
    """Return a class a sample, of those that the model can be told."""
    if not scene.size("num_embeds_ada_norm", "num_class_embeds"):
        return None
    if scene.config.get("norm_type") == "ada_norm_single":
        return None
    return torch.zeros((scene.batch,), dtype=torch.int64)


def _added(scene: Scene) -> dict[str, Any] | None:
    """Return SDXL's pooled text and six numbers, or the size of the image for PixArt."""
    config = scene.config
    if config.get("addition_embed_type") == "text_time":
        times = scene.size("addition_time_embed_dim")
        pooled = scene.size("projection_class_embeddings_input_dim")
        return {
            "text_embeds": scene.vector(pooled - 6 * times),
            "time_ids": torch.zeros((scene.batch, 6)),
        }
    if config.get("norm_type") != "ada_norm_single":
        return None
    told = config.get("use_additional_conditions")
    told = scene.size("sample_size") == 128 if told is None else told  # PixArtTransformer2DModel
    sizes = {"resolution": 2, "aspect_ratio": 1}
    return {key: scene.vector(width * bool(told)) for key, width in sizes.items()}


def _seen(scene: Scene) -> torch.Tensor | None:
    """Return tokens of a first image, where the class has a projection for them."""
    return scene.words(scene.size("image_dim"), CLIP_PATCHES)


def _seen_by_siglip(scene: Scene) -> torch.Tensor | None:
    return scene.words(scene.size("image_embed_dim", "image_proj_dim"), SIGLIP_PATCHES)


def _before(frames: int) -> "Feed":
    """Return a feed of frames that were made before, for a class with an embedding of them."""

    def feed(scene: Scene) -> torch.Tensor | None:
        if not scene.config.get("has_clean_x_embedder"):
            return None
        place = (scene.canvas.height, scene.canvas.width)
        return torch.zeros((scene.batch, scene.size(*CHANNELS), frames, *place))

    return feed


def _numbers(frames: int) -> "Feed":
    """Return a feed of the numbers of so many frames."""
    return lambda scene: known.whole([*range(frames)])


def _padding(scene: Scene) -> torch.Tensor | None:
    """Return which pixels of the canvas are no image, the same for all samples."""
    if not scene.config.get("concat_padding_mask"):
        return None
    return torch.zeros((1, 1, scene.canvas.height * 8, scene.canvas.width * 8))


def _rotary(scene: Scene) -> Any:
    """Return the cosine and sine of each place, as CogVideoX's pipeline makes them."""
    config = scene.config
    if not config.get("use_rotary_positional_embeddings"):
        return None
    patch, through = scene.size("patch_size"), scene.size("patch_size_t") or 1
    canvas = scene.canvas
    places = -(-canvas.frames // through) * (canvas.height // patch) * (canvas.width // patch)
    return [torch.zeros((places, config.attention_head_dim)) for _ in range(2)]


def _pose(scene: Scene) -> torch.Tensor:
    """Return the latents of a drawn pose, of all frames but the first."""
    return scene.latents(scene.size("latent_channels"))[:, :, 1:]


def _face(scene: Scene) -> torch.Tensor:
    """Return the frames of a face, in the size of the class's encoder of motion."""
    side = scene.size("motion_encoder_size")
    frames = (scene.canvas.frames - 1) * scene.usual.frames + 1
    return torch.zeros((scene.batch, 3, frames, side, side))


def _heard(scene: Scene) -> int:
    """Return the latents of the sound of a video of 24 frames a second, LTX-2's default."""
    frames = (scene.canvas.frames - 1) * scene.usual.frames + 1
    rate = scene.size("audio_sampling_rate") / scene.size("audio_hop_length")
    return round(frames / 24 * rate / scene.size("audio_scale_factor"))


def _sound(scene: Scene) -> torch.Tensor | None:
    """Return the latents of a video's sound, where the model must have it."""
    if not scene.size("audio_sampling_rate"):
        return None
    return torch.zeros((scene.batch, _heard(scene), scene.size("audio_in_channels")))


def _positions(scene: Scene) -> torch.Tensor:
    """Return three coordinates of each token of text and image, for all samples or for each."""
    shape = (scene.text + scene.places, 3)
    return torch.zeros((scene.batch, *shape) if "mrope_section" in scene.config else shape)


def _row(scene: Scene) -> torch.Tensor:
    """Return what each token of Ideogram's row is; whose it is has no effect on sizes."""
    return torch.zeros((scene.batch, scene.text + scene.places), dtype=torch.int64)


def _turned(scene: Scene) -> list[torch.Tensor]:
    """Return the cosine and sine of each patch of Hunyuan-DiT."""
    return [torch.zeros((scene.patches, scene.size("attention_head_dim"))) for _ in range(2)]


def _t5(scene: Scene) -> torch.Tensor | None:
    width = scene.size("cross_attention_dim_t5", "text_embed_dim_t5", "caption_channels")
    return scene.words(width, scene.size("text_len_t5"))


def _llama(scene: Scene) -> torch.Tensor:
    """Return what each layer of Llama made of the text, for HiDream."""
    layers = max(scene.config.get("llama_layers") or [0]) + 1
    return torch.zeros((layers, scene.batch, scene.text, scene.size("caption_channels")))


def _axes(scene: Scene) -> list[torch.Tensor]:
    """Return the positions along each axis of the patches of a video, for Kandinsky."""
    lengths = (scene.canvas.frames, scene.canvas.height, scene.canvas.width)
    return [torch.arange(n // p) for n, p in zip(lengths, scene.config.patch_size, strict=True)]


Feed = Callable[[Scene], Any]
FEEDS: dict[str, Feed] = {
    "hidden_states": _noisy,
    "sample": _noisy,
    "timestep": _time,
    "r_timestep": _time,
    "timestep_r": lambda scene: _time(scene) if scene.config.get("use_meanflow") else None,
    "encoder_hidden_states": _text,
    "encoder_attention_mask": _mask,
    "encoder_mask": _mask,
    "encoder_hidden_states_mask": _mask,
    "text_bth": _text,
    "text_lens": lambda scene: known.whole([scene.text] * scene.batch),
    "pooled_projections": lambda scene: scene.vector(scene.size(*POOLED)),
    "encoder_hidden_states_2": _second,
    "encoder_attention_mask_2": lambda scene: (
        _mask(scene, scene.usual.second) if scene.size("text_embed_2_dim") else None
    ),
    "text_encoder_layers": _layers,
    "mask": _mask,
    "indicator": _row,
    "segment_ids": _row,
    # Hunyuan-DiT's and HiDream's several encoders of text.
    "timesteps": _time,
    "encoder_hidden_states_t5": _t5,
    "encoder_hidden_states_llama3": _llama,
    "pooled_embeds": lambda scene: scene.vector(scene.size("text_emb_dim")),
    "text_embedding_mask": _mask,
    "text_embedding_mask_t5": lambda scene: _mask(scene, scene.size("text_len_t5")),
    "image_meta_size": lambda scene: scene.vector(6),
    "style": lambda scene: torch.zeros((scene.batch,), dtype=torch.int64),
    "encoder_hidden_states_image": _seen,
    "image_embeds": _seen_by_siglip,
    "prior_token_id": lambda scene: torch.zeros((scene.batch, scene.patches), dtype=torch.int64),
    "prior_token_drop": lambda scene: known.whole([False] * scene.batch),
    "image_latents": _noisy,
    "image_embeddings": lambda scene: scene.vector(scene.size("cross_attention_dim")),
    "fps": _time,
    "control_hidden_states": lambda scene: scene.latents(scene.size("vace_in_channels")),
    "pose_hidden_states": _pose,
    "face_pixel_values": _face,
    "audio_hidden_states": _sound,
    "audio_encoder_hidden_states": _text,
    "audio_encoder_attention_mask": _mask,
    "audio_num_frames": lambda scene: _heard(scene),
    "sigma": _time,
    "guidance": _guidance,
    "img_ids": lambda scene: _ids(scene.places, scene),
    "txt_ids": lambda scene: _ids(scene.text, scene),
    "img_shapes": _shapes,
    "original_size": lambda scene: scene.vector(2),
    "target_size": lambda scene: scene.vector(2),
    "crop_coords": lambda scene: scene.vector(2),
    "class_labels": _classes,
    "added_cond_kwargs": _added,
    "indices_latents": lambda scene: known.whole([*range(scene.canvas.frames)]),
    **{f"latents_{name}": _before(frames) for name, frames in HISTORY.items()},
    **{f"indices_latents_{name}": _numbers(frames) for name, frames in HISTORY.items()},
    "added_time_ids": lambda scene: scene.vector(3),
    "padding_mask": _padding,
    "image_rotary_emb": lambda scene: (
        _turned(scene) if "text_len_t5" in scene.config else _rotary(scene)
    ),
    "visual_rope_pos": _axes,
    "text_rope_pos": lambda scene: torch.arange(scene.text),
    "position_ids": _positions,
    "num_frames": lambda scene: scene.canvas.frames,
    "height": lambda scene: scene.canvas.height,
    "width": lambda scene: scene.canvas.width,
    # Z-Image's lists of samples: each of channels, frames, height and width.
    "t": _time,
    "x": lambda scene: list(scene.latents(scene.size(*CHANNELS)).unsqueeze(2)),
    "cap_feats": lambda scene: list(_text(scene)),
    # Codes of the VQ-GAN of aMUSEd, some masked, and five numbers of size, crop and taste.
    "input_ids": lambda scene: torch.zeros(
        (scene.batch, scene.canvas.height, scene.canvas.width), dtype=torch.int64
    ),
    "pooled_text_emb": lambda scene: scene.vector(scene.size(*POOLED)),
    "micro_conds": lambda scene: scene.vector(5),
}
"""Parameter of forward -> what it is given."""
ALWAYS = {"text_embedding_mask", "text_embedding_mask_t5", "encoder_attention_mask_2"}
"""Masks that the forward of Hunyuan's models calls optional and cannot do without."""


def feed(model: Any, scene: Scene) -> dict[str, Any]:
    """Return the arguments of forward.

    A mask of the text is given where forward cannot do without or the pipeline gives it, frames a
    second only where it cannot do without.
    """
    given: dict[str, Any] = {}
    for each in inspect.signature(model.forward).parameters.values():
        needed = each.default is each.empty or each.name in ALWAYS
        spared = "mask" in each.name and not scene.usual.gives(each.name)
        if each.name not in FEEDS or (not needed and (spared or each.name == "fps")):
            continue
        value = FEEDS[each.name](scene)
        if isinstance(value, torch.Tensor) and each.name == "timestep":
            value = value.long() if "int" in str(each.annotation) else value
        if value is not None or each.default is each.empty:
            given[each.name] = value
    return given
