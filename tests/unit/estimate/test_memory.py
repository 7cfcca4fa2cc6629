"""The estimate of a model that is written down by hand: sums, growth, and every option."""

import gc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from trainwright.estimate.cuda import Device
from trainwright.estimate.memory.device_memory import (
    Asked,
    allocated_peak_bytes,
    estimate_memory,
    first_look,
)
from trainwright.estimate.memory.layout import TERM, Layout, Training
from trainwright.explain import Kind, Unit
from trainwright.messages import render

MIB = 2**20
BLOCKS, HEADS, HEAD_DIM, HIDDEN, VOCABULARY = 4, 16, 64, 1024, 32_000
WEIGHTS = 4 * (BLOCKS * HIDDEN**2 + VOCABULARY * HIDDEN)
ADA = Device("NVIDIA", 8)

options = st.fixed_dictionaries(
    {},
    optional={
        "checkpointing": st.sampled_from(["none", "full", "every-2"]),
        "optimizer": st.sampled_from(["adamw", "adamw-8bit", "adamw-4bit", "lion"]),
        "allocator": st.sampled_from(["native", "expandable"]),
        "accumulation": st.sampled_from([1, 2, 8]),
    },
)


def term(estimate, role):
    found = [part.value for part in estimate.terms if part.role == role]
    return found[0] if found else 0


def test_the_peak_is_what_a_person_works_out(toy, make_gpu, make_settings):
    """At the start of backward all activations, three logits-sized tensors less one, live."""
    batch, length = 8, 2048
    estimate = estimate_memory(
        Asked(toy, make_gpu(), make_settings(), batch=batch, sequence=length)
    )
    tokens = batch * length
    assert term(estimate, "parameters") == WEIGHTS
    assert term(estimate, "optimizer") == 2 * WEIGHTS
    assert term(estimate, "gradients") == 0
    # Each block keeps its input, its projection and the softmax sums; the head its input.
    kept = BLOCKS * (2 * HIDDEN + 2 * HIDDEN + 4 * HEADS) + 2 * HIDDEN
    assert term(estimate, "activations") == tokens * kept
    assert term(estimate, "logits") == tokens * (4 + 4) * VOCABULARY
    assert term(estimate, "inputs") == 8 * tokens
    assert term(estimate, "workspaces") == 2 * 8_519_680


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(1, 64), st.integers(1, 4096), options)
def test_terms_sum_to_the_peak_and_members_to_their_term(
    toy, make_gpu, make_settings, batch, length, chosen
):
    estimate = estimate_memory(
        Asked(toy, make_gpu(), make_settings(**chosen), batch=batch, sequence=length)
    )
    peak = estimate.allocated_peak
    assert sum(part.value for part in peak.parts) == peak.value
    for part in peak.parts:
        assert sum(member.value for member in part.parts) == part.value
    groups = [
        sum(part.value for part in group.parts if part.unit is Unit.BYTES)
        for group in estimate.derivation.parts
    ]
    assert sum(groups) == estimate.derivation.value == peak.value
    assert estimate.reserved_peak.value >= peak.value
    assert estimate.device_used_p95.value >= estimate.device_used.value
    assert estimate.free.value == estimate.device_total.value - estimate.device_used.value


def test_a_wide_search_keeps_few_layouts(toy, make_gpu, make_settings):
    """Of a model of 8 billion parameters each takes one to two megabytes."""
    checkpointing = ["none", "full", *(f"every-{number}" for number in range(2, 5))]
    optimizers = ("adamw", "adamw-8bit", "adamw-4bit", "lion")
    for chosen in product(checkpointing, optimizers, (1, 2), (False, True)):
        keys = ("checkpointing", "optimizer", "accumulation", "channels_last")
        wanted = make_settings(**dict(zip(keys, chosen, strict=True)))
        peak = allocated_peak_bytes(Asked(toy, make_gpu(), wanted, batch=8, sequence=2048))
        assert peak[0] > WEIGHTS
    # Not ``isinstance``: some objects of other tests answer with warnings.
    assert sum(type(one) is Layout for one in gc.get_objects()) < 50


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(1, 4000), options)
def test_more_samples_or_tokens_never_need_less(
    toy, make_gpu, make_settings, batch, length, chosen
):
    chosen = make_settings(**(chosen | {"allocator": "expandable"}))

    def peak(batch, length):
        return estimate_memory(
            Asked(toy, make_gpu(), chosen, batch=batch, sequence=length)
        ).allocated_peak.value

    assert peak(batch, length) <= peak(batch + 1, length)
    assert peak(batch, length) <= peak(batch, length + 128)


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(1, 64), st.integers(1, 32), options)
def test_the_quick_peak_is_the_replayed_one(toy, make_gpu, make_settings, batch, hundreds, chosen):
    """Exact blocks: within the rounding of each live tensor. Native: at most a little low."""
    length = 128 * hundreds
    chosen = make_settings(**chosen)
    asked = Asked(toy, make_gpu(), chosen, batch=batch, sequence=length)
    replayed = estimate_memory(asked)
    quick = int(allocated_peak_bytes(asked)[0])
    unsplit = replayed.allocated_peak.value - quick
    assert -512 * 200 <= unsplit <= (512 * 200 if chosen.allocator == "expandable" else 50 * MIB)


