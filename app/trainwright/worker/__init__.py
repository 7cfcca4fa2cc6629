"""Child processes: start, JSON lines, progress, cancel, limits."""
