"""Memory, time and verdicts from a profile and a machine."""
