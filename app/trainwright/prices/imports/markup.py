"""Lists as HTML and BBCode, as the lines of the plain forms that their readers know.

Rows stay on the lines where they stood, so that what is refused can be found again.
"""

import re
from html.parser import HTMLParser

_HTML = re.compile(r"<t[dr]\b", re.IGNORECASE)
_BBCODE = re.compile(r"\[(?:b|url=[^\[\]\s]++)\]", re.IGNORECASE)
_BB_LINK = re.compile(r"\[url=([^\[\]\s]*+)\]([^\[\]]*+)\[/url\]", re.IGNORECASE)
_BB_CELL = re.compile(r"\[/t[dh]\]", re.IGNORECASE)
_BB_TAG = re.compile(
    r"\[/?(?:b|i|u|s|size|color|font|table|tr|td|th|list|quote|\*)(?:=[^\[\]\s]*+)?\]",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Return a list in its plain form; text without markup as it is."""
    if _HTML.search(text):
        return _of_html(text)
    if _BBCODE.search(text):
        return "\n".join(map(_of_bbcode, text.split("\n")))
    return text


def _of_bbcode(line: str) -> str:
    linked = _BB_LINK.sub(r"[\2](\1)", line)
    return _BB_TAG.sub("", _BB_CELL.sub(" | ", linked)).rstrip(" |")


def _of_html(text: str) -> str:
    rows = _Rows()
    rows.feed(text)
    rows.close()
    mark = " | " if "pcpartpicker" in text.casefold() else "\t"
    last = max((line for line, _ in rows.found), default=1)
    lines = [""] * last
    for line, cells in rows.found:
        lines[line - 1] = f"{lines[line - 1]} {mark.join(cells)}".strip(" ")
    return "\n".join(lines)


class _Rows(HTMLParser):
    """Collects the rows of tables and the links outside of them, each with its line."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, list[str]]] = []
        self._row: list[list[str]] | None = None
        """Pieces of the text of each cell."""
        self._row_line = 1
        self._link: list[str] | None = None
        """Pieces of the text of a link."""
        self._address = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._end_row()
            self._row, self._row_line = [], self.getpos()[0]
        elif tag in ("td", "th") and self._row is not None:
            self._row.append([])
        elif tag == "a":
            self._link, self._address = [], dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("tr", "table"):
            self._end_row()
        elif tag == "a" and self._link is not None:
            text = f"[{_one_line(self._link)}]({self._address})"
            self._link = None
            if self._row:
                self._row[-1].append(text)
            else:
                self.found.append((self.getpos()[0], [text]))

    def handle_data(self, data: str) -> None:
        if self._link is not None:
            self._link.append(data)
        elif self._row:
            self._row[-1].append(data)

    def _end_row(self) -> None:
        if self._row:
            self.found.append((self._row_line, [_one_line(cell) for cell in self._row]))
        self._row = None


def _one_line(pieces: list[str]) -> str:
    return " ".join("".join(pieces).replace("|", "/").split())
