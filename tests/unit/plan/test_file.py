"""Plan files as people have them: read, saved, and saved again."""

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.data import resources
from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.schema import Plan
from trainwright.ranges import believed
from trainwright.workload.settings import MOST_SAMPLES

EXAMPLES = sorted(resources("examples").glob("*.plan.yaml"))
EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")
FRACTIONS = st.floats(-1, 1).filter(believed)
NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=30).filter(str.strip)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_written_as_it_stands(path: Path) -> None:
    assert file.text_of(file.read(path), path.parent) == path.read_text(encoding="utf-8")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans with odd names, numbers and nestings in every section."""
    optional = {
        "name": NAMES,
        "made_with": st.dictionaries(NAMES, NAMES, max_size=2),
        "limits": st.fixed_dictionaries({"budget": st.just("3000 USD")}),
        "settings": st.fixed_dictionaries(
            {},
            optional={
                "learning_rate": st.floats(0, 100, exclude_min=True).filter(believed),
                "micro_batch": st.integers(1, 1_000_000),
                "accumulation": st.integers(1, MOST_SAMPLES),
                "warmup": st.integers(0, 10**15),
                "compile": st.booleans(),
                "checkpointing": st.sampled_from(["none", "full", "every-4"]),
                "strategy": st.sampled_from(["ddp", "zero3"]),
                "loader": st.fixed_dictionaries({}, optional={"pin_memory": st.booleans()}),
            },
        ),
    }
    sources = st.one_of(
        st.fixed_dictionaries({"preset": NAMES}),
        st.fixed_dictionaries({"timm": NAMES}),
        st.fixed_dictionaries(
            {
                "python": st.fixed_dictionaries(
                    {
                        "file": st.just("/models/net.py"),
                        "factory": NAMES,
                        "args": st.dictionaries(
                            NAMES,
                            st.integers(-9, 9)
                            | st.floats(-1, 1).filter(believed)
                            | NAMES
                            | st.none(),
                        ),
                    }
                )
            }
        ),
    )
    datasets = st.sampled_from([None, "synthetic", {"layout": "files", "sample_kib": 12.5}])
    data = {
        "model": draw(sources),
        "workload": {
            "task": draw(st.sampled_from(["pretrain", "lora"])),
            "effective_batch": draw(st.integers(1, MOST_SAMPLES)),
            "samples": draw(st.none() | st.integers(1, 10**15)),
            "epochs": draw(st.floats(0.1, 1e6)),
            "dataset": draw(datasets),
            "lora": draw(st.sampled_from([None, {}, {"alpha": 8, "targets": ["q_proj"]}])),
        },
        "machine": draw(
            st.sampled_from([{"local": True}])
            | st.fixed_dictionaries(
                {
                    "gpus": st.lists(
                        st.fixed_dictionaries(
                            {"id": NAMES, "reserved_mib": st.floats(0, 1e6).filter(believed)}
                        ),
                        min_size=1,
                        max_size=3,
                    )
                }
            )
        ),
        **draw(st.fixed_dictionaries({}, optional=optional)),
    }
    return Plan.model_validate(data)


@given(plans())
def test_every_plan_comes_back_from_its_file(plan: Plan) -> None:
    text = file.text_of(plan)
    again = file.parsed(text, "plan")
    assert again == plan
    assert file.text_of(again) == text


def test_a_plan_that_could_not_be_opened_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.plan.yaml"
    plan = file.read(EXAMPLE)
    settings = plan.settings.model_copy(update={"accumulation": MOST_SAMPLES + 1})
    with pytest.raises(UserError, match=r"settings\.accumulation: must be at most"):
        file.write(plan.model_copy(update={"settings": settings}), path)
    assert not path.exists()


def test_saving_names_the_versions_that_made_the_figures(tmp_path: Path) -> None:
    path = tmp_path / "내 계획 1.plan.yaml"
    saved = file.write(file.read(EXAMPLE), path)
    assert set(saved.made_with) >= {"trainwright"}
    assert file.read(path) == saved


def test_a_relative_path_belongs_to_the_folder_of_its_plan(tmp_path: Path) -> None:
    folder = tmp_path / "한글 폴더"
    folder.mkdir()
    path = folder / "a.plan.yaml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("preset: llama-3.1-8b", "hf: 모델/c.json")
    path.write_text(text, encoding="utf-8")
    plan = file.read(path)
    assert plan.model.hf == str(folder / "모델" / "c.json")
    file.write(plan, path)
    assert "model: {hf: 모델/c.json}" in path.read_text(encoding="utf-8")
    elsewhere = tmp_path / "b.plan.yaml"
    file.write(plan, elsewhere)
    assert file.read(elsewhere).model.hf == plan.model.hf


def test_a_path_in_an_override_belongs_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = file.read(EXAMPLE, ["model={hf: here/config.json}"])
    assert plan.model.hf == str(tmp_path / "here" / "config.json")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.plan.yaml"
    path.write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="No space left"):
        file.write(file.read(EXAMPLE), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["a.plan.yaml"]


def test_saving_where_there_is_no_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone.*cannot be written"):
        file.write(file.read(EXAMPLE), tmp_path / "gone" / "a.plan.yaml")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits or free links")
def test_saving_keeps_permissions_and_links(tmp_path: Path) -> None:
    real = tmp_path / "real.plan.yaml"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link = tmp_path / "link.plan.yaml"
    link.symlink_to(real)
    file.write(file.read(EXAMPLE), link)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert file.read(real).name == "llama-8b-lora"


def test_an_older_schema_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    def retitled(data: dict[str, object]) -> dict[str, object]:
        return {k: v for k, v in data.items() if k != "title"} | {
            "trainwright": 1,
            "name": data["title"],
        }

    monkeypatch.setattr(file, "MIGRATIONS", {0: retitled})
    text = EXAMPLE.read_text(encoding="utf-8")
    old = text.replace("trainwright: 1", "trainwright: 0").replace("name:", "title:")
    assert file.parsed(old, "old.plan.yaml") == file.parsed(text, "new.plan.yaml")


def test_standard_input_is_a_plan_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = EXAMPLE.open("rb")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with Stdin.buffer:
        assert file.read("-") == file.read(EXAMPLE)
