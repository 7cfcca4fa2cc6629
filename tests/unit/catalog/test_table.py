"""Any kind is filtered and sorted by any field; what does not say is left out and counted."""

import pytest

from trainwright.catalog import find_gpu, find_psu, list_gpus, list_parts
from trainwright.catalog.cells import cells, unknown
from trainwright.catalog.part_records import PowerConnectors, PsuRecord
from trainwright.catalog.table import Filter, Table, parsed, table
from trainwright.messages import UserError


def psu(id: str, watts: float, **more: object) -> PsuRecord:
    values = {"name": id, "vendor": "Acme", "source": "mine", "confidence": "low"} | more
    return PsuRecord.model_validate({"id": id, "watts": watts} | values)


SUPPLIES = table(
    [
        psu("small", 650, efficiency="gold", connectors=PowerConnectors(pcie_16=1)),
        psu("large", 1600, efficiency="titanium", connectors=PowerConnectors(pcie_16=2)),
        psu("silent", 1000, name="Quiet One", launch="2023-05"),
    ]
)


def ids(
    known: Table, words: str = "", *filters: str, sort: str = "", down: bool = False
) -> list[str]:
    found = known.find(words, map(parsed, filters), sort, descending=down)
    return [part.id for part in found.parts]


def test_filters_compare_numbers_and_texts() -> None:
    assert ids(SUPPLIES, "", "watts>=1000") == ["large", "silent"]
    assert ids(SUPPLIES, "", "watts < 1000") == ["small"]
    assert ids(SUPPLIES, "", "efficiency=Gold") == ["small"]
    assert ids(SUPPLIES, "", "connectors.pcie_16>1") == ["large"]
    assert ids(SUPPLIES, "", "name~quiet") == ["silent"]
    assert ids(SUPPLIES, "", "launch>2022") == ["silent"]


def test_what_is_unknown_passes_no_filter_and_is_counted() -> None:
    for text in ("efficiency=gold", "efficiency!=gold"):
        found = SUPPLIES.find("", [parsed(text)])
        assert found.unknown == 1
        assert "silent" not in {part.id for part in found.parts}


def test_the_unknown_comes_last_in_either_direction() -> None:
    assert ids(SUPPLIES, sort="watts") == ["small", "silent", "large"]
    assert ids(SUPPLIES, sort="connectors.pcie_16") == ["small", "large", "silent"]
    assert ids(SUPPLIES, sort="connectors.pcie_16", down=True) == ["large", "small", "silent"]


def test_every_word_has_to_be_found() -> None:
    assert ids(SUPPLIES, "quiet one") == ["silent"]
    assert ids(SUPPLIES, "acme") == ["small", "large", "silent"]
    assert ids(SUPPLIES, "acme two") == []


@pytest.mark.parametrize("text", ["watts", ">=3", "watts>=", "", "watts ? 3", "와트>"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a filter"):
        parsed(text)


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(UserError, match="Known: watts"):
        SUPPLIES.find("", [Filter("wats", "=", "3")])
    with pytest.raises(UserError, match="“length”"):
        SUPPLIES.find(sort="length")


def test_a_number_is_not_compared_with_a_word() -> None:
    with pytest.raises(UserError, match="Write a number"):
        SUPPLIES.find("", [parsed("watts>=many")])


def test_a_list_holds_what_is_asked_for() -> None:
    cases = table(list_parts("case"))
    big = ids(cases, "", "boards=eeb")
    assert "fractal-design-define-7-xl" in big
    assert "fractal-design-north" not in big
    assert set(ids(cases, "", "radiators_mm>=480")) <= set(ids(cases, "", "radiators_mm>=360"))


def test_gpus_are_asked_in_the_units_of_their_files() -> None:
    gpus = table(list_gpus())
    assert "rtx-5090" in ids(gpus, "", "memory_gib>=32", "bandwidth_gb_s>1700")
    assert "rtx-4090" not in ids(gpus, "", "memory_gib>=32")
    assert set(ids(gpus, "블랙웰")) == set(ids(gpus, "blackwell"))


def test_every_value_has_its_source() -> None:
    gpu = {cell.field: cell for cell in cells(find_gpu("rtx-4090").record)}
    assert gpu["memory_gib"].value == 24
    assert gpu["memory_gib"].confidence == "high"
    assert gpu["vendor"].source is None
    found = find_psu("seasonic-prime-tx-1600-2022")
    assert found is not None
    supply = {cell.field: cell for cell in cells(found)}
    assert (supply["atx_version"].source, supply["watts"].source) == ("kitguru-tx-1600", "opendb")
    assert supply["form"].source is None  # nobody said: it is what a supply is unless it says
    assert "needs_200v" in unknown(found)


def test_a_drive_is_not_asked_for_what_it_cannot_have() -> None:
    for drive in list_parts("storage"):
        missing = unknown(drive)
        if drive.interface == "hdd":
            assert "nand" not in missing, drive.id
        else:
            assert "shingled" not in missing, drive.id
