"""Figures made of readings, against what they are by hand or by others' rules."""

from typing import Any

import pytest

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import cost, figures, names, trials, work


def seen(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, **parts})


def steps(seconds: float = 1.0, **parts: Any) -> dict[str, Any]:
    return {"steps": 10, "seconds": seconds, **parts}


CUDA = {"device": "cuda"}


# Experiments


@pytest.mark.parametrize(
    ("trial", "doubled"),
    [
        ({"changed": "batch", "factor": 2, "step_times": 1.1}, 1.1),
        ({"changed": "batch", "factor": 2, "rate_times": 1.0}, 2.0),  # no faster: a full device
        ({"changed": "batch", "factor": 8, "rate_times": 8.0}, 1.0),  # for free: an empty one
        ({"changed": "batch", "factor": 0.5, "step_times": 1.0}, 1.0),
        ({"changed": "batch", "factor": 0.5, "step_times": 0.5}, 2.0),
        ({"changed": "batch", "factor": 4, "step_times": 2.5}, 1.5),
    ],
)
def test_any_factor_of_the_batch_tells_what_twice_the_batch_would(
    trial: dict[str, Any], doubled: float
) -> None:
    assert trials.doubled_batch(seen(trials=[trial])) == pytest.approx(doubled)


def test_an_experiment_says_the_same_in_seconds_in_times_and_as_a_rate() -> None:
    saved = trials.saved_by("synthetic_batch")
    stated = [
        seen(steps=steps(2.0), experiments={"synthetic_batch": 0.5}),
        seen(trials=[{"changed": "synthetic-data", "step_times": 0.25}]),
        seen(trials=[{"changed": "synthetic-data", "rate_times": 4}]),
    ]
    assert [saved(each) for each in stated] == pytest.approx([0.75, 0.75, 0.75])
    assert saved(seen(steps=steps())) is None


def test_fewer_workers_that_are_slower_are_more_workers_that_are_faster() -> None:
    more = trials.saved_by("more_workers")
    halved = seen(trials=[{"changed": "workers", "factor": 0.5, "step_times": 2}])
    doubled = seen(trials=[{"changed": "workers", "factor": 2, "step_times": 0.5}])
    assert more(halved) == more(doubled) == pytest.approx(0.5)


@pytest.mark.parametrize("factor", [0.125, 8])
def test_one_device_alone_tells_what_the_others_cost(factor: float) -> None:
    alone = {"changed": "devices", "factor": factor, "step_times": 0.6 if factor < 1 else 1 / 0.6}
    saved = trials.saved_by("single_device")(seen(trials=[alone]))
    assert saved == pytest.approx(0.4)


# Names of kernels, as cuBLAS, cuDNN, CUTLASS, NCCL and torch 2 write them


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ampere_sgemm_128x64_tn", "plain-matrix"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "plain-matrix"),
        ("cutlass_80_simt_sgemm_128x128_8x4_nn_align1", "plain-matrix"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", "tensor-core"),
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "tensor-core"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "tensor-core"),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", "tensor-core"),
        ("ampere_dgemm_64x64_nn", "double-matrix"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)", "communication"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half", "communication"),
        ("void cudnn::ops::nchwToNhwcKernel<__half, __half, float>", "layout"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
        ("Memcpy DtoD (Device -> Device)", None),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4>>", "attention"),
        ("fmha_cutlassF_f16_aligned_64x64_rf_sm80", "attention"),
        ("void at::native::vectorized_elementwise_kernel<4, FillFunctor>", "elementwise"),
        ("triton_poi_fused_gelu_3", "elementwise"),
        ("selective_scan_fwd_kernel", None),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "tensor-core"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI16x16x16x1", "matrix"),
        ("collective-permute-start", "communication"),
        ("all-reduce.1", "communication"),
    ],
)
def test_kernels_are_told_by_their_names(name: str, family: str | None) -> None:
    assert names.family(name) == family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "loader"),
        ("_try_get_data (torch/utils/data/dataloader.py:1120)", "loader"),
        ("aten::_local_scalar_dense", "waiting"),
        ("cudaStreamSynchronize", "waiting"),
        ("cudaLaunchKernel", "launch"),
        ("cudaMalloc", "allocation"),
        ("save_checkpoint (trainer.py)", "checkpoint"),
        ("wake_up (engine.py)", "offload"),
        ("add_histogram (torch/utils/tensorboard/writer.py)", "log"),
        ("forward (model.py)", None),
        ("h5py/_hl/dataset.py:__getitem__", "fetch"),
        ("{method 'acquire' of '_thread.lock' objects}", "loader"),
        ("{method 'cpu' of 'torch._C._TensorBase' objects}", "waiting"),
        ("scipy/ndimage/_interpolation.py:zoom", "preprocess"),
        ("test_step (trainer.py)", "evaluation"),
        ("torch/_dynamo/eval_frame.py:_fn", None),
        ("load_batch", "loader"),
        ("replay_buffer.sample", "loader"),
        ("preprocess_images", "preprocess"),
        ("pickle.load", "fetch"),
        ("[kernel] clear_page_erms", "allocation"),
        ("[kernel] pageblock_pfn_to_page", "allocation"),
        ("average_gradients", "communication"),
        ("saver.save", "checkpoint"),
        ("write_summaries", "log"),
        ("compute_accuracy", "evaluation"),
        ("evaluate_actions", None),
        ("evaluate_model", "evaluation"),
        ("cc1plus", "compile"),
        ("torch.isnan", "anomaly"),
        ("soft_update", "optimizer"),
    ],
)
def test_functions_of_the_host_are_told_by_their_names(name: str, family: str | None) -> None:
    assert names.host_family(name) == family


