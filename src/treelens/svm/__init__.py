"""Support vector machines on graph kernels: the solver, the search over settings, the fit."""
