"""Faster and Mask R-CNN of detectron2's model zoo, by torchvision's network of the same recipe.

Source: facebookresearch/detectron2, MODEL_ZOO.md and configs/Base-RCNN-FPN.yaml: FPN, frozen batch
norms, the first two stages frozen, 1000 proposals an image after suppression, 512 regions, a
quarter of them positive. Images have up to 800 x 1333 pixels, padded to 1344, and the peak is that
of the image with the most objects: overlaps of all its boxes with all anchors are computed at once.
Masks are polygons on the host, of which 28 x 28 pixels a region reach the GPU.
"""

from typing import Any

BACKBONES = {"r50": "resnet50", "r101": "resnet101", "x101": "resnext101_32x8d"}
PROPOSALS, CANDIDATES = 1000, 2000
HEIGHT, WIDTH = 800, 1344
BOXES = 93
"""Assumed: most labelled objects in an image of COCO train2017; EfficientDet pads them to 100."""


def build(name: str, _pixels: int) -> Any:
    """Return the detector: faster-r50, mask-x101 and so on."""
    import detection
    import step
    import torch
    from subject import Subject
    from torchvision.models.detection import FasterRCNN, MaskRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    kind, _, depth = name.partition("-")
    detection._register_shapes()
    with torch.device("meta"):
        backbone = resnet_fpn_backbone(
            backbone_name=BACKBONES[depth], weights=None, trainable_layers=3
        )
        detector = {"faster": FasterRCNN, "mask": MaskRCNN}[kind](
            backbone, num_classes=81,
            rpn_pre_nms_top_n_train=CANDIDATES, rpn_post_nms_top_n_train=PROPOSALS,
        )  # fmt: skip
        model = _oblong(detection.Matched)(detector)

    def batch(size: int, length: int) -> Any:
        inputs = {
            "images": torch.zeros((size, 3, HEIGHT, WIDTH)),
            "boxes": torch.zeros((size, BOXES, 4)),
            "classes": torch.zeros((size, BOXES), dtype=torch.int64),
        }
        if model.masks:
            inputs["masks"] = torch.zeros((size, 1, 1, 1), dtype=torch.uint8)
        return step.Batch(inputs, torch.zeros((size,), dtype=torch.int64))

    facts = {"stack": "torchvision", "family": name}
    return Subject(model, batch, detection.summed_loss, facts)


def _oblong(matched: Any) -> Any:
    """Return the detector for images that are not squares, with masks from the host."""
    import torch

    class Oblong(matched):  # type: ignore[misc]
        def _transformed(self, images: Any, masks: Any) -> Any:
            return super()._transformed(images, None)[0], masks

        def _anchors(self, maps: Any, side: int) -> Any:
            found = []
            for cell, features in zip(self.cells, maps, strict=True):
                height, width = features.shape[-2:]
                stride, device = side // width, features.device
                rows, columns = (
                    torch.arange(count, device=device) * stride for count in (height, width)
                )
                y, x = torch.meshgrid(rows, columns, indexing="ij")
                place = torch.stack((x, y, x, y), dim=-1).view(-1, 1, 4)
                shapes = torch.tensor(cell, dtype=features.dtype, device=device)
                found.append((place + shapes).view(-1, 4))
            return torch.cat(found)

    return Oblong