@pytest.mark.parametrize("maker", [("AMD", None), ("Intel", None), ("NVIDIA", (9, 0))])
def test_of_all_makers_the_quick_peak_is_the_replayed_one(toy, make_gpu, make_settings, maker):
    """One layout serves all of them: only what cuBLAS takes, or hipBLASLt, is their own."""
    gpu, chosen = make_gpu(), make_settings(allocator="expandable")
    update = dict(zip(("vendor", "compute_capability"), maker, strict=True))
    gpu = replace(gpu, record=gpu.record.model_copy(update=update))
    asked = Asked(toy, gpu, chosen, batch=4, sequence=1024)
    quick = int(allocated_peak_bytes(asked)[0])
    replayed = estimate_memory(asked).allocated_peak.value
    assert abs(replayed - quick) <= 512 * 200
    assert abs(first_look(asked)[0] - quick) <= 512 * 200


def test_many_points_at_once_equal_one_at_a_time(toy, make_gpu, make_settings):
    batches = np.arange(1, 50)
    asked = Asked(toy, make_gpu(), make_settings(), batch=1, sequence=1024)
    at_once = allocated_peak_bytes(asked, batches)
    singly = [int(allocated_peak_bytes(replace(asked, batch=int(b)))[0]) for b in batches]
    assert at_once.tolist() == singly


def test_checkpointing_keeps_only_the_blocks_inputs(toy, make_gpu, make_settings):
    full = estimate_memory(
        Asked(toy, make_gpu(), make_settings(checkpointing="full"), batch=8, sequence=2048)
    )
    assert term(full, "activations") == 8 * 2048 * (BLOCKS + 1) * 2 * HIDDEN


def test_accumulation_keeps_gradients_through_the_peak(toy, make_gpu, make_settings):
    estimate = estimate_memory(
        Asked(toy, make_gpu(), make_settings(accumulation=4), batch=8, sequence=2048)
    )
    assert term(estimate, "gradients") == WEIGHTS


