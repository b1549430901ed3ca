"""Contributions of patterns, nodes and training graphs to predictions, and their drawings."""
