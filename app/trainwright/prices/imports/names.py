"""The names of parts as lists write them, reduced to words that compare equal."""

import re
import unicodedata

_KOREAN = {
    "지포스": "geforce",
    "라데온": "radeon",
    "쿼드로": "quadro",
    "테슬라": "tesla",
    "타이탄": "titan",
    "아크": "arc",
    "라이젠": "ryzen",
    "스레드리퍼": "threadripper",
    "인텔": "intel",
    "코어": "core",
    "울트라": "ultra",
    "제온": "xeon",
    "에픽": "epyc",
    "삼성전자": "samsung",
    "삼성": "samsung",
    "마이크론": "crucial",
    "크루셜": "crucial",
    "하이닉스": "hynix",
    "시소닉": "seasonic",
    "커세어": "corsair",
    "쿨러마스터": "cooler master",
    "리안리": "lian li",
    "녹투아": "noctua",
    "딥쿨": "deepcool",
    "써멀라이트": "thermalright",
    "써멀테이크": "thermaltake",
    "프로세서": "processor",
    "프로아트": "proart",
    "프로": "pro",
    "토마호크": "tomahawk",
    "프랙탈디자인": "fractal design",
    "프랙탈": "fractal",
    "비콰이어트": "be quiet",
    "기가바이트": "gigabyte",
    "애즈락": "asrock",
    "에이수스": "asus",
    "웨스턴디지털": "western digital",
    "씨게이트": "seagate",
    "도시바": "toshiba",
    "킹스톤": "kingston",
    "슈퍼플라워": "super flower",
    "실버스톤": "silverstone",
    "노트북": "laptop",
    "패키지": "kit",
}
_VENDORS = {
    "wd": "western digital",
    "g.skill": "gskill",
    "g skill": "gskill",
    "team group": "teamgroup",
}
_KOREAN_WORD = re.compile("|".join(sorted(_KOREAN, key=len, reverse=True)))
_VENDOR_WORD = re.compile(rf"\b(?:{'|'.join(map(re.escape, _VENDORS))})\b")
_SPACED_UNIT = re.compile(r"(\d)\s+(gb|tb|go|to|w(?!/)|mm)\b")
"""``Go`` and ``To`` are French; ``w/`` is "with"."""
_GLUED_ATX = re.compile(r"\batx(?=\d)")
"""Of a power supply: ``ATX3.1``."""
_WORD = re.compile(r"[0-9a-z]+(?:\.\d+)?|[가-힣]+")


def plain(text: str) -> str:
    """Return a name in one form: case, width, script and makers' short names do not count."""
    same = unicodedata.normalize("NFKC", text[:300]).casefold().replace("_", " ")
    if not same.isascii():
        same = _KOREAN_WORD.sub(lambda found: f" {_KOREAN[found[0]]} ", same)
    same = _VENDOR_WORD.sub(lambda found: _VENDORS[found[0]], same)
    same = _GLUED_ATX.sub("atx ", same)
    return _SPACED_UNIT.sub(r"\1\2", same)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name, letters and numbers that belong together whole."""
    return tuple(_WORD.findall(plain(text)))
