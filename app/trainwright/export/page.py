"""A plan's answer as one HTML page, to share and to print; it asks nothing of any network.

The page uses tables and no scripts, so that mail programs and Qt's printing show it alike.
"""

import html
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from trainwright import __version__
from trainwright.explain import Quantity, figures
from trainwright.messages import Language, Message, keys
from trainwright.plan import file
from trainwright.plan.chosen import open_choices
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report, Verdict
from trainwright.plan.saying import about, memory_totals, settings_of, times, verdict
from trainwright.plan.schema import Plan
from trainwright.quoting import visible, visible_lines

Cell = str | Message | Quantity

_INK = {Verdict.FITS: "#1a7f55", Verdict.TIGHT: "#9a6700", Verdict.CANNOT_CHECK: "#57606a"}
_STOP = "#b3401f"
_TERMS = ("#2f6f9f", "#5b9a68", "#c08a3e", "#8a6fae", "#b3606a", "#5f8f97", "#8c8c8c")
_STYLE = """
body{font-family:system-ui,"Noto Sans KR","Malgun Gothic",sans-serif;color:#1f2328;
max-width:52em;margin:2em auto;padding:0 1em;line-height:1.45}
h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.1em;margin:1.6em 0 .4em}
table{border-collapse:collapse;width:100%}td,th{padding:3px 8px;text-align:left;
vertical-align:top;border-bottom:1px solid #d8dee4}td.n{text-align:right;white-space:nowrap}
pre{background:#f6f8fa;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}
.small{color:#57606a;font-size:.9em}@media print{body{margin:0}}
"""
_GUARD = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: its own style, and nothing else."""


def page(plan: Plan, facts: Facts, report: Report, language: Language, day: date) -> str:
    """Return the page in a language: verdict, figures, reasons, notes, sources and the plan."""
    written = _Page(language)
    title = html.escape(visible(plan.name))
    body = "\n".join(written.parts(plan, facts, report, day))
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_GUARD}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


class _Page:
    """Writes parts of a page in one language; every text from outside is escaped here."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def parts(self, plan: Plan, facts: Facts, report: Report, day: date) -> Iterator[str]:
        ink = _INK.get(report.verdict, _STOP)
        yield f"<h1>{self.text(plan.name)}</h1>"
        yield f"<p>{' · '.join(map(self.text, about(plan, facts)))}</p>"
        yield f'<p style="color:{ink}"><b>{self.text(verdict(report))}</b></p>'
        yield from self._memory(report)
        yield from self._time(report)
        yield from self._settings(plan, report)
        yield from self._lists(report)
        yield from self._origin(plan, facts, report, day)

    def _memory(self, report: Report) -> Iterator[str]:
        yield self.heading("cli.estimate.memory")
        terms = report.memory.terms
        yield _bar([term.value for term in terms])
        rows = [(_mark(place), term.name, *self.figures(term)) for place, term in enumerate(terms)]
        totals = [("", each.name, *self.figures(each)) for each in memory_totals(report)]
        yield self.table([*rows, *totals])

    def _time(self, report: Report) -> Iterator[str]:
        yield self.heading("cli.estimate.time")
        if report.time.refusal is not None:
            yield f"<p>{self.text(report.time.refusal)}</p>"
            return
        yield self.table([(each.name, *self.figures(each)) for each in times(report)])
        stages = [stage.seconds for stage in report.time.stages]
        yield self.table([(each.name, *self.figures(each)) for each in stages])
        yield f'<p class="small">{self.text(Message.of("cli.estimate.legend"))}</p>'

    def _settings(self, plan: Plan, report: Report) -> Iterator[str]:
        yield self.heading("cli.estimate.settings")
        reasons = {key: one.reason for key, one in open_choices(plan)}
        rows = settings_of(plan, report)
        yield self.table([(name, value, reasons.get(key, "")) for key, name, value in rows])

    def _lists(self, report: Report) -> Iterator[str]:
        found = [check.message for check in report.checks if check.verdict not in ("ok", "note")]
        for title, messages in (("checks", found), ("notes", report.notes)):
            if messages:
                yield self.heading(f"cli.estimate.{title}")
                yield self.bullets(messages)

    def _origin(self, plan: Plan, facts: Facts, report: Report, day: date) -> Iterator[str]:
        yield self.heading("export.page.sources")
        yield self.bullets(_sources(report))
        versions = {"trainwright": __version__, **facts.profile.versions}
        versions.pop("interpreter", None)  # a path of somebody's computer
        named = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield self.heading("export.page.plan")
        yield f'<p class="small">{day.isoformat()} · {self.text(named)}</p>'
        yield f"<pre>{html.escape(visible_lines(file.text_of(plan)))}</pre>"

    def text(self, cell: Cell) -> str:
        """Return a cell as markup that shows it and does nothing."""
        match cell:
            case Message():
                said = keys.said(cell, self._language)
            case Quantity():
                said = figures.figure(cell, self._language)
            case _:
                said = cell
        return html.escape(visible(said))

    def figures(self, quantity: Quantity) -> tuple[Quantity, str]:
        return quantity, figures.interval(quantity, self._language)

    def heading(self, id: str) -> str:
        return f"<h2>{self.text(Message.of(id))}</h2>"

    def bullets(self, cells: Iterable[Cell]) -> str:
        return "<ul>" + "".join(f"<li>{self.text(cell)}</li>" for cell in cells) + "</ul>"

    def table(self, rows: Iterable[Sequence[Cell]]) -> str:
        lines = ("<tr>" + "".join(map(self._cell, row)) + "</tr>" for row in rows)
        return "<table>" + "\n".join(lines) + "</table>"

    def _cell(self, cell: Cell) -> str:
        if isinstance(cell, _Markup):
            return f'<td width="14">{cell}</td>'
        number = ' class="n" align="right"' if isinstance(cell, Quantity) else ""
        return f"<td{number}>{self.text(cell)}</td>"


class _Markup(str):
    """Markup of our own, which is not escaped."""


def _bar(values: Sequence[float]) -> str:
    """Return shares of a whole as a bar of coloured cells, one at least a hundredth wide."""
    shares = [max(1, round(100 * value / (sum(values) or 1))) for value in values]
    cells = (f'<td width="{share}%" bgcolor="{_colour(place)}" style="border:0">&nbsp;</td>'
             for place, share in enumerate(shares))  # fmt: skip
    return f'<table width="100%" cellspacing="0"><tr>{"".join(cells)}</tr></table>'


def _mark(place: int) -> _Markup:
    return _Markup(f'<span style="color:{_colour(place)}">■</span>')


def _colour(place: int) -> str:
    return _TERMS[min(place, len(_TERMS) - 1)]


def _sources(report: Report) -> list[str]:
    """Return where figures and formulas come from, each once."""
    roots = (report.memory.derivation, *memory_totals(report), *times(report))
    found = (each.source for root in roots for _, each in root.walk())
    return list(dict.fromkeys(source for source in found if source))
