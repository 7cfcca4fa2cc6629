"""Lists of prices that people have, ours, PCPartPicker's and Danawa's: read, matched, previewed."""

from trainwright.prices.imports import parse, waiting
from trainwright.prices.imports.matching import Verdict
from trainwright.prices.imports.preview import Preview, Previewed, State, preview, preview_rows
from trainwright.prices.imports.reading import Listing, read, read_file
from trainwright.prices.imports.rows import Refused, Row

__all__ = [
    "Listing",
    "Preview",
    "Previewed",
    "Refused",
    "Row",
    "State",
    "Verdict",
    "parse",
    "preview",
    "preview_rows",
    "read",
    "read_file",
    "waiting",
]
