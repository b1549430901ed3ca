"""Which endpoint of a panel helps which: errors of graphs left out, with and without siblings."""

from __future__ import annotations

import numpy as np

from treelens.gp.panel_model import FittedPanel
from treelens.gp.panel_posterior import ExactPanel
from treelens.patterns.histograms import replicate_numbers

_FEWEST_BOTH = 10  # graphs with both endpoints


def errors_taken_off(model: FittedPanel, n_jobs: int = 1) -> np.ndarray | None:
    """Return by how much a measured sibling lowers the squared error of an endpoint.

    Each training graph is left out with all of its cells. Of those with both endpoints, entry
    ``[t, s]`` compares the squared errors of ``t`` when ``s`` of the same graph is measured with
    those when nothing is: 0.4 means that 40 % are taken off. The joint process alone says it, on
    the scales that are learned.

    Returns
    -------
    ndarray, shape (n_endpoints, n_endpoints), or None
        NaN on the diagonal and where too few graphs have both; None through landmarks.
    """
    process = model.completed(n_jobs).joint
    cells = model.cells(process)
    posterior = process.posterior(cells)
    if not isinstance(posterior, ExactPanel):
        return None
    copies = replicate_numbers(model.training_graphs)
    groups = cells.graphs if copies is None else copies[cells.graphs]
    shape = (cells.n_endpoints, cells.n_endpoints)
    before = np.zeros(shape)
    after = np.zeros(shape)
    counts = np.zeros(shape)
    known = model.measured[:, process.columns]  # a limit is nothing to compare with
    for block in posterior.left_out_blocks(groups, n_jobs):
        members = block.members
        off = posterior.given.values[members] - block.mean
        rates = block.covariance / np.diagonal(block.covariance)
        exact = np.flatnonzero(~np.isnan(known[cells.graphs[members], cells.endpoints[members]]))
        off = off[exact]
        rates = rates[np.ix_(exact, exact)]
        ends = cells.endpoints[members][exact]
        pairs = np.ix_(ends, ends)
        np.add.at(before, pairs, np.broadcast_to(off[:, None] ** 2, rates.shape))
        np.add.at(after, pairs, (off[:, None] - rates * off) ** 2)
        np.add.at(counts, pairs, 1.0)
    np.fill_diagonal(counts, 0.0)
    enough = (counts >= _FEWEST_BOTH) & (before > 0)
    return np.where(enough, 1.0 - after / np.where(enough, before, 1.0), np.nan)
