"""Decisions: which compounds to measure next, and which changes of a molecule would help."""
