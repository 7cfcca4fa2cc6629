"""Names that mean something to whoever reads the file that they end up in; none does harm."""

MARK = "foreign-text-ran"
"""A file that appears in the working directory where a shell takes a name for a command."""

ORDERS = (
    "coding: my first run",
    "-*- coding: utf-16 -*-",
    "# coding=latin-1",
    "vim: set fileencoding=cp1252 :",
    '"""',
    "'''",
    "\\",
    "\\N{BULLET} \\x41 \\u0041",
    "{{ 7 * 7 }}{% raw %}{x!r}${HOME}",
    "%s %n %d %(x)s",
    "A" * 97 + " /// script " + "B" * 90,
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    f"; touch {MARK} #",
    f"' && touch {MARK} '",
    "-rf",
    "--help",
    "=1+1",
    '=HYPERLINK("x:y","z")',
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "＝1+1",
    " =1",
    "'=1",
    "<b>bold</b>",
    '<img src="nowhere.png">',
    "</p><i>x</i>",
    "a & b &lt; c",
    "[red]x[/red] [/] [link=x:y]z[/link]",
    "!!python/object:x.y z",
    "&a *a",
    "- a: b",
    "? a : b",
    "{a: [b",
    "no",
    "null",
    "1e5",
    "1:30",
    "2026-01-01",
    "a # b",
    "| a | b |",
    "**a** _b_ [c](d) `e`",
    " around ",
    "이름 📦 é",
    "x" * 200,
)
"""On one line, and of characters that show."""
BREAKS = (
    *(f"x{each}touch {MARK}" for each in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"),
    f"x\nEOF\ntouch {MARK}",
    "x\r\nraise SystemExit",
)
"""With what somebody takes for the end of a line."""
UNSEEN = (
    "\x1b]0;title\a\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\b\b\b",
    "\t=1",
    "a\tb",
    "nul\0byte",
    "\ufeffmark",
    "\u202egpj.exe\u202c \u2066x\u2069 \u200f",
    "zero\u200bwidth",
    "\x7f\xad\U000e0041",
)
"""With characters that do not show as themselves."""
NAMES = (*ORDERS, *BREAKS, *UNSEEN)
