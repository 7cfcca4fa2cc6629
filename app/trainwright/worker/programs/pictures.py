"""Pictures for measuring decoders: made when they are needed, as large and as busy as photographs.

A JPEG decoder's time follows the bytes of its input. ImageNet's mean file has 110 KB for
469 x 387 pixels, 4.9 bits a pixel; these have about as many.
"""

import io
import os
from typing import Any

from refusal import Refusal

WIDTH, HEIGHT = 500, 375
"""The most frequent size of ImageNet's pictures, near their mean."""
BITS_PER_PIXEL = 4.9
COUNT = 16
"""Assumed: enough that none stays in a core's own cache."""
OCTAVES = (4, 8, 16, 32, 64, 128, 256)
"""Grains of the picture in pixels a side: photographs have detail at every scale."""
QUALITIES = (75, 80, 85, 88, 90, 92, 94, 95, 96, 97, 98)


def photographs() -> list[bytes]:
    """Return JPEG files of synthetic pictures.

    Raises:
        Refusal: this Python has no Pillow to make them with.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise Refusal("bench.no-pillow") from error
    first = _picture(Image)
    quality = min(QUALITIES, key=lambda one: abs(_bits(_encoded(first, one)) - BITS_PER_PIXEL))
    return [
        _encoded(first, quality),
        *(_encoded(_picture(Image), quality) for _ in range(COUNT - 1)),
    ]


def _picture(image: Any) -> Any:
    """Return noise of every grain, the fine ones faint: amplitudes go as the grain's size."""
    whole = image.new("RGB", (WIDTH, HEIGHT), (128, 128, 128))
    for number, cells in enumerate(OCTAVES):
        rows = max(2, cells * HEIGHT // WIDTH)
        grain = image.frombytes("RGB", (cells, rows), os.urandom(3 * cells * rows))
        smooth = grain.resize((WIDTH, HEIGHT), image.Resampling.BICUBIC)
        whole = image.blend(whole, smooth, max(0.12, 0.55 / (number + 1)))
    return whole


def _encoded(picture: Any, quality: int) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _bits(file: bytes) -> float:
    return 8 * len(file) / (WIDTH * HEIGHT)
