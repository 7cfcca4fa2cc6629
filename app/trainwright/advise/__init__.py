"""Search over the free settings, with reasons."""
