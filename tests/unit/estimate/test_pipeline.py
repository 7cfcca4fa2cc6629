"""What a person notices about the input of a training."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.advise import advise
from trainwright.advise.whatif import whatifs
from trainwright.catalog import DriveRecord, find_cpu, find_drive
from trainwright.estimate.input.drives import cached_share, from_drive, read_from_drive
from trainwright.estimate.input.inputs import as_json
from trainwright.estimate.input.loader import Host, Processor, Work, host_of, processor
from trainwright.estimate.input.pipeline import Feeding, flow, recommended, remedies
from trainwright.estimate.input.pipeline_calibration import load
from trainwright.machine.choice import MachineChoice
from trainwright.machine.resolve import catalogued
from trainwright.messages import render
from trainwright.messages.catalogue import LANGUAGES
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, Verdict
from trainwright.plan.report import as_json as report_as_json
from trainwright.plan.schema import Plan

GB = 10**9
PICTURES = Work("jpeg", "pillow", 110_000, 602_112, 64, pinned=True)


def drive(id: str) -> DriveRecord:
    found = find_drive(id)
    assert found is not None
    return found


def cores(count: int, *, threads: int | None = None) -> Host:
    calibration = load()
    return Host(Processor(calibration.reference_core, count, threads or count))


def feeding(host: Host | None = None, **changes: Any) -> Feeding:
    base = Feeding(
        PICTURES, host or cores(8), "memory", None, 1, gpus=1, link_bytes_per_s=26e9, workers=4
    )
    return replace(base, **changes)


def rate(found: Feeding) -> float:
    return 1 / flow(found, load()).mean


# Workers


def test_more_workers_help_up_to_the_cores_and_not_beyond() -> None:
    """Measured on 8 and 16 cores: 2 workers 1.6 to 1.9 x one core, 4 workers 2.1 to 3.9 x."""
    rates = {count: rate(feeding(workers=count)) for count in (1, 2, 4, 8, 16, 64)}
    assert 1.7 < rates[2] / rates[1] <= 2
    assert rates[4] / rates[2] > 1.5
    assert rates[64] == pytest.approx(rates[8], rel=0.1)


def test_the_training_itself_needs_a_core() -> None:
    alone = rate(feeding(cores(4), workers=4, trains=False))
    beside = rate(feeding(cores(4), workers=4))
    assert 0.7 < beside / alone < 0.95


def test_second_threads_of_cores_add_little() -> None:
    without, with_threads = (
        rate(feeding(cores(8, threads=threads), workers=32, trains=False)) for threads in (8, 16)
    )
    assert 1.05 < with_threads / without < 1.3


def test_two_gpus_share_the_cores() -> None:
    one, two = rate(feeding(gpus=1, workers=4)), rate(feeding(gpus=2, workers=4))
    assert two < 1.9 * one


def test_without_workers_a_sample_is_made_by_one_process() -> None:
    serial = rate(feeding(workers=0))
    assert serial == pytest.approx(rate(feeding(cores(64), workers=0)))
    assert serial < rate(feeding(workers=2))


@given(st.integers(1, 64), st.integers(1, 128), st.integers(1, 8))
def test_rates_are_never_more_than_the_cores_can_do(count: int, workers: int, gpus: int) -> None:
    found = flow(feeding(cores(count), workers=workers, gpus=gpus), load())
    alone = flow(feeding(cores(1), workers=0), load()).mean
    assert 1 / found.mean <= max(count, gpus) / alone * 1.3
    assert found.mean >= (found.decode or 0) * (1 - 1e-9)
    assert found.mean >= found.handover


def test_slow_cores_count_for_less() -> None:
    calibration = load()
    hybrid = processor(find_cpu("i9-13900k"), None, calibration)
    assert hybrid is not None
    assert 8 + 8 < hybrid.capacity(32, calibration) < 24


# Drives and the page cache


def test_small_files_on_a_hard_disk_wait_for_its_arm() -> None:
    """ImageNet's files: 93 images/s measured with a busy disk (distiller's issue 202).

    It has 168 requests a second, and a file that nobody has opened takes two. Shards stream.
    """
    disk = drive("toshiba-mg10-20tb")
    files = read_from_drive(disk, "files", 110_000, 8, load().drives)
    shards = read_from_drive(disk, "shards", 110_000, 8, load().drives)
    assert 1 / files.drive == pytest.approx(93.4, rel=0.15)
    assert shards.drive < files.drive / 4


def test_an_nvme_drive_is_no_limit_for_pictures() -> None:
    """110 kB pictures: beyond 20,000 a second with enough workers."""
    reading = read_from_drive(drive("samsung-990-pro-2tb"), "files", 110_000, 16, load().drives)
    assert min(16 / reading.alone, 1 / reading.drive) > 20_000


def test_sata_is_slower_than_nvme_for_large_samples() -> None:
    """UNet3D volumes of 147 MB: SATA brings 3.8 a second, an H100 takes 21.7."""
    sata = read_from_drive(drive("samsung-870-evo-1tb"), "files", 146.6e6, 8, load().drives)
    assert 1 / sata.drive == pytest.approx(3.8, rel=0.02)


def test_a_cache_of_half_the_data_spares_far_less_than_half() -> None:
    """Simulated: a least-recently-used cache of 500 of 1000 items under shuffled epochs."""
    assert cached_share(1000, 500) == pytest.approx(simulated(1000, 500), abs=0.02)
    assert cached_share(1000, 900) == pytest.approx(simulated(1000, 900), abs=0.03)
    assert cached_share(1000, 500) < 0.2
    assert (cached_share(1000, 1000), cached_share(1000, 0)) == (1, 0)


def simulated(items: int, room: int) -> float:
    import random
    from collections import OrderedDict

    shuffle, cache, hits = random.Random(0), OrderedDict[int, None](), 0
    for epoch in range(12):
        for item in shuffle.sample(range(items), items):
            if item in cache:
                cache.move_to_end(item)
                hits += epoch > 1
            else:
                cache[item] = None
                if len(cache) > room:
                    cache.popitem(last=False)
    return hits / (items * 10)


def test_what_fits_is_read_once_and_what_does_not_every_epoch() -> None:
    assert from_drive(10 * GB, 64 * GB, 10) == ((0.1, 1.0), (0.9, 0.0))
    (_, first), (_, later) = from_drive(200 * GB, 64 * GB, 10)
    assert first == 1.0
    assert later > 0.9
    assert from_drive(None, 64 * GB, 10) == ((1.0, 1.0),)


# What to do


def test_no_more_workers_are_recommended_than_the_gpu_needs() -> None:
    few = recommended(feeding(), 300, load())
    many = recommended(feeding(cores(32)), 3000, load())
    assert few is not None
    assert many is not None
    assert few.num_workers <= 2 < 8 <= many.num_workers
    assert rate(feeding(workers=few.num_workers)) >= 300


def test_tiny_samples_in_memory_need_no_workers() -> None:
    """With 16 workers slower than with none: deeprank2's issue 316."""
    tiny = feeding(cores(16), work=Work("none", "pillow", 3072, 3072, 128))
    found = recommended(tiny, 1e6, load())
    assert found is not None
    assert found.num_workers == 0
    assert rate(replace(tiny, workers=16)) < rate(replace(tiny, workers=0))


