"""The two entry points."""
