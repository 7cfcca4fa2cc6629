"""The answer as text, for a chat or an issue."""

from collections.abc import Iterator

from trainwright.plan.sentences import about, settings_of
from trainwright.quoting import markdown
from trainwright.ui import addresses
from trainwright.ui.figures import figure
from trainwright.ui.i18n import say, tr
from trainwright.ui.names import plan_name
from trainwright.ui.session import Session


def summary(session: Session) -> str:
    """Return verdict, figures and settings in a few lines of Markdown."""
    return "\n".join(_lines(session))


def _lines(session: Session) -> Iterator[str]:
    plan, facts, report = session.plan, session.facts, session.report
    if plan is None or facts is None or report is None:
        return
    yield f"**{markdown(plan_name(plan))}**: {tr(f'ui.verdict.{report.verdict.value}')}"
    yield " · ".join(markdown(say(each)) for each in about(plan, facts))
    yield ""
    memory, time = report.memory, report.time
    for quantity in (memory.device_used, memory.device_used_p95, memory.device_total, memory.free):
        yield f"- {markdown(say(quantity.name))}: {figure(quantity)}"
    for part in addresses.segments(report):
        yield f"  - {markdown(say(part.name))}: {figure(part)}"
    rates = (time.samples_per_second, time.tokens_per_second, time.step_seconds)
    for rate in (*rates, time.epoch_seconds, time.run_seconds):
        if rate is not None:
            yield f"- {markdown(say(rate.name))}: {figure(rate)}"
    named = (f"{say(name)} {say(value)}" for _, name, value in settings_of(plan, report))
    yield "- " + ", ".join(map(markdown, named))
