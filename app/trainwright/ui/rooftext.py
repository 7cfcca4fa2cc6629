"""An operator on the roofline, in words."""

from trainwright.estimate.time.roofpoints import RoofPoint, Roofs
from trainwright.messages.units import duration, number, percent
from trainwright.ui.figures import three
from trainwright.ui.i18n import language, tr


def point_name(point: RoofPoint) -> str:
    """Return an operator's name and stage."""
    return f"{point.short_name} · {tr(f'ui.stage.{point.stage}')}"


def point_text(roofs: Roofs, point: RoofPoint) -> str:
    """Return what an operator reaches, and its share of the time."""
    peak = roofs.peaks.get(point.dtype)
    if point.bound == "launch":
        reached = tr("ui.chart.roofline.at-floor")
    elif point.bound == "compute" and peak is not None:
        reached = tr(
            "ui.chart.roofline.of-peak",
            rate=three(point.rate / 1e12),
            share=percent(point.rate / peak.fact.value),
        )
    else:
        reached = tr(
            "ui.chart.roofline.of-bandwidth",
            rate=number(round(point.traffic / 1e9)),
            share=percent(point.traffic / roofs.bandwidth.value),
        )
    taken = tr(
        "ui.chart.roofline.point",
        share=percent(point.seconds / roofs.seconds),
        time=duration(point.seconds, language()),
    )
    return f"{reached}; {taken}"
