"""Runs a step of a detector on the CPU: torchvision's own, or ours with given matches.

    python detection_runs.py PROGRAMS_FOLDER faster|mask SIZE < /dev/null > answers.json

Both have the same weights, images and operators, so that only what we decide in place of the
data differs. Where the CPU has no kernels of torchvision's operators (a build for another
device), stand-ins of the same shapes take their place. torchvision is brought to the most that
its recipe allows: no proposal is suppressed, and every other one matches a box; its regions are
pooled from the levels in the shares that we assume. Answers the highest number of living bytes
of each, and how many regions torchvision sampled.
"""

import gc
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
folder, kind, side = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.insert(0, folder)
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

import detection  # noqa: E402
import torch  # noqa: E402
import torchvision.models.detection as zoo  # noqa: E402
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone  # noqa: E402

IMAGES = 2


def has_kernels():
    name = "torchvision::roi_align"
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")


def stand_in():
    """Give the operators kernels of the right shapes; what they compute has no effect here."""
    for name in ("torchvision.ops.boxes", "torchvision.ops.roi_align"):
        sys.modules[name]._assert_has_ops = lambda: None
        sys.modules[name]._has_ops = lambda: True
    library = torch.library.Library("torchvision", "IMPL")
    own = torch.ops.torchvision

    def align(features, rois, scale, height, width, samples, aligned):
        return torch.zeros(rois.shape[0], features.shape[1], height, width)

    def align_backward(grad, rois, scale, height, width, *shape_and_rest):
        return torch.zeros(shape_and_rest[:4])

    class Align(torch.autograd.Function):
        @staticmethod
        def forward(context, features, rois, *rest):
            context.save_for_backward(rois)
            context.given = rest[:3], features.shape, rest[3:]
            with torch._C._AutoDispatchBelowAutograd():
                return own.roi_align(features, rois, *rest)

        @staticmethod
        def backward(context, grad):
            (rois,), (before, shape, after) = context.saved_tensors, context.given
            found = own._roi_align_backward(grad, rois, *before, *shape, *after)
            return found, *(None,) * 6

    library.impl("nms", lambda boxes, scores, limit: torch.arange(len(boxes)), "CPU")
    library.impl("roi_align", align, "CPU")
    library.impl("_roi_align_backward", align_backward, "CPU")
    library.impl("roi_align", lambda *given: Align.apply(*given), "Autograd")
    return library


def detector():
    torch.manual_seed(0)
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=3)
    made = {"faster": zoo.FasterRCNN, "mask": zoo.MaskRCNN}[kind]
    model = made(backbone, num_classes=91, min_size=side, max_size=side)
    model.rpn.nms_thresh = 1.0
    heads = model.roi_heads
    assign = heads.assign_targets_to_proposals

    def every_other(*given):
        matches, labels = assign(*given)
        for found in labels:
            found[0::2], found[1::2] = 0, 1
        return matches, labels

    heads.assign_targets_to_proposals = every_other
    for pool in (heads.box_roi_pool, heads.mask_roi_pool):
        if pool is not None:
            pool.scales = [0.5 ** (2 + level) for level in range(4)]
            pool.map_levels = levels
    return model.train()


def levels(regions):
    count = sum(map(len, regions))
    numbers = [round(share * count) for share in detection.SHARES]
    return torch.repeat_interleave(torch.arange(len(numbers)), torch.tensor(numbers))


def targets():
    corner = torch.rand(IMAGES, detection.BOXES, 2) * side / 2
    size = torch.rand(IMAGES, detection.BOXES, 2) * side / 4 + 16
    batch = {
        "images": torch.rand(IMAGES, 3, side, side),
        "boxes": torch.cat((corner, corner + size), dim=2),
        "classes": torch.ones(IMAGES, detection.BOXES, dtype=torch.int64),
    }
    if kind == "mask":
        batch["masks"] = torch.ones(IMAGES, detection.BOXES, side, side, dtype=torch.uint8)
    return batch


def apart(images, boxes, classes, masks=None):
    """Return the batch as torchvision takes it: a list of images, a dict of each one's boxes."""
    found = [{"boxes": box, "labels": label} for box, label in zip(boxes, classes, strict=True)]
    for target, mask in zip(found, () if masks is None else masks, strict=masks is not None):
        target["masks"] = mask
    return list(images.unbind()), found


def peak(forward):
    """Return the highest number of bytes over those before, in a forward and a backward pass."""
    gc.collect()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        sum(forward().values()).backward()
    events = profiler.profiler.kineto_results.events()
    living = highest = 0
    for _, change in sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"):
        living += change
        highest = max(highest, living)
    return highest


def sampled(heads):
    """Return a dict that the next step fills with the numbers of regions, and of those that
    show an object."""
    numbers, select = {}, heads.select_training_samples

    def counting(*given):
        result = select(*given)
        numbers["regions"] = sum(len(regions) for regions in result[0])
        numbers["positives"] = sum(int((labels > 0).sum()) for labels in result[2])
        return result

    heads.select_training_samples = counting
    return numbers


if __name__ == "__main__":
    torch.backends.mkldnn.enabled = False
    torch.set_num_threads(1)
    library = None if has_kernels() else stand_in()
    model, batch = detector(), targets()
    numbers = sampled(model.roi_heads)
    real = peak(lambda: model(*apart(**batch)))
    model.zero_grad(set_to_none=True)
    matched = detection.Matched(model)
    ours = peak(lambda: matched(**batch))
    json.dump({"real": real, "ours": ours, "images": IMAGES} | numbers, answers)
    answers.flush()
    os._exit(0)
