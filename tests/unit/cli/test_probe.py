"""``trainwright probe`` as a person reads it."""

import psutil
import pytest

from trainwright.explain import Unit
from trainwright.explain.figures import plain
from trainwright.messages import LANGUAGES, Message, render
from trainwright.probe import benchmarks
from trainwright.probe.benchmark import Outcome
from trainwright.probe.measurements import Measurement


@pytest.fixture
def probed(nvml_stub, monkeypatch, inside):
    def show(scenario, *options):
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)
        outcome = inside("probe", "--no-torch", "--wait", "1", *options)
        assert outcome.code == 0
        return outcome.out

    return show


def test_equal_gpus_are_told_apart_by_the_number_that_the_rest_names(probed):
    told = probed("nvlink")
    assert "GPU 0: NVIDIA A100-SXM4-80GB" in told
    assert "GPU 1: NVIDIA A100-SXM4-80GB" in told
    assert "GPU 0 to 1" in told


def test_identifiers_stay_out_of_a_gpu_that_hangs_too(probed):
    hung = probed("hang")
    assert "did not answer" in hung
    assert "UUID" not in hung
    assert "UUID" in probed("hang", "--identifiers")


def test_memory_that_is_the_processors_too_is_this_computers(probed):
    told = probed("unified")
    assert f"{psutil.virtual_memory().total / 2**30:.1f} GiB, shared with the processor" in told
    assert "1 lane " in told


def test_a_divided_gpu_says_how_to_plan_for_an_instance(probed):
    assert "[{id: h100-80gb-sxm, mig: 3g.40gb}]" in " ".join(probed("mig").split())


def test_a_gpu_whose_name_cannot_be_read_is_not_said_to_be_silent(probed):
    told = " ".join(probed("garbage").split())
    assert "GPU 0 cannot be planned for (the driver's answer is not readable text)" in told


def test_how_to_measure_is_refused_where_nothing_is_to_be_measured(inside):
    said = inside("probe", "--folder", "/tmp", "--writes").complaint
    assert said.startswith("--folder, --writes: only with --bench")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--bench", ""), "name what to measure: disk, cpu, gpu, link"),
        (("--bench", "disk,dsik"), "There is no benchmark dsik"),
        (("--bench", "disk", "--seconds", "0"), "--seconds takes a number above 0."),
        (("--wait", "0"), "--wait takes a number from 0.1 to 600."),
    ],
)
def test_a_bad_option_says_which_values_there_are(inside, options, says):
    assert says in inside("probe", *options).complaint


@pytest.mark.parametrize(("flags", "said"), [((), "plans for it use"), (("tmpfs",), "do not use")])
def test_memory_that_passes_for_a_drive_is_said_not_to_be_used(
    inside, monkeypatch, tmp_path, flags, said
):
    read = Measurement(
        "drive.read.seq1m-q8t1", 2e9, Unit.BYTES_PER_SECOND, "tmpfs",
        "2026-03-01T10:20:30+00:00", flags=flags,
    )  # fmt: skip
    monkeypatch.setattr(benchmarks, "run", lambda *_: Outcome((read,)))
    assert said in inside("probe", "--bench", "disk", "--folder", tmp_path).out


@pytest.mark.parametrize("language", LANGUAGES)
def test_rates_have_the_prefixes_of_data_sheets(language):
    # BIPM, SI brochure, table 7: giga is G, mega M; a "B" or "억" before FLOP/s is neither.
    assert plain(19.5e9, Unit.FLOP_PER_SECOND, language) == "19.5 GFLOP/s"
    assert plain(294e6, Unit.FLOP_PER_SECOND, language) == "294 MFLOP/s"
    assert plain(7.1e9, Unit.BYTES_PER_SECOND, language) == "7.10 GB/s"


def test_only_the_command_line_speaks_of_its_option(inside, monkeypatch):
    battery = Message.of("bench.on-battery")
    monkeypatch.setattr(benchmarks, "hindrance", lambda *_: battery)
    for language in LANGUAGES:
        assert "--force" in inside("probe", "--bench", "cpu", "--lang", language).complaint
        assert "--force" not in render(battery, language)  # the window shows this
