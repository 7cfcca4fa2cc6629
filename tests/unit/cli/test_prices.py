"""``trainwright catalog prices``: what a person sees before and after a price is kept."""

import json

import pytest

from trainwright.prices import own_prices

LIST = """Type|Item|Price
:--|:--|:--
 **Video Card** | [MSI TRIO OC GeForce RTX 5090 32 GB Video Card](https://x) | $3,499.99 @ Newegg
 **Video Card** | [Asus DUAL GeForce RTX 4060 Ti Video Card](https://x.y) | $399.00
 **Monitor** | [Dell U2723QE](https://x.y) | $499.00
 **CPU** | [AMD Ryzen 9 9950X](https://x.y) | -
"""


@pytest.fixture
def list_file(tmp_path):
    file = tmp_path / "list.md"
    file.write_text(LIST, encoding="utf-8")
    return file


def document(outcome):
    assert outcome.err == ""
    return json.loads(outcome.out)


def test_a_price_that_was_added_is_listed_and_counted(inside):
    assert inside("catalog", "prices", "add", "rtx-3090", "90만원", "--condition", "used").code == 0
    (one,) = document(inside("catalog", "prices", "--json"))["prices"]
    assert (one["part"], one["amount"], one["currency"]) == ("rtx-3090", 900000, "KRW")
    assert (one["kind"], one["freshness"]) == ("used", "fresh")
    shown = document(inside("catalog", "prices", "show", "3090", "--json"))
    (used,) = (p for p in shown["prices"] if (p["condition"], p["currency"]) == ("used", "KRW"))
    assert (used["expected"], used["kind"]) == (900000, "used")


def test_without_prices_of_ones_own_the_assumed_ones_say_so(inside):
    outcome = inside("catalog", "prices", "show", "rtx-5080")
    assert "assumed" in outcome.out
    shown = document(inside("catalog", "prices", "show", "rtx-5080", "--json"))
    assert {price["kind"] for price in shown["prices"]} == {"assumed"}
    assert all(price["low"] < price["expected"] < price["high"] for price in shown["prices"])


def test_an_import_is_looked_at_before_it_is_kept(inside, list_file):
    first = document(inside("catalog", "prices", "import", list_file, "--json"))
    assert first["counts"] == {"matched": 1, "ambiguous": 1, "unmatched": 1, "refused": 1}
    assert [row["line"] for row in first["rows"]] == [3, 4, 5, 6]
    assert first["rows"][1]["candidates"] == ["rtx-4060-ti-16gb", "rtx-4060-ti-8gb"]
    assert own_prices.load().observations == ()
    command = ("catalog", "prices", "import", list_file, "--choose", "4=rtx-4060-ti-8gb", "--keep")
    assert document(inside(*command, "--json"))["kept"] == 2
    assert document(inside(*command, "--json"))["kept"] == 0
    assert {one.part for one in own_prices.load().observations} == {"rtx-5090", "rtx-4060-ti-8gb"}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_people_see_every_row_with_its_state(inside, list_file, language):
    outcome = inside("catalog", "prices", "import", list_file, "--lang", language)
    assert "prices." not in outcome.out
    for text in ("rtx-5090", "4060", "U2723QE", "rtx-4060-ti-8gb"):
        assert text in outcome.out


def test_a_list_may_come_on_standard_input(trainwright):
    outcome = trainwright("catalog", "prices", "import", "-", "--json", stdin=LIST.encode())
    assert json.loads(outcome.out)["counts"]["matched"] == 1


def test_a_price_is_withdrawn(inside):
    inside("catalog", "prices", "add", "rtx-4090", "$2500", "--date", "2026-01-05")
    inside("catalog", "prices", "add", "rtx-4090", "$2600", "--date", "2026-01-06")
    assert inside("catalog", "prices", "withdraw", "rtx-4090", "--date", "2026-01-05").code == 0
    assert [one.amount for one in own_prices.load().observations] == [2600]
    assert inside("catalog", "prices", "withdraw", "rtx-3090").code == 1


