"""What a driver tells of its GPU holds over the published table; what it does not tell, does not.

The drivers are the tests' own library, which answers with NVIDIA's published numbers.
"""

from collections.abc import Callable

import pytest
from nvmlstub import NvmlStub

from trainwright.catalog.mig import find_mig_table, mig_table
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.mig.layout import Instance, layouts
from trainwright.mig.live import Live, live, now
from trainwright.probe import nvml
from trainwright.probe.nvml import Mig

Here = Callable[..., tuple[Live, ...]]


@pytest.fixture
def here(nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Return this computer's GPUs, of a scenario of the stub's."""

    def ask(scenario: str, patience_s: float = 10.0) -> tuple[Live, ...]:
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)
        return live(nvml.read(patience_s=patience_s))

    return ask


def test_a_driver_that_tells_what_is_published_changes_nothing(here: Here) -> None:
    [found] = here("mig")
    ours = mig_table(found.gpu)
    assert ours is not None
    assert found.differences == ()
    assert (found.because, found.table.placements) == (None, "read")
    assert "580.65.06" in found.table.source
    assert set(layouts(found.table)) == set(layouts(ours))


def test_places_of_instances_are_read_not_assumed(here: Here) -> None:
    [found] = here("mig")
    assert found.layout == (Instance("1g.10gb", 2), Instance("1g.10gb", 3), Instance("3g.40gb", 4))
    layout, note = now(found)
    assert layout == found.layout
    assert note is not None
    assert note.id == "mig.live.current"


def test_without_permission_published_places_stand_and_current_ones_are_assumed(here: Here) -> None:
    [found] = here("mig-user")
    assert found.because is not None
    assert found.because.id == "probe.no-permission"
    assert found.table.placements == "published"
    assert found.table.told_by == "580.65.06"
    assert found.layout is None
    layout, note = now(found)
    assert sorted(each.profile for each in layout) == ["1g.10gb", "1g.10gb", "3g.40gb"]
    assert note is not None
    assert note.id == "mig.live.assumed"


def test_what_the_driver_tells_otherwise_holds_and_is_named(here: Here) -> None:
    """Driver 535 called the H100's large profiles 3g.39gb and 7g.79gb (its own -lgip)."""
    [found] = here("mig-other")
    assert found.table.profile("2g.20gb").starts == (0, 2, 4, 6)
    assert found.table.profile("2g.20gb").memory_gib == 18.625
    assert found.table.profile("3g.40gb").name == "3g.39gb"  # as it is published
    with pytest.raises(UserError):
        found.table.profile("1g.20gb")
    told = {each.id for each in found.differences}
    assert told == {
        "mig.live.fewer", "mig.live.name", "mig.live.memory", "mig.live.count", "mig.live.places",
    }  # fmt: skip
    assert any("{0,2,4,6}:2" in render(each, "en") for each in found.differences)


def test_a_gpu_that_no_catalog_has_can_be_cut_by_its_drivers_table(here: Here) -> None:
    [found] = here("mig-strange")
    assert found.gpu.name == "Prototype 8"
    assert (found.table.units, found.table.slices) == (10, 5)
    assert Instance("1g.25gb", 8) in {one for each in layouts(found.table) for one in each}
    assert mig_table(found.gpu) is None
    assert find_mig_table(found.like)  # plans are looked up by a GPU that is known


def test_a_gpu_that_no_catalog_has_without_places_has_none(here: Here) -> None:
    [found] = here("mig-strange-user")
    assert found.table.units is None
    assert found.table.placements == "unknown"
    assert found.origin.id == "mig.live.nowhere"


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("mig-off", "mig.live.no-profiles"),
        ("mig-garbage", "probe.implausible"),
        ("mig-lost", "probe.gpu-lost"),
        ("mig-hang", "probe.no-answer"),
        ("mig-container", "probe.no-permission"),
    ],
)
def test_where_it_cannot_be_read_the_published_table_stands_with_the_reason(
    here: Here, scenario: str, reason: str
) -> None:
    [found] = here(scenario, patience_s=2.0)
    ours = mig_table(found.gpu)
    assert ours is not None
    assert found.because is not None
    assert found.because.id == reason
    assert found.table.placements == "published"
    assert set(layouts(found.table)) == set(layouts(ours))
    for language in LANGUAGES:
        assert render(found.because, language) in render(found.origin, language)


def test_a_driver_that_tells_no_names_has_those_that_are_published(here: Here) -> None:
    [found] = here("mig-old")
    assert {each.name for each in found.table.profiles} == {
        "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
    }  # fmt: skip
    assert found.differences == ()


def test_names_that_nobody_tells_are_made_as_the_drivers_are(here: Here) -> None:
    """NVIDIA/go-nvlib names a profile by slices and eighths of the memory rounded up."""
    from trainwright.mig.driver_table import table_of

    [found] = here("mig-old")
    read = nvml.read()
    assert isinstance(read, nvml.Nvidia)
    mig = read.gpus[0].mig
    assert isinstance(mig, Mig)
    table, _ = table_of(mig, "470", found.gpu, None)
    assert table is not None
    assert {each.name for each in table.profiles} == {
        "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
    }  # fmt: skip


def test_two_gpus_are_told_apart(here: Here) -> None:
    first, second = here("mig-two")
    assert (first.index, second.index) == (0, 1)
    assert first.table == second.table
    assert (len(first.layout or ()), second.layout, second.on) == (3, (), True)


@pytest.mark.parametrize("scenario", ["plain", "none", "not-loaded"])
def test_a_computer_without_such_a_gpu_has_none(here: Here, scenario: str) -> None:
    assert here(scenario) == ()
