"""ViT-L/16 of torchvision with ten classes."""

import torchvision


def build():
    return torchvision.models.vit_l_16(num_classes=10)
