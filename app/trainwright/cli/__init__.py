"""The command line: one sub-command a module."""
