"""Causes of a slow or idle training run, decided from evidence and never from a guess."""