def test_recommended_workers_leave_memory() -> None:
    large = replace(PICTURES, output_bytes=100e6)
    host = replace(cores(32), memory_bytes=32 * GB)
    found = recommended(feeding(host, work=large), 1e9, load())
    assert found is not None
    assert found.host_bytes <= 16 * GB


def test_remedies_fit_what_limits() -> None:
    slow = replace(cores(16), drive=drive("toshiba-mg10-20tb"), memory_bytes=16 * GB)
    files = feeding(slow, layout="files", dataset_bytes=140 * GB, epochs=10)
    names = [one.name for one in remedies(files, 256, 0.1, load())]
    assert names[0] in ("drive", "memory", "shards")
    busy = [one.name for one in remedies(feeding(cores(2), workers=1), 256, 0.1, load(), None, 224)]
    assert {"resized", "decoded", "gpu-decode", "decoder"} <= set(busy)
    assert remedies(feeding(cores(64), workers=32), 256, 10.0, load()) == ()


# In a plan


def report(**machine: Any) -> Report:
    return evaluated({}, machine)


def evaluated(dataset: dict[str, Any], machine: dict[str, Any], **settings: Any) -> Report:
    plan = planned(dataset, machine, **settings)
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return evaluate(plan, facts)


def planned(dataset: dict[str, Any], machine: dict[str, Any], **settings: Any) -> Plan:
    base = {"layout": "files", "sample_kib": 110, "decode": "jpeg"}
    return Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "resnet50"},
            "workload": {
                "task": "pretrain",
                "inputs": {"image_size": 224},
                "effective_batch": 256,
                "samples": 1_281_167,
                "epochs": 90,
                "dataset": base | dataset,
            },
            "machine": {"gpus": [{"id": "rtx-5090"}], "memory_gib": 64} | machine,
            "settings": {"micro_batch": 64, "optimizer": "sgd"} | settings,
        }
    )


