"""Bytes of a run on a device: what lives when, what the allocator reserves, who holds it."""
