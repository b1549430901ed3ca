"""Patterns: Weisfeiler-Lehman colours, the vocabulary that names them, and their histograms."""