def test_a_hard_disk_limits_the_plan_and_is_named() -> None:
    found = report(cpu="ryzen-9-7950x", drives=[{"id": "seagate-exos-x24-24tb"}])
    assert found.time.bottleneck == "storage"
    assert found.time.pipeline is not None
    assert found.time.pipeline.bottleneck == "load"
    assert found.time.samples_per_second.value < 250
    ids = [note.id for note in found.notes]
    assert "pipeline.note.every-epoch" in ids


def test_memory_for_the_whole_data_set_ends_it() -> None:
    machine = {"cpu": "ryzen-9-7950x", "drives": [{"id": "seagate-exos-x24-24tb"}]}
    small, large = report(**machine), report(**machine | {"memory_gib": 256})
    assert large.time.samples_per_second.value > 3 * small.time.samples_per_second.value


def test_few_cores_limit_by_decoding() -> None:
    machine = {"cpu": "ryzen-5-5600x", "drives": [{"id": "samsung-990-pro-2tb"}]}
    found = evaluated({}, machine, loader={"num_workers": 1})
    assert found.time.bottleneck == "decode"
    assert found.time.pipeline is not None
    assert "workers" in [remedy.name for remedy, _ in found.time.pipeline.remedies]


def test_what_is_not_known_cannot_be_checked_and_is_never_zero() -> None:
    found = report()
    assert found.time.pipeline is not None
    stages = dict(found.time.pipeline.stages)
    assert stages["load"] is None
    assert stages["decode"] is None
    notes = {note.id for note in found.notes}
    assert {"pipeline.note.drive-unknown", "time.note.cores-unknown"} <= notes
    told = {s["name"]: s["samples_per_second"] for s in as_json(found.time.pipeline)["stages"]}  # type: ignore[attr-defined]
    assert told["load"] is told["decode"] is None
    assert not [stage for stage in found.time.stages if stage.name in ("load", "decode")]
    network = report(cpu="ryzen-9-7950x", drives=[{"id": "some-nas"}])
    assert "pipeline.note.drive-unknown" in {note.id for note in network.notes}
    assert network.time.pipeline is not None
    assert dict(network.time.pipeline.stages)["decode"] is not None


def test_a_sample_of_unknown_size_cannot_be_checked() -> None:
    machine = {"cpu": "ryzen-9-7950x", "drives": [{"id": "samsung-990-pro-2tb"}]}
    found = evaluated({"sample_kib": None}, machine)
    assert "pipeline.note.sample-size" in {note.id for note in found.notes}


def test_too_many_workers_for_the_memory_cannot_run() -> None:
    machine = {"cpu": "ryzen-9-7950x", "memory_gib": 8}
    loader = {"num_workers": 64, "prefetch_factor": 8}
    found = evaluated({}, machine, loader=loader)
    assert found.verdict is Verdict.NO
    assert "pipeline.note.loader-short" in {note.id for note in found.notes}


def test_stages_that_are_not_hidden_sum_to_the_step() -> None:
    machine = {"cpu": "ryzen-5-5600x", "drives": [{"id": "seagate-exos-x24-24tb"}]}
    for workers in (0, 1, 4):
        found = evaluated({}, machine, loader={"num_workers": workers}).time
        shown = sum(stage.seconds.value for stage in found.stages if not stage.hidden)
        assert shown == pytest.approx(found.step_seconds.value)


