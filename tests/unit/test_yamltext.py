"""The YAML that plans are written in: what reads as what, and what is refused."""

import time
from itertools import pairwise

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from trainwright.messages import UserError
from trainwright.ranges import believed
from trainwright.yamltext import MAX_NODES, dump, parse, scalar

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
NUMBERS = st.integers(-(10**18) + 1, 10**18 - 1) | st.floats().filter(believed)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.booleans())
@example({"no": "on", "on": "1:30", "a": 1e-05, "b": "2026-01-01", "c": "0x1f", "d": "1_0"}, True)
@example({"x" * 1100: {"y" * 1100: {"é" * 600: [1]}}}, True)
@example({"x" * 1100: {"y" * 1100: {"é" * 600: [1]}}}, False)
@example({"a": [{"b": [{"c": 1}, {"d": {}}], "e": 2}, {"f": []}]}, True)
def test_what_is_dumped_reads_back_as_itself_by_any_version_of_yaml(
    data: dict[str, object], open_: bool
) -> None:
    text = dump(data, frozenset("abcdef") | frozenset(data) if open_ else frozenset())
    assert parse(text, "plan").data == (data or None)
    assert yaml.safe_load(text) == (data or None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        (".5", 0.5),
        ("8", 8),
        ("010", 10),
        ("true", True),
        ("no", "no"),
        ("2026-01-01", "2026-01-01"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("~", None),
        ("'8'", "8"),
        ("0.3.0", "0.3.0"),
    ],
)
def test_scalars_are_what_a_person_means(text: str, value: object) -> None:
    read = parse(f"key: {text}", "plan").data["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "id", "line"),
    [
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "yaml.tag", 2),
        ("a: &x 1", "yaml.anchor", 1),
        ("a: 1\n\nb: *x", "yaml.anchor", 3),
        ("a: 1\na: 2", "yaml.duplicate-key", 2),
        ("a: !!str 1", "yaml.tag", 1),
        ("a: {b: 1, b: 2}", "yaml.duplicate-key", 1),
        ("a: 1\n---\nb: 2", "yaml.several-documents", 2),
        ("? [x]\n: 1", "yaml.odd-key", 1),
        ("a: .nan", "yaml.not-a-number", 1),
        ("a: -.inf", "yaml.not-a-number", 1),
        ("a: 1e999", "yaml.not-a-number", 1),
        ("a: 9999999999999999999", "yaml.not-a-number", 1),
        ("a: [1, 2", "yaml.not-yaml", 1),
        ("a: 'x", "yaml.not-yaml", 1),
        ("a: b: c", "yaml.not-yaml", 1),
        ("\ta: 1", "yaml.not-yaml", 1),
        ("a: " + "[" * 5000, "yaml.too-deep", 1),
        ("- " * 5000 + "1", "yaml.too-deep", 1),
        ("[" + "1," * (MAX_NODES + 1) + "]", "yaml.too-many-values", 1),
    ],
)
def test_what_plans_do_without_is_refused_at_its_line(text: str, id: str, line: int) -> None:
    with pytest.raises(UserError) as error:
        parse(text, "mine.plan.yaml")
    assert error.value.message.id == id
    assert error.value.message.values["where"] == f"mine.plan.yaml:{line}"


def test_a_null_character_is_binary_and_no_yaml() -> None:
    with pytest.raises(UserError, match="not UTF-8 text"):
        parse("a: \x00", "plan")


def test_a_billion_laughs_costs_nothing() -> None:
    names = "abcdefghi"
    bomb = 'a: &a ["lol"]\n' + "".join(
        f"{after}: &{after} [{','.join([f'*{name}'] * 9)}]\n" for name, after in pairwise(names)
    )
    start = time.perf_counter()
    with pytest.raises(UserError):
        parse(bomb, "plan")
    assert time.perf_counter() - start < 1


@given(st.text())
def test_unquoted_text_is_a_plain_value_or_refused(text: str) -> None:
    try:
        value = scalar(text)
    except ValueError:
        return
    assert value is None or isinstance(value, (str, int, float))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        ("a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc: {<<: [*x, *y]}",
         {"a": {"p": 1}, "b": {"p": 2, "r": 3}, "c": {"p": 1, "r": 3}}),
        ("a: !!str 1\nb: !!map {c: !!seq [x]}", {"a": "1", "b": {"c": ["x"]}}),
    ],
)  # fmt: skip
def test_files_of_other_tools_name_values_as_pyyaml_reads_them(text: str, data: object) -> None:
    assert parse(text, "theirs", foreign=True).data == data == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("a: &a [x, x]\n" + "\n".join(
            f"{n}: &{n} [{', '.join([f'*{chr(ord(n) - 1)}'] * 9)}]" for n in "bcdefghi"
        ), "yaml.too-many-values"),
        ("a: &a [*a]", "yaml.no-anchor"),
        ("a: *b\nc: &b 1", "yaml.no-anchor"),
        ("a: !!python/name:os.system x", "yaml.tag"),
    ],
)  # fmt: skip
def test_names_in_files_of_other_tools_cannot_hurt(text: str, id: str) -> None:
    with pytest.raises(UserError) as refused:
        parse(text, "theirs", foreign=True)
    assert refused.value.message.id == id
