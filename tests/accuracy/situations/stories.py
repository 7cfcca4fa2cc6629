"""Records as threads have them: a few figures together, and what a competent reader says of them.

python tests/accuracy/situations/stories.py   # the misses, and a count

Nobody reported these runs. Each was written from what its cause does to a computer, and with what
else people state beside it, before anybody looked at what the rules say of it. `readings.py` has
any two readings of a kind; these have what stands beside them in a report.
"""

from collections import Counter
from collections.abc import Iterator

from readings import (
    EIGHT,
    ONE,
    TWO_NODES,
    Part,
    counters,
    gpu,
    host,
    host_rows,
    judged,
    loading,
    outcome,
    profile,
    rows,
    setup,
    steps,
    throughput,
    trial,
)

from trainwright.diagnose.verdict import Verdict


def epoch(seconds: float, **read: float) -> Part:
    """Return the time of an epoch."""
    return {"steps": {"steps": 1, "unit": "epoch", "seconds": seconds, **read}}


def others(*programs: Part) -> Part:
    """Return what else computes on the computer."""
    return {"host": {"other_programs": list(programs)}}


def cards(*utilisations: float, **read: object) -> Part:
    """Return several GPUs, each as busy as said."""
    return {"gpus": [{"utilisation": {"mean": each}, **read} for each in utilisations]}


