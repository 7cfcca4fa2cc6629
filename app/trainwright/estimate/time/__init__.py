"""Seconds of a step and of an answer: operators on a roofline, stages, and what they make."""
