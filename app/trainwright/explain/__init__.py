"""Values that open up to where they come from."""

from trainwright.explain.quantity import Interval, Kind, Quantity, Unit, total

__all__ = ["Interval", "Kind", "Quantity", "Unit", "total"]
