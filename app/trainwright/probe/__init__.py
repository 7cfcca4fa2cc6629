"""Readings of the computer that the program runs on."""
