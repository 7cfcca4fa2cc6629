"""``--set`` and the form: one key changed by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.data import resources
from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.edit import with_key, with_keys
from trainwright.plan.schema import Plan

EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")


def read(*changes: str) -> Plan:
    return file.read(EXAMPLE, changes)


def test_a_key_takes_the_value_that_yaml_gives_it() -> None:
    assert read("settings.micro_batch=8").settings.micro_batch == 8
    assert read("settings.learning_rate=1e-4").settings.learning_rate == 1e-4
    assert read("settings.compile=true").settings.compile is True
    assert read("name=a b").name == "a b"
    assert read("workload.lora={rank: 4}").workload.lora.rank == 4
    assert read("machine.gpus[0].count=2").machine.gpus[0].count == 2


def test_a_missing_section_is_made() -> None:
    assert read("settings.loader.num_workers=4").settings.loader.num_workers == 4
    assert read("limits.power_w=900").limits.power_w == 900


def test_the_item_after_the_last_is_a_new_one() -> None:
    plan = read("machine.gpus[1].id=rtx-3090")
    assert [gpu.id for gpu in plan.machine.gpus] == ["rtx-4090", "rtx-3090"]


def test_nothing_frees_the_key() -> None:
    assert read("settings.micro_batch=").settings.micro_batch is None


def test_the_last_of_two_wins() -> None:
    assert read("settings.micro_batch=8", "settings.micro_batch=4").settings.micro_batch == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("settings.micro_batch", "there is no ="),
        ("settings.micro_bach=8", "did you mean micro_batch?"),
        ("=8", "this is not a key"),
        ("a..b=8", "this is not a key"),
        ("machine.gpus[x].count=2", "this is not a key"),
        ("machine.gpus[5].count=2", "nothing at machine.gpus"),
        ("model.preset.x=2", "nothing at model.preset.x"),
        ("settings.micro_batch=eight", "a whole number"),
        ("settings.micro_batch=[1", "not valid YAML"),
        ("settings.micro_batch=&a 1", "anchors"),
        ("workload.task=infr", "did you mean infer?"),
    ],
)
def test_a_bad_override_names_itself(change: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        read(change)
    assert "--set" in str(error.value)
    assert says in str(error.value)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_override_is_a_plan_or_a_line(key: str, value: str) -> None:
    for change in (f"{key}={value}", f"settings.micro_batch={value}", f"settings.{key}=1"):
        try:
            read(change)
        except UserError as error:
            line = str(error)
        else:
            line = "a plan"
        assert len(line.splitlines()) == 1


def test_an_edit_is_the_same_as_an_override() -> None:
    assert with_key(read(), "settings.micro_batch", 8) == read("settings.micro_batch=8")
    assert with_key(read(), "settings.micro_batch", None) == read("settings.micro_batch=")


def test_two_edits_may_be_valid_only_together() -> None:
    plan = with_keys(read(), {"machine.gpus": None, "machine.local": True})
    assert plan.machine.local


def test_a_new_task_leaves_behind_what_means_nothing_to_it() -> None:
    plan = with_keys(read(), {"settings.optimizer": "sgd", "settings.accumulation": 4})
    served = with_key(plan, "workload.task", "infer")
    assert served.settings.optimizer is None
    assert served.settings.accumulation is None
    assert served.workload.lora is None
    assert served.workload.inputs.sequence_length is None
    assert served.settings.micro_batch == plan.settings.micro_batch
    trained = with_key(served, "workload.task", "full")
    assert trained.workload.effective_batch


def test_an_edit_that_cannot_be_leaves_a_line() -> None:
    with pytest.raises(UserError, match="at least 1"):
        with_key(read(), "settings.micro_batch", 0)