def test_rows_of_functions_hold_what_they_call_so_that_only_the_largest_counts() -> None:
    rows = [{"name": "__next__ dataloader", "share": 0.5}, {"name": "collate", "share": 0.3}]
    evidence = seen(profile={"host_top": rows})
    assert names.functions_of("loader")(evidence) == 0.5
    assert names.functions_of("waiting")(evidence) == 0.0
    assert names.functions_of("waiting")(seen()) is None


# What things cost at least


def test_launches_take_their_count_times_what_each_takes() -> None:
    profile = {"kernels_a_step": 1200, "launch_median_seconds": 5e-6}
    assert cost.launching(seen(steps=steps(0.012), profile=profile)) == pytest.approx(0.5)
    timed = {"launch_seconds": 0.003, "step_seconds": 0.006}
    assert cost.launching(seen(profile=timed)) == pytest.approx(0.5)
    assert cost.launching(seen(steps=steps(), profile={"kernels_a_step": 9})) is None


def test_a_ring_all_reduce_takes_what_nccl_tests_say() -> None:
    """nccl-tests: bus bandwidth = bytes / time * 2 (n - 1) / n."""
    setup = {"world_size": 4, "parameters": 250_000_000, "link_bytes_s": 1e9}
    share = cost.gradients_on_link(seen(steps=steps(3.0), setup=setup))
    assert share == pytest.approx(1e9 / 1e9 * 2 * 3 / 4 / 3.0)


def test_a_pipeline_waits_as_gpipe_says() -> None:
    setup = {"pipeline_stages": 4, "accumulation": 8}
    assert cost.bubble(seen(setup=setup)) == pytest.approx(3 / 11)
    assert cost.bubble(seen(setup=setup, profile={"bubble": 0.5})) == 0.5


def test_what_is_offloaded_takes_the_links_time() -> None:
    moved = {"steps": 1, "offloaded_bytes": 50e9}
    old = seen(steps=steps(4.0), counters=moved, setup=CUDA)
    assert cost.offloading(old) == pytest.approx(0.5)  # 25 GB/s
    measured = seen(steps=steps(4.0), counters=moved, gpus=[{"copy_bytes_s": 12.5e9}])
    assert cost.offloading(measured) == pytest.approx(1.0)


def test_memory_and_power_are_known_from_a_gpus_name() -> None:
    gpu = {"name": "NVIDIA GeForce RTX 4090", "power_w": {"mean": 225}, "memory_used_bytes": 6e9}
    assert cost.power_share(seen(gpus=[gpu])) == pytest.approx(0.5)  # 450 W
    assert cost.memory_share(seen(gpus=[gpu])) == pytest.approx(6e9 / (24 << 30), rel=0.05)
    assert cost.memory_share(seen(gpus=[gpu | {"name": "No such GPU"}])) is None


def test_state_is_written_and_read_back_and_data_and_logs_are_not() -> None:
    def host(read: float, written: float) -> dict[str, Any]:
        return {"main_read_bytes_s": read, "main_written_bytes_s": written}

    setup = {"device": "cpu", "parameters": 1000}
    state = seen(steps=steps(), setup=setup, host=host(90e6, 80e6))
    assert cost.swapped_files(state) == 80e6
    for read, written in ((90e6, 1e3), (1e3, 90e6)):
        other = seen(steps=steps(), setup=setup, host=host(read, written))
        assert cost.swapped_files(other) is None
    ranks = seen(steps=steps(), setup=setup | {"world_size": 2}, host=host(90e6, 80e6))
    assert cost.swapped_files(ranks) is None  # they talk through the same calls
    rows = [{"name": "self.base.executemany()", "share": 0.57}]
    base = {"profile": {"host_top": rows}}
    database = seen(steps=steps(), setup=setup, host=host(90e6, 80e6), **base)
    assert cost.swapped_files(database) is None  # it reads its own pages to write rows


def test_a_loader_that_gives_what_is_used_has_nothing_to_spare() -> None:
    loading, rate = {"samples_s": 800}, {"samples_s": 100}
    evidence = seen(loading=loading, throughput=rate, setup=CUDA | {"world_size": 8})
    assert cost.loader_alone(evidence) == pytest.approx(1.0)


