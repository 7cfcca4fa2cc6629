"""What a run costs: energy, the household's tier, a cloud's rate, years of use."""

from dataclasses import dataclass

from trainwright.prices import Currency

KRW_TIERS = ((200.0, 120.0), (200.0, 214.6), (float("inf"), 307.3))
"""(kWh a month, KRW/kWh) of KEPCO's residential low-voltage tariff since 2023-05-16, all months
but July and August."""
KRW_SURCHARGES = 9.0 + 5.0
"""KRW/kWh for climate and fuel; same tariff."""
KRW_TAXES = 1.127
"""10 % VAT and 2.7 % for the electricity fund, on all."""
USD_PER_KWH = 0.17
"""Assumed: about what US households pay; a person sets their own."""
HOUSEHOLD_KWH = 300.0
"""Of a month without the computer; assumed, a Korean household's usual use."""
MONTH_H = 730.0


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one training takes from the wall."""

    hours: float
    kwh: float
    energy: float
    """In ``currency``."""
    currency: Currency
    per_hour: float
    """Energy's price of one hour, on average."""


def run_cost(
    wall_watts: float,
    hours: float,
    currency: Currency,
    *,
    usd_per_kwh: float = USD_PER_KWH,
    household_kwh: float = HOUSEHOLD_KWH,
) -> RunCost:
    """Return what a run costs; in Korea at the tiers that it adds to the household's use."""
    kwh = wall_watts / 1000 * hours
    if currency == "USD":
        energy = kwh * usd_per_kwh
    else:
        months = max(hours / MONTH_H, 1.0)
        each = krw_bill(household_kwh + kwh / months) - krw_bill(household_kwh)
        energy = each * months
    return RunCost(hours, kwh, energy, currency, energy / hours if hours else 0.0)


def krw_bill(kwh: float) -> float:
    """Return KRW for so many kWh in a month, base fees left aside."""
    left, bill = kwh, 0.0
    for width, rate in KRW_TIERS:
        part = min(left, width)
        bill += part * (rate + KRW_SURCHARGES)
        left -= part
    return bill * KRW_TAXES


def break_even_hours(capital: float, cloud_per_hour: float, power_per_hour: float) -> float | None:
    """Return the hours of use after which buying is cheaper than renting; None: never."""
    saved = cloud_per_hour - power_per_hour
    return capital / saved if saved > 0 else None


def ownership(capital: float, power_per_hour: float, hours: float, resale: float = 0.0) -> float:
    """Return the total cost of so many hours of use, less what the parts are sold for."""
    return capital + power_per_hour * hours - resale
