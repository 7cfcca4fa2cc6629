"""What runs the steps: plain torch."""

from shares import Shares


class Engine(Shares):
    """Shares of the weights, with nothing between them and torch."""
