"""Gaussian processes on graph kernels: marginal likelihood, posterior, landmarks."""
