"""A fitted Gaussian process given more graphs, under the same weights, scales and noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from treelens.gp.censoring import of_measurements
from treelens.gp.model import FittedGP
from treelens.gp.posterior import ExactPosterior, LeaveOneOut
from treelens.gp.targets import Targets
from treelens.graphs.collection import GraphCollection
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features, graph_keys
from treelens.patterns.histograms import PatternHistograms


def condition(
    model: FittedGP,
    graphs: GraphCollection,
    training: TrainingGraphs,
    targets: Targets,
    n_jobs: int = 1,
) -> tuple[FittedGP, LeaveOneOut]:
    """Return the model given more graphs, and leave-one-out predictions of all.

    Patterns that training never saw join the vocabulary with the weights that they inherit, which
    predictions give them already: the result is the exact posterior given old and new graphs.

    Parameters
    ----------
    model : FittedGP
        With an exact posterior.
    graphs : GraphCollection
        What to add.
    training : TrainingGraphs
        Of all graphs, the new ones last; their histograms are filled in here.
    targets : Targets
        Of all graphs.
    n_jobs : int
    """
    posterior = model._full_posterior(n_jobs)
    if not isinstance(posterior, ExactPosterior):
        raise ValueError(
            "condition needs an exact posterior, and this model predicts through landmarks, which "
            "were chosen for its training graphs: fit again, with a larger exact_size if possible."
        )
    rows = model.kernel_rows(model.refine(graphs, n_jobs).features, n_jobs)
    weighted, colors = model.weighted.extended(graphs, n_jobs)
    more = weighted.forest.count(colors, n_jobs)
    histograms = joined_histograms(model.basis, more)
    covariates = model.covariates
    if covariates is not None:
        encoded = covariates.table.encode(graphs)
        covariates = replace(covariates, training=np.vstack([covariates.training, encoded]))
    n, n_all = model.basis.n_graphs, histograms.n_graphs
    extended = replace(
        model, weighted=weighted, basis=histograms, basis_indices=np.arange(n_all),
        sample_weights=targets.weights, covariates=covariates,
        training=replace(training, histograms=histograms),
    )  # fmt: skip
    new = model._beside(weighted.weighed(more), graphs)
    noise = model.noise / targets.weights[n:]
    among = extended.kernel.matrix(new, new, n_jobs)
    posterior = posterior.extended(rows, among, noise, targets.values, n_jobs)
    left_out = posterior.leave_one_out(
        targets.values, n_jobs, replicate_numbers(extended.basis_graphs)
    )
    if targets.limits is not None:
        used = model.noise / targets.weights
        left_out = of_measurements(left_out, used, np.where(targets.limits == 0, used, model.noise))
    return replace(extended, posterior=posterior), left_out


def replicate_numbers(graphs: Features) -> np.ndarray | None:
    """Return a number per graph that replicates share; None where no graph stands twice."""
    numbers: dict[bytes, int] = {}
    labels = np.array([numbers.setdefault(key, len(numbers)) for key in graph_keys(graphs)])
    return None if len(numbers) == len(labels) else labels


def joined_histograms(old: PatternHistograms, new: PatternHistograms) -> PatternHistograms:
    """Return counts of two sets of graphs, where ``new`` has more patterns at each level's end."""
    shift = new.level_offsets[:-1] - old.level_offsets[:-1]
    columns = np.arange(old.n_patterns) + np.repeat(shift, np.diff(old.level_offsets))
    table = old.to_sparse(dtype=np.int32)
    wide = sparse.csr_array(
        (table.data, columns[table.indices], table.indptr), shape=(old.n_graphs, new.n_patterns)
    )
    lists = sparse.vstack([wide, new.to_sparse(dtype=np.int32)]).tocsc()
    lists.sort_indices()
    return PatternHistograms(
        lists.indptr.astype(np.int64), lists.indices.astype(np.int32), lists.data,
        new.level_offsets, new.first_depth, np.concatenate([old.n_nodes, new.n_nodes]),
        np.concatenate([old.unseen, new.unseen]), new.level_depths,
    )  # fmt: skip
