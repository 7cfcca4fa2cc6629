"""Layouts that others published as possible or not: every one is decided as they saw it."""

from pathlib import Path

import pytest
import yaml

from trainwright.catalog.mig import mig_tables
from trainwright.messages import UserError
from trainwright.mig.layout import Instance, arrange, check, free, in_order

CASES = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text("utf-8"))["cases"]
TABLES = {table.id: table for table in mig_tables()}
REASONS = {
    "over_max_instances": "mig.over-count",
    "zero_count": "mig.zero-count",
    "no_placement": "mig.no-placement",
    "driver_rule": "mig.driver",
}


def of(expected):
    found = [case for case in CASES if case["expected"] == expected]
    assert found
    return pytest.mark.parametrize("case", found, ids=lambda case: case["id"])


def verdict(case, wanted=None):
    existing = [Instance(*place) for place in case.get("existing", [])]
    driver = case.get("driver")
    table = TABLES[case["gpu"]]
    return check(table, wanted or case["wanted"], existing=existing, driver=driver)


@of("valid")
def test_what_was_seen_to_work_is_valid(case):
    found = verdict(case)
    assert found.valid, found.reason
    assert len(found.instances) == sum(case["wanted"].values())
    if "observed" in case:
        observed = [Instance(*place) for place in case["observed"]]
        table = TABLES[case["gpu"]]
        assert arrange(table, [], observed) == tuple(sorted(observed, key=lambda one: one.start))
    if "order" in case:
        assert in_order(TABLES[case["gpu"]], case["order"]) is not None


@of("invalid")
def test_what_was_seen_to_fail_is_invalid_for_the_same_reason(case):
    if case["reason"] == "unknown_profile":
        with pytest.raises(UserError, match="bogus"):
            verdict(case)
        return
    found = verdict(case)
    assert not found.valid
    assert found.reason.id == REASONS[case["reason"]]


@of("order_fails")
def test_a_set_that_fits_fails_in_the_published_order_and_works_with_places(case):
    assert verdict(case).valid
    assert in_order(TABLES[case["gpu"]], case["order"]) is None


@of("fragmented")
def test_what_fits_an_empty_gpu_does_not_fit_between_what_is_there(case):
    found = verdict(case)
    assert not found.valid
    assert found.reason.id == "mig.fragmented"
    if "free" in case:
        existing = [Instance(*place) for place in case["existing"]]
        assert free(TABLES[case["gpu"]], existing) == case["free"]


@of("alias")
def test_older_names_are_understood(case):
    means = {name: case["means"][name] for name in case["means"]}
    assert verdict(case).instances == verdict(case, means).instances


@of("disputed")
def test_what_sources_disagree_on_is_said_to_be_disputed(case):
    found = verdict(case)
    assert found.valid
    assert "mig.disputed" in [note.id for note in found.notes]


def test_all_cases_are_decided():
    assert {case["expected"] for case in CASES} == {
        "valid", "invalid", "order_fails", "fragmented", "alias", "disputed",
    }  # fmt: skip
    assert len(CASES) >= 94
