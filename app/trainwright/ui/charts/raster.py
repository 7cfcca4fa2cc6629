"""Stacked steps as a picture: one look-up for each pixel instead of thousands of corners."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage


def stacked(
    tops: NDArray[np.float64], fills: Sequence[QColor], outline: QColor, height: int
) -> QImage:
    """Return a stack of bands, transparent above it, with a line along its upper edge.

    Args:
        tops: (bands, columns) upper edge of each band in pixels from the upper edge of the
            picture, the lowest band first; not below the edge of the next lower one.
        fills: colour of each band, opaque.
        outline: colour of the line.
        height: of the picture in pixels.
    """
    rows = np.arange(height)[:, None]
    edges = np.clip(np.rint(tops), 0, height).astype(np.int32)
    pixels = np.zeros((height, tops.shape[1]), dtype=np.uint32)
    for edge, fill in zip(edges[::-1], reversed(fills), strict=True):
        flat = int(edge.min())
        if flat == int(edge.max()):
            pixels[flat:] = fill.rgba()
        else:
            np.copyto(pixels[flat:], np.uint32(fill.rgba()), where=rows[flat:] >= edge)
    highest = edges[-1]
    before = np.concatenate((highest[:1], highest[:-1]))
    line = (rows >= np.minimum(highest, before)) & (rows <= np.maximum(highest, before))
    pixels[line] = outline.rgba()
    width = pixels.shape[1]
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32)
    return image.copy()  # the array goes with this call


def over(fill: QColor, alpha: float, ground: QColor) -> QColor:
    """Return the opaque colour that a translucent fill gives on a ground."""
    mixed = (
        round(a * alpha + b * (1 - alpha))
        for a, b in zip(fill.getRgb()[:3], ground.getRgb()[:3], strict=True)  # type: ignore[index]
    )
    return QColor(*mixed)