def test_eight_bit_state_is_a_byte_an_element_and_its_scales(toy, make_gpu, make_settings):
    estimate = estimate_memory(
        Asked(toy, make_gpu(), make_settings(optimizer="adamw-8bit"), batch=8, sequence=2048)
    )
    elements = WEIGHTS // 4
    tables = 2 * 256 * 4
    assert term(estimate, "optimizer") == 2 * (elements + elements // 256 * 4) + tables


def test_paged_state_is_the_drivers_and_gives_way(toy, make_gpu, make_settings):
    """bitsandbytes pages what has 100,000 elements: here every weight's two moments."""
    paged, point = make_settings(optimizer="paged-adamw-8bit"), {"batch": 8, "sequence": 2048}
    roomy = estimate_memory(Asked(toy, make_gpu(24), paged, **point))
    held = {part.role: part for part in roomy.device_used.parts}["paged"]
    assert held.value == 2 * WEIGHTS // 4
    assert term(roomy, "optimizer") == 2 * WEIGHTS // 4 // 256 * 4 + 2 * 256 * 4
    assert roomy.host is None
    # Of a card with 30 MiB less than it takes, so much goes to the system's memory.
    full = (roomy.device_used.value - 30 * MIB) / 2**30
    tight = estimate_memory(Asked(toy, make_gpu(full), paged, **point))
    assert not tight.out_of_memory
    assert tight.device_used.value <= tight.device_total.value
    assert tight.host is not None
    assert tight.host.value == pytest.approx(30 * MIB, abs=1)


@pytest.mark.parametrize(("optimizer", "moments"), [("adamw", 2)])
def test_offloaded_state_moves_to_the_host(toy, make_gpu, make_settings, optimizer, moments):
    point = {"batch": 1, "sequence": 128}
    on = estimate_memory(Asked(toy, make_gpu(), make_settings(optimizer=optimizer), **point))
    chosen = make_settings(optimizer=optimizer, optimizer_offload="cpu")
    off = estimate_memory(Asked(toy, make_gpu(), chosen, **point))
    assert on.host is None
    assert term(on, "optimizer") == moments * WEIGHTS
    assert term(off, "optimizer") == 0
    assert {part.role: part.value for part in off.host.parts} == {
        "host-weights": WEIGHTS,
        "host-gradients": WEIGHTS,
        "host-state": moments * WEIGHTS,
    }


def test_lion_keeps_one_moment(toy, make_gpu, make_settings):
    estimate = estimate_memory(
        Asked(toy, make_gpu(), make_settings(optimizer="lion"), batch=8, sequence=2048)
    )
    assert term(estimate, "optimizer") == WEIGHTS


def test_an_optimizer_that_nobody_knows_is_refused(toy, make_gpu, make_settings):
    with pytest.raises(KeyError):
        estimate_memory(
            Asked(toy, make_gpu(), make_settings(optimizer="sgd"), batch=2, sequence=128)
        )


def test_data_parallel_training_copies_gradients_into_buckets(toy, make_gpu, make_settings):
    single = estimate_memory(Asked(toy, make_gpu(), make_settings(), batch=8, sequence=2048))
    double = estimate_memory(
        Asked(toy, make_gpu(), make_settings(strategy="ddp"), batch=8, sequence=2048, gpu_count=2)
    )
    assert term(double, "buckets") == WEIGHTS
    assert {part.role for part in double.device_used.parts} >= {"nccl", "context"}
    assert double.device_used.value > single.device_used.value + WEIGHTS


def test_hopper_takes_larger_cublas_workspaces(toy, make_gpu, make_settings):
    hopper = estimate_memory(
        Asked(toy, make_gpu(80, (9, 0)), make_settings(), batch=8, sequence=2048)
    )
    assert term(hopper, "workspaces") == 2 * 32 * MIB


@pytest.mark.parametrize("length", [1024, 1000, 2048])
def test_flash_backward_takes_what_its_source_says(toy, length):
    """Head size 64 in fp32 rows padded to 128, and keys and values for all 16 heads."""
    layout = Training(toy, ADA, accumulation=1, checkpointing="none", optimizer="adamw").layout()
    batch, padded = 3, -(-length // 128) * 128
    sizes = layout.bytes_of(batch, length)
    taken = {one.rule: int(sizes[2 * layout.rows + at]) for at, one in enumerate(layout.hidden)}
    assert taken["flash-delta"] == 4 * batch * HEADS * padded
    assert taken["flash-dq"] == 4 * batch * padded * HEADS * HEAD_DIM
    assert taken["flash-dk"] == taken["flash-dv"] == 2 * batch * length * HEADS * HEAD_DIM
    # Once for each block in each of two steps, and gone before anything else happens.
    rows = [2 * layout.rows + at for at, one in enumerate(layout.hidden) if one.size]
    born = np.flatnonzero(np.isin(layout.size, rows) & (layout.storage > 0))
    assert len(born) == 4 * BLOCKS * 2
    ids = layout.storage[born]
    died = np.array([int(np.flatnonzero(layout.storage == -key)[0]) for key in ids])
    assert (died - born == 4).all()


def test_storages_live_once(toy):
    layout = Training(
        toy, ADA, accumulation=4, checkpointing="full", optimizer="adamw-8bit", replicas=2
    ).layout()
    births = layout.storage[layout.storage > 0]
    assert len(set(births.tolist())) == len(births)
    balance = np.cumsum(np.sign(layout.storage) * layout.bytes_of(4, 512)[layout.size])
    assert balance.min() >= 0
    # What is left after a step: weights, state, buckets and workspaces; no gradients.
    dead = set((-layout.storage[layout.storage < 0]).tolist())
    left = {
        int(k) for k, s in zip(layout.term, layout.storage, strict=True) if s > 0 and s not in dead
    }
    assert left == {TERM[name] for name in ("parameters", "optimizer", "buckets", "workspaces")}


def test_a_card_that_is_too_small_says_so(toy, make_gpu, make_settings):
    roomy = estimate_memory(Asked(toy, make_gpu(24), make_settings(), batch=8, sequence=2048))
    assert not roomy.out_of_memory
    assert roomy.free.value > 0
    small = estimate_memory(Asked(toy, make_gpu(4), make_settings(), batch=8, sequence=2048))
    assert small.out_of_memory
    assert small.free.value < 0
    assert small.device_used_p95.value > small.device_total.value


def test_cached_memory_is_given_back_before_torch_gives_up(toy, make_gpu, make_settings):
    """A little less than an unlimited run would reserve is still enough, at a price."""
    point = {"batch": 1, "sequence": 1000}
    free = estimate_memory(Asked(toy, make_gpu(24), make_settings(), **point))
    outside = free.device_used.value - free.reserved_peak.value
    squeezed = (free.reserved_peak.value + outside - 2 * MIB) / 2**30
    estimate = estimate_memory(Asked(toy, make_gpu(squeezed), make_settings(), **point))
    assert not estimate.out_of_memory
    assert free.allocated_peak.value < estimate.reserved_peak.value < free.reserved_peak.value
    assert estimate.reserved_peak.note is not None
    assert free.reserved_peak.note is None
    assert estimate.allocated_peak.value == free.allocated_peak.value


def test_the_p95_is_within_the_card_when_the_margin_can_be_given_back(toy, make_gpu, make_settings):
    point = {"batch": 1, "sequence": 1000}
    free = estimate_memory(Asked(toy, make_gpu(24), make_settings(), **point))
    # All but a sliver of the margin is there; the rest comes out of the cache.
    snug = (free.device_used_p95.value - 20 * MIB) / 2**30
    estimate = estimate_memory(Asked(toy, make_gpu(snug), make_settings(), **point))
    assert free.device_used_p95.value > snug * 2**30
    assert estimate.device_used_p95.value <= estimate.device_total.value


def test_expandable_segments_are_linux_only(toy, make_gpu, make_settings):
    def reserved(allocator, system):
        return estimate_memory(
            Asked(
                toy,
                make_gpu(),
                make_settings(allocator=allocator),
                batch=8,
                sequence=2048,
                system=system,
            )
        ).reserved_peak.value

    assert reserved("expandable", "windows") == reserved("native", "windows")
    assert reserved("expandable", "linux") != reserved("native", "linux")


def test_the_curve_shows_the_peak_and_every_phase(toy, make_gpu, make_settings):
    estimate = estimate_memory(Asked(toy, make_gpu(), make_settings(), batch=8, sequence=2048))
    curve = estimate.curve
    assert curve.live.shape == (len(curve.terms), len(curve.position))
    assert curve.live.min() >= 0
    assert curve.live.sum(axis=0).max() == estimate.allocated_peak.value
    assert [phase for phase, _, _ in curve.phases] == ["forward", "backward", "optimizer"]
    edges = [edge for _, first, after in curve.phases for edge in (first, after)]
    assert edges[0] == 0
    assert edges[-1] == len(curve.position)
    assert edges[1:-1:2] == edges[2:-1:2]


def test_the_first_look_needs_no_replay_and_misses_only_unsplit_ends(toy, make_gpu, make_settings):
    asked = Asked(toy, make_gpu(), make_settings(), batch=8, sequence=2048)
    peak, curve = first_look(asked)
    replayed = estimate_memory(asked)
    assert 0 <= replayed.allocated_peak.value - peak < 10 * MIB
    assert set(curve.terms) | {"rounding"} == set(replayed.curve.terms)


def test_everything_that_is_shown_reads_in_both_languages(toy, make_gpu, make_settings):
    estimate = estimate_memory(
        Asked(
            toy,
            make_gpu(),
            make_settings(strategy="ddp", compile=True, optimizer="adamw-8bit"),
            batch=8,
            sequence=2048,
            gpu_count=2,
        )
    )
    shown = [
        estimate.allocated_peak,
        estimate.reserved_peak,
        estimate.device_used,
        estimate.device_used_p95,
        estimate.free,
        estimate.derivation,
    ]
    for root in shown:
        for _, part in root.walk():
            for message in filter(None, (part.name, part.note)):
                english, korean = render(message, "en"), render(message, "ko")
                assert not english.startswith(message.id)
                assert not korean.startswith(message.id)
                assert english != korean


def test_figures_say_how_they_are_known(toy, make_gpu, make_settings):
    estimate = estimate_memory(Asked(toy, make_gpu(), make_settings(), batch=8, sequence=2048))
    by_role = {part.role: part for part in estimate.device_used.parts}
    assert by_role["context"].kind is Kind.ASSUMED
    assert by_role["context"].interval is not None
    workspaces = next(part for part in estimate.terms if part.role == "workspaces")
    assert {part.kind for part in workspaces.parts} == {Kind.QUOTED}
    assert all(part.source for part in workspaces.parts)


def test_ten_thousand_points_are_one_product(make_toy, make_gpu, make_settings):
    deep = make_toy(40)
    batches = np.tile(np.arange(1, 101), 100)
    lengths = np.repeat(np.arange(1, 101) * 128, 100)
    asked = Asked(deep, make_gpu(), make_settings(), batch=1, sequence=128)
    peaks = allocated_peak_bytes(asked, batches, lengths)
    assert peaks.shape == (10_000,)
    assert (np.diff(peaks.reshape(100, 100), axis=1) > 0).all()
