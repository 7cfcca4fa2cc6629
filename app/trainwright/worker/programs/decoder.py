"""One decoding process: reads pictures, says ready, and decodes for as long as it is told, often.

Started by path by ``bench_decode``. Standard input: a line of JSON (``library``, ``sizes`` of the
files), the files, then seconds, one number a line; standard output: ``ready`` with the library's
version, or ``absent`` with
the reason, then pictures and seconds of each run, a JSON list a line.
"""

import io
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def library(name: str) -> tuple[Callable[[bytes], Any], str]:
    """Return (function that decodes a JPEG into 8-bit RGB on one thread, version).

    Raises:
        ImportError: the library is not there; other errors: it does not work.
    """
    if name == "pillow":
        import PIL
        from PIL import Image

        return lambda file: Image.open(io.BytesIO(file)).convert("RGB"), PIL.__version__
    if name == "torchvision":
        import torch
        import torchvision
        from torchvision.io import ImageReadMode, decode_jpeg

        torch.set_num_threads(1)
        view = torch.frombuffer

        def by_torchvision(file: bytes) -> Any:
            return decode_jpeg(view(bytearray(file), dtype=torch.uint8), mode=ImageReadMode.RGB)

        return by_torchvision, torchvision.__version__
    if name == "opencv":
        import cv2
        import numpy

        cv2.setNumThreads(1)
        kind = cv2.IMREAD_COLOR
        return lambda file: cv2.imdecode(numpy.frombuffer(file, numpy.uint8), kind), cv2.__version__
    if name == "simplejpeg":
        import simplejpeg

        return simplejpeg.decode_jpeg, getattr(simplejpeg, "__version__", "?")
    raise ImportError(name)


LIBRARIES = ("pillow", "torchvision", "opencv", "simplejpeg")


def main() -> None:
    """Serve until standard input ends."""
    source = sys.stdin.buffer
    question = json.loads(source.readline())
    files = [source.read(size) for size in question["sizes"]]
    try:
        decode, version = library(question["library"])
        for file in files:  # warm-up
            decode(file)
    except ImportError:
        _say(["absent", ""])
        return
    except Exception as error:
        _say(["absent", str(error).partition(". ")[0][:200]])
        return
    _say(["ready", version])
    while line := source.readline():
        end = (began := time.perf_counter()) + float(line)
        count = 0
        while (now := time.perf_counter()) < end:
            decode(files[count % len(files)])
            count += 1
        _say([count, now - began])


def _say(message: list[Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
