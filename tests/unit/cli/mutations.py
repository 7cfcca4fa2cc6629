"""Valid input made wrong by a seed: bytes, lines, numbers, types, nesting, letters."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

NUMBERS = (
    "0", "-1", "-0", "1e308", "-1e308", "1e-324", "5.0e-324", "1e400", "nan", "NaN", ".nan",
    "Infinity", "-Infinity", ".inf", "1" * 310, "9" * 5000, "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1" + "0" * 400, "2147483648", "1.5", "1,5",
    "1_000", "0x10", "0o7", "1e5", "00", "+3", "1.1.1", "1e", "½", "²", "٣", "१२", "３", "Ⅷ", "-٣",
    "1e-5", "1e18", "1e24", "999999999999999999", "0.1e-20", "true", "100000000",
)  # fmt: skip
TEXTS = (
    "", " ", "null", "~", "[]", "{}", "[[]]", "{a: 1}", '{"a": 1}', "true", "no", "'", '"', "\\",
    "\t", "\r", "\n", "\0", "\x1b[31m", "\u202e", "\u2028", "\ufeff", "🦄", "e\u0301", "가", "ﬃ",
    "x" * 300, "x" * 70_000, "/" * 5000, "../" * 50, "%s%n", "{0}", "{value:gib}", "-", "--",
    "/dev/null", "/", ".", "=", ":", ",", "@", "|", "$", "원", "만", "#", "&a", "*a", "!!x", "<<",
)  # fmt: skip
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_VALUE = re.compile(r"(?<=[:=,] )[^,}\]\n]{1,200}|(?<=[:=|@,])[^,}\]|\n]{1,200}")
_WORD = re.compile(r"[A-Za-z_가-힣][\w.가-힣-]{0,60}")


def mutated(content: bytes, seed: int) -> bytes:
    """Return the content, wrong in one to three ways."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        change = chance.choice(CHANGES)
        content = change(content, chance)
    return content


def odd(text: str, seed: int) -> str:
    """Return the text of an argument, wrong in one way."""
    chance = random.Random(seed)
    if chance.random() < 0.3:
        return chance.choice((*NUMBERS, *TEXTS))
    change = chance.choice((_number, _value, _word, _insert, _cut, _double))
    return change(text.encode(), chance).decode("utf-8", "surrogateescape")


def _replaced(content: bytes, pattern: re.Pattern[str], new: str, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "surrogateescape")
    places = list(pattern.finditer(text))
    if not places:
        return content
    place = chance.choice(places)
    return (text[: place.start()] + new + text[place.end() :]).encode("utf-8", "surrogateescape")


def _number(content: bytes, chance: random.Random) -> bytes:
    return _replaced(content, _NUMBER, chance.choice(NUMBERS), chance)


def _value(content: bytes, chance: random.Random) -> bytes:
    return _replaced(content, _VALUE, chance.choice((*NUMBERS, *TEXTS)), chance)


def _word(content: bytes, chance: random.Random) -> bytes:
    words = _WORD.findall(content.decode("utf-8", "replace")) or ["x"]
    return _replaced(content, _WORD, chance.choice((*TEXTS, *words)), chance)


def _scaled(content: bytes, chance: random.Random) -> bytes:
    """Make a number another that may be: smaller, larger, a whole one."""
    new = chance.choice((
        str(chance.randint(0, 20)), f"{10.0 ** chance.randint(-23, 23):g}",
        str(10 ** chance.randint(0, 17)), f"{chance.random():.3f}", str(2 ** chance.randint(0, 50)),
    ))  # fmt: skip
    return _replaced(content, _NUMBER, new, chance)


def _pruned(content: bytes, chance: random.Random) -> bytes:
    """Take a key or item out of JSON, or put another value of it there."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return content
    holders = list(_holders(data))
    if not holders:
        return content
    holder, key = chance.choice(holders)
    other, from_key = chance.choice(holders)
    match chance.randrange(3):
        case 0:
            del holder[key]
        case 1:
            holder[key] = json.loads(json.dumps(other[from_key]))
        case 2:
            holder[key] = chance.choice((0, 1, -1, 0.5, 1e24, 1e-24, "", "8", None, True, [], {}))
    return json.dumps(data).encode()


def _holders(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with every key of it."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from _holders(data[key])


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(chance.choice((1, 1, 4, 40))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.choice((*TEXTS, *NUMBERS)).encode() + content[at:]


def _cut(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted((chance.randint(0, len(content)), chance.randint(0, len(content))))
    return chance.choice((content[:first], content[last:], content[:first] + content[last:]))


def _lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines.insert(to, lines[at])
        case 1:
            lines[at], lines[to] = lines[to], lines[at]
        case 2:
            lines[at:to] = []
        case 3:
            lines[at] = chance.choice((b"  ", b"- ", b"\t")) + lines[at]
    return b"\n".join(lines)


def _double(content: bytes, chance: random.Random) -> bytes:
    return content * chance.choice((2, 3, 50))


def _nested(content: bytes, chance: random.Random) -> bytes:
    opened, closed = chance.choice(((b"[", b"]"), (b'{"a": ', b"}"), (b"- ", b"")))
    depth = chance.choice((1, 1, 40, 3000))
    inner = content if chance.random() < 0.5 else b"1"
    return opened * depth + inner + closed * depth


def _encoded(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "cp949", "utf-8-sig", "latin-1"))
    return text.encode(encoding, "replace")


def _emptied(content: bytes, chance: random.Random) -> bytes:
    empty = (b"", b"\0", b"null", b"[]", b"{}", b"1", b'""', b"---\n", b"\xff\xfe", b"\n" * 9000)
    return chance.choice(empty)


CHANGES = (
    *(4 * [_scaled]), *(4 * [_pruned]), _number, _number, _value, _value, _word, _word, _flip,
    _flip, _insert, _cut, _lines, _lines, _double, _nested, _encoded, _emptied,
)  # fmt: skip
