"""Engines that serve a model: caches, packed weights, splits, and seconds of one pass."""
