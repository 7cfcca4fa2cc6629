"""Korean particles: one form where the reading of a value is known, both where it is not."""

import pytest

from trainwright.messages.particles import settled


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
        ("torch(으)로", "torch(으)로"),  # nobody knows how a reader says it
        ("HBM3을(를)", "HBM3을(를)"),
    ],
)
def test_a_particle_fits_what_stands_before_it(written: str, said: str) -> None:
    assert settled(written) == said