# Waiting for cores


def test_threads_that_wait_for_a_core_hold_the_step_back_by_their_share() -> None:
    """One thread that works half of the time and waits the other half loses half of it."""
    alone = seen(host={"starved_share": 0.5, "run_cores": 0.5}, setup=CUDA)
    assert figures.starved(alone) == pytest.approx(0.5)
    seldom = seen(host={"starved_share": 0.5, "run_cores": 0.05}, setup=CUDA)
    assert figures.starved(seldom) == pytest.approx(0.05)
    pool = seen(
        host={"starved_share": 0.5, "run_cores": 2.0}, setup={"device": "cpu", "torch_threads": 8}
    )
    assert figures.starved(pool) == pytest.approx(2 / 8)


def test_ranks_on_one_computer_are_no_strangers_to_each_other() -> None:
    host = {"cores": 8, "foreign_cores": 3.0, "run_cores": 1.0}
    alone = seen(host=host, setup={"world_size": 1})
    ranks = seen(host=host, setup={"world_size": 4})
    assert figures.foreign_share(alone) == pytest.approx(3 / 8)
    assert figures.foreign_share(ranks) == 0


def test_ranks_on_other_computers_take_no_cores_here() -> None:
    host = {"cores": 8, "foreign_cores": 3.0, "run_cores": 1.0}
    assert figures.foreign_share(seen(host=host, setup={"world_size": 4, "nodes": 2})) == 2 / 8


def test_a_rank_that_waits_for_a_core_leaves_it_to_its_siblings() -> None:
    host = {"cores": 2, "foreign_cores": 1.2, "run_cores": 0.6, "starved_share": 0.5}
    assert figures.foreign_share(seen(host=host, setup={"world_size": 2})) == 0


def test_products_are_as_fast_as_their_arithmetic_in_the_time_that_they_had_cores() -> None:
    rows = [{"name": "aten::mm", "share": 0.4}, {"name": "aten::add_", "share": 0.4}]
    profile = {"kernels_a_step": 100, "flops_a_step": 1e10, "matrix_flops_s": 1e11, "top": rows}
    cpu = {"device": "cpu"}
    parts = {"steps": steps(compute=0.9), "setup": cpu, "profile": profile}
    alone = seen(**parts, host={"starved_share": 0.0})
    assert work.products_of_matrix_rate(alone) == pytest.approx(0.25)
    crowded = seen(**parts, host={"starved_share": 0.5})
    assert work.products_of_matrix_rate(crowded) == pytest.approx(0.5)
    small = {**parts, "profile": {**profile, "kernels_a_step": 100_000}}
    assert work.products_of_matrix_rate(seen(**small)) is None


def test_threads_that_would_work_are_counted_whoever_takes_the_cores() -> None:
    host = {"usable_cores": 2, "run_cores": 1.0, "starved_share": 0.75}
    assert work.oversubscription(seen(host=host)) == pytest.approx(2.0)
    assert work.oversubscription(seen(host=host | {"runnable_threads": 8})) == pytest.approx(4.0)


# Shares


def test_the_loaders_own_time_is_no_wait() -> None:
    """DataLoader itself takes some 0.1 ms a batch, however short the step."""
    tiny = seen(steps=steps(0.0008, data_wait=0.0004))
    assert figures.data_wait(tiny) == pytest.approx(0.1)
    assert figures.data_wait(seen(steps=steps(0.008, data_wait=0.004))) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("link", "share"),
    [
        ({"link_generation": 4, "link_generation_max": 4}, 1.0),
        ({"link_generation": 3, "link_generation_max": 4}, 0.5),
        ({"link_width": 4, "link_width_max": 16}, 0.25),
        (
            {"link_generation": 1, "link_generation_max": 4, "link_width": 8, "link_width_max": 16},
            1 / 16,
        ),
    ],
)
def test_a_link_halves_with_each_generation_and_with_its_lanes(
    link: dict[str, int], share: float
) -> None:
    assert figures.link_share(seen(gpus=[link])) == pytest.approx(share)


def test_gpus_before_volta_leave_no_tensor_cores_idle() -> None:
    profile = {"tensor_core": 0.0, "tensor_core_eligible": 0.8}
    volta = seen(gpus=[{"compute_capability": "7.0"}], profile=profile)
    pascal = seen(gpus=[{"compute_capability": "6.1"}], profile=profile)
    assert figures.tensor_cores_of_eligible(volta) == 0
    assert figures.tensor_cores_of_eligible(pascal) is None


def test_collectives_that_computing_hides_cost_nothing() -> None:
    profile = {"communication": 0.4, "communication_hidden": 0.75}
    assert figures.exposed_communication(seen(profile=profile)) == pytest.approx(0.1)
    assert figures.exposed_communication(seen(profile={"communication": 0.4})) == 0.4
