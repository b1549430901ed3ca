"""Splits, metrics and paired tests."""
