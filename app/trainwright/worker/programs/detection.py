"""R-CNN detectors of torchvision as they train, with given matches.

Which proposals survive, which anchors match and which regions are sampled depends on data.
Here their numbers are the largest that the training recipe allows, so that the step is the same
for every batch; everything else is torchvision's own network and losses. What torchvision does
image by image under no gradient (the matching) runs for one image: its scratch does not grow
with the batch.
"""

from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from refusal import Refusal
from subject import Subject, package
from torch import nn

BOXES = 8
"""Labelled boxes an image: 7.7 on average in COCO (Lin et al., arXiv 1405.0312, section 5)."""
CLASSES = 91
"""Of COCO with the background, as torchvision counts them."""
TRAINED_STAGES = 3
"""Of the backbone's five, from the last on: ``trainable_backbone_layers`` of the recipe
(torchvision ``references/detection``, from ImageNet weights, with frozen batch norms)."""
STRIDE = 32
"""Sides of the batch are padded to its multiples (``GeneralizedRCNNTransform``)."""
SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 8)
"""Assumed: the part of the regions that each level of the pyramid pools, the finest first. By
equation 1 of arXiv 1612.03144 the finest takes what is below 112 pixels, so both of the two
smallest of the five sizes of anchors, and each further level the next size."""
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the detector of that name with its losses.

    Raises:
        Refusal: there is none of the name here, or torchvision is not installed.
    """
    package("torchvision", "torchvision")
    from torchvision.models.detection import FasterRCNN, MaskRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    kinds = {"fasterrcnn_resnet50_fpn": FasterRCNN, "maskrcnn_resnet50_fpn": MaskRCNN}
    if name not in kinds:
        raise Refusal("worker.torchvision-unknown", name=name, known=", ".join(kinds))
    _register_shapes()
    backbone = resnet_fpn_backbone(
        backbone_name="resnet50", weights=None, trainable_layers=TRAINED_STAGES
    )
    fixed = tuple(p for p in backbone.body.parameters() if not p.requires_grad)
    model = Matched(kinds[name](backbone, num_classes=CLASSES))
    pixels = spec["image_size"] or 800

    def pictures(size: int, length: int) -> step.Batch:
        inputs = {
            "images": torch.zeros((size, 3, pixels, pixels)),
            "boxes": torch.zeros((size, BOXES, 4)),
            "classes": torch.zeros((size, BOXES), dtype=torch.int64),
        }
        if model.masks:
            inputs["masks"] = torch.zeros((size, BOXES, pixels, pixels), dtype=torch.uint8)
        return step.Batch(inputs, torch.zeros((size,), dtype=torch.int64))

    facts = {"stack": "torchvision", "family": name, "image_size": pixels}
    assumed = {
        "profile.assumed.boxes": BOXES,
        "profile.assumed.proposals": model.proposals,
        "profile.assumed.regions": model.regions,
        "profile.assumed.positives": model.positives,
        "profile.assumed.finest": round(100 * SHARES[0]),
    }
    return Subject(model, pictures, summed_loss, facts, fixed=fixed, assumed=assumed)


def summed_loss(output: dict[str, torch.Tensor], images: torch.Tensor, count: float) -> Any:
    """Return the sum of the losses, which are means over the images of the micro-batch."""
    return sum(output.values()) * (len(images) / count)


class Matched(nn.Module):
    """An R-CNN of torchvision in training, after the number of proposals and of regions."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector
        heads, rpn = detector.roi_heads, detector.rpn
        self.masks: bool = heads.has_mask()
        self.proposals: int = rpn._post_nms_top_n["training"]
        self.candidates: int = rpn._pre_nms_top_n["training"]
        self.regions: int = heads.fg_bg_sampler.batch_size_per_image
        self.positives = int(self.regions * heads.fg_bg_sampler.positive_fraction)
        self.anchors: int = rpn.fg_bg_sampler.batch_size_per_image
        self.cells: list[list[list[float]]] = [
            cell.tolist() for cell in rpn.anchor_generator.cell_anchors
        ]

    def forward(
        self,
        images: torch.Tensor,
        boxes: torch.Tensor,
        classes: torch.Tensor,
        masks: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the losses by name.

        Args:
            images: (B, 3, S, S), from 0 to 1.
            boxes: (B, N, 4), corners in pixels.
            classes: (B, N).
            masks: (B, N, S, S) of 0 and 1, or None.
        """
        pixels, masks = self._transformed(images, masks)
        features = self.detector.backbone(pixels)
        proposals, losses = self._propose(features, boxes, pixels.shape[-1])
        return losses | self._detect(features, proposals, boxes, classes, masks)

    def _transformed(
        self, images: torch.Tensor, masks: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Normalise, resize and pad, as ``GeneralizedRCNNTransform``."""
        mean, spread = (
            torch.as_tensor(values, dtype=images.dtype, device=images.device)[:, None, None]
            for values in (MEAN, SPREAD)
        )
        size = images.shape[-2:]
        images = F.interpolate((images - mean) / spread, size, mode="bilinear")
        if masks is not None:
            masks = F.interpolate(masks.float(), size).byte()
        padded = images.new_full(
            (*images.shape[:2], *(-(-side // STRIDE) * STRIDE for side in size)), 0
        )
        padded[:, :, : size[0], : size[1]].copy_(images)
        return padded, masks

    # First stage

    def _propose(
        self, features: dict[str, torch.Tensor], boxes: torch.Tensor, side: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return proposals (B, P, 4) and the losses of the proposing network."""
        from torchvision.models.detection.rpn import concat_box_prediction_layers

        rpn, maps, batch = self.detector.rpn, list(features.values()), len(boxes)
        scores, deltas = rpn.head(maps)
        anchors = self._anchors(maps, side).repeat(batch, 1, 1)
        scores, deltas = concat_box_prediction_layers(scores, deltas)
        decoded = rpn.box_coder.decode(deltas.detach(), list(anchors.unbind()))
        with torch.no_grad():
            proposals = self._best(
                decoded.view(batch, -1, 4), scores.detach().view(batch, -1), maps, side
            )
            labels, matched = self._match(anchors, boxes, rpn.proposal_matcher)
            wanted = rpn.box_coder.encode(list(matched.unbind()), list(anchors.unbind()))
            wanted, labels = torch.cat(wanted), labels.flatten().float()
        # Sampled: half of them positive.
        sampled = torch.zeros(batch * self.anchors, dtype=torch.int64, device=boxes.device)
        positive = sampled[: len(sampled) // 2]
        box = F.smooth_l1_loss(deltas[positive], wanted[positive], beta=1 / 9, reduction="sum")
        shown = F.binary_cross_entropy_with_logits(scores.flatten()[sampled], labels[sampled])
        return proposals, {"objectness": shown, "rpn_box": box / len(sampled)}

    def _anchors(self, maps: list[torch.Tensor], side: int) -> torch.Tensor:
        """Return the anchors of an image, (A, 4): the same in every image of a size."""
        found = []
        for cell, features in zip(self.cells, maps, strict=True):
            shifts = torch.arange(features.shape[-1], device=features.device) * (
                side // features.shape[-1]
            )
            y, x = torch.meshgrid(shifts, shifts, indexing="ij")
            place = torch.stack((x, y, x, y), dim=-1).view(-1, 1, 4)
            shapes = torch.tensor(cell, dtype=features.dtype, device=features.device)
            found.append((place + shapes).view(-1, 4))
        return torch.cat(found)

    def _best(
        self, boxes: torch.Tensor, scores: torch.Tensor, maps: list[torch.Tensor], side: int
    ) -> torch.Tensor:
        """Return the proposals that are kept; the suppression of overlaps keeps as many."""
        from torchvision.ops.boxes import clip_boxes_to_image

        counts = [
            len(cell) * features.shape[-2] * features.shape[-1]
            for cell, features in zip(self.cells, maps, strict=True)
        ]
        found, start = [], 0
        for level in scores.split(counts, dim=1):
            best = level.topk(min(self.candidates, level.shape[1]), dim=1)[1]
            found.append(best + start)
            start += level.shape[1]
        places = torch.cat(found, dim=1)
        rows = torch.arange(len(boxes), device=boxes.device)[:, None]
        likely = torch.sigmoid(scores[rows, places])
        clipped = clip_boxes_to_image(boxes[rows, places], (side, side))
        order = likely.sort(dim=1, descending=True)[1][:, : self.proposals]
        return clipped[rows, order]

    def _match(
        self, candidates: torch.Tensor, boxes: torch.Tensor, matcher: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what each candidate matches, (B, C), and its box, (B, C, 4)."""
        from torchvision.ops.boxes import box_iou

        overlap = box_iou(boxes[0], candidates[0])
        best, match = overlap.max(dim=0)
        match.masked_fill_(best < matcher.low_threshold, matcher.BELOW_LOW_THRESHOLD)
        between = (best >= matcher.low_threshold) & (best < matcher.high_threshold)
        match.masked_fill_(between, matcher.BETWEEN_THRESHOLDS)
        del overlap, best, between
        matches = match.repeat(len(boxes), 1)
        rows = torch.arange(len(boxes), device=boxes.device)[:, None]
        return matches, boxes[rows, matches.clamp(min=0)]

    # Second stage

    def _detect(
        self,
        features: dict[str, torch.Tensor],
        proposals: torch.Tensor,
        boxes: torch.Tensor,
        classes: torch.Tensor,
        masks: torch.Tensor | None,
    ) -> dict[str, torch.Tensor]:
        """Return the losses of the sampled regions: their classes, boxes and masks."""
        heads, batch = self.detector.roi_heads, len(boxes)
        rows = torch.arange(batch, device=boxes.device)[:, None]
        with torch.no_grad():
            candidates = torch.cat((proposals, boxes), dim=1)
            matches, matched = self._match(candidates, boxes, heads.proposal_matcher)
            sampled = torch.zeros((batch, self.regions), dtype=torch.int64, device=boxes.device)
            regions, matched = candidates[rows, sampled], matched[rows, sampled]
            kept = matches[rows, sampled].clamp(min=0)
            labels = classes[rows, kept].flatten()
            wanted = torch.cat(
                heads.box_coder.encode(list(matched.unbind()), list(regions.unbind()))
            )
        pooled = self._pooled(features, regions, heads.box_roi_pool)
        scores, deltas = heads.box_predictor(heads.box_head(pooled))
        positive = torch.arange(batch * self.positives, device=boxes.device)
        deltas = deltas.reshape(len(deltas), -1, 4)[positive, labels[positive]]
        box = F.smooth_l1_loss(deltas, wanted[positive], beta=1 / 9, reduction="sum")
        losses = {"class": F.cross_entropy(scores, labels), "box": box / len(labels)}
        if masks is not None:
            shown = regions[:, : self.positives]
            losses["mask"] = self._mask_loss(features, shown, labels[positive], masks)
        return losses

    def _mask_loss(
        self,
        features: dict[str, torch.Tensor],
        regions: torch.Tensor,
        labels: torch.Tensor,
        masks: torch.Tensor,
    ) -> torch.Tensor:
        heads = self.detector.roi_heads
        pooled = self._pooled(features, regions, heads.mask_roi_pool)
        scores = heads.mask_predictor(heads.mask_head(pooled))
        side = scores.shape[-1]
        with torch.no_grad():
            where = torch.cat((regions[0, :, :1], regions[0]), dim=1)
            truth = roi_align(masks[0, :, None].to(where), where, 1.0, side, -1)[:, 0]
            truth = truth.repeat(len(masks), 1, 1)
        chosen = torch.arange(len(labels), device=labels.device)
        return F.binary_cross_entropy_with_logits(scores[chosen, labels], truth)

    def _pooled(
        self, features: dict[str, torch.Tensor], regions: torch.Tensor, pool: Any
    ) -> torch.Tensor:
        """Return features (B * R, C, side, side), each level's for its share of the regions."""
        maps = [features[name] for name in pool.featmap_names]
        images = torch.arange(len(regions), device=regions.device, dtype=regions.dtype)
        images = images[:, None, None].expand(*regions.shape[:2], 1)
        rois = torch.cat((images, regions), dim=2).view(-1, 5)
        side, channels = pool.output_size[0], maps[0].shape[1]
        result = torch.zeros(
            (len(rois), channels, side, side), dtype=maps[0].dtype, device=rois.device
        )
        start = 0
        for level, (given, share) in enumerate(zip(maps, SHARES, strict=True)):
            end = start + int(len(rois) * share)
            place, start = torch.arange(start, end, device=rois.device), end
            scale = 0.5 ** (level + 2)  # the finest map has a quarter of the image's side
            found = roi_align(given, rois[place], scale, side, pool.sampling_ratio)
            result[place] = found.to(result.dtype)
        return result


# Operators


def roi_align(
    features: torch.Tensor, rois: torch.Tensor, scale: float, side: int, samples: int
) -> torch.Tensor:
    """Return the regions' features (R, C, side, side), computed in fp32 under autocast."""
    if not torch.is_autocast_enabled(features.device.type):
        return _Align.apply(features, rois.to(features.dtype), scale, side, samples)  # type: ignore[no-any-return,no-untyped-call]
    found = _Align.apply(features.float(), rois.float(), scale, side, samples)  # type: ignore[no-untyped-call]
    return found.to(features.dtype)  # type: ignore[no-any-return]


class _Align(torch.autograd.Function):
    """torchvision's operator and its gradient, whichever of its own wrappers are installed."""

    @staticmethod
    def forward(
        context: Any, features: Any, rois: Any, scale: float, side: int, samples: int
    ) -> Any:
        context.save_for_backward(rois)
        context.given = features.shape, scale, side, samples
        op = torch.ops.torchvision.roi_align
        return op(features, rois, scale, side, side, samples, False)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:  # type: ignore[override]
        (rois,), (shape, scale, side, samples) = context.saved_tensors, context.given
        op = torch.ops.torchvision._roi_align_backward
        found = op(grad, rois, scale, side, side, *shape, samples, False)
        return found, None, None, None, None


def _register_shapes() -> None:
    """Give torchvision's operators shape functions where its own are not installed."""

    def forward(features: Any, rois: Any, scale: Any, height: Any, width: Any, *rest: Any) -> Any:
        return features.new_empty((rois.shape[0], features.shape[1], height, width))

    def backward(grad: Any, rois: Any, scale: Any, height: Any, width: Any, *shape: Any) -> Any:
        return grad.new_empty(shape[:4])

    for name, shapes in (("roi_align", forward), ("_roi_align_backward", backward)):
        operator = f"torchvision::{name}"
        if not torch._C._dispatch_has_kernel_for_dispatch_key(operator, "Meta"):
            torch.library.register_fake(operator, shapes, allow_override=True)
