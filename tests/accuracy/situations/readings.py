"""Readings that each kind of cause shows by its physics, and what is said of any two of them.

python tests/accuracy/situations/readings.py [KIND]   # counts; the misses of a kind

Nobody reported these runs. The list was written from what each cause does to a computer, before the
rules were widened, so that gaps in them show: a report may state any two of the readings.
"""

import copy
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainwright.diagnose import decide
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Confidence, Verdict

Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cause: how it is set up, what it alone shows, and what others show as well."""

    cause: str
    setting: Part
    signs: list[Part]
    symptoms: list[Part]


def steps(**read: Any) -> Part:
    """Return times of a step."""
    return {"steps": {"steps": 100, "seconds": 0.5, **read}}


def host(**read: Any) -> Part:
    """Return readings of a computer of 16 cores."""
    return {"host": {"cores": 16, **read}}


def gpu(**read: Any) -> Part:
    """Return readings of a GPU; plain numbers stand for means."""
    means = (
        "utilisation",
        "power_w",
        "temperature_c",
        "sm_clock_mhz",
        "sm_active",
        "tensor_active",
    )
    plain = {key: {"mean": read[key]} for key in means if isinstance(read.get(key), int | float)}
    return {"gpus": [read | plain]}


def loading(**read: Any) -> Part:
    """Return readings of a loader."""
    return {"loading": read}


def counters(**read: Any) -> Part:
    """Return counts over 100 steps."""
    return {"counters": {"steps": 100, **read}}


def setup(**read: Any) -> Part:
    """Return settings."""
    return {"setup": read}


def profile(**read: Any) -> Part:
    """Return figures of a trace."""
    return {"profile": read}


def throughput(**read: Any) -> Part:
    """Return rates."""
    return {"throughput": read}


def rows(*named: tuple[str, float]) -> Part:
    """Return rows of a table of kernels."""
    return {"profile": {"top": [{"name": name, "share": share} for name, share in named]}}


def host_rows(*named: tuple[str, float]) -> Part:
    """Return rows of a table of the host's functions."""
    return {"profile": {"host_top": [{"name": name, "share": share} for name, share in named]}}


def trial(
    changed: str,
    factor: float | None = None,
    step: float | None = None,
    rate: float | None = None,
    to: str = "",
) -> Part:
    """Return an experiment."""
    told = {"factor": factor, "step_times": step, "rate_times": rate}
    known = {key: value for key, value in told.items() if value is not None}
    return {"trials": [{"changed": changed, "to": to, **known}]}


