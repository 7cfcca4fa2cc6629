"""What a class of operators reaches of its roof, by the size of a run: the calibration, drawn."""

import numpy as np

from trainwright.catalog import GpuRecord
from trainwright.estimate.efficiency import Curves
from trainwright.estimate.kernels import NUMBER, WIDTH, Kernels
from trainwright.estimate.roofline import Rates, kernel_seconds
from trainwright.profile.profile import Floats

Curve = tuple[tuple[float, float], ...]
"""(size of a run, share of the roof): FLOP of products, bytes of everything else."""

_PRODUCTS = ("gemm", "batched-gemm", "convolution", "attention")
"""Classes whose shapes are three sides; they are drawn for equal ones."""
_SIDES = np.array(sorted({n * 2.0**power for power in range(3, 13) for n in (2, 3)}))
"""Multiples of 8: others are slower, and would make the curve jump."""
_BYTES = 10.0 ** np.arange(0, 10.5, 0.25)


def curve(
    group: str, dtype: str, peak: float | None, record: GpuRecord, rates: Rates, curves: Curves
) -> Curve:
    """Return what runs of a class reach of the data sheet's ``peak`` or bandwidth.

    Empty of classes whose time does not follow from one size: grouped and depthwise
    convolutions, batch normalisation.
    """
    products = group in _PRODUCTS
    if group not in NUMBER or (products and peak is None):
        return ()
    if not products and any(part in group for part in ("convolution", "gemm", "batch-norm")):
        return ()
    found = _cubes(group, dtype) if products else _moves(group)
    seconds = kernel_seconds(found, np.ones(len(found.row)), rates, curves, (dtype,)).seconds
    reached = found.bytes / seconds / record.bandwidth_bytes_per_s.value
    if peak is not None:
        reached = np.maximum(reached, found.flops / seconds / peak)
    sizes = found.flops if products else found.bytes
    return tuple(zip(sizes.tolist(), reached.tolist(), strict=True))


def _cubes(group: str, dtype: str) -> Kernels:
    """Return products of three equal sides."""
    each = WIDTH.get(dtype, 4) * _SIDES**2
    shape = np.stack([_SIDES, _SIDES, _SIDES])
    activations = each * 2 if group != "attention" else each * 0
    return _kernels(group, 2 * _SIDES**3, 3 * each, shape, activations)


def _moves(group: str) -> Kernels:
    """Return kernels that only move bytes."""
    none = np.zeros(len(_BYTES))
    return _kernels(group, none, _BYTES, np.stack([none, none, none]), none)


def _kernels(
    group: str, flops: Floats, moved: Floats, shape: Floats, activations: Floats
) -> Kernels:
    rows = np.arange(len(flops))
    numbers = np.full(len(rows), NUMBER[group], dtype=np.uint8)
    zeros = np.zeros(len(rows), dtype=np.uint8)
    return Kernels(rows, numbers, zeros, flops, moved, shape, activations)
