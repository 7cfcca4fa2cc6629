"""Korean particles behind values: 을(를) becomes 을 or 를 where the value's last sound is known."""

import re

_PAIRS = {
    "을(를)": ("을", "를"),
    "은(는)": ("은", "는"),
    "이(가)": ("이", "가"),
    "(이)가": ("이", "가"),
    "과(와)": ("과", "와"),
    "와(과)": ("과", "와"),
    "(으)로": ("으로", "로"),
    "(이)라": ("이라", "라"),
}
"""As written in the catalogue: (after a consonant, after a vowel)."""
_PLACE = re.compile(
    r"(?<![0-9A-Za-z%가-힣])(?P<before>[0-9A-Za-z%가-힣]+)(?P<quote>[”’'\"`]?)(?P<pair>"
    + "|".join(map(re.escape, _PAIRS))
    + ")"
)
_VOWEL_UNITS = re.compile(r"(?:%|[KMGT]i?B|W|MHz|GHz)\Z")
"""Read 퍼센트, 기비바이트, 와트, 헤르츠."""
_DIGITS = {"0": "ㅇ", "1": "ㄹ", "2": "", "3": "ㅁ", "4": "", "5": "", "6": "ㄱ", "7": "ㄹ",
           "8": "ㄹ", "9": ""}  # fmt: skip
"""Last consonants of 영 (십, 백, 천), 일, 이, 삼, 사, 오, 육, 칠, 팔, 구."""
_HANGUL, _FINALS, _RIEUL = 0xAC00, 28, 8
"""Unicode, chapter 3.12: syllables start at U+AC00, 28 finals each, ㄹ the eighth."""


def settled(text: str) -> str:
    """Return the sentence with each particle in the one form that its value takes.

    Where nobody can know how a value is read (a name in Latin letters), both forms stay.
    """
    return _PLACE.sub(_settle, text)


def _settle(place: re.Match[str]) -> str:
    final = _final(place["before"])
    if final is None:
        return place[0]
    pair = place["pair"]
    consonant, vowel = _PAIRS[pair]
    open_end = not final or (final == "ㄹ" and pair == "(으)로")
    return place["before"] + place["quote"] + (vowel if open_end else consonant)


def _final(word: str) -> str | None:
    """Return a word's last consonant, "" where it ends in a vowel, None where nobody knows.

    Consonants other than ㄹ need no name of their own: "ㅇ" stands for them.
    """
    last = word[-1]
    if last in _DIGITS and not re.search(r"[A-Za-z]\d+\Z", word):
        return _DIGITS[last]
    if "가" <= last <= "힣":
        final = (ord(last) - _HANGUL) % _FINALS
        return "" if not final else "ㄹ" if final == _RIEUL else "ㅇ"
    return "" if _VOWEL_UNITS.search(word) else None