ONE = setup(device="cuda", world_size=1)
EIGHT = setup(device="cuda", world_size=8, nodes=1, strategy="ddp")
TWO_NODES = setup(device="cuda", world_size=16, nodes=2, strategy="ddp", link="network")
_BUSY = [
    gpu(utilisation=0.98),
    steps(data_wait=0.005),
    throughput(samples_s=100.0, expected_times=2.0),
    steps(),
]
GRID: dict[str, Kind] = {
    "input/fetch": Kind(
        "input",
        ONE,
        [
            steps(data_wait=0.3),
            steps(data_wait=0.45),
            profile(data_loader=0.55),
            host(pressure_io=0.4),
            host(io_wait=0.35),
            host(drive_busy=0.98),
            loading(drive_wait_share=0.6),
            loading(cpu_share=0.1),
            loading(queue_empty=0.9),
            trial("synthetic-data", rate=2.2),
            trial("cached-data", step=0.4),
            trial("drive", step=0.45, to="nvme"),
            host(read_bytes_s=140e6, drive_max_bytes_s=150e6),
            host(network_bytes_s=118e6, network_max_bytes_s=125e6),
            host_rows(("_next_data (torch/utils/data/dataloader.py)", 0.6)),
            host_rows(("read (h5py/_hl/dataset.py)", 0.5)),
            steps(data_wait=0.3, data_wait_p95=3.0, p95_seconds=3.2),
        ],
        [
            gpu(utilisation={"mean": 0.3, "low": 0.0, "high": 1.0}),
            gpu(utilisation=0.2),
            loading(data_on="hdd"),
            loading(data_on="network"),
            profile(idle=0.6),
            host(utilisation={"mean": 0.05}),
        ],
    ),
    "input/preprocessing": Kind(
        "input",
        ONE,
        [
            steps(data_wait=0.25),
            profile(data_loader=0.5),
            loading(cpu_share=0.95),
            loading(workers_cpu=0.99),
            trial("augmentation", step=0.5),
            trial("synthetic-data", step=0.4),
            trial("workers", 2, step=0.6),
            host_rows(("PIL/Image.py decode", 0.5)),
            host_rows(("tokenize_batch", 0.5)),
            loading(queue_empty=0.8),
            host(utilisation={"mean": 0.97}),
            host_rows(("default_collate", 0.45)),
            host_rows(("cv2.resize", 0.4)),
            host_rows(("albumentations/core/composition.py:__call__", 0.5)),
            {"loading": {"samples_s": 105.0}, "throughput": {"samples_s": 100.0}},
            {
                "loading": {"batch_seconds": 4.0},
                "setup": {"num_workers": 4},
                "steps": {"steps": 10, "seconds": 1.0},
            },
        ],
        [
            gpu(utilisation={"mean": 0.3, "low": 0.0, "high": 1.0}),
            gpu(utilisation=0.2),
            profile(idle=0.6),
            setup(num_workers=4),
            trial("cpu", step=0.6),
        ],
    ),
    "input/workers": Kind(
        "input",
        ONE,
        [
            steps(data_wait=0.25),
            trial("workers", 4, rate=2.8),
            trial("workers", 8, step=0.4),
            profile(data_loader=0.5),
            loading(queue_empty=0.8),
            trial("prefetch", 4, step=0.7),
            trial("synthetic-data", step=0.4),
        ],
        [
            setup(num_workers=0),
            setup(num_workers=1),
            gpu(utilisation=0.2),
            profile(idle=0.6),
            gpu(utilisation={"mean": 0.3, "low": 0.0, "high": 1.0}),
            host(main_process_cores=1.0),
        ],
    ),
    "input/transfer": Kind(
        "input",
        ONE,
        [
            steps(transfer=0.15),
            profile(copies=0.3),
            trial("pinned-memory", step=0.7),
            rows(("Memcpy HtoD (Pageable -> Device)", 0.4)),
            host_rows(("cudaMemcpyAsync", 0.5)),
            gpu(received_bytes_s=5e9, sm_active=0.2),
        ],
        [
            setup(pin_memory=False),
            setup(non_blocking=False),
            gpu(utilisation=0.4),
            profile(idle=0.4),
        ],
    ),
    "parallelism/batch": Kind(
        "parallelism",
        ONE,
        [
            trial("batch", 2, step=1.03),
            trial("batch", 8, rate=5.5),
            trial("batch", 4, step=1.3),
            gpu(utilisation=0.9, sm_active=0.15),
            trial("gpu", step=0.98, to="H100"),
            trial("model-size", 4, step=1.05),
            trial("sequence-length", 2, step=1.02),
        ],
        [
            setup(batch=1),
            setup(batch=2),
            gpu(utilisation=0.25),
            gpu(memory_used_bytes=2e9, memory_total_bytes=40e9),
            profile(idle=0.6),
            gpu(utilisation=0.9, power_w=90, power_limit_w=400),
            profile(achieved_of_peak=0.03),
            setup(parameters=200000),
            steps(data_wait=0.001),
        ],
    ),
    "parallelism/launch": Kind(
        "parallelism",
        ONE,
        [
            profile(kernels_a_step=6000),
            profile(kernel_median_seconds=4e-6),
            profile(launch_seconds=0.3, step_seconds=0.5),
            host_rows(("cudaLaunchKernel", 0.6)),
            trial("graphs", step=0.5),
            profile(host_wait=0.5),
            profile(short_kernels=0.8),
            steps(compute=0.45, device_seconds=0.12),
            steps(device_seconds=0.1),
            profile(launches_a_step=9000, step_seconds=0.2),
            trial("cpu", step=0.65),
            gpu(utilisation=0.9, sm_active=0.15),
            profile(launch_median_seconds=35e-6),
            rows(("cudaLaunchKernel", 0.6)),
            {
                "profile": {
                    "top": [
                        {
                            "name": "void at::native::vectorized_elementwise_kernel",
                            "share": 0.2,
                            "calls": 3000,
                            "seconds": 4e-6,
                        }
                    ]
                }
            },
        ],
        [
            gpu(utilisation=0.25),
            profile(idle=0.6),
            setup(optimizer_foreach=False),
            setup(model_kind="recurrent"),
            host(main_process_cores=1.0),
            setup(batch=1),
            trial("gpu", step=1.0, to="H100"),
            steps(data_wait=0.002),
            trial("synthetic-data", step=0.99),
            setup(compile=False),
        ],
    ),
    "tuning/precision": Kind(
        "tuning",
        ONE,
        [
            rows(("ampere_sgemm_128x64_tn", 0.5)),
            rows(("volta_scudnn_128x64_relu_interior_nn_v1", 0.4)),
            profile(tensor_core=0.0, tensor_core_eligible=0.6),
            gpu(sm_active=0.9, tensor_active=0.01),
            trial("precision", step=0.5, to="bf16"),
            trial("tf32", step=0.6),
            setup(precision="fp64"),
            rows(("volta_dgemm_64x64", 0.4)),
            trial("precision", rate=2.5, to="fp32"),
        ],
        [
            setup(precision="fp32"),
            setup(tf32_allowed=False),
            profile(achieved_of_peak=0.08),
            *_BUSY,
        ],
    ),
    "tuning/layout": Kind(
        "tuning",
        ONE,
        [
            trial("channels-last", step=0.7),
            profile(layout=0.25),
            rows(("cudnn::ops::nchwToNhwcKernel", 0.25)),
        ],
        [setup(precision="fp16-mixed", model_kind="convolution", channels_last=False), *_BUSY],
    ),
    "tuning/kernels": Kind(
        "tuning",
        ONE,
        [
            trial("cudnn-benchmark", step=0.6),
            rows(("my_scan_kernel", 0.55)),
            rows(("void indexing_backward_kernel", 0.6)),
            rows(("void at::native::embedding_backward_feature_kernel", 0.5)),
            rows(("void cudnn::detail::dgrad2d_grouped_direct_kernel", 0.6)),
        ],
        [
            setup(model_kind="convolution", cudnn_benchmark=False),
            profile(achieved_of_peak=0.08),
            *_BUSY,
        ],
    ),
    "tuning/attention": Kind(
        "tuning",
        ONE,
        [
            trial("attention", step=0.6),
            profile(attention_eager=0.35),
            rows(("softmax_warp_forward", 0.2), ("aten::masked_fill", 0.15)),
            rows(("aten::_softmax", 0.2), ("aten::bmm", 0.2)),
        ],
        [setup(attention="eager"), setup(sequence_length=8192), *_BUSY],
    ),
    "tuning/compile": Kind(
        "tuning",
        ONE,
        [
            trial("compile", step=0.6),
            profile(elementwise=0.55),
            rows(("vectorized_elementwise_kernel", 0.35), ("unrolled_elementwise_kernel", 0.2)),
            profile(recompilations=0.3),
            host_rows(("torch/_dynamo/convert_frame.py", 0.5)),
        ],
        [setup(compile=False), setup(compile=True, dynamic_shapes=True), *_BUSY],
    ),
    "tuning/shapes": Kind(
        "tuning",
        ONE,
        [trial("shapes", step=0.75), setup(precision="bf16-mixed", dims=[50257, 1021])],
        [profile(achieved_of_peak=0.15), *_BUSY],
    ),
    "tuning/padding": Kind(
        "tuning", ONE, [trial("padding", step=0.6), setup(sequence_padding=0.6)], [*_BUSY]
    ),
    "memory/empty-cache": Kind(
        "memory",
        ONE,
        [
            counters(empty_cache=100),
            counters(empty_cache=100, empty_cache_seconds=15.0),
            trial("empty-cache", step=0.7),
            profile(allocation_calls=60),
            counters(device_allocations=4000),
            host_rows(("torch.cuda.empty_cache", 0.3)),
            host_rows(("cudaFree", 0.3)),
            host_rows(("cudaMalloc", 0.2)),
            rows(("cudaFree", 0.3)),
        ],
        [
            steps(),
            gpu(utilisation=0.6),
            profile(idle=0.4),
            throughput(samples_s=10.0, expected_times=2.0),
        ],
    ),
    "memory/fragmentation": Kind(
        "memory",
        ONE,
        [
            counters(alloc_retries=300),
            counters(allocated_bytes=int(30e9), reserved_bytes=int(70e9)),
            counters(reserved_bytes=int(70e9), inactive_split_bytes=int(30e9)),
            trial("allocator", step=0.7, to="expandable"),
            host_rows(("cudaFree", 0.3)),
            counters(device_allocations=3000),
            {"failure": {"kind": "OutOfMemoryError", "text": "CUDA out of memory."}},
            counters(out_of_memory=2),
        ],
        [
            steps(),
            gpu(memory_used_bytes=79e9, memory_total_bytes=80e9),
            gpu(utilisation=0.6),
            steps(p95_seconds=3.0),
            setup(dynamic_shapes=True),
        ],
    ),
    "memory/offload": Kind(
        "memory",
        setup(device="cuda", world_size=1, offload=True, parameters=7_000_000_000),
        [
            steps(optimizer=0.35, compute=0.5),
            steps(transfer=0.3),
            profile(copies=0.5),
            rows(("Memcpy DtoH (Device -> Pinned)", 0.3), ("Memcpy HtoD (Pinned -> Device)", 0.3)),
            counters(offloaded_bytes=int(5e9)),
            trial("offloading", step=0.3),
            steps(device_seconds=0.08),
            host_rows(("DeepSpeedCPUAdam.step", 0.6)),
            host_rows(("cpu_adam", 0.5)),
            host_rows(("swap_in", 0.4)),
            host_rows(("cudaMemcpyAsync", 0.5)),
            {"steps": {"steps": 3, "seconds": 20.0}, "setup": {"offloaded": ["optimizer"]}},
        ],
        [
            gpu(utilisation=0.15),
            profile(idle=0.7),
            gpu(memory_used_bytes=10e9, memory_total_bytes=80e9),
            gpu(power_w=90, power_limit_w=400),
            host(main_process_cores=8.0),
            host(utilisation={"mean": 0.8}),
        ],
    ),
    "memory/garbage": Kind(
        "memory",
        ONE,
        [
            counters(garbage_collections=100),
            counters(garbage_collections=100, garbage_seconds=15.0),
            trial("garbage-collection", step=0.7),
            host_rows(("gc.collect", 0.3)),
            host_rows(("gc_collect_main", 0.3)),
        ],
        [gpu(utilisation=0.6), profile(idle=0.4), steps(), steps(other=0.1)],
    ),
    "memory/recomputation": Kind(
        "memory",
        ONE,
        [
            trial("checkpointing", step=0.7, to="none"),
            counters(recomputation_seconds=12.0),
            setup(checkpointing="full"),
            host_rows(("torch/utils/checkpoint.py:recompute_fn", 0.3)),
        ],
        [
            gpu(utilisation=0.98, memory_used_bytes=16e9, memory_total_bytes=80e9),
            gpu(memory_used_bytes=16e9, memory_total_bytes=80e9),
        ],
    ),
    "memory/spill": Kind(
        "memory",
        ONE,
        [
            gpu(memory_shared_bytes=6e9),
            trial("batch", 0.5, step=0.1),
            counters(out_of_memory=3),
        ],
        [
            gpu(memory_used_bytes=15.9e9, memory_total_bytes=16e9),
            gpu(utilisation=0.99, power_w=90, power_limit_w=320),
            steps(p95_seconds=1.4),
        ],
    ),
    "memory/swapping": Kind(
        "memory",
        ONE,
        [
            host(swapped_bytes_s=50e6),
            host(memory_available_bytes=2e8, memory_total_bytes=64e9),
            host(pressure_memory=0.4),
            host(major_faults_s=3000.0),
        ],
        [gpu(utilisation=0.2), steps(data_wait=0.2), host(io_wait=0.3), profile(idle=0.6), steps()],
    ),
    "communication/gradients": Kind(
        "communication",
        EIGHT,
        [
            steps(communication=0.2),
            profile(communication=0.4),
            profile(communication=0.5, communication_hidden=0.2),
            trial("devices", 0.125, rate=1.8),
            trial("devices", 0.125, step=0.5),
            rows(("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0.4)),
            host_rows(("all_reduce", 0.5)),
            host_rows(("c10d::allreduce_", 0.4)),
            trial("link", step=0.6, to="nvlink"),
            trial("backend", step=0.6, to="nccl"),
            trial("bucket", 4, step=0.8),
            trial("accumulation", 8, rate=1.9),
            setup(link_bytes_s=3e9, parameters=300_000_000),
        ],
        [
            setup(link="pcie"),
            setup(find_unused_parameters=True),
            gpu(utilisation=0.5),
            gpu(utilisation=1.0, power_w=120, power_limit_w=400),
            profile(idle=0.4),
            steps(data_wait=0.002),
            setup(backend="gloo"),
            steps(),
        ],
    ),
    "communication/network": Kind(
        "communication",
        TWO_NODES,
        [
            steps(communication=0.2),
            profile(communication=0.5),
            trial("nodes", 0.5, rate=1.8),
            trial("nodes", 0.5, step=0.5),
            trial("link", step=0.5, to="infiniband"),
            rows(("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0.4)),
            host_rows(("ncclAllReduce", 0.4)),
            host(network_bytes_s=1.2e9, network_max_bytes_s=1.25e9),
            setup(link_bytes_s=1.2e9, parameters=300_000_000),
        ],
        [
            gpu(utilisation=1.0),
            gpu(utilisation=0.4),
            gpu(utilisation=1.0, power_w=120, power_limit_w=400),
            profile(idle=0.4),
            steps(),
        ],
    ),
    "communication/data-parallel": Kind(
        "communication",
        setup(device="cuda", strategy="dp"),
        [
            trial("devices", 0.25, step=0.6),
            profile(communication=0.4),
            host_rows(("parallel_apply", 0.3)),
            host_rows(("broadcast_coalesced", 0.3)),
        ],
        [
            {
                "gpus": [
                    {"utilisation": {"mean": 0.95}},
                    {"utilisation": {"mean": 0.4}},
                    {"utilisation": {"mean": 0.4}},
                ]
            },
            steps(),
            setup(batch=64),
        ],
    ),
    "communication/straggler": Kind(
        "communication",
        EIGHT,
        [steps(slowest_rank=1.6), host_rows(("barrier", 0.4)), steps(communication=0.2)],
        [gpu(utilisation=0.6), profile(idle=0.4)],
    ),
    "communication/pipeline": Kind(
        "communication",
        setup(device="cuda", world_size=8, strategy="pp", pipeline_stages=8),
        [
            profile(bubble=0.4),
            setup(accumulation=4),
            trial("accumulation", 8, rate=1.6),
            steps(communication=0.2),
        ],
        [gpu(utilisation=0.5), profile(idle=0.4)],
    ),
    "scheduling/heat": Kind(
        "scheduling",
        ONE,
        [
            gpu(throttled={"thermal": 0.8}),
            gpu(throttled={"hardware-thermal": 0.4}),
            gpu(throttled={"hardware-slowdown": 1.0}),
            trial("cooling", step=0.6),
            gpu(utilisation=0.98, temperature_c=92, sm_clock_mhz=900, sm_clock_max_mhz=1980),
        ],
        [
            gpu(utilisation=0.99),
            gpu(temperature_c=90),
            steps(),
            throughput(samples_s=100.0, expected_times=1.8),
            gpu(sm_clock_mhz=900, sm_clock_max_mhz=1980),
        ],
    ),
    "scheduling/power": Kind(
        "scheduling",
        ONE,
        [
            gpu(throttled={"power-cap": 1.0}),
            gpu(throttled={"power-brake": 1.0}),
            gpu(power_limit_w=150, power_limit_default_w=350),
            trial("power-limit", step=0.6),
            gpu(utilisation=0.99, sm_clock_mhz=700, sm_clock_max_mhz=1980),
        ],
        [
            gpu(utilisation=0.99),
            steps(),
            throughput(samples_s=100.0, expected_times=1.8),
            gpu(power_w=150),
        ],
    ),
    "scheduling/battery": Kind(
        "scheduling",
        ONE,
        [
            {"host": {"on_battery": True}},
            {"host": {"power_saving": True}},
            gpu(utilisation=0.95, sm_clock_mhz=700, sm_clock_max_mhz=1980),
        ],
        [gpu(utilisation=0.95), steps(), throughput(samples_s=100.0, expected_times=1.8)],
    ),
    "scheduling/foreign gpu": Kind(
        "scheduling",
        ONE,
        [
            gpu(foreign_processes=2),
            gpu(foreign_utilisation=0.45),
            gpu(foreign_memory_bytes=20e9, memory_total_bytes=40e9),
            trial("other-programs", rate=1.9),
            {"host": {"other_programs": [{"gpu": "same", "trains": True}]}},
            {"host": {"other_programs": [{"gpu": "same", "utilisation": 0.5}]}},
        ],
        [gpu(utilisation=1.0), steps(), throughput(samples_s=100.0, expected_times=2.0)],
    ),
    "scheduling/foreign cpu": Kind(
        "scheduling",
        ONE,
        [
            host(foreign_cores=12.0),
            host(load_average=50.0),
            host(foreign_top=["ffmpeg"]),
            trial("other-programs", step=0.6),
            {"host": {"other_programs": [{"gpu": "none", "cores": 12}]}},
            host(starved_share=0.5),
            host(pressure_cpu=0.8, foreign_cores=12.0),
        ],
        [
            gpu(utilisation=0.4),
            steps(data_wait=0.1),
            steps(),
            profile(idle=0.5),
            host(utilisation={"mean": 1.0}),
        ],
    ),
    "scheduling/quota": Kind(
        "scheduling",
        ONE,
        [
            host(quota_cores=2.0),
            host(throttled_periods=0.8),
            trial("quota", 4, step=0.4),
            host(usable_cores=2.0),
        ],
        [
            gpu(utilisation=0.3),
            steps(data_wait=0.1),
            steps(),
            setup(num_workers=8),
            host(run_cores=2.0),
            profile(idle=0.5),
        ],
    ),
    "scheduling/threads": Kind(
        "scheduling",
        ONE,
        [
            trial("threads", 0.125, step=0.4),
            trial("threads", 0.0625, rate=3.0),
            setup(torch_threads=128),
            host(run_threads=1500),
            host(run_cores=15.0),
            host(load_average=90.0),
        ],
        [gpu(utilisation=0.4), steps(), host(utilisation={"mean": 0.98}), profile(idle=0.5)],
    ),
    "scheduling/threads few cpu": Kind(
        "scheduling",
        setup(device="cpu", world_size=1),
        [
            setup(torch_threads=1),
            setup(omp_num_threads=1),
            trial("threads", 16, step=0.15),
            host(run_cores=1.0, usable_cores=16),
        ],
        [steps(compute=0.48), steps(data_wait=0.002), host(utilisation={"mean": 0.07})],
    ),
    "scheduling/workers": Kind(
        "scheduling",
        ONE,
        [trial("workers", 0.25, step=0.6), host(load_average=70.0), setup(num_workers=64)],
        [
            gpu(utilisation=0.4),
            steps(data_wait=0.2),
            host(usable_cores=16, utilisation={"mean": 1.0}),
        ],
    ),
    "scheduling/affinity": Kind(
        "scheduling",
        ONE,
        [trial("affinity", step=0.5), trial("affinity", 8, step=0.3), host(usable_cores=2.0)],
        [
            gpu(utilisation=0.3),
            host(run_cores=2.0),
            steps(),
            steps(data_wait=0.1),
            setup(num_workers=8),
        ],
    ),
    "scheduling/mig": Kind(
        "scheduling",
        ONE,
        [gpu(mig_profile="1g.10gb"), trial("slice", 2, step=0.5)],
        [
            gpu(utilisation=0.98),
            steps(),
            throughput(samples_s=100.0, expected_times=4.0),
            counters(reserved_bytes=int(9.3e9)),
            gpu(sm_active=0.9),
        ],
    ),
    "scheduling/mps": Kind(
        "scheduling",
        ONE,
        [gpu(mps_share=0.25), trial("slice", 4, step=0.4)],
        [gpu(utilisation=0.98), steps(), throughput(samples_s=100.0, expected_times=4.0)],
    ),
    "scheduling/link": Kind(
        "scheduling",
        ONE,
        [
            gpu(link_generation=1, link_generation_max=4),
            gpu(link_width=4, link_width_max=16),
            gpu(copy_bytes_s=2e9, copy_expected_bytes_s=25e9),
            trial("link", step=0.6),
        ],
        [gpu(utilisation=0.6), steps(transfer=0.2), profile(copies=0.3), steps(data_wait=0.1)],
    ),
    "scheduling/numa": Kind(
        "scheduling",
        ONE,
        [
            {"host": {"numa_nodes": 2, "run_numa_nodes": [1]}, "gpus": [{"numa_node": 0}]},
            trial("affinity", step=0.7),
            gpu(copy_bytes_s=11e9, copy_expected_bytes_s=25e9),
        ],
        [steps(transfer=0.1), gpu(utilisation=0.6), steps(data_wait=0.05)],
    ),
    "monitoring/synchronisation": Kind(
        "monitoring",
        ONE,
        [
            counters(item_reads=4000),
            counters(item_reads=400, synchronisation_seconds=20.0),
            counters(synchronisations=300),
            profile(synchronise_calls=40),
            trial("synchronisation", step=0.7),
            host_rows(("aten::item", 0.5)),
            host_rows(("aten::_local_scalar_dense", 0.5)),
            host_rows(("cudaStreamSynchronize", 0.5)),
            host_rows(("torch.cuda.synchronize", 0.5)),
            host_rows(("aten::nonzero", 0.4)),
            rows(("aten::_local_scalar_dense", 0.4)),
            rows(("cudaStreamSynchronize", 0.5)),
        ],
        [
            gpu(utilisation=0.5),
            profile(idle=0.4),
            setup(log_every=1),
            steps(),
            steps(data_wait=0.002),
        ],
    ),
    "monitoring/logging": Kind(
        "monitoring",
        ONE,
        [
            counters(log_seconds=15.0),
            trial("logging", step=0.6),
            host_rows(("add_histogram (tensorboard)", 0.4)),
            host_rows(("wandb.log", 0.4)),
            host_rows(("builtins.print", 0.4)),
            host_rows(("matplotlib savefig", 0.4)),
            host_rows(("write (io.TextIOWrapper)", 0.3)),
        ],
        [setup(log_every=1), gpu(utilisation=0.4), profile(idle=0.5), steps(other=0.15), steps()],
    ),
    "monitoring/checkpoints": Kind(
        "monitoring",
        ONE,
        [
            counters(checkpoint_seconds=20.0, checkpoints=10),
            trial("checkpoints", step=0.6),
            host_rows(("torch.save", 0.4)),
            host_rows(("save_pretrained", 0.4)),
            counters(checkpoints=50),
        ],
        [setup(checkpoint_every=2), gpu(utilisation=0.4), steps(other=0.15), steps()],
    ),
    "monitoring/evaluation": Kind(
        "monitoring",
        ONE,
        [
            counters(evaluation_seconds=20.0),
            trial("evaluation", step=0.5),
            host_rows(("validate", 0.5)),
            host_rows(("evaluate", 0.4)),
        ],
        [setup(evaluate_every=5), steps(other=0.2), steps(), gpu(utilisation=0.4)],
    ),
    "monitoring/profiler": Kind(
        "monitoring",
        ONE,
        [
            setup(profiler_on=True),
            trial("profiler", step=0.5),
            host_rows(("torch/autograd/profiler.py", 0.4)),
            host_rows(("torch.profiler step", 0.3)),
        ],
        [steps(), steps(other=0.15), gpu(utilisation=0.4)],
    ),
    "monitoring/anomaly": Kind(
        "monitoring",
        ONE,
        [
            setup(anomaly_detection=True),
            trial("anomaly-detection", step=0.4),
            host_rows(("traceback.format_stack", 0.3)),
            host_rows(("torch/autograd/anomaly_mode.py", 0.3)),
        ],
        [steps(), gpu(utilisation=0.4), steps(compute=0.45)],
    ),
    "none": Kind(
        "none",
        ONE,
        [
            profile(achieved_of_peak=0.5),
            gpu(utilisation=0.99, power_w=380, power_limit_w=400),
            gpu(utilisation=0.99, sm_active=0.92),
            trial("batch", 2, step=2.0),
            trial("batch", 4, rate=1.02),
            profile(idle=0.02),
            trial("synthetic-data", step=0.99),
        ],
        [
            gpu(utilisation=0.99),
            steps(data_wait=0.003),
            trial("workers", 2, step=1.0),
            setup(precision="bf16-mixed"),
            profile(tensor_core=0.6, tensor_core_eligible=0.7),
        ],
    ),
}


def joined(one: Any, other: Any) -> Any:
    """Return two parts of a record as one."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = {key: joined(one[key], other[key]) for key in one.keys() & other.keys()}
        return one | other | both
    if not isinstance(one, list):
        return other
    if _is_table(one):
        return one + other
    return [joined(one[0], other[0]), *one[1:], *other[1:]] if one and other else one or other


def _is_table(found: list[Any]) -> bool:
    """Whether a list has one entry for each trial or function, and not for each GPU."""
    return bool(found) and isinstance(found[0], dict) and bool({"changed", "share"} & {*found[0]})


def contradict(one: Any, other: Any) -> bool:
    """Whether two parts state the same figure differently, or are rows of one table."""
    if isinstance(one, dict) and isinstance(other, dict):
        return any(contradict(one[key], other[key]) for key in one.keys() & other.keys())
    if isinstance(one, list) and isinstance(other, list):
        if _is_table(one):
            return bool(one[0].get("changed") == other[0].get("changed"))
        return bool(one and other) and contradict(one[0], other[0])
    return bool(one != other)


def judged(*parts: Part) -> Verdict:
    """Return the first verdict on a recorded run of these parts: by rules, not by runs like it."""
    whole: Part = {"trainwright_record": 1, "made_by": "callback"}
    for part in parts:
        whole = joined(whole, copy.deepcopy(part))
    return decide.judge(Evidence.model_validate(whole)).first


def outcome(cause: str, verdict: Verdict) -> str:
    """Return ``right``, ``unknown``, ``wrong`` or ``confidently wrong``."""
    if verdict.cause == cause:
        return "right"
    if verdict.cause == "unknown" or verdict.variant == "nothing-measured":
        return "unknown"
    return "confidently wrong" if verdict.confidence is Confidence.HIGH else "wrong"


def two_signs(kind: Kind) -> Iterator[tuple[Part, Part]]:
    """Yield any two signs that may stand in one record."""
    return (pair for pair in itertools.combinations(kind.signs, 2) if not contradict(*pair))


def sign_and_symptom(kind: Kind) -> Iterator[tuple[Part, Part]]:
    """Yield any sign with any symptom."""
    return (pair for pair in itertools.product(kind.signs, kind.symptoms) if not contradict(*pair))


def one_sign(kind: Kind) -> Iterator[tuple[Part, ...]]:
    """Yield each sign alone."""
    return ((sign,) for sign in kind.signs)


STATED = {"one sign": one_sign, "a sign and a symptom": sign_and_symptom, "two signs": two_signs}


def outcomes(kind: Kind, stated: str) -> "Counter[str]":
    """Return how often what is said of such records is right."""
    found = STATED[stated](kind)
    return Counter(outcome(kind.cause, judged(kind.setting, *each)) for each in found)


def main() -> None:
    for stated in STATED:
        print(stated, dict(sum((outcomes(kind, stated) for kind in GRID.values()), Counter())))
    for name, kind in GRID.items():
        for each in two_signs(kind) if name in sys.argv else ():
            verdict = judged(kind.setting, *each)
            if verdict.cause != kind.cause:
                print(*each, verdict.cause, verdict.variant, verdict.confidence, sep=" | ")


if __name__ == "__main__":
    main()