TRAINS = {"trains": True, "gpu": "other"}
PICTURES = setup(model_kind="convolution")
TEXT = setup(model_kind="transformer")
STORIES: tuple[tuple[str, tuple[Part, ...]], ...] = (
    # A loader that is too slow
    ("input", (ONE, PICTURES, gpu(utilisation=0.3), setup(num_workers=0))),
    ("input", (ONE, PICTURES, epoch(5400), gpu(utilisation=0.15), setup(num_workers=2))),
    ("input", (ONE, gpu(utilisation=0.3), loading(data_on="hdd"), host(read_bytes_s=140e6))),
    ("input", (ONE, host(read_bytes_s=115e6), loading(data_on="network"), steps())),
    ("input", (ONE, host(cores=2, utilisation={"mean": 1.0}), gpu(utilisation=0.35))),
    ("input", (ONE, host(cores=4, run_cores=3.9), gpu(utilisation=0.4), setup(num_workers=4))),
    ("input", (EIGHT, PICTURES, host(utilisation={"mean": 0.99}), trial("devices", 0.125, rate=2))),
    ("input", (EIGHT, trial("devices", 0.125, rate=2.1), loading(samples_s=820.0),
               throughput(samples_s=100.0))),
    ("input", (ONE, trial("gpu", rate=1.0, to="A100"), host(utilisation={"mean": 0.95}))),
    ("input", (ONE, trial("gpu", rate=1.02, to="V100"), setup(num_workers=2), PICTURES,
               gpu(utilisation=0.4))),
    ("input", (ONE, trial("cached-data", step=0.98), trial("workers", 2, step=0.6))),
    ("input", (ONE, trial("cached-data", step=0.99), host(utilisation={"mean": 1.0}),
               gpu(utilisation=0.5))),
    ("input", (ONE, steps(p95_seconds=4.0), setup(num_workers=8), loading(queue_empty=0.12),
               gpu(utilisation=0.4))),
    ("input", (ONE, loading(batch_seconds=2.4), setup(num_workers=0), steps(compute=0.2))),
    ("input", (ONE, loading(batch_seconds=1.5), gpu(utilisation=0.25))),
    ("input", (ONE, loading(batch_seconds=0.6), steps(seconds=0.1, unit="part"))),
    ("input", (ONE, host(drive_busy=1.0), gpu(utilisation=0.05))),
    ("input", (ONE, host(io_wait=0.25), gpu(utilisation={"mean": 0.3, "low": 0.0, "high": 0.95}))),
    ("input", (ONE, trial("drive", rate=3.0, to="ram disk"), gpu(utilisation=0.2))),
    ("input", (ONE, trial("drive", step=1.0, to="nvme"), trial("augmentation", step=0.55))),
    ("input", (ONE, trial("model-size", 0.25, step=0.98), gpu(utilisation=0.3),
               setup(num_workers=4), PICTURES)),
    ("input", (ONE, trial("batch", 2, step=1.95), gpu(utilisation=0.3), setup(num_workers=4))),
    ("input", (ONE, trial("precision", step=0.99, to="fp16"), setup(num_workers=2), PICTURES,
               gpu(utilisation=0.4), epoch(3600))),
    ("input", (ONE, trial("precision", step=1.0, to="amp"), host(utilisation={"mean": 0.98}))),
    ("input", (ONE, throughput(samples_s=300, expected_times=3), host(utilisation={"mean": 1.0}))),
    ("input", (ONE, throughput(expected_times=4), loading(data_on="network"), PICTURES)),
    ("input", (ONE, steps(forward=0.04, backward=0.08))),
    ("input", (ONE, steps(device_seconds=0.1), loading(batch_seconds=0.45), setup(num_workers=1))),
    ("input", (ONE, trial("synthetic-data", rate=4.0), host(utilisation={"mean": 0.95}))),
    ("input", (ONE, host(main_process_cores=1.0), setup(num_workers=0), gpu(utilisation=0.2))),
    ("input", (EIGHT, cards(*[0.3] * 8), host(utilisation={"mean": 1.0}), PICTURES)),
    ("input", (EIGHT, cards(*[0.4] * 8), host(io_wait=0.3))),
    ("input", (ONE, trial("pinned-memory", rate=1.6), profile(copies=0.3))),
    ("input", (ONE, host_rows(("load_image", 0.5)), gpu(utilisation=0.3))),
    ("input", (ONE, host_rows(("get_mel", 0.5)), gpu(utilisation=0.3), setup(num_workers=1))),
    # Devices that wait for each other
    ("communication", (EIGHT, cards(*[1.0] * 8, power_w={"mean": 110}, power_limit_w=400),
                       setup(link="pcie"))),
    ("communication", (TWO_NODES, host(network_bytes_s=1.1e9, network_max_bytes_s=1.25e9),
                       gpu(utilisation=0.5))),
    ("communication", (TWO_NODES, throughput(expected_times=3), setup(link_bytes_s=1.25e9))),
    ("communication", (setup(device="cuda", strategy="dp", world_size=1),
                       cards(0.95, 0.3, 0.3, 0.3))),
    ("communication", (setup(device="cuda", strategy="dp"), trial("devices", 0.25, rate=3.0))),
    ("communication", (setup(device="cuda", strategy="dp"), trial("devices", 0.5, step=0.9),
                       cards(0.6, 0.4))),
    ("communication", (EIGHT, setup(link="pcie"), trial("devices", 0.125, rate=1.7))),
    ("communication", (EIGHT, setup(link="pcie", parameters=1_500_000_000), trial(
        "accumulation", 4, rate=1.5))),
    ("communication", (EIGHT, setup(backend="gloo"), gpu(utilisation=0.3))),
    ("communication", (EIGHT, trial("backend", step=0.5, to="nccl"), setup(backend="gloo"))),
    ("communication", (TWO_NODES, trial("nodes", 0.5, rate=2.2))),
    ("communication", (setup(device="cuda", world_size=64, nodes=8, strategy="fsdp"),
                       trial("nodes", 0.25, rate=1.6), profile(achieved_of_peak=0.2))),
    ("communication", (setup(device="cuda", world_size=8, strategy="fsdp", link="pcie"),
                       cards(*[0.4] * 8), TEXT)),
    ("communication", (setup(device="cuda", world_size=8, strategy="zero", link="pcie"),
                       trial("link", rate=2.4, to="nvlink"))),
    ("communication", (setup(device="cuda", world_size=8, strategy="pp", pipeline_stages=8,
                             accumulation=8), gpu(utilisation=0.5))),
    ("communication", (setup(device="cuda", world_size=4, strategy="pp", pipeline_stages=4),
                       trial("accumulation", 4, rate=1.6))),
    ("communication", (setup(device="cuda", world_size=8, strategy="tp", link="pcie"),
                       profile(communication=0.45))),
    ("communication", (EIGHT, steps(forward=0.1, backward=0.38))),
    ("communication", (EIGHT, profile(communication=0.35, communication_hidden=0.1),
                       setup(find_unused_parameters=True))),
    ("communication", (EIGHT, steps(slowest_rank=1.5, communication=0.15))),
    ("communication", (EIGHT, rows(("ncclKernel_AllReduce_RING_LL_Sum_float", 0.6)),
                       gpu(utilisation=1.0))),
    ("communication", (EIGHT, trial("batch", 2, step=1.1), profile(communication=0.4))),
    # Too little parallel work
    ("parallelism", (ONE, gpu(utilisation=0.3), setup(batch=1), steps(data_wait=0.001))),
    ("parallelism", (ONE, trial("gpu", step=0.97, to="A100"), steps(data_wait=0.001),
                     gpu(utilisation=0.35))),
    ("parallelism", (ONE, trial("gpu", rate=0.6, to="CPU"), setup(parameters=30000))),
    ("parallelism", (ONE, trial("gpu", step=0.5, to="cpu"), gpu(utilisation=0.1))),
    ("parallelism", (ONE, trial("model-size", 0.5, step=0.98), steps(data_wait=0.002),
                     gpu(utilisation=0.4))),
    ("parallelism", (ONE, trial("sequence-length", 0.5, step=0.97), gpu(utilisation=0.35))),
    ("parallelism", (ONE, trial("batch", 0.5, step=0.98), gpu(utilisation=0.4))),
    ("parallelism", (ONE, trial("batch", 16, rate=12.0), gpu(utilisation=0.2))),
    ("parallelism", (ONE, trial("synthetic-data", step=0.98), gpu(utilisation=0.35))),
    ("parallelism", (ONE, trial("precision", step=1.02, to="bf16"), gpu(utilisation=0.3),
                     steps(data_wait=0.001))),
    ("parallelism", (ONE, profile(kernels_a_step=20000), gpu(utilisation=0.35))),
    ("parallelism", (ONE, steps(device_seconds=0.12), profile(kernels_a_step=4000))),
    ("parallelism", (ONE, profile(idle=0.7, kernel_median_seconds=3e-6))),
    ("parallelism", (ONE, host(main_process_cores=1.0), gpu(utilisation=0.3),
                     trial("synthetic-data", step=1.0))),
    ("parallelism", (ONE, gpu(utilisation=0.97, sm_active=0.1))),
    ("parallelism", (ONE, gpu(utilisation=0.95, power_w=70, power_limit_w=300), setup(batch=1))),
    ("parallelism", (ONE, trial("compile", step=0.4, to="cudagraphs"), gpu(utilisation=0.4))),
    ("parallelism", (ONE, trial("cpu", rate=1.7), gpu(utilisation=0.35),
                     trial("synthetic-data", step=0.99))),
    ("parallelism", (ONE, setup(model_kind="recurrent"), gpu(utilisation=0.25),
                     steps(data_wait=0.002))),
    ("parallelism", (ONE, steps(seconds=0.02, optimizer=0.012), setup(optimizer_foreach=False))),
    ("parallelism", (ONE, throughput(expected_times=3), profile(kernels_a_step=12000, idle=0.6))),
    ("parallelism", (EIGHT, trial("devices", 0.125, rate=1.02), gpu(utilisation=0.3),
                     steps(data_wait=0.001))),
    ("parallelism", (setup(device="cpu"), trial("batch", 8, step=1.3))),
    # Slow kernels, precision, layout, shapes
    ("tuning", (ONE, gpu(utilisation=1.0, compute_capability="7.5"), setup(precision="bf16-mixed"),
                throughput(expected_times=3))),
    ("tuning", (ONE, gpu(compute_capability="7.0"), setup(precision="bf16"),
                trial("precision", step=0.4, to="fp16"))),
    ("tuning", (ONE, gpu(compute_capability="6.1"), setup(precision="fp16"),
                trial("precision", step=0.7, to="fp32"))),
    ("tuning", (ONE, gpu(compute_capability="8.0", utilisation=0.99), setup(precision="fp32"),
                profile(achieved_of_peak=0.06))),
    ("tuning", (ONE, setup(precision="fp32", tf32_allowed=False), throughput(expected_times=2),
                gpu(utilisation=0.99))),
    ("tuning", (ONE, setup(deterministic=True), throughput(expected_times=2),
                gpu(utilisation=0.99))),
    ("tuning", (ONE, TEXT, setup(attention="eager", sequence_length=8192), gpu(utilisation=0.99))),
    ("tuning", (ONE, TEXT, setup(attention="eager"), trial("sequence-length", 2, step=3.4))),
    ("tuning", (ONE, TEXT, trial("attention", rate=1.5), gpu(utilisation=1.0))),
    ("tuning", (ONE, trial("shapes", step=0.7), gpu(utilisation=0.95))),
    ("tuning", (ONE, setup(dynamic_shapes=True, cudnn_benchmark=True), steps(p95_seconds=2.5),
                PICTURES)),
    ("tuning", (ONE, setup(dynamic_shapes=True, compile=True), steps(p95_seconds=20.0))),
    ("tuning", (ONE, setup(dynamic_shapes=True), steps(p95_seconds=2.5), trial(
        "shapes", step=0.5))),
    ("tuning", (ONE, PICTURES, setup(dynamic_shapes=True), trial("cudnn-benchmark", step=0.3))),
    ("tuning", (ONE, trial("compile", step=0.65), gpu(utilisation=0.98))),
    ("tuning", (ONE, rows(("kDequantizeBlockwise", 0.4)), gpu(utilisation=0.99))),
    ("tuning", (ONE, rows(("void cudnn::cnn::conv2d_grouped_direct_kernel", 0.5)),
                gpu(utilisation=1.0))),
    ("tuning", (ONE, setup(sequence_padding=0.7), gpu(utilisation=0.99))),
    ("tuning", (ONE, gpu(utilisation=1.0, power_w=200, power_limit_w=250), PICTURES,
                setup(precision="fp32"), trial("precision", step=0.45, to="amp"))),
    ("tuning", (ONE, gpu(utilisation=1.0, tensor_active=0.01, sm_active=0.95), TEXT)),
    ("tuning", (ONE, throughput(expected_times=2.5), gpu(utilisation=0.99), steps(data_wait=0.0))),
    ("tuning", (ONE, trial("channels-last", rate=1.4), setup(precision="fp16-mixed"), PICTURES)),
    ("tuning", (ONE, steps(forward=0.05, backward=0.44))),
    ("tuning", (ONE, trial("gpu", rate=5.0, to="V100"), gpu(name="A100", utilisation=0.99))),
    # Memory
    ("memory", (ONE, counters(alloc_retries=40), steps(p95_seconds=2.0))),
    ("memory", (ONE, gpu(utilisation=1.0, memory_used_bytes=24e9, memory_total_bytes=24.1e9,
                         power_w=90, power_limit_w=450), steps(seconds=40.0))),
    ("memory", (ONE, gpu(memory_used_bytes=15.9e9, memory_total_bytes=16e9),
                trial("batch", 0.5, step=0.05))),
    ("memory", (ONE, setup(checkpointing="full"), gpu(memory_used_bytes=12e9,
                                                      memory_total_bytes=80e9))),
    ("memory", (ONE, trial("checkpointing", rate=1.35, to="none"))),
    ("memory", (ONE, setup(offload=True, offloaded=["optimizer"]), gpu(utilisation=0.15))),
    ("memory", (ONE, setup(offload=True, offloaded=["parameters"]), profile(idle=0.8))),
    ("memory", (EIGHT, setup(offload=True, strategy="zero", offloaded=["optimizer"]),
                steps(seconds=10.0, optimizer=6.0, compute=9.5))),
    ("memory", (ONE, setup(offload=True), host(utilisation={"mean": 0.9}), gpu(utilisation=0.2))),
    ("memory", (ONE, trial("offloading", rate=3.5))),
    ("memory", (ONE, host(memory_available_bytes=1e8, memory_total_bytes=32e9), host(io_wait=0.4),
                gpu(utilisation=0.1))),
    ("memory", (ONE, host(swapped_bytes_s=2e8), steps())),
    ("memory", (ONE, counters(empty_cache=100), gpu(utilisation=0.5))),
    ("memory", (ONE, trial("empty-cache", rate=1.4))),
    ("memory", (ONE, trial("garbage-collection", rate=1.3), gpu(utilisation=0.6))),
    ("memory", (ONE, counters(garbage_collections=100), steps(other=0.2))),
    ("memory", (ONE, counters(device_allocations=6000), gpu(utilisation=0.5))),
    ("memory", (ONE, trial("allocator", rate=1.4, to="expandable"), counters(
        reserved_bytes=int(78e9), allocated_bytes=int(40e9)))),
    # Scheduling
    ("scheduling", (ONE, setup(torch_threads=128), host(cores=128), others(*[TRAINS] * 3))),
    ("scheduling", (ONE, host(cores=64, load_average=200.0), others(*[TRAINS] * 3))),
    ("scheduling", (EIGHT, setup(torch_threads=64), host(cores=64, load_average=400.0))),
    ("scheduling", (EIGHT, setup(torch_threads=96), host(cores=96, utilisation={"mean": 1.0}))),
    ("scheduling", (ONE, host(cores=64, usable_cores=1.0), setup(num_workers=8),
                    gpu(utilisation=0.2))),
    ("scheduling", (ONE, host(cores=64, usable_cores=2.0), steps(data_wait=0.4))),
    ("scheduling", (ONE, host(cores=48, quota_cores=2.0), gpu(utilisation=0.2))),
    ("scheduling", (ONE, host(cores=40, usable_cores=1.0), trial("affinity", 8, rate=4.0))),
    ("scheduling", (ONE, host(cores=8), setup(num_workers=32), trial("workers", 0.25, step=0.6))),
    ("scheduling", (ONE, trial("threads", 0.1, rate=2.5), host(run_threads=600))),
    ("scheduling", (ONE, trial("other-programs", step=0.5), others(TRAINS))),
    ("scheduling", (ONE, others({"gpu": "same", "trains": True}), gpu(utilisation=1.0))),
    ("scheduling", (ONE, gpu(utilisation=1.0, foreign_processes=1), throughput(expected_times=2))),
    ("scheduling", (ONE, gpu(utilisation=0.99, sm_clock_mhz=300, sm_clock_max_mhz=1900))),
    ("scheduling", (ONE, gpu(utilisation=0.99, performance_state=8), steps())),
    ("scheduling", (ONE, gpu(utilisation=0.99, temperature_c=91), throughput(expected_times=1.7))),
    ("scheduling", (ONE, gpu(power_limit_w=100, power_limit_default_w=250, power_w=99),
                    gpu(utilisation=0.99))),
    ("scheduling", (ONE, gpu(throttled={"power-cap": 0.9}, utilisation=0.99, power_w=70,
                             power_limit_w=115))),
    ("scheduling", (EIGHT, {"gpus": [{"throttled": {"thermal": 0.9}}, *[{"throttled": {}}] * 7]},
                    steps(slowest_rank=1.4))),
    ("scheduling", (ONE, gpu(link_width=1, link_width_max=16, utilisation=0.15), steps())),
    ("scheduling", (ONE, gpu(link_generation=1, link_generation_max=3, utilisation=0.6),
                    profile(copies=0.3))),
    ("scheduling", (ONE, gpu(mig_profile="1g.5gb", utilisation=0.99),
                    throughput(expected_times=6))),
    ("scheduling", (ONE, {"host": {"numa_nodes": 2, "run_numa_nodes": [1]}},
                    {"gpus": [{"numa_node": 0}]}, trial("affinity", step=0.8))),
    ("scheduling", (ONE, {"host": {"on_battery": True}}, gpu(utilisation=0.99),
                    throughput(expected_times=3))),
    ("scheduling", (ONE, others({"gpu": "none", "read_bytes_s": 1.5e8}), host(
        drive_busy=1.0), steps(data_wait=0.3))),
    ("scheduling", (ONE, trial("power-limit", rate=1.5), gpu(power_limit_w=150))),
    ("scheduling", (ONE, trial("slice", rate=3.0, to="whole GPU"))),
    ("scheduling", (setup(device="cpu"), setup(torch_threads=1), host(cores=32, run_cores=1.0))),
    ("scheduling", (setup(device="cpu"), host(cores=16, load_average=45.0),
                    trial("other-programs", rate=2.6))),
    # Watching
    ("monitoring", (ONE, counters(item_reads=100, synchronisation_seconds=20.0), profile(
        idle=0.4))),
    ("monitoring", (ONE, trial("synchronisation", rate=1.5), gpu(utilisation=0.6))),
    ("monitoring", (ONE, trial("logging", 0.1, step=0.4))),
    ("monitoring", (ONE, setup(log_every=1), trial("logging", 0.01, rate=2.0))),
    ("monitoring", (ONE, setup(evaluate_every=10), host_rows(("evaluate", 0.22)))),
    ("monitoring", (ONE, epoch(600), {"counters": {"steps": 1, "evaluation_seconds": 420.0}})),
    ("monitoring", (ONE, epoch(600), {"counters": {"steps": 1, "checkpoint_seconds": 200.0}})),
    ("monitoring", (ONE, steps(other=0.3), setup(checkpoint_every=1))),
    ("monitoring", (ONE, steps(other=0.3), setup(evaluate_every=1))),
    ("monitoring", (ONE, trial("evaluation", rate=2.0), setup(evaluate_every=1))),
    ("monitoring", (ONE, trial("checkpoints", 0.1, step=0.6))),
    ("monitoring", (ONE, trial("profiler", rate=1.8))),
    ("monitoring", (ONE, setup(profiler_on=True), throughput(expected_times=3))),
    ("monitoring", (ONE, setup(anomaly_detection=True), throughput(expected_times=3))),
    ("monitoring", (ONE, host_rows(("aten::item", 0.45)), gpu(utilisation=0.5))),
    ("monitoring", (ONE, host_rows(("cudaStreamSynchronize", 0.6)), profile(idle=0.5),
                    counters(item_reads=300))),
    # Nothing is wrong
    ("none", (EIGHT, trial("devices", 0.125, rate=1.03), gpu(utilisation=0.98))),
    ("none", (ONE, throughput(expected_times=1.0), gpu(utilisation=0.98))),
    ("none", (ONE, trial("synthetic-data", rate=1.01), gpu(utilisation=0.97))),
    ("none", (ONE, profile(achieved_of_peak=0.5), gpu(utilisation=0.99))),
    ("none", (ONE, trial("gpu", rate=2.2, to="A100"), gpu(utilisation=0.99))),
    ("none", (ONE, trial("batch", 2, step=1.97), gpu(utilisation=0.99))),
    ("none", (ONE, trial("workers", 2, step=1.0), trial("precision", step=0.99, to="bf16"),
              gpu(utilisation=0.99))),
    ("none", (ONE, trial("drive", step=1.0, to="ram disk"), trial("workers", 2, rate=1.0),
              gpu(utilisation=0.97))),
    ("none", (ONE, trial("compile", step=0.99), steps(data_wait=0.003), gpu(utilisation=0.99))),
    ("none", (ONE, trial("other-programs", step=1.0), gpu(utilisation=0.98))),
    # Contradicting, or too little
    ("unknown", (ONE, steps())),
    ("unknown", (ONE, epoch(3600), PICTURES)),
    ("unknown", (EIGHT, throughput(samples_s=300))),
    ("unknown", (ONE, throughput(expected_times=3))),
    ("unknown", (EIGHT, epoch(900), TEXT, setup(link="pcie"))),
    ("unknown", (ONE, steps(p95_seconds=2.0))),
    ("unknown", (ONE, steps(), setup(batch=4, num_workers=8))),
    ("unknown", (TWO_NODES, throughput(tokens_s=900))),
    ("unknown", (ONE, epoch(600), trial("workers", 2, step=1.0))),
    ("unknown", (ONE, steps(), host(utilisation={"mean": 0.3}), setup(precision="fp32"))),
)  # fmt: skip
"""What a reader says, and what was stated."""


def outcomes() -> Iterator[tuple[str, str, Verdict, tuple[Part, ...]]]:
    """Yield each story's cause, whether it is named, the verdict and what was stated."""
    for cause, parts in STORIES:
        verdict = judged(*parts)
        yield cause, outcome(cause, verdict), verdict, parts


def main() -> None:
    found: Counter[str] = Counter()
    for cause, told, verdict, parts in outcomes():
        found[told] += 1
        if told != "right":
            print(f"{cause}: {told}: {verdict.cause} {verdict.variant} | {parts[1:]}")
    print(dict(found))


if __name__ == "__main__":
    main()
