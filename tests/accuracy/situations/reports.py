"""What reports of slow GPU trainings say, as short records that rules may be fitted to.

Some are of the linked threads; the others have the shape of many: which two or three figures people
state when they ask, with the values that such figures usually have. No score is taken on them.
"""

from typing import Any

GPU = {"name": "NVIDIA A100", "compute_capability": "8.0"}


def _gpu(busy: float | None = None, **more: Any) -> list[dict[str, Any]]:
    seen = {} if busy is None else {"utilisation": {"mean": busy}}
    return [GPU | seen | more]


def _steps(seconds: float, **parts: Any) -> dict[str, Any]:
    return {"steps": 1, "seconds": seconds, **parts}


CUDA = {"device": "cuda", "world_size": 1}
EIGHT = {"device": "cuda", "world_size": 8, "nodes": 1, "strategy": "ddp"}

REPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    # Input
    "visualbert-loader": (  # https://github.com/facebookresearch/mmf/issues/1166
        "input",
        {"gpus": _gpu(0.2), "setup": CUDA | {"num_workers": 6}, "profile": {"data_loader": 0.6}},
    ),
    "spiky-classes": (  # https://github.com/MegEngine/Models/issues/2
        "input",
        {
            "gpus": _gpu(None, utilisation={"mean": 0.5, "low": 0.0, "high": 1.0}),
            "setup": CUDA | {"num_workers": 4},
            "trials": [{"changed": "workers", "factor": 2, "rate_times": 1.4}],
        },
    ),
    "loader-alone": (
        "input",
        {
            "throughput": {"samples_s": 410},
            "loading": {"samples_s": 430},
            "gpus": _gpu(0.45),
            "setup": CUDA,
        },
    ),
    "network-store": (
        "input",
        {
            "steps": _steps(0.9, data_wait=0.5),
            "host": {"network_bytes_s": 115e6, "network_max_bytes_s": 125e6},
            "loading": {"data_on": "network"},
            "setup": CUDA,
        },
    ),
    "faster-drive": (
        "input",
        {
            "throughput": {"samples_s": 300},
            "gpus": _gpu(0.3),
            "loading": {"data_on": "hdd"},
            "setup": CUDA,
            "trials": [{"changed": "drive", "to": "nvme", "rate_times": 2.5}],
        },
    ),
    "no-augmentation": (
        "input",
        {
            "throughput": {"samples_s": 220},
            "gpus": _gpu(0.35),
            "setup": CUDA | {"num_workers": 8},
            "trials": [{"changed": "augmentation", "rate_times": 1.9}],
        },
    ),
    "sampled-stacks": (
        "input",
        {
            "gpus": _gpu(0.4),
            "setup": CUDA | {"num_workers": 2},
            "profile": {"host_top": [{"name": "_next_data (dataloader.py)", "share": 0.57}]},
        },
    ),
    # Too little parallel work
    "surfaces": (  # https://github.com/Oneflow-Inc/oneflow/issues/8910
        "parallelism",
        {
            "setup": CUDA,
            "profile": {
                "launches_a_step": 870,
                "host_top": [
                    {"name": "cudaLaunchKernel", "share": 0.46},
                    {"name": "cudaStreamSynchronize", "share": 0.2},
                ],
                "kernel_median_seconds": 6e-6,
            },
        },
    ),
    "no-op-chain": (
        "parallelism",
        {
            "steps": _steps(0.012),
            "setup": CUDA,
            "profile": {"kernels_a_step": 1400, "launch_median_seconds": 6.4e-6},
        },
    ),
    "batch-for-nothing": (
        "parallelism",
        {
            "throughput": {"samples_s": 90},
            "gpus": _gpu(0.35),
            "setup": CUDA | {"batch": 4},
            "trials": [{"changed": "batch", "factor": 8, "rate_times": 6.5}],
        },
    ),
    "captured": (
        "parallelism",
        {
            "steps": _steps(0.021),
            "gpus": _gpu(0.4),
            "setup": CUDA | {"batch": 1},
            "trials": [{"changed": "graphs", "step_times": 0.4}],
        },
    ),
    "half-idle-trace": (
        "parallelism",
        {
            "steps": _steps(0.08, device_seconds=0.036),
            "setup": CUDA,
            "profile": {"idle": 0.55, "kernels_a_step": 3600},
        },
    ),
    "low-power": (
        "parallelism",
        {
            "gpus": _gpu(0.95, power_w={"mean": 110}, power_limit_w=400, sm_active={"mean": 0.18}),
            "setup": CUDA | {"batch": 2},
        },
    ),
    "same-on-a-faster-gpu": (
        "parallelism",
        {
            "steps": _steps(0.05),
            "gpus": _gpu(0.3),
            "setup": CUDA,
            "trials": [
                {"changed": "gpu", "to": "H100", "step_times": 0.99},
                {"changed": "cpu", "step_times": 0.65},
            ],
        },
    ),
    "deep-pipeline": (
        "parallelism",
        {
            "steps": _steps(4.0),
            "gpus": _gpu(0.6) * 8,
            "setup": {
                "device": "cuda",
                "world_size": 8,
                "strategy": "pp",
                "pipeline_stages": 8,
                "accumulation": 8,
            },
            "profile": {"bubble": 0.46},
        },
    ),
    # Untuned
    "single-precision-kernels": (
        "tuning",
        {
            "gpus": _gpu(0.97),
            "setup": CUDA | {"precision": "fp32"},
            "profile": {
                "top": [
                    {"name": "ampere_sgemm_128x64_tn", "share": 0.48},
                    {"name": "volta_scudnn_128x64_relu_interior_nn_v1", "share": 0.1},
                ]
            },
        },
    ),
    "layout-kernels": (
        "tuning",
        {
            "gpus": _gpu(0.98),
            "setup": CUDA | {"precision": "fp16-mixed", "model_kind": "convolution"},
            "profile": {
                "top": [
                    {"name": "void cudnn::ops::nchwToNhwcKernel<__half>", "share": 0.16},
                    {"name": "void cudnn::ops::nhwcToNchwKernel<__half>", "share": 0.09},
                    {"name": "sm80_xmma_fprop_implicit_gemm_f16f16", "share": 0.3},
                ]
            },
        },
    ),
    "mixed-is-faster": (
        "tuning",
        {
            "throughput": {"samples_s": 55},
            "gpus": _gpu(0.99),
            "setup": CUDA | {"precision": "fp32"},
            "trials": [{"changed": "precision", "to": "bf16", "rate_times": 2.2}],
        },
    ),
    "recompiles": (
        "tuning",
        {
            "steps": _steps(2.4),
            "setup": CUDA | {"compile": True, "dynamic_shapes": True},
            "profile": {"recompilations": 0.4},
        },
    ),
    "autotuned": (
        "tuning",
        {
            "steps": _steps(0.5),
            "gpus": _gpu(0.97),
            "setup": CUDA | {"model_kind": "convolution", "cudnn_benchmark": False},
            "trials": [{"changed": "cudnn-benchmark", "step_times": 0.6}],
        },
    ),
    "own-kernel": (
        "tuning",
        {
            "steps": _steps(0.31, device_seconds=0.29),
            "gpus": _gpu(0.95),
            "setup": CUDA,
            "profile": {"top": [{"name": "selective_scan_fwd_kernel", "share": 0.52}]},
        },
    ),
    "padded": (
        "tuning",
        {"gpus": _gpu(0.96), "setup": CUDA | {"sequence_padding": 0.55}, "steps": _steps(0.7)},
    ),
    # Memory
    "seventy-two": (  # https://github.com/deepspeedai/DeepSpeed/issues/6834
        "memory",
        {
            "steps": _steps(20.0, optimizer=10.0, compute=20.0),
            "setup": {
                "device": "cuda",
                "offload": True,
                "offloaded": ["optimizer", "parameters"],
                "world_size": 32,
                "nodes": 4,
                "strategy": "zero",
                "parameters": 72_000_000_000,
            },
        },
    ),
    "growing-step": (  # https://github.com/huggingface/transformers/issues/22112
        "memory",
        {
            "steps": _steps(11.0, optimizer=10.0, compute=11.0),
            "setup": CUDA | {"offload": True, "strategy": "zero"},
        },
    ),
    "eight-gigabytes": (  # https://github.com/deepspeedai/DeepSpeed/issues/2998
        "memory",
        {
            "throughput": {"steps_s": 0.4},
            "setup": {
                "device": "rocm",
                "offload": True,
                "offloaded": ["optimizer"],
                "parameters": 760_000_000,
                "world_size": 1,
            },
            "trials": [{"changed": "offloading", "rate_times": 9.0}],
        },
    ),
    "copied-layers": (
        "memory",
        {
            "gpus": _gpu(0.25),
            "steps": _steps(6.0),
            "setup": CUDA | {"offloaded": ["parameters"], "parameters": 7_000_000_000},
            "profile": {
                "top": [
                    {"name": "Memcpy HtoD (Pinned -> Device)", "share": 0.61},
                    {"name": "ampere_bf16_s16816gemm_bf16_128x256", "share": 0.22},
                ]
            },
        },
    ),
    "retries": (
        "memory",
        {
            "steps": _steps(1.9),
            "gpus": _gpu(None, memory_used_bytes=39.4e9, memory_total_bytes=40e9),
            "counters": {"steps": 100, "alloc_retries": 180},
            "setup": CUDA,
        },
    ),
    "emptied": (
        "memory",
        {
            "steps": _steps(0.6),
            "setup": CUDA,
            "counters": {"steps": 100, "empty_cache": 100},
            "profile": {"allocation_calls": 60},
        },
    ),
    "expandable": (
        "memory",
        {
            "throughput": {"tokens_s": 3100},
            "counters": {"steps": 1, "allocated_bytes": 41e9, "reserved_bytes": 76e9},
            "setup": CUDA,
            "trials": [{"changed": "allocator", "to": "expandable", "rate_times": 1.3}],
        },
    ),
    # Communication
    "two-nodes": (
        "communication",
        {
            "throughput": {"samples_s": 120},
            "setup": EIGHT | {"nodes": 2, "world_size": 16, "link": "network"},
            "trials": [{"changed": "nodes", "factor": 0.5, "rate_times": 1.8}],
        },
    ),
    "ring-kernels": (
        "communication",
        {
            "gpus": _gpu(1.0) * 8,
            "setup": EIGHT,
            "profile": {
                "top": [
                    {"name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "share": 0.44},
                    {"name": "sm80_xmma_gemm_bf16bf16", "share": 0.3},
                ]
            },
        },
    ),
    "slow-ethernet": (
        "communication",
        {
            "steps": _steps(3.4),
            "gpus": _gpu(0.35) * 2,
            "setup": EIGHT
            | {
                "world_size": 2,
                "nodes": 2,
                "link": "network",
                "link_bytes_s": 118e6,
                "parameters": 85_000_000,
            },
        },
    ),
    "other-backend": (
        "communication",
        {
            "steps": _steps(0.9),
            "gpus": _gpu(0.4) * 4,
            "setup": EIGHT | {"world_size": 4, "backend": "gloo"},
            "trials": [{"changed": "backend", "to": "nccl", "step_times": 0.5}],
        },
    ),
    # Scheduling
    "unbound-ranks": (  # https://github.com/deepspeedai/DeepSpeed/pull/7474
        "scheduling",
        {
            "steps": _steps(3.084),
            "host": {"cores": 128},
            "setup": {
                "device": "cuda",
                "world_size": 2,
                "parameters": 3_000_000_000,
                "torch_threads": 128,
            },
            "trials": [{"changed": "affinity", "step_times": 0.77}],
        },
    ),
    "capped": (
        "scheduling",
        {
            "gpus": _gpu(
                0.99,
                power_w={"mean": 200},
                power_limit_w=200,
                power_limit_default_w=350,
                sm_clock_mhz={"mean": 1100},
                sm_clock_max_mhz=2100,
                throttled={"power-cap": 1.0},
            ),
            "setup": CUDA,
        },
    ),
    "hot-without-reasons": (
        "scheduling",
        {
            "gpus": _gpu(
                0.98,
                temperature_c={"mean": 91},
                sm_clock_mhz={"mean": 780},
                sm_clock_max_mhz=1980,
            ),
            "setup": CUDA,
        },
    ),
    "second-user": (
        "scheduling",
        {
            "throughput": {"samples_s": 310},
            "host": {
                "other_programs": [
                    {"name": "python", "gpu": "same", "trains": True, "memory_bytes": 9e9}
                ]
            },
            "gpus": _gpu(1.0, foreign_processes=1),
            "setup": CUDA,
            "trials": [{"changed": "other-programs", "rate_times": 1.9}],
        },
    ),
    "busy-neighbour": (
        "scheduling",
        {
            "gpus": _gpu(0.5),
            "host": {
                "cores": 16,
                "load_average": 41,
                "other_programs": [{"name": "ffmpeg", "gpu": "none", "cores": 12}],
            },
            "setup": CUDA,
        },
    ),
    "container": (
        "scheduling",
        {
            "gpus": _gpu(0.3),
            "host": {"cores": 64, "quota_cores": 2, "throttled_periods": 0.9},
            "setup": CUDA | {"num_workers": 8},
        },
    ),
    "pools": (
        "scheduling",
        {
            "steps": _steps(1.3),
            "host": {"cores": 64, "run_threads": 2100, "load_average": 180},
            "setup": EIGHT | {"torch_threads": 64},
        },
    ),
    # Watching
    "synchronising-log": (
        "monitoring",
        {
            "steps": _steps(0.2),
            "gpus": _gpu(0.55),
            "counters": {"steps": 1, "item_reads": 40},
            "setup": CUDA | {"log_every": 1},
        },
    ),
    "no-reads": (
        "monitoring",
        {
            "throughput": {"tokens_s": 9000},
            "counters": {"steps": 1, "item_reads": 12},
            "setup": CUDA,
            "trials": [{"changed": "synchronisation", "rate_times": 1.3}],
        },
    ),
    "saved-too-often": (
        "monitoring",
        {
            "steps": _steps(1.0),
            "counters": {"steps": 100, "checkpoints": 10, "checkpoint_seconds": 45},
            "setup": CUDA | {"checkpoint_every": 10},
        },
    ),
    "histograms": (
        "monitoring",
        {
            "steps": _steps(0.4),
            "gpus": _gpu(0.3),
            "setup": CUDA | {"log_every": 1},
            "profile": {"host_top": [{"name": "add_histogram (tensorboard)", "share": 0.5}]},
        },
    ),
    "waiting-stacks": (
        "monitoring",
        {
            "setup": CUDA,
            "counters": {"steps": 1, "synchronisations": 14},
            "profile": {
                "idle": 0.35,
                "host_top": [{"name": "torch.cuda.synchronize", "share": 0.4}],
            },
        },
    ),
    # Nothing wrong
    "half-of-the-peak": (
        "none",
        {
            "gpus": _gpu(0.99, power_w={"mean": 385}, power_limit_w=400),
            "steps": _steps(1.0, data_wait=0.004),
            "setup": CUDA | {"precision": "bf16-mixed", "attention": "flash", "compile": True},
            "profile": {"achieved_of_peak": 0.47},
        },
    ),
    "well-fed": (
        "none",
        {
            "gpus": _gpu(0.98, power_w={"mean": 690}, power_limit_w=700),
            "steps": _steps(0.7, data_wait=0.002),
            "setup": EIGHT | {"precision": "bf16-mixed"},
            "profile": {"idle": 0.03, "communication": 0.2, "communication_hidden": 0.9},
            "trials": [{"changed": "synthetic-data", "step_times": 0.99}],
        },
    ),
    "twice-is-twice": (
        "none",
        {
            "gpus": _gpu(0.99, power_w={"mean": 395}, power_limit_w=400),
            "setup": CUDA | {"precision": "bf16-mixed", "batch": 32},
            "throughput": {"samples_s": 2900},
            "trials": [{"changed": "batch", "factor": 2, "rate_times": 1.01}],
        },
    ),
    # Nothing to go by
    "only-busy": ("unknown", {"gpus": _gpu(0.3), "setup": CUDA | {"batch": 32}}),
    "only-a-rate": ("unknown", {"throughput": {"samples_s": 220}, "setup": EIGHT}),
    "only-others": (
        "unknown",
        {"throughput": {"samples_s": 220, "expected_times": 2.0}, "setup": CUDA},
    ),
    "only-memory": (
        "unknown",
        {
            "gpus": _gpu(None, memory_used_bytes=39e9, memory_total_bytes=40e9),
            "setup": CUDA,
            "steps": _steps(2.0),
        },
    ),
    "two-gpus-slow": (
        "unknown",
        {"gpus": _gpu(0.6) * 2, "setup": EIGHT | {"world_size": 2}, "steps": _steps(1.1)},
    ),
    # A second set, written after the rules had been fitted to those above
    "state-on-nvme": (
        "memory",
        {
            "steps": _steps(45.0, compute=45.0, forward=14.0, backward=24.0, optimizer=7.0),
            "gpus": _gpu(0.15),
            "setup": CUDA | {"offload": True, "offloaded_to": "drive"},
        },
    ),
    "activations-away": (
        "memory",
        {"gpus": _gpu(0.55), "setup": CUDA | {"offload": True}, "profile": {"copies": 0.35}},
    ),
    "sharded-away": (
        "memory",
        {
            "throughput": {"samples_s": 12},
            "setup": EIGHT | {"strategy": "fsdp", "offload": True},
            "trials": [{"changed": "offloading", "rate_times": 4.0}],
        },
    ),
    "paged-optimizer": (
        "memory",
        {
            "steps": _steps(3.2),
            "gpus": _gpu(0.5),
            "counters": {"steps": 1, "offloaded_bytes": 40e9},
            "setup": CUDA,
        },
    ),
    "fragments": (
        "memory",
        {
            "counters": {"steps": 1, "allocated_bytes": 38e9, "reserved_bytes": 70e9},
            "failure": {"kind": "OutOfMemoryError", "text": "CUDA out of memory."},
            "setup": CUDA,
        },
    ),
    "swapping": (
        "memory",
        {
            "gpus": _gpu(0.2),
            "host": {
                "swapped_bytes_s": 30e6,
                "memory_available_bytes": 0.5e9,
                "memory_total_bytes": 32e9,
            },
            "setup": CUDA,
        },
    ),
    "steady-mallocs": (
        "memory",
        {
            "setup": CUDA,
            "gpus": _gpu(0.5),
            "profile": {
                "allocation_calls": 12,
                "host_top": [
                    {"name": "cudaFree", "share": 0.3},
                    {"name": "cudaMalloc", "share": 0.1},
                ],
            },
        },
    ),
    "far-node": (
        "scheduling",
        {
            "host": {"numa_nodes": 2, "run_numa_nodes": [1]},
            "gpus": _gpu(0.6, numa_node=0, copy_bytes_s=11e9, copy_expected_bytes_s=25e9),
            "setup": CUDA,
        },
    ),
    "four-lanes": (
        "scheduling",
        {
            "gpus": _gpu(0.6, link_width=4, link_width_max=16),
            "steps": _steps(0.5, transfer=0.15),
            "setup": CUDA,
        },
    ),
    "gathering": (
        "communication",
        {
            "gpus": [*_gpu(0.95), *_gpu(0.4), *_gpu(0.4), *_gpu(0.4)],
            "setup": {"device": "cuda", "strategy": "dp", "world_size": 1},
        },
    ),
    "slow-rank": (
        "communication",
        {"steps": {**_steps(1.2), "slowest_rank": 1.5}, "gpus": _gpu(0.7) * 8, "setup": EIGHT},
    ),
    "watched-gradients": (
        "monitoring",
        {
            "throughput": {"steps_s": 2.1},
            "gpus": _gpu(0.5),
            "setup": CUDA,
            "trials": [{"changed": "logging", "rate_times": 1.6}],
        },
    ),
    "stream-waits": (
        "monitoring",
        {
            "gpus": _gpu(0.6),
            "setup": CUDA,
            "profile": {
                "synchronise_calls": 230,
                "host_top": [{"name": "cudaStreamSynchronize", "share": 0.62}],
            },
        },
    ),
    "anomaly": (
        "monitoring",
        {"steps": _steps(1.4), "gpus": _gpu(0.4), "setup": CUDA | {"anomaly_detection": True}},
    ),
    "no-tf32": (
        "tuning",
        {"gpus": _gpu(0.99), "setup": CUDA | {"precision": "fp32", "tf32_allowed": False}},
    ),
    "odd-vocabulary": (
        "tuning",
        {
            "gpus": _gpu(0.98),
            "setup": CUDA | {"precision": "bf16-mixed", "dims": [50257, 1021]},
            "profile": {"achieved_of_peak": 0.22},
        },
    ),
    "pointwise": (
        "tuning",
        {
            "gpus": _gpu(0.97),
            "setup": CUDA | {"compile": False},
            "profile": {
                "top": [
                    {
                        "name": "void at::native::vectorized_elementwise_kernel<4, mul>",
                        "share": 0.35,
                    },
                    {"name": "void at::native::unrolled_elementwise_kernel", "share": 0.2},
                ]
            },
        },
    ),
    "written-out-attention": (
        "tuning",
        {
            "gpus": _gpu(0.98),
            "setup": CUDA | {"attention": "eager", "model_kind": "transformer"},
            "profile": {"attention_eager": 0.3},
        },
    ),
    "graphs-of-atoms": (
        "parallelism",
        {
            "gpus": _gpu(0.2),
            "setup": CUDA,
            "profile": {"kernels_a_step": 5000, "kernel_median_seconds": 4e-6},
        },
    ),
    "cells": (
        "parallelism",
        {
            "gpus": _gpu(0.3, sm_active={"mean": 0.1}),
            "setup": CUDA | {"model_kind": "recurrent", "batch": 8},
            "steps": _steps(0.2, data_wait=0.001),
        },
    ),
    "few-samples": (
        "parallelism",
        {
            "gpus": _gpu(0.35, memory_used_bytes=3e9),
            "steps": _steps(0.03, data_wait=0.0004),
            "setup": CUDA | {"batch": 1},
        },
    ),
    "utilised": (
        "none",
        {
            "gpus": _gpu(1.0),
            "setup": EIGHT | {"precision": "bf16"},
            "profile": {"achieved_of_peak": 0.52},
        },
    ),
    "full-power": (
        "none",
        {
            "gpus": _gpu(0.99, power_w={"mean": 380}, power_limit_w=400),
            "steps": _steps(0.8, data_wait=0.008),
            "setup": CUDA | {"precision": "bf16-mixed"},
        },
    ),
    "four-nodes": (
        "communication",
        {
            "throughput": {"tokens_s": 1100},
            "setup": EIGHT | {"nodes": 4, "world_size": 32, "link": "network"},
            "trials": [{"changed": "nodes", "factor": 0.25, "rate_times": 2.2}],
        },
    ),
    "tensor-parallel": (
        "communication",
        {
            "gpus": _gpu(0.99) * 4,
            "setup": {"device": "cuda", "world_size": 4, "strategy": "tp", "link": "pcie"},
            "profile": {"communication": 0.55, "communication_hidden": 0.05},
        },
    ),
    "two-others": (
        "scheduling",
        {
            "gpus": _gpu(
                1.0, foreign_processes=2, foreign_memory_bytes=20e9, memory_total_bytes=40e9
            ),
            "setup": CUDA,
        },
    ),
    "ninety-two-degrees": (
        "scheduling",
        {
            "gpus": _gpu(0.99, temperature_c={"mean": 92}, throttled={"thermal": 0.6}),
            "setup": CUDA,
        },
    ),
    "unplugged": (
        "scheduling",
        {
            "gpus": _gpu(0.95, sm_clock_mhz={"mean": 900}, sm_clock_max_mhz=2100),
            "host": {"on_battery": True},
            "setup": CUDA,
        },
    ),
    "a-quarter": ("scheduling", {"gpus": _gpu(0.97, mps_share=0.25), "setup": CUDA}),
    "no-workers": (
        "input",
        {
            "steps": _steps(0.4, data_wait=0.14),
            "gpus": _gpu(0.6),
            "setup": CUDA | {"num_workers": 0},
        },
    ),
    "unpinned": (
        "input",
        {"steps": _steps(0.4, transfer=0.1), "setup": CUDA | {"pin_memory": False}},
    ),
    "same-batch": (
        "input",
        {
            "throughput": {"samples_s": 700},
            "gpus": _gpu(0.35),
            "setup": CUDA,
            "trials": [{"changed": "synthetic-data", "rate_times": 2.4}],
        },
    ),
    "busy-drive": (
        "input",
        {
            "steps": _steps(0.5, data_wait=0.2),
            "host": {"drive_busy": 0.98},
            "gpus": _gpu(0.3),
            "setup": CUDA,
        },
    ),
    "half-power": (
        "unknown",
        {"gpus": _gpu(None, power_w={"mean": 150}, power_limit_w=300), "setup": CUDA},
    ),
    "scaling-unsaid": (
        "unknown",
        {"steps": _steps(1.0), "setup": EIGHT, "gpus": _gpu(0.75) * 8},
    ),
}
"""Name -> the cause, and the record without its version."""


def wrong() -> list[str]:
    """Return what is said otherwise than it should be, a line each."""
    from trainwright.diagnose import decide
    from trainwright.diagnose.evidence import Evidence

    lines = []
    for name, (cause, parts) in REPORTS.items():
        first = decide.judge(Evidence.model_validate({"trainwright_record": 1, **parts})).first
        also = ("monitoring",) if cause == "unknown" else ()
        if first.cause not in (cause, *also):
            lines.append(f"{name:26} {cause:14} {first.cause} {first.variant} {first.confidence}")
    return lines


if __name__ == "__main__":
    print("\n".join(wrong()), f"{len(REPORTS) - len(wrong())} of {len(REPORTS)}", sep="\n")
