"""What the words around a part's name say: its condition, and who stands for its warranty."""

import re

from trainwright.prices.imports.rows import RowError
from trainwright.prices.observation import Condition

_CONDITIONS: dict[str, Condition] = {
    "new": "new",
    "신품": "new",
    "새제품": "new",
    "새상품": "new",
    "정품": "new",
    "미개봉": "new",
    "used": "used",
    "중고": "used",
    "refurbished": "refurbished",
    "refurb": "refurbished",
    "renewed": "refurbished",
    "open box": "refurbished",
    "리퍼": "refurbished",
    "리퍼비시": "refurbished",
    "overseas": "overseas",
    "해외구매": "overseas",
    "해외직구": "overseas",
    "직구": "overseas",
    "병행수입": "overseas",
    "bulk": "bulk",
    "oem": "bulk",
    "tray": "bulk",
    "벌크": "bulk",
}
_TOLD = re.compile(
    r"중고|리퍼비시|리퍼|해외구매|해외직구|직구|병행수입|벌크"
    r"|\b(?:used|refurbished|refurb|renewed|open box|oem|tray|bulk)\b",
    re.IGNORECASE,
)

DISTRIBUTORS = (
    "제이씨현",
    "피씨디렉트",
    "서린",
    "대원씨티에스",
    "대원CTS",
    "파인인포",
    "디앤디컴",
    "인텍앤컴퍼니",
    "코잇",
    "에스티컴",
    "웨이코스",
    "이엠텍",
    "컴이지",
    "한미마이크로닉스",
    "명인일렉트로닉스",
    "STCOM",
    "다나와",
)
"""Firms that bring parts into Korea and stand for their warranty; their names end Danawa's."""
_DISTRIBUTOR = re.compile(rf"\s\(?({'|'.join(DISTRIBUTORS)})\)?(?=\s|$)", re.IGNORECASE)


def read_condition(text: str) -> Condition:
    """Return the condition of a column; an empty one is new.

    Raises:
        RowError: a word that is none.
    """
    plain = text.strip().casefold()
    if not plain:
        return "new"
    if plain not in _CONDITIONS:
        raise RowError("unknown-condition", text=text.strip()[:40])
    return _CONDITIONS[plain]


def told_condition(name: str) -> Condition:
    """Return the condition that a word of a name tells; new where none does."""
    told = _TOLD.search(name)
    return _CONDITIONS[told[0].casefold()] if told else "new"


def distributor(name: str) -> str:
    """Return the firm that a name ends with; nothing where it names none."""
    found = _DISTRIBUTOR.search(name)
    return found[1] if found else ""
