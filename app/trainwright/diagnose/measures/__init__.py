"""Figures that rules look at, made of the evidence; None where a part of one is absent."""
