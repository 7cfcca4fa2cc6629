"""Live readings of this computer: taken on one thread, kept in fixed memory, watched, logged."""
