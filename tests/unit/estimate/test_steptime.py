"""Time of a step: against measured kernels, and against what must hold for any model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from handmade import (
    A800,
    RTX_4090,
    addition,
    full_settings,
    gpu,
    product,
    profile_of,
    record,
    row,
    timed,
    workload,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.catalog import GpuRecord, catalog, list_gpus
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.explain.quantity import Kind, Unit
from trainwright.messages import LANGUAGES, render
from trainwright.workload import Dataset, Inputs, Workload


@pytest.mark.parametrize(
    ("of", "size", "tflops"),
    [(RTX_4090, 512, 47), (RTX_4090, 2048, 167), (RTX_4090, 8192, 159), (A800, 8192, 215)],
)
def test_square_fp16_products_take_the_time_that_was_measured(
    of: GpuRecord, size: int, tflops: float
) -> None:
    # Rates published with the measured kernels of a Galvatron profile run.
    estimate = timed(profile_of(product(size, size, size), repeat=50), gpu(of))
    kernels = estimate.stages[0].seconds.value
    assert kernels == pytest.approx(50 * 2 * size**3 / (tflops * 1e12), rel=0.3)


def test_a_copy_of_many_bytes_is_bound_by_bandwidth() -> None:
    # 4090: 921 of 1008 GB/s reached by large copies.
    estimate = timed(profile_of(addition(1 << 28)))
    assert estimate.stages[0].seconds.value == pytest.approx(6 * (1 << 28) / 921e9, rel=0.1)
    assert estimate.bottleneck == "gpu"


def test_an_older_torch_takes_longer_with_one_clock_for_all() -> None:
    # timm's benchmark of forward steps on an RTX 3090: torch 2.4 takes 5 % less than 1.13.
    clock = Clock(Situation(gpu(), 1, workload(), 0))
    rows, channels, taps = 64 * 56 * 56, 128, 9
    work = row(
        *("aten.convolution.default", "forward"),
        flops=(2 * rows * channels * channels * taps,),
        read=(2 * rows * channels,),
        written=(2 * rows * channels,),
        dims=((rows,), (channels,), (channels * taps,), (1,), (rows * channels,), (channels,)),
    )
    profile = profile_of(work)
    first, second, today = (
        clock.terms(profile, full_settings(framework=framework), 1).gpu["forward"]
        for framework in ("torch-1.12", "torch-2.0", "torch-2.4")
    )
    assert first > second > today
    assert today / first == pytest.approx(0.95, abs=0.02)
    assert today == clock.terms(profile, full_settings(), 1).gpu["forward"]


def test_many_tiny_kernels_wait_for_the_cpu() -> None:
    estimate = timed(profile_of(addition(100), repeat=1000))
    assert estimate.bottleneck == "launch"
    assert [stage.name for stage in estimate.stages] == ["forward", "launch"]


def test_stages_that_are_not_hidden_sum_to_the_step() -> None:
    profile = profile_of(
        *(product(512, 512, 512), product(512, 512, 512, "backward"), addition(99, "optimizer")),
        trainable=10**8,
    )
    data = Dataset(sample_kib=110, decode="jpeg")
    for options in ({}, {"gpu_count": 2}, {"cores": 2, "workload": workload(dataset=data)}):
        estimate = timed(profile, **options)
        shown = [stage.seconds.value for stage in estimate.stages if not stage.hidden]
        assert sum(shown) == pytest.approx(estimate.step_seconds.value)


def test_every_part_of_the_derivation_sums_to_its_whole() -> None:
    profile = profile_of(product(512, 512, 512), addition(10**6), product(64, 64, 64, "backward"))
    for stage in timed(profile).stages:
        for _, quantity in stage.seconds.walk():
            seconds = [part for part in quantity.parts if part.unit is Unit.SECONDS]
            if seconds and stage.name in ("forward", "backward"):
                assert sum(part.value for part in seconds) == pytest.approx(quantity.value)


def test_accumulation_repeats_the_micro_batch_but_not_the_update() -> None:
    profile = profile_of(product(4096, 4096, 4096), addition(10**8, "optimizer"))
    once, four = timed(profile), timed(profile, accumulation=4)
    stages = {stage.name: stage.seconds.value for stage in once.stages}
    repeated = {stage.name: stage.seconds.value for stage in four.stages}
    assert repeated["forward"] == pytest.approx(4 * stages["forward"])
    assert repeated["optimizer"] == pytest.approx(stages["optimizer"])


def test_causal_attention_does_half_the_arithmetic() -> None:
    def attention(causal: int) -> dict[str, Any]:
        name = "aten._scaled_dot_product_flash_attention.default"
        dims = ((0, 1), (32,), (8192,), (8192,), (128,), (8,), (causal,))
        return row(name, "forward", flops=(0, 4 * 32 * 8192**2 * 128), dims=dims)

    full, half = timed(profile_of(attention(0))), timed(profile_of(attention(1)))
    # Beside the gap of microseconds between kernels.
    assert half.step_seconds.value == pytest.approx(full.step_seconds.value / 2, abs=5e-6)


def test_a_tile_that_is_not_full_wastes_arithmetic() -> None:
    wide = timed(profile_of(product(4096, 4096, 4096))).step_seconds.value
    narrow = timed(profile_of(product(4096, 4096, 32), repeat=128)).step_seconds.value
    assert narrow > 1.5 * wide


def test_a_depthwise_convolution_waits_for_arithmetic_and_memory() -> None:
    """The study that fitted its constants added the two."""

    def seconds(flops: int, bytes_: int) -> float:
        pixels = ((0, 1 << 20), (64,), (9,), (64,), (0, 1 << 26), (64,))
        fields = {"flops": (0, flops), "read": (0, bytes_), "dims": pixels}
        convolution = row("aten.convolution.default", "forward", **fields)
        return timed(profile_of(convolution)).step_seconds.value

    work, traffic = 10**12, 10**10
    both = seconds(work, traffic)
    assert both == pytest.approx(seconds(work, 0) + seconds(0, traffic), rel=0.01)


def test_two_gpus_without_nvlink_are_not_twice_as_fast() -> None:
    profile = profile_of(
        product(2048, 4096, 4096), product(2048, 4096, 4096, "backward"), trainable=10**8
    )
    one, two = timed(profile), timed(profile, gpu_count=2)
    gain = two.samples_per_second.value / one.samples_per_second.value
    assert gain < 1.9
    assert two.bottleneck == "communication"
    # 400 MB of fp32 gradients at about 13 GB/s each way.
    assert two.step_seconds.value > 0.4e9 / 14e9


def test_slow_decoding_is_the_bottleneck_and_more_cores_help() -> None:
    data = workload(dataset=Dataset(sample_kib=110, decode="jpeg"))
    profile = profile_of(product(256, 512, 512))
    two = timed(profile, workload=data, batch=256, cores=2, num_workers=2)
    eight = timed(profile, workload=data, batch=256, cores=8, num_workers=8)
    assert two.bottleneck == "decode"
    assert two.step_seconds.value > 3 * eight.step_seconds.value
    # Two workers with Pillow read 626 to 1211 ImageNet pictures a second where cores are free.
    free = timed(profile, workload=data, batch=256, cores=16, num_workers=2)
    assert 626 < free.samples_per_second.value < 1211


def test_no_workers_means_that_decoding_adds_to_the_step() -> None:
    data = workload(dataset=Dataset(sample_kib=110, decode="jpeg"))
    profile = profile_of(product(4096, 4096, 4096), repeat=20)
    serial = timed(profile, workload=data, cores=8, num_workers=0)
    beside = timed(profile, workload=data, cores=8, num_workers=4)
    assert serial.step_seconds.value > beside.step_seconds.value


def test_without_a_dataset_the_report_says_that_input_never_limits() -> None:
    notes = [note.id for note in timed(profile_of(addition(100))).notes]
    assert "time.note.input-never-limits" in notes


def test_a_gpu_without_a_known_rate_gives_a_bound_and_says_so() -> None:
    unknown = gpu(record("mystery", 500e9, fp32=20e12))
    estimate = timed(profile_of(product(2048, 2048, 2048)), unknown)
    assert estimate.reason is not None
    assert estimate.reason.id == "time.bound-vector"
    assert estimate.samples_per_second.interval is None
    assert estimate.samples_per_second.note == estimate.reason
    assert estimate.reason in estimate.notes
    assert np.isfinite(estimate.step_seconds.value)
    nothing = timed(profile_of(product(2048, 2048, 2048)), gpu(record("dark", 500e9)))
    assert nothing.reason is not None
    assert nothing.reason.id == "time.bound-bandwidth"
    assert nothing.step_seconds.value > estimate.step_seconds.value


def test_a_gpu_without_a_known_rate_never_beats_one_of_its_bandwidth() -> None:
    for card in list_gpus():
        if "fp32" not in card.flops:
            continue
        unknown = gpu(card.model_copy(update={"flops": {}}))
        profile = profile_of(product(2048, 2048, 2048))
        known = timed(profile, gpu(card))
        assert timed(profile, unknown).step_seconds.value >= 0.999 * known.step_seconds.value, (
            card.id
        )


def test_the_interval_is_wider_where_less_was_measured() -> None:
    def width(id: str) -> float:
        known = gpu(catalog().record(id))
        rate = timed(profile_of(product(2048, 2048, 2048)), known).samples_per_second
        assert rate.interval is not None
        assert rate.interval.probability == 0.9
        assert rate.interval.low < rate.value < rate.interval.high
        return rate.interval.high / rate.value

    measured, relative, unknown = map(width, ("rtx-3090", "rtx-3080-10gb", "rtx-5090"))
    assert 1.1 < measured < relative < unknown < 1.6


@pytest.mark.parametrize(
    ("of", "weights", "plain", "packed"),
    [
        # litgpt's resource tables, batch 1: micro-iterations a second without and with NF4.
        ("a100-40gb-sxm", 6.48e9, 7.062, 4.529),
        ("a100-40gb-sxm", 12.7e9, 5.225, 2.612),
        # Its finetuning table: samples a second of Falcon 7B and of StableLM 3B.
        ("a10g", 6.9e9, 5.368, 2.622),
        ("a10g", 3.4e9, 10.201, 5.156),
    ],
)
def test_unpacking_takes_what_nf4_was_measured_to_add(
    of: str, weights: float, plain: float, packed: float
) -> None:
    """Each weight of the blocks is unpacked forward and backward."""
    moved = {"read": (int(weights / 2), 0), "written": (int(weights * 2), 0)}
    once = row("trainwright.dequantize_nf4.default", "forward", **moved)
    added = 2 * timed(profile_of(once), gpu(catalog().record(of))).step_seconds.value
    assert added == pytest.approx(1 / packed - 1 / plain, rel=0.25)


def test_a_power_limit_slows_arithmetic() -> None:
    profile = profile_of(product(4096, 4096, 4096), repeat=10)
    limited = timed(profile, gpu(power_limit_w=225))
    assert limited.step_seconds.value > 1.2 * timed(profile).step_seconds.value
    assert "time.note.power" in [note.id for note in limited.notes]


def test_a_whole_run_is_samples_times_epochs_over_the_rate() -> None:
    job = workload(samples=1000, epochs=2)
    estimate = timed(profile_of(product(2048, 2048, 2048)), workload=job)
    assert estimate.run_seconds is not None
    assert estimate.run_seconds.value == pytest.approx(2000 * estimate.step_seconds.value)
    assert timed(profile_of(addition(9))).run_seconds is None


def test_an_epoch_is_one_of_the_runs_passes_with_the_rates_spread() -> None:
    job = workload(samples=1000, epochs=2)
    estimate = timed(profile_of(product(2048, 2048, 2048)), workload=job)
    epoch, rate = estimate.epoch_seconds, estimate.samples_per_second
    assert epoch is not None
    assert epoch.value == pytest.approx(1000 / rate.value)
    assert rate.interval is not None
    assert epoch.interval is not None
    assert epoch.interval.low == pytest.approx(1000 / rate.interval.high)
    assert timed(profile_of(addition(9))).epoch_seconds is None


def test_tokens_are_counted_only_where_there_is_a_sequence() -> None:
    profile = profile_of(product(2048, 2048, 2048))
    assert timed(profile).tokens_per_second is None
    with_tokens = timed(profile, sequence=512)
    assert with_tokens.tokens_per_second is not None
    assert with_tokens.tokens_per_second.value == pytest.approx(
        512 * with_tokens.samples_per_second.value
    )


def test_rates_count_real_samples_and_tokens() -> None:
    profile, length, mean = profile_of(product(2048, 2048, 2048)), 512, 128

    def rates(**inputs: object) -> TimeEstimate:
        job = workload(inputs={"sequence_length": length} | inputs, samples=1000)
        return timed(profile, workload=job, sequence=length)

    plain, padded = rates(), rates(mean_tokens=mean)
    packed = rates(mean_tokens=mean, batching="packed")
    step = plain.step_seconds.value
    assert packed.step_seconds.value == padded.step_seconds.value == step
    # The longest sample sets the step: padding is computed and does not count.
    assert padded.samples_per_second.value == plain.samples_per_second.value
    assert padded.run_seconds == plain.run_seconds
    for estimate, tokens in ((plain, length), (padded, mean), (packed, length)):
        assert estimate.tokens_per_second is not None
        assert estimate.tokens_per_second.value == pytest.approx(tokens / step)
    assert packed.run_seconds is not None
    assert plain.run_seconds is not None
    assert packed.run_seconds.value == pytest.approx(plain.run_seconds.value * mean / length)
    said = {note.id: note for note in padded.notes}
    assert said["time.note.padding"].values["share"] == 0.75
    assert "75" in render(said["time.note.padding"], "en")
    (note,) = [note for note in packed.notes if note.id == "time.note.packed"]
    assert (note.values["rows"], note.values["samples"]) == (8, 32)
    assert not {"time.note.padding", "time.note.packed"} & {note.id for note in plain.notes}


def test_an_optimizer_on_the_cpu_takes_the_time_of_its_memory() -> None:
    update = addition(1_000_000, "optimizer")
    profile = profile_of(product(4096, 4096, 4096), update, trainable=100_000_000)
    on = timed(profile)
    off = timed(profile, optimizer_offload="cpu")
    (stage,) = [one for one in off.stages if one.name == "optimizer"]
    trainable = profile.model["trainable"]
    # Seven passes over fp32 weights at 50 GB/s; over the bus they go once.
    assert stage.seconds.value == pytest.approx(7 * 4 * trainable / 50e9)
    assert stage.seconds.kind is Kind.ASSUMED
    assert off.step_seconds.value > on.step_seconds.value
    parts = sum(one.seconds.value for one in off.stages if not one.hidden)
    assert parts == pytest.approx(off.step_seconds.value)


def test_serving_times_the_prompt_and_each_token() -> None:
    profile = profile_of(product(2048, 2048, 2048))
    reading = profile.segments["micro"]
    serving = replace(profile, segments={"prefill": reading, "decode": reading})
    job = Workload(task="infer", inputs=Inputs(prompt_tokens=100, new_tokens=11))
    estimate = timed(serving, workload=job, sequence=100)
    seconds = {stage.name: stage.seconds.value for stage in estimate.stages}
    assert seconds["generate"] == pytest.approx(10 * seconds["prefill"])
    assert estimate.tokens_per_second is not None
    assert estimate.tokens_per_second.value == pytest.approx(11 / estimate.step_seconds.value)
    assert estimate.tokens_per_second.name.id == "time.generated-per-second"
    assert estimate.step_seconds.name.id == "time.round"


def test_what_generates_nothing_has_no_rate_of_tokens() -> None:
    profile = profile_of(product(2048, 2048, 2048))
    encoder = replace(profile, segments={"prefill": profile.segments["micro"]})
    job = Workload(task="infer", inputs=Inputs(prompt_tokens=100, new_tokens=11))
    assert timed(encoder, workload=job, sequence=100).tokens_per_second is None


@settings(max_examples=50)
@given(batch=st.integers(1, 4096), more=st.integers(1, 64))
def test_a_larger_batch_never_takes_less_time_a_step_nor_more_a_sample(
    batch: int, more: int
) -> None:
    profile = profile_of(product(64, 512, 512), product(64, 512, 512, "backward"), addition(4096))
    clock = Clock(Situation(gpu(), 1, workload(), 0))
    small = clock.terms(profile, full_settings(), batch).step
    large = clock.terms(profile, full_settings(), batch * more).step
    assert small <= large * (1 + 1e-9)
    assert large / more <= small * (1 + 1e-9)


def test_every_name_is_said_in_both_languages() -> None:
    data = workload(dataset=Dataset(sample_kib=110, decode="jpeg"), samples=10)
    profile = profile_of(
        *(product(512, 512, 512), addition(9), product(9, 9, 9, "backward")), trainable=10**7
    )
    estimate = timed(
        profile, gpu(power_limit_w=100), workload=data, cores=4, gpu_count=2, compile=True
    )
    tops = (estimate.step_seconds, estimate.samples_per_second, estimate.run_seconds)
    names = [q.name for top in tops if top for _, q in top.walk()] + list(estimate.notes)
    for message in names:
        for language in LANGUAGES:
            assert not render(message, language).startswith("time."), message.id
