"""Which configurations are those of models whose samples are images alone."""

from collections.abc import Mapping
from typing import Any

OF_IMAGES = (
    "ForImageClassification", "ForMaskedImageModeling",
    "ForVideoClassification", "ForDepthEstimation", "ForObjectDetection", "Segmentation",
    "ForImageClassificationWithTeacher", "ForKeypointDetection", "ForKeypointMatching",
    "ForImageMatting", "ForNormalEstimation", "ForPoseEstimation", "ForPointmapEstimation",
    "ForImageSuperResolution", "ForTextRecognition", "ForTableRecognition",
)  # fmt: skip
"""Ends of the names of transformers' classes whose samples are images alone."""
WRITES = "ForCausalLM"
"""End of the names of those that write text. Fuyu's configuration has its vocabulary in a part."""


def sees_images(config: Mapping[str, Any]) -> bool:
    """Return whether a configuration is that of a model whose samples are images alone."""
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    if isinstance(name, str) and name.endswith(OF_IMAGES):
        return True
    if isinstance(name, str) and name.endswith(WRITES):
        return False
    return "vocab_size" not in config and ("image_size" in config or "num_channels" in config)
