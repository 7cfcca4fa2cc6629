"""Files that run: one module a target."""
