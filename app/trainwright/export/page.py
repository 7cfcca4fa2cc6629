"""A plan's answer as one HTML page, to share and to print; it asks nothing of any network.

The page uses tables and no scripts, so that mail programs and Qt's printing show it alike.
"""

import html
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from trainwright import __version__
from trainwright.explain import Quantity, Unit, figures
from trainwright.messages import Language, Message, keys
from trainwright.plan import file
from trainwright.plan.effective import open_choices
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import (
    about,
    bottleneck,
    memory_totals,
    pipeline_rows,
    scaling_rows,
    settings_of,
    times,
    unpredicted_notes,
    verdict,
)
from trainwright.plan.serving_rows import serving_rows
from trainwright.quoting import visible, visible_lines

Cell = str | Message | Quantity

_INK = {
    Verdict.FITS: "#1a7f55",
    Verdict.TIGHT: "#9a6700",
    Verdict.QUEUES: "#9a6700",
    Verdict.CANNOT_CHECK: "#57606a",
}
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
        if not report.runs and report.support is not None:
            yield f'<p style="color:{_STOP}">{self.text(report.support.because)}</p>'
        yield from self._memory(report)
        yield from self._time(report)
        yield from self._scaling(facts, report)
        yield from self._input(report)
        yield from self._serving(report)
        yield from self._settings(plan, report)
        yield from self._lists(report)
        yield from self._origin(plan, facts, report, day)

    def _memory(self, report: Report) -> Iterator[str]:
        yield self.heading("cli.estimate.memory")
        terms, language = report.memory.terms, self._language
        yield _bar([term.value for term in terms])
        whole = report.memory.allocated_peak.value or 1.0
        rows: list[Sequence[Cell]] = [
            (
                _Markup(f"{_mark(place)} {self.text(term.name)}"),
                term,
                figures.plain(term.value / whole, Unit.RATIO, language),
            )
            for place, term in enumerate(terms)
        ]
        totals = ((each.name, *self.figures(each)) for each in memory_totals(report))
        yield self.table([*rows, *totals])
        if report.stages:
            yield self.heading("cli.estimate.stages")
            yield self.table((stage.name, *self.figures(stage)) for stage in report.stages)

    def _time(self, report: Report) -> Iterator[str]:
        unfit = "-unfit" if report.verdict is Verdict.NO else ""
        yield self.heading(f"cli.estimate.time{unfit}")
        if report.time.refusal is not None:
            yield f"<p>{self.text(report.time.refusal)}</p>"
            return
        figures = [(each.name, *self.figures(each)) for each in times(report)]
        yield self.table(
            [*figures, (Message.of("cli.estimate.bottleneck"), bottleneck(report), "")]
        )
        yield "<br>"
        stages = [stage.seconds for stage in report.time.stages]
        yield self.table((each.name, *self.figures(each)) for each in stages)
        yield f'<p class="small">{self.text(Message.of("cli.estimate.legend"))}</p>'

    def _scaling(self, facts: Facts, report: Report) -> Iterator[str]:
        if facts.machine.gpu_count < 2 or not report.time.scaling:
            return
        yield self.heading("cli.estimate.scaling")
        names = ("gpus", "batch", "rate", "efficiency")
        heads: list[Cell] = [*(Message.of(f"cli.scaling.{name}") for name in names), "", ""]
        rows: list[Sequence[Cell]] = [
            [*row, figures.interval(row[-1], self._language), note]
            for row, note in scaling_rows(report)
        ]
        yield self.table([heads, *rows])

    def _input(self, report: Report) -> Iterator[str]:
        pipeline = report.time.pipeline
        if pipeline is None:
            return
        yield self.heading("cli.estimate.input")
        yield self.table(
            (name, *(self.figures(value) if isinstance(value, Quantity) else (value, "")))
            for name, value in pipeline_rows(pipeline)
        )
        if pipeline.remedies:
            yield self.heading("cli.estimate.remedies")
            yield self.bullets(message for _, message in pipeline.remedies)

    def _serving(self, report: Report) -> Iterator[str]:
        if report.serving is not None:
            yield self.heading("cli.estimate.serving")
            yield self.table(serving_rows(report.serving, report.time.serving))

    def _settings(self, plan: Plan, report: Report) -> Iterator[str]:
        yield self.heading("cli.estimate.settings")
        reasons = {key: one.reason for key, one in open_choices(plan)}
        rows = settings_of(plan, report)
        yield self.table(
            (self._setting(key, name), value, reasons.get(key, "")) for key, name, value in rows
        )

    def _lists(self, report: Report) -> Iterator[str]:
        found = [check for check in report.checks if check.verdict not in ("ok", "note")]
        if found:
            yield self.heading("cli.estimate.checks")
            yield self.table((each.title, each.message, each.remedy or "") for each in found)
        if notes := unpredicted_notes(report):
            yield self.heading("cli.estimate.notes")
            yield self.bullets(notes)

    def _origin(self, plan: Plan, facts: Facts, report: Report, day: date) -> Iterator[str]:
        yield self.heading("export.page.sources")
        sources = (figures.source(each, self._language) for each in _sources(report))
        yield self.bullets(dict.fromkeys(sources))
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

    def _setting(self, key: str, name: Cell) -> "_Markup":
        """Return what a setting is called, with its key in a plan file where that is another."""
        label, small = self.text(name), f' <span class="small">{self.text(key)}</span>'
        return _Markup(label + ("" if label == key else small))

    def bullets(self, cells: Iterable[Cell]) -> str:
        return "<ul>" + "".join(f"<li>{self.text(cell)}</li>" for cell in cells) + "</ul>"

    def table(self, rows: Iterable[Sequence[Cell]]) -> str:
        lines = ("<tr>" + "".join(map(self._cell, row)) + "</tr>" for row in rows)
        return '<table width="100%">' + "\n".join(lines) + "</table>"

    def _cell(self, cell: Cell) -> str:
        if isinstance(cell, _Markup):
            return f"<td>{cell}</td>"
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


def _mark(place: int) -> str:
    return f'<span style="color:{_colour(place)}">■</span>'


def _colour(place: int) -> str:
    return _TERMS[min(place, len(_TERMS) - 1)]


def _sources(report: Report) -> list[str]:
    """Return where figures and formulas come from, each once."""
    roots = (report.memory.derivation, *memory_totals(report), *times(report))
    found = (each.source for root in roots for _, each in root.walk())
    return list(dict.fromkeys(source for source in found if source))
