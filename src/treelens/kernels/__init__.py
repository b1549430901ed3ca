"""Kernels as pure functions of pattern histograms."""