def test_the_rate_of_exchange_converts_and_is_shown_with_its_day(inside):
    add = ("catalog", "prices", "add", "--part-kind", "gpu", "mi210", "$5000")
    assert inside(*add, "--tax-excluded").code == 0
    show = ("catalog", "prices", "show", "mi210", "--kind", "gpu", "--json")
    assert [price["currency"] for price in document(inside(*show))["prices"]] == ["USD"]
    assert inside("catalog", "prices", "fx", "1400", "--date", "2026-01-05").code == 0
    _, won = document(inside(*show))["prices"]
    assert won["expected"] == pytest.approx(5000 * 1400 * 1.1)
    assert won["rate"] == {"krw_per_usd": 1400, "date": "2026-01-05"}
    assert "2026-01-05" in inside("catalog", "prices").out
    assert document(inside("catalog", "prices", "fx", "--forget", "--json"))["rate"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "rtx-4090", "--", "-5"), "below zero"),
        (("add", "rtx-4090", "nan", "--currency", "USD"), "not an amount"),
        (("add", "rtx-4090", "5"), "USD or KRW"),
        (("add", "rtx-4090", "5원", "--currency", "USD"), "USD or KRW"),
        (("add", "rtx-4090", "5", "--currency", "CHF"), "USD"),
        (("add", "rtx-4090", "$5", "--date", "2999-01-01"), "still to come"),
        (("add", "rtx-4090", "$5", "--date", "soon"), "not a date"),
        (("add", "rtx-4090", "$5", "--date", "0001-01-01"), "from 2000-01-01 on"),
        (("add", "rtx-4090", "$5", "--valid-until", "1999-12-31"), "from 2000-01-01 on"),
        (("fx", "1400", "--date", "1999-12-31"), "from 2000-01-01 on"),
        (("add", "rtx-4090", "$5", "--region", "Korea"), "region"),
        (("add", "rtx-9999", "$5"), "not a part"),
        (("add", "rtx-4060-ti", "$5"), "rtx-4060-ti-16gb"),
        (("import", "none.csv"), "none.csv"),
        (("import", "none.csv", "--choose", "x"), "none.csv"),
        (("fx", "0.0007"), "cannot be right"),
        (("fx", "nan"), "cannot be right"),
        (("fx", "1400", "--date", "2999-01-01"), "still to come"),
    ],
)
def test_bad_input_is_refused_in_one_line(inside, arguments, said):
    assert said in inside("catalog", "prices", *arguments).complaint
    assert own_prices.load().observations == ()


def test_rows_without_a_part_wait_until_they_are_matched_or_discarded(inside, list_file):
    document(inside("catalog", "prices", "import", list_file, "--json"))
    assert document(inside("catalog", "prices", "waiting", "--json"))["waiting"] == 0
    assert (
        document(inside("catalog", "prices", "import", list_file, "--keep", "--json"))["waiting"]
        == 2
    )
    told = document(inside("catalog", "prices", "waiting", "--json"))
    assert [row["state"] for row in told["rows"]] == ["ambiguous", "unmatched"]
    chosen = ("--choose", "1=rtx-4060-ti-8gb", "--keep")
    told = document(inside("catalog", "prices", "waiting", *chosen, "--json"))
    assert (told["kept"], told["waiting"]) == (1, 1)
    seen = {one.part: one for one in own_prices.load().observations}
    assert seen["rtx-4060-ti-8gb"].amount == 399
    assert seen["rtx-4060-ti-8gb"].source == f"{list_file.name}:4"
    assert "from 1 to 1" in inside("catalog", "prices", "waiting", "--discard", "2").complaint
    told = document(inside("catalog", "prices", "waiting", "--discard", "1", "--json"))
    assert (told["discarded"], told["waiting"]) == (1, 0)
