"""Units at the edge, and Korean particles after values."""

from typing import Any, Literal, get_args, get_origin

import pytest

from trainwright.catalog.query import list_gpus
from trainwright.messages.particles import settled
from trainwright.messages.units import durations
from trainwright.profile.presets import presets
from trainwright.workload import Inputs, Settings, Workload
from trainwright.workload.settings import Loader

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (37.5 * HOUR, 2 * DAY + 17 * HOUR, ("1 d 14 h", "2 d 17 h")),
        (5 * HOUR, 2 * DAY + 1 * HOUR, ("5 h 0 min", "2 d 1 h")),
        (12.5 * HOUR, 21.6 * HOUR, ("12 h 30 min", "21 h 36 min")),
        (18.6, 31.5, ("18.6 s", "31.5 s")),
    ],
)
def test_both_ends_are_told_in_days_where_both_are_days(
    low: float, high: float, told: tuple[str, str]
) -> None:
    assert durations(low, high) == told


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1.06 GiB을(를) 쓰고", "1.06 GiB를 쓰고"),  # 기비바이트
        ("배치 크기 3(으)로", "배치 크기 3으로"),  # 삼
        ("워커 7(으)로", "워커 7로"),  # 칠: after ㄹ as after a vowel
        ("40 %이(가) 남음", "40 %가 남음"),  # 퍼센트
        ("드라이버은(는)", "드라이버는"),
        ("“폴더 하나”을(를) 고르세요", "“폴더 하나”를 고르세요"),
        ("RTX 4090은(는)", "RTX 4090은"),  # 구십
        ("H100이(가)", "H100이"),  # 백
        ("bf16(으)로", "bf16으로"),  # 십육 or 식스틴
        ("NF4을(를)", "NF4를"),  # 사 or 포
        ("train.py이(가)", "train.py가"),  # 파이 or 와이
        ("a.yaml(으)로", "a.yaml로"),  # 야믈
        ("checkpointing은(는)", "checkpointing은"),  # 체크포인팅
        ("TITAN RTX(compute capability 7.5)은(는)", "TITAN RTX(compute capability 7.5)는"),
        ("torch(으)로", "torch로"),  # 토치
        ("widget(으)로", "widget(으)로"),  # nobody knows how a reader says it
        ("HBM3을(를)", "HBM3을(를)"),  # 스리 or 삼
    ],
)
def test_a_particle_fits_what_stands_before_it(written: str, said: str) -> None:
    assert settled(written) == said


def literals(annotation: Any) -> set[str]:
    """Return the words that a key may hold."""
    if get_origin(annotation) is Literal:
        return {str(value) for value in get_args(annotation)}
    inner = (one for one in get_args(annotation) if not isinstance(one, str))
    return set().union(*map(literals, inner))


def test_each_word_of_plans_and_each_part_has_its_particle() -> None:
    fields = {
        name: field.annotation
        for model in (Settings, Loader, Workload, Inputs)
        for name, field in model.model_fields.items()
    }
    words = {*fields, *set().union(*map(literals, fields.values()))}
    names = {record.name for record in list_gpus()} | {one.name for one in presets().values()}
    left = {word for word in words | names if "(" in settled(f"{word}을(를)").removeprefix(word)}
    # Of a digit behind letters a reader may say the English name, or the Korean one.
    assert {word for word in left if not word[-1].isdigit()} == set()
