"""What was measured on a machine, in place of what calibrations assume of machines like it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from trainwright.estimate.calibration_file import Constant
from trainwright.estimate.input.loader import Host
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration
from trainwright.estimate.time.efficiency import Efficiency
from trainwright.estimate.time.kernels import NUMBER, WIDTH, Kernels
from trainwright.estimate.time.roofline import Rates, kernel_seconds
from trainwright.explain import Quantity
from trainwright.machine.measured import MeasuredDrive, MeasuredGpu, MeasuredHost, Product

ROUNDS = 3
"""Of the correction of a peak: what small shapes cost depends on the peak itself, a little."""


def localized(
    calibration: PipelineCalibration,
    gpu: MeasuredGpu | None,
    host: Host,
    link_bytes_per_s: float,
) -> PipelineCalibration:
    """Return the calibration of the input pipeline with what this machine was seen to do.

    ``link_bytes_per_s`` is what the data sheet gives the link of one GPU.
    """
    changes: dict[str, object] = {}
    if gpu is not None and (shares := dict(_shares(gpu, link_bytes_per_s))):
        changes["transfers"] = calibration.transfers.model_copy(update=shares)
    if host.measured is not None and host.measured.core is not None:
        speeds = calibration.decoding.libraries | dict(_speeds(host.measured))
        changes["decoding"] = calibration.decoding.model_copy(update={"libraries": speeds})
    if host.measured is not None and host.measured.drive is not None:
        changes["drives"] = calibration.drives.model_copy(
            update={"latency_s": calibration.drives.latency_s | _latency(host.measured.drive)}
        )
    return calibration.model_copy(update=changes) if changes else calibration


def _shares(gpu: MeasuredGpu, link: float) -> Iterator[tuple[str, Constant]]:
    """Yield what pinned and pageable copies reach of the link."""
    for name, rate in (("pinned_share", gpu.pinned), ("pageable_share", gpu.pageable)):
        if rate is not None:
            yield name, Constant(value=rate.value / link, source=rate.source)


def _speeds(host: MeasuredHost) -> Iterator[tuple[str, Constant]]:
    """Yield other libraries' speed as a multiple of Pillow's."""
    assert host.core is not None
    for name, rate in host.libraries:
        yield name, Constant(value=rate.value / host.core.value, source=rate.source)


def _latency(drive: MeasuredDrive) -> dict[str, Constant]:
    source = drive.alone.source
    return {drive.record().interface: Constant(value=drive.latency_s, source=source)}


def corrected(rates: Rates, measured: MeasuredGpu | None, efficiency: Efficiency) -> Rates:
    """Return the rates with which the measured product and copy take as long as they took.

    The shares that classes of kernels reach keep their ratios: a GPU that multiplies faster than
    the estimate had it convolves faster too.
    """
    if measured is None:
        return rates
    if measured.copy is not None:
        ratio = measured.copy.value / _copies(rates, efficiency)
        rates = replace(rates, bandwidth=rates.bandwidth * ratio)
    for product in measured.products:
        rates = _with_product(rates, product, efficiency)
    return rates


def _copies(rates: Rates, efficiency: Efficiency) -> float:
    """Return the bytes/s that the estimate gives a copy."""
    return rates.bandwidth * float(efficiency.curves(channels_last=False).memory[NUMBER["copy"]])


def _with_product(rates: Rates, product: Product, efficiency: Efficiency) -> Rates:
    dtype = "float32" if product.dtype == "tf32" else product.dtype
    if dtype not in WIDTH:
        return rates
    peak = rates.flops.get(dtype, product.rate.value)
    for _ in range(ROUNDS):
        rates = replace(rates, flops=rates.flops | {dtype: peak}, missing=rates.missing - {dtype})
        peak *= product.rate.value / _multiplies(rates, dtype, product.shape, efficiency)
    return replace(rates, flops=rates.flops | {dtype: peak})


def _multiplies(
    rates: Rates, dtype: str, shape: tuple[int, int, int], efficiency: Efficiency
) -> float:
    """Return the FLOP/s that the estimate gives a product."""
    m, n, k = shape
    moved = WIDTH[dtype] * (m * k + n * k + m * n)
    kernel = Kernels(
        row=np.zeros(1, np.int64),
        group=np.array([NUMBER["gemm"]], np.uint8),
        dtype=np.zeros(1, np.uint8),
        flops=np.array([2.0 * m * n * k]),
        bytes=np.array([float(moved)]),
        shape=np.array([[m], [n], [k]], float),
        activations=np.array([float(WIDTH[dtype] * (m * k + m * n))]),
    )
    curves = efficiency.curves(channels_last=False)
    times = kernel_seconds(kernel, np.ones(1), rates, curves, (dtype,))
    return float(kernel.flops[0] / times.seconds[0])


DTYPES: Mapping[str, tuple[str, ...]] = {
    "fp32": ("float32",),
    "tf32": ("tf32",),
    "fp16-mixed": ("float16",),
    "fp16": ("float16",),
    "bf16-mixed": ("bfloat16", "tf32"),
    "bf16": ("bfloat16",),
    "fp8": ("bfloat16", "tf32"),
}
"""Measured products that a precision uses."""


def usable(measured: MeasuredGpu | None, precision: str) -> MeasuredGpu | None:
    """Return what of the measurements a precision uses: TF32 and plain FP32 share a dtype."""
    if measured is None:
        return None
    wanted = DTYPES[precision]
    return replace(
        measured, products=tuple(each for each in measured.products if each.dtype in wanted)
    )


def shown(measured: MeasuredGpu | None, *, product: bool) -> tuple[Quantity, ...]:
    """Return the measured rates that an operator's time was made with."""
    if measured is None:
        return ()
    if product:
        return tuple(each.rate for each in measured.products)
    return () if measured.copy is None else (measured.copy,)
