"""Processors: what a rule needs of each is there, and what public tables get wrong is not."""

from collections.abc import Iterator

import pytest

from trainwright.catalog import CpuRecord, find_cpu, list_parts


def _cpus() -> Iterator[CpuRecord]:
    yield from list_parts("cpu")


def _find(name: str) -> CpuRecord:
    record = find_cpu(name)
    assert record, name
    return record


def test_there_are_eighty_of_all_platforms_that_people_build_on() -> None:
    cpus = list(_cpus())
    assert len(cpus) >= 80
    sockets = {cpu.socket for cpu in cpus}
    assert sockets >= {"AM4", "AM5", "LGA1700", "LGA1851", "sTRX4", "sWRX8", "sTR5", "LGA4677"}
    assert sockets >= {"SP3", "SP5"}


def test_every_processor_says_what_the_rules_of_a_build_ask() -> None:
    for cpu in _cpus():
        needed = (
            "socket chipsets base_ghz tdp_w pcie_generation slot_lanes memory_types memory_modules "
            "memory_channels memory_max_gib memory_mts ecc launch"
        )
        assert [field for field in needed.split() if not getattr(cpu, field)] == [], cpu.id


def test_figures_of_a_processor_fit_each_other() -> None:
    for cpu in _cpus():
        assert cpu.threads in (cpu.cores, 2 * cpu.cores, 2 * cpu.cores - cpu.efficient_cores), (
            cpu.id
        )
        assert cpu.base_ghz, cpu.id
        assert cpu.base_ghz < cpu.boost_ghz, cpu.id
        assert cpu.tdp_w, cpu.id
        assert (cpu.max_power_w or cpu.tdp_w) >= cpu.tdp_w, cpu.id
        assert cpu.slot_lanes, cpu.id
        assert (cpu.lanes_usable or 128) >= cpu.slot_lanes, cpu.id
        assert set(cpu.memory_mts) == set(cpu.memory_types or ()), cpu.id
        assert set(cpu.needs_bios_update) <= set(cpu.chipsets or ()), cpu.id


def test_what_nobody_looked_up_is_called_recalled_and_low() -> None:
    for cpu in _cpus():
        for field in ("msrp_usd", "max_power_w", "memory_max_gib", "launch"):
            provenance = cpu.provenance(field)
            assert "recalled" in provenance.source, cpu.id
            assert provenance.confidence == "low", cpu.id


def test_an_entry_of_its_own_source_keeps_it_for_what_it_states() -> None:
    absent_from_opendb = _find("Ryzen 7 5800X3D")
    assert absent_from_opendb.provenance("cores").confidence == "low"
    assert _find("Ryzen 7 5800X").provenance("cores").confidence == "medium"


def test_threadripper_pro_takes_two_tebibytes_not_two_gibibytes() -> None:
    """OpenDB writes 2, a unit of TB among figures in GB."""
    assert _find("Ryzen Threadripper PRO 7985WX").memory_max_gib == 2048
    assert _find("Ryzen Threadripper PRO 9965WX").memory_max_gib == 2048


@pytest.mark.parametrize("name", ["Ryzen 5 7600", "Ryzen 9 7950X", "Ryzen 7 7800X3D"])
def test_ryzen_7000_takes_192_gib(name: str) -> None:
    """OpenDB writes 128, from before there were modules of 48 GB."""
    assert _find(name).memory_max_gib == 192


@pytest.mark.parametrize(
    ("name", "ghz"),
    [
        ("Core i9-14900K", 6.0),
        ("Core i7-14700K", 5.6),
        ("Core i7-13700K", 5.4),
        ("Core i7-12700K", 5.0),
        ("Core Ultra 9 285K", 5.7),
        ("Core Ultra 7 265K", 5.5),
    ],
)
def test_boost_is_the_highest_that_intel_states(name: str, ghz: float) -> None:
    """OpenDB leaves out Turbo Boost Max 3.0 and Thermal Velocity Boost: 5.6 for the 14900K."""
    assert _find(name).boost_ghz == ghz


def test_core_ultra_200s_is_of_2024() -> None:
    """OpenDB dates the Core Ultra 7 265K to 2022."""
    assert (_find("Core Ultra 7 265K").launch or "").startswith("2024-10")


def test_the_two_platforms_of_one_socket_are_told_apart() -> None:
    assert _find("Ryzen Threadripper 7960X").chipsets == ("TRX50",)
    assert "WRX90" in (_find("Ryzen Threadripper PRO 7965WX").chipsets or ())


def test_graphics_processors_of_am5_have_half_the_lanes() -> None:
    assert _find("Ryzen 7 8700G").slot_lanes == 8
    assert _find("Ryzen 7 7700X").slot_lanes == 16


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("9800X3D", "ryzen-7-9800x3d"),
        ("14700K", "i7-14700k"),
        ("285K", "core-ultra-9-285k"),
        # as kernels write it in /proc/cpuinfo
        ("AMD Ryzen Threadripper PRO 7985WX 64-Cores", "ryzen-threadripper-pro-7985wx"),
        ("AMD Ryzen 9 9950X 16-Core Processor", "ryzen-9-9950x"),
        ("Intel(R) Core(TM) i9-14900K", "i9-14900k"),
        ("AMD EPYC 7443P 24-Core Processor", "epyc-7443p"),
    ],
)
def test_a_processor_is_found_by_what_people_and_kernels_call_it(typed: str, id: str) -> None:
    assert _find(typed).id == id
