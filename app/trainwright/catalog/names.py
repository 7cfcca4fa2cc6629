"""Names of hardware as people type them, reduced to keys that compare equal."""

import re
import unicodedata

_KOREAN = {
    "엔비디아": "nvidia",
    "지포스": "geforce",
    "라데온": "radeon",
    "쿼드로": "quadro",
    "테슬라": "tesla",
    "타이탄": "titan",
    "인스팅트": "instinct",
    "인텔": "intel",
    "아크": "arc",
    "애플": "apple",
    "블랙웰": "blackwell",
    "에이다": "ada",
    "노트북용": "laptop",
    "노트북": "laptop",
    "랩탑": "laptop",
    "모바일": "laptop",
    "슈퍼": "super",
    "울트라": "ultra",
    "맥스": "max",
    "프로": "pro",
    "기가": "gb",
}
_DROPPED_AHEAD = re.compile(r"^(?:nvidia|geforce|amd|ati|radeon|intel|tesla|instinct|arc|apple)+")
_DROPPED_BEHIND = re.compile(
    r"(?<!gpu)(?<!graphicscard)(?<!graphics)(?<!generation)(?<!그래픽카드)"
    r"(?:gpu|graphicscard|graphics|generation|그래픽카드)+$"
)
"""Looks only where such words begin: a long row of them would be gone through once for each."""
_CAPACITY = re.compile(r"(?:(?<![a-z\d])|(?<=[a-z]\d))(\d+)\s*+(?:gib|gb|g)(?![a-z0-9])")
MAX_TYPED = 200
"""Characters that are looked at; assumed, the longest NVML name has about 60."""


def name_key(text: str) -> str:
    """Return the key of a name: case, spaces, hyphens, vendor words and script do not count.

    ``NVIDIA GeForce RTX 4090``, ``rtx-4090`` and ``지포스 RTX4090`` have the same key.
    """
    text = re.sub("[®™©]", " ", text[:MAX_TYPED])
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"\((?:r|tm|c)\)", " ", text)
    for korean, english in _KOREAN.items():
        text = text.replace(korean, english)
    text = re.sub(r"\bmobile\b", "laptop", text)
    text = _CAPACITY.sub(r"\1gb", text)
    text = re.sub(r"[^0-9a-z가-힣]+", "", text)
    shorter = _DROPPED_BEHIND.sub("", _DROPPED_AHEAD.sub("", text))
    return shorter or text


def short_keys(key: str, memory_bytes: float) -> tuple[str, ...]:
    """Return other keys of the same name: without the series, and with the memory size.

    For ``rtx4090`` they are ``4090``, ``rtx409024gb`` and ``409024gb``.
    """
    bare = re.sub(r"^(?:rtx|gtx|rx)(?=\d)", "", key)
    size = f"{memory_bytes / (1 << 30):.0f}gb"
    keys = dict.fromkeys((bare, key + size, bare + size))
    return tuple(other for other in keys if other != key and not other.endswith(size + size))


_PART_NOISE = re.compile(
    r"\((?:r|tm|ms-\w+)\)|[®™©]|@(?s:.*)|(?<!\d)\d+th gen\b|\b\w+-cores?\b|with radeon graphics"
    r"|\bm\.2 nvme\b"
    r"|\b(?:amd|intel|core|cpu|processor|western digital|wdc|ssd|nvme|motherboard)\b"
)
_REVISION = re.compile(r"(?<=[0-9a-z]{8})-\d[a-z0-9]{5,6}\b")
"""Disks tell the kernel their revision too: WD201KFGX-68BKJN0, ST8000DM004-2CX188."""
_THOUSANDS = re.compile(r"\b(\d+)000gb\b")
_KOREAN_PARTS = {
    "삼성전자": "samsung",
    "sk하이닉스": "sk hynix",
    "마이크론 crucial": "crucial",
    "마이크론": "micron",
    "크루셜": "crucial",
    "웨스턴디지털": "western digital",
    "씨게이트": "seagate",
    "도시바": "toshiba",
    "킹스톤": "kingston",
    "커세어": "corsair",
    "지스킬": "g.skill",
    "팀그룹": "teamgroup",
    "시소닉": "seasonic",
    "슈퍼플라워": "super flower",
    "마이크로닉스": "micronics",
    "비콰이어트": "be quiet!",
    "쿨러마스터": "cooler master",
    "딥쿨": "deepcool",
    "녹투아": "noctua",
    "써멀라이트": "thermalright",
    "아틱": "arctic",
    "리안리": "lian li",
    "다크플래쉬": "darkflash",
    "에이수스": "asus",
    "기가바이트": "gigabyte",
    "애즈락": "asrock",
    "인텔": "intel",
    "라이젠": "ryzen",
    "스레드리퍼": "threadripper",
    "코어": "core",
    "제온": "xeon",
}
"""Makers and series as Korean shops write them, the longer ones first."""


def part_key(text: str) -> str:
    """Return the key of a part's name, without what makers and drivers put around it.

    ``WD_BLACK SN850X 2000GB`` and ``Western Digital Black SN850X 2TB`` have the same key.
    """
    plain = unicodedata.normalize("NFKC", text[:MAX_TYPED]).casefold()
    for korean, english in _KOREAN_PARTS.items():
        plain = plain.replace(korean, f"{english} ")
    plain = _REVISION.sub("", plain)
    plain = _PART_NOISE.sub(" ", plain).replace("wd_", "").replace("wd", "")
    plain = _CAPACITY.sub(r"\1gb", plain)
    plain = _THOUSANDS.sub(r"\1tb", plain)
    return re.sub(r"[^0-9a-z.가-힣]+", "", plain)


def without_vendor(name: str, vendor: str | None) -> str:
    """Return a part's name without the maker's in front."""
    if vendor and name.casefold().startswith(vendor.casefold()):
        return name[len(vendor) :]
    return name
