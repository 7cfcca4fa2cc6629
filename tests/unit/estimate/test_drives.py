"""Which drive some work needs."""

from dataclasses import replace

from trainwright.catalog import DriveRecord, find_drive, list_parts
from trainwright.estimate.input.drives import Work, by_class, class_of, suited

IMAGENET = Work(150, "files", 110, 50, 64)
"""ImageNet's 1.28 million pictures take about 150 GB."""


def drive(id: str) -> DriveRecord:
    found = find_drive(id)
    assert found is not None
    return found


def test_a_disk_reads_small_files_a_hundred_times_slower_than_nvme() -> None:
    disks = [one for one in list_parts("storage") if one.interface == "hdd"]
    nvme = suited(drive("samsung-990-pro-2tb"), IMAGENET)
    disk = suited(disks[0], IMAGENET)
    # Some hundred requests a second against over a million (both makers' data sheets).
    assert disk.samples_per_second < 300
    assert nvme.samples_per_second > 100 * disk.samples_per_second


def test_shards_suit_a_disk_far_better_than_files() -> None:
    disk = next(one for one in list_parts("storage") if one.interface == "hdd")
    files, shards = suited(disk, IMAGENET), suited(disk, replace(IMAGENET, layout="shards"))
    assert shards.samples_per_second > 5 * files.samples_per_second


def test_endurance_is_years_of_checkpoints() -> None:
    # Samsung, 990 PRO data sheet: 1200 TB written for 2 TB. 1200e3 / 500 / 365 = 6.6 years.
    years = suited(drive("samsung-990-pro-2tb"), replace(IMAGENET, written_gb_a_day=500)).years
    assert years is not None
    assert abs(years - 1200e3 / 500 / 365) < 0.01
    assert not suited(drive("samsung-990-pro-2tb"), replace(IMAGENET, written_gb_a_day=2000)).lasts


def test_memory_spares_the_drive_from_the_second_epoch_on() -> None:
    small = suited(drive("samsung-990-pro-2tb"), replace(IMAGENET, memory_gib=16))
    large = suited(drive("samsung-990-pro-2tb"), replace(IMAGENET, memory_gib=256))
    assert small.later_epoch_s > 0.9 * small.first_epoch_s
    assert large.later_epoch_s == 0


def test_the_size_grows_with_the_data_and_every_class_holds_it() -> None:
    assert replace(IMAGENET, dataset_gb=1, written_gb_a_day=0).size_gb == 128
    assert IMAGENET.size_gb == 1000
    assert replace(IMAGENET, dataset_gb=1400).size_gb == 4000
    for kind, found in by_class(list_parts("storage"), IMAGENET).items():
        assert all(class_of(one.drive) == kind for one in found)
        assert all((one.drive.capacity_gb or 0) >= IMAGENET.capacity_gb for one in found)


def test_whether_it_feeds_the_gpus_is_said_only_where_they_are_known() -> None:
    assert suited(drive("samsung-990-pro-2tb"), IMAGENET).enough is None
    fed = suited(drive("samsung-990-pro-2tb"), replace(IMAGENET, samples_per_second=3000))
    assert fed.enough
