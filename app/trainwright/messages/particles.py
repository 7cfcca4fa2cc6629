"""Korean particles behind values: 을(를) becomes 을 or 를 where the value's last sound is known."""

import re

PAIRS = {
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
    r"(?<![0-9A-Za-z%가-힣])(?P<before>[0-9A-Za-z%가-힣]+)(?P<between>[”’'\"`]?(?:\([^()]*\))?)"
    r"(?P<pair>" + "|".join(map(re.escape, PAIRS)) + ")"
)
"""What is in brackets is not read: a particle follows the word before them."""
_VOWEL_UNITS = re.compile(r"(?:%|[KMGT]i?B|W|MHz|GHz)\Z")
"""Read 퍼센트, 기비바이트, 와트, 헤르츠."""
_DIGITS = {"0": "ㅇ", "1": "ㄹ", "2": "", "3": "ㅁ", "4": "", "5": "", "6": "ㄱ", "7": "ㄹ",
           "8": "ㄹ", "9": ""}  # fmt: skip
"""Last consonants of 영 (십, 백, 천), 일, 이, 삼, 사, 오, 육, 칠, 팔, 구."""
_HANGUL, _FINALS, _RIEUL = 0xAC00, 28, 8
"""Unicode, chapter 3.12: syllables start at U+AC00, 28 finals each, ㄹ the eighth."""
_LETTERS = {"l": "ㄹ", "m": "ㅁ", "n": "ㄴ", "r": "ㄹ"}
"""Names of letters that end in a consonant: 엘, 엠, 엔, 알."""
_ENDINGS = dict.fromkeys("adfhijoqrsuvwxyz", "") | {"l": "ㄹ", "m": "ㅁ", "n": "ㄴ"}
"""Ends of words that Korean writes in one way alone (외래어 표기법, chapter 3.1): 드, 프, 시, 스
follow a consonant that is not a final one. Of the others a reader has to know the word."""
_VOWEL_WORDS = (
    "accelerate arc base bert bit cache concurrent core degree deit disk framework geforce gpt gre "
    "image kept large last link lite loop nanogpt native next nvme objective pcie prompt rate "
    "recipe reentrant reference script sequence share size super task tensorrt trace upcast value "
    "vit worst"
)
_RIEUL_WORDS = "compile expandable file profile single table"
_CONSONANT_WORDS = (
    "dataset dtype engine mac machine name net none pipeline rollout sleep slot step synthetic "
    "type unet warmup"
)
_WORDS = {
    word: final
    for final, words in (("", _VOWEL_WORDS), ("ㄹ", _RIEUL_WORDS), ("ㅇ", _CONSONANT_WORDS))
    for word in words.split()
}
"""Words of plans and parts whose last letter does not tell: 캐시, 컴파일, 엔진."""


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
    consonant, vowel = PAIRS[pair]
    open_end = not final or (final == "ㄹ" and pair == "(으)로")
    return place["before"] + place["between"] + (vowel if open_end else consonant)


def _final(word: str) -> str | None:
    """Return a word's last consonant, "" where it ends in a vowel, None where nobody knows.

    Consonants other than ㄹ need no name of their own: "ㅇ" stands for them.
    """
    last = word[-1]
    if last in _DIGITS:
        # A digit behind letters is read in English or in Korean: 스리 or 삼, but 포 or 사.
        alone = re.search(r"[A-Za-z]\d\Z", word) is not None
        return None if alone and _DIGITS[last] else _DIGITS[last]
    if "가" <= last <= "힣":
        final = (ord(last) - _HANGUL) % _FINALS
        return "" if not final else "ㄹ" if final == _RIEUL else "ㅇ"
    return "" if _VOWEL_UNITS.search(word) else _latin(re.split(r"\d", word)[-1])


def _latin(word: str) -> str | None:
    """Return the last consonant of a word in Latin letters, or of an abbreviation's last letter."""
    lower = word.lower()
    if lower in _WORDS:
        return _WORDS[lower]
    if len(word) == 1 or not re.search("[aeiouy]", lower):
        return _LETTERS.get(lower[-1], "")
    if lower.endswith("ng"):
        return "ㅇ"
    return None if word.isupper() and lower[-1] == "r" else _ENDINGS.get(lower[-1])
