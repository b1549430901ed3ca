"""A fitted Gaussian process given more graphs, or given the noise of each measurement.

With noise that is known of each graph, the variance of a target around the Gaussian process is
``known_i + learned``: the error of the measurement, and what patterns cannot explain. Weights of
patterns are learned with variances in these proportions, where the latter is taken to be a
twentieth of the variance of the targets; given the kernel, it then maximises the marginal
likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from treelens.gp.censoring import Conditioned, of_measurements, through_landmarks
from treelens.gp.fitting import FittedEvidence
from treelens.gp.landmarks import LandmarkFit
from treelens.gp.model import FittedGP
from treelens.gp.posterior import ExactPosterior, LeaveOneOut, Targets
from treelens.graphs.collection import GraphCollection
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import replicate_numbers, select_features
from treelens.patterns.histograms import PatternHistograms

_MOST = 1500  # graphs, a random sample, that the learned part of the noise is estimated from
_USUAL = 0.05  # of the variance of the targets, that patterns do not explain
_LEAST, _LARGEST = 1e-4, 2.0  # of it, relative to the variance of the targets


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
    ``training`` (but for its histograms) and ``targets`` are of all graphs, the new ones last.
    """
    posterior = model._full_posterior(n_jobs)
    if not isinstance(posterior, ExactPosterior):
        raise ValueError(
            "condition needs an exact posterior, and this model predicts through landmarks, which "
            "were chosen for its training graphs: fit again, with a larger exact_size if possible."
        )
    rows = model.kernel_rows(model.refine(graphs, n_jobs).features, n_jobs)
    weighted, colors = model.weighted.extended(graphs, n_jobs)
    more = weighted.forest.count(colors)
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
        new.level_offsets, new.level_depths, np.concatenate([old.n_nodes, new.n_nodes]),
        np.concatenate([old.unseen, new.unseen]), new.level_shares,
    )  # fmt: skip


def starting_weights(known: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Weights of graphs with these variances of noise, and a usual share that is not known."""
    return 1.0 / (max(_USUAL * float(np.var(targets)), np.finfo(float).tiny) + known)


def with_known_noise(
    fitted: FittedEvidence, known: np.ndarray, targets: Targets, n_jobs: int = 1
) -> tuple[FittedEvidence, Targets]:
    """Return the model with noise variances ``known + learned``, and targets of these weights.

    ``known`` (n,) is on the scale of the standardised targets. ``noise`` of the model is that of
    a measurement of median error, which is what predictions of new measurements include.
    """
    model, graphs = fitted.model, fitted.model.training_graphs
    measured = np.arange(len(known))
    if targets.limits is not None:
        measured = measured[targets.limits == 0]
    some = np.sort(np.random.default_rng(0).permutation(measured)[:_MOST])
    part = select_features(graphs, some)
    kernel = model.kernel.matrix(part, part, n_jobs)
    learned = most_likely_noise(kernel, known[some], targets.values[some], n_jobs)
    variances, typical = known + learned, learned + float(np.median(known))
    weights = typical / variances
    targets = replace(targets, weights=weights)
    if isinstance(model.posterior, ExactPosterior):
        among = model.kernel.matrix(graphs, graphs, n_jobs)
        found = Conditioned.fit(targets, among, typical, n_jobs)
        left_out = found.leave_one_out(n_jobs, replicate_numbers(graphs))
        used = weights * (found.measured / found.noise)
        model = replace(model, noise=typical, sample_weights=used, posterior=found.posterior)
    else:
        through = LandmarkFit(model.kernel, graphs, variances, targets.values, n_jobs)
        through = through_landmarks(through, model.basis_indices, targets)
        landmarks, left_out = through.through(model.basis_indices)
        left_out = of_measurements(left_out, through.noise, variances)
        model = replace(model, noise=typical, posterior=landmarks)
    return replace(fitted, model=model, left_out=left_out), targets


def most_likely_noise(
    kernel: np.ndarray, known: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> float:
    """Return the variance that, added to the known ones, makes the targets most likely."""

    def objective(log_noise: float) -> float:
        found = ExactPosterior.fit(kernel.copy(), known + np.exp(log_noise), targets, n_jobs)
        return -found.log_evidence(targets)

    bounds = (np.log(_LEAST), np.log(_LARGEST))
    return float(np.exp(minimize_scalar(objective, bounds=bounds, options={"xatol": 0.01}).x))