def test_the_json_report_names_stages_loader_and_remedies() -> None:
    found = report_as_json(report(cpu="ryzen-5-5600x", drives=[{"id": "samsung-990-pro-2tb"}]))
    pipeline = found["time"]["pipeline"]
    names = [stage["name"] for stage in pipeline["stages"]]
    assert names == ["load", "decode", "handover", "transfer", "gpu"]
    assert pipeline["loader"]["num_workers"] == found["settings"]["num_workers"]
    assert pipeline["recommended"]["shared_memory_bytes"] > 0


def test_without_a_data_set_there_is_no_pipeline() -> None:
    plan = planned({}, {})
    plan = plan.model_copy(
        update={"workload": plan.workload.model_copy(update={"dataset": "synthetic"})}
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    assert report_as_json(evaluate(plan, facts))["time"]["pipeline"] is None


def test_advice_takes_as_many_workers_as_the_gpu_needs_and_says_why() -> None:
    machine = {
        "gpus": [{"id": "rtx-3060-12gb"}],
        "cpu": "ryzen-9-7950x",
        "drives": [{"id": "samsung-990-pro-2tb"}],
    }
    plan = planned({}, machine)
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    best = advise(plan, facts, top=1).choices[0]
    assert best.settings.num_workers == best.estimate.settings.num_workers
    assert best.estimate.time.bottleneck in ("gpu", "launch")
    why = next(reason for reason in best.reasons if reason.setting == "loader.num_workers")
    assert why.because.id == "advise.workers.model"
    assert why.value == best.settings.num_workers <= 4
    fixed = planned({}, machine, loader={"num_workers": 7})
    facts = resolve(fixed)
    assert isinstance(facts, Facts)
    assert advise(fixed, facts, top=1).choices[0].settings.num_workers == 7


def test_a_faster_drive_is_tried_and_may_gain_nothing() -> None:
    def gain(drive: str) -> float | None:
        plan = planned({}, {"cpu": "ryzen-9-7950x", "drives": [{"id": drive}]})
        facts = resolve(plan)
        assert isinstance(facts, Facts)
        changes = {one.subject: one for one in whatifs(plan, facts, evaluate(plan, facts))}
        return changes["drive"].gain

    sata, disk = gain("samsung-870-evo-1tb"), gain("seagate-exos-x24-24tb")
    assert sata is not None
    assert disk is not None
    assert abs(sata) < 0.005
    assert disk > 1


def test_every_sentence_is_said_in_both_languages() -> None:
    slow = {"cpu": "ryzen-5-5600x", "drives": [{"id": "seagate-exos-x24-24tb"}], "memory_gib": 16}
    loader = {"num_workers": 1, "persistent_workers": False, "pin_memory": False}
    messages = []
    for found in (report(), evaluated({}, slow, loader=loader)):
        pipeline = found.time.pipeline
        assert pipeline is not None
        messages += [message for _, message in pipeline.remedies] + list(found.notes)
        tops = [quantity for _, quantity in pipeline.stages if quantity is not None]
        messages += [part.name for top in tops for _, part in top.walk()]
    for message in messages:
        for language in LANGUAGES:
            assert not render(message, language).startswith("pipeline."), message.id


# The machine


def test_parts_are_found_by_what_people_and_drivers_write() -> None:
    for text in ("ryzen-9-7950x", "AMD Ryzen 9 7950X 16-Core Processor", "7950X no such"):
        found = find_cpu(text)
        assert (found is None) == ("no such" in text)
    intel = find_cpu("13th Gen Intel(R) Core(TM) i9-13900K")
    assert intel is not None
    assert (intel.cores, intel.threads, intel.efficient_cores) == (24, 32, 16)
    assert find_drive("WD_Black SN850X 2TB") == find_drive("wd-black-sn850x-2tb") is not None


def test_a_catalogued_processor_tells_its_cores() -> None:
    choice = MachineChoice.model_validate(
        {"gpus": [{"id": "rtx-4090"}], "cpu": "ryzen-9-9950x", "drives": [{"id": "nas"}]}
    )
    machine = catalogued(choice).machine
    assert machine.cores == 16
    host = host_of(machine, load())
    assert host.processor is not None
    assert (host.processor.cores, host.processor.threads, host.drive) == (16, 32, None)


def test_a_container_with_few_threads_is_no_whole_processor() -> None:
    record = find_cpu("ryzen-9-9950x")
    found = processor(record, 4, load(), probed=True)
    assert found is not None
    assert (found.cores, found.threads) == (4, 4)
