"""What a US dollar costs in won: a dated value that the person sets, and nobody fetches."""

from datetime import date
from pathlib import Path
from typing import Any

import platformdirs

from trainwright.catalog.yaml_file import read_yaml
from trainwright.messages import Message, UserError
from trainwright.prices.own_prices import write
from trainwright.prices.price import Rate
from trainwright.yamltext import dump

_PAIR = "USDKRW"
PLAUSIBLE = (100.0, 100_000.0)
"""Won for a dollar; assumed, a tenth and seventy times what it was in 2026. What lies outside is
more likely a slip, such as the rate of one won in dollars."""


def path() -> Path:
    """Return the file, in the user's settings folder."""
    return Path(platformdirs.user_config_dir("trainwright", appauthor=False)) / "fx.yaml"


def load() -> tuple[Rate | None, Message | None]:
    """Return the rate, and what is wrong with its file; no file, no rate."""
    source = path()
    if not source.exists():
        return None, None
    try:
        return _rate(read_yaml(source)), None
    except UserError as error:
        return None, error.message
    except (KeyError, TypeError, ValueError):
        return None, Message.of("prices.bad-rate-file", file=str(source))


def _rate(data: Any) -> Rate:
    entry = data[_PAIR]
    rate = Rate(float(entry["rate"]), date.fromisoformat(str(entry["date"])))
    if not PLAUSIBLE[0] <= rate.krw_per_usd <= PLAUSIBLE[1]:
        raise ValueError(rate.krw_per_usd)
    return rate


def keep(rate: Rate, today: date) -> None:
    """Write the rate.

    Raises:
        UserError: it cannot be one, its day is to come, or the file cannot be written.
    """
    low, high = PLAUSIBLE
    if not low <= rate.krw_per_usd <= high:
        raise UserError.of("prices.odd-rate", rate=rate.krw_per_usd, low=low, high=high)
    if rate.observed > today:
        raise UserError.of("prices.rate-of-tomorrow", date=rate.observed.isoformat())
    entry = {"rate": rate.krw_per_usd, "date": rate.observed.isoformat()}
    write(path(), dump({_PAIR: entry}).encode())


def forget() -> None:
    """Remove the rate: nothing is converted any more.

    Raises:
        UserError: the file cannot be removed.
    """
    try:
        path().unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError.of("prices.unwritable", file=str(path()), reason=reason) from error
