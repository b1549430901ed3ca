"""Which candidates of a pool to measure next."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import is_regressor

from treelens.decisions.acquisition import STRATEGIES, Aim, Batch, shortlisted_batch
from treelens.decisions.where import SHORT_NAMES, column_of_cells, rows_where
from treelens.estimators.gaussian_process import GaussianProcessEstimator
from treelens.estimators.prediction_table import prediction_table
from treelens.gp.covariates import columns_of
from treelens.graphs.collection import GraphCollection
from treelens.graphs.descriptors import descriptor_names, rdkit_descriptors
from treelens.graphs.errors import check_choice
from treelens.graphs.molecule_table import MoleculeTable
from treelens.kernels.fingerprints import molecules_behind
from treelens.models.predictions import Predictions
from treelens.models.training import known_graphs, smiles_of
from treelens.patterns.features import RefinedGraphs

LARGEST_SHORTLIST = 3000  # candidates whose covariance is computed: 72 MB a matrix


def suggest(
    model: Any,
    pool: Any,
    n: int = 24,
    strategy: str = "expected_improvement",
    maximize: bool = True,
    *,
    where: str | None = None,
    wanted: Any = None,
    exploration: float = 1.0,
    n_best: int | None = None,
    random_state: int | None = 0,
) -> pd.DataFrame:
    """Choose the candidates of a pool to measure next, as one batch.

    Parameters
    ----------
    model : GraphRegressor or GraphClassifier
        Fitted to what has been measured so far.
    pool : MoleculeTable, graphs or sequence of SMILES
        The candidates, up to some 100,000. Those that the model was fitted to are left out, and of
        equal ones all but the first, with a warning that counts them.
    n : int, default=24
        How many to choose.
    strategy : str, default="expected_improvement"
        ``"expected_improvement"``: the expected improvement of the ``n_best`` best values measured
        so far; ``"ucb"``: mean plus ``exploration`` standard deviations; ``"thompson"``: the
        largest value of a joint sample, one sample for each place in the batch; ``"greedy"``: the
        largest means; ``"uncertainty"``: the largest standard deviations, to learn most about the
        pool (of classes: nearest to the boundary). But for greedy, the batch is chosen jointly:
        each choice reduces the variances of all others as its measurement would, so that a batch
        does not consist of near copies.
    maximize : bool, default=True
        Whether large values are wanted, or small ones.
    where : str, optional
        A condition on candidates, ``"MW < 500 and logP <= 5"``: names are columns of the table or
        descriptors of RDKit (also ``MW``, ``logP``, ``HBD``, ``HBA``, ``RotB``, ``rings``).
    wanted : class, optional
        With a classifier, the class that is looked for: by default the second of two (the first
        with ``maximize=False``). A batch is chosen by decision values; the value to improve on is
        the boundary.
    exploration : float, default=1.0
        Standard deviations that ``"ucb"`` adds.
    n_best : int, optional
        Of ``"expected_improvement"``: how many good candidates are looked for. A new value improves
        the best ``n_best`` by what it exceeds the last of them. By default ``n``; 1 is the usual
        expected improvement, which looks for one best candidate.
    random_state : int or None, default=0
        Of joint samples.

    Returns
    -------
    DataFrame
        One row per choice, the first choice first: ``index``, the position in the pool (of a
        :class:`MoleculeTable` the row of the table, from 0); ``name`` and ``smiles`` where known;
        the columns of ``predict_table``; of numbers ``probability_better``, that a measurement
        beats the best one so far; of the nearest measured graph ``nearest_name``,
        ``nearest_smiles``, ``nearest_value`` and, where some values are limits, ``nearest_limit``;
        ``score``, what it was chosen by: on the learned scale, with the sign changed where small
        values are wanted. ``attrs["n_candidates"]`` is how many met the condition,
        ``attrs["wanted"]`` the class that was looked for.

    Examples
    --------
    >>> import treelens as tl
    >>> alcohols = ["C" * n + "O" for n in range(1, 10)]
    >>> model = tl.GraphRegressor(depth=1).fit(alcohols, [float(n) for n in range(1, 10)])
    >>> found = tl.suggest(model, ["CCCCN", "C" * 12 + "O", "CC(C)CO"], n=1)
    >>> found["index"].tolist()
    [1]
    """
    check_choice("strategy", strategy, STRATEGIES)
    if not isinstance(model, GaussianProcessEstimator):
        raise ValueError("suggest needs a Gaussian process: a GraphRegressor or GraphClassifier.")
    for name, number in (("n", n), ("n_best", 1 if n_best is None else n_best)):
        if not isinstance(number, Integral) or number < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {number!r}.")
    if wanted is not None and is_regressor(model):
        raise ValueError(f"wanted={wanted!r} names a class, and this model predicts numbers.")
    graphs = model._new_graphs(pool.graphs if isinstance(pool, MoleculeTable) else pool)
    kept = np.arange(len(graphs))
    if where is not None:
        kept = np.flatnonzero(rows_where(where, lambda name: _column(pool, graphs, name)))
        if not len(kept):
            raise ValueError(f"No candidate of {len(graphs)} meets the condition {where!r}.")
        graphs = graphs[kept]
    if model.covariates_:  # descriptors are computed once
        graphs = graphs.with_data(columns_of(graphs, model.covariates_))
    found = model.model_.decide(graphs, variance=True, n_jobs=model._n_jobs())
    fresh = _new_candidates(model, graphs, found.graphs)
    if len(fresh) < n:
        warnings.warn(f"Only {len(fresh)} candidates are left: all of them are returned.")
    aim = Aim(strategy, np.zeros(n if n_best is None else n_best), exploration)
    rng, n = np.random.default_rng(random_state), min(n, len(fresh))
    batch = _chosen(model, graphs, found, fresh, n, aim, maximize, wanted, rng)
    index = kept[batch.positions]
    if isinstance(pool, MoleculeTable):
        index = pool.rows[index]
    table = _described(model, graphs[batch.positions], index, batch, maximize)
    looked_for, classes = None, getattr(model, "classes_", None)
    if classes is not None and strategy != "uncertainty":
        looked_for = str(classes[wanted_code(model, wanted, maximize)])
    table.attrs = {"n_candidates": len(graphs), "wanted": looked_for}
    return table


# --- the pool -------------------------------------------------------------------------------------


def _column(pool: Any, graphs: GraphCollection, name: str) -> np.ndarray | None:
    """A column of the pool's table, else a descriptor of its molecules."""
    table = pool.table if isinstance(pool, MoleculeTable) else None
    if table is not None and name in table.columns:
        cells = table.column(name, "where")
        return column_of_cells([cells[row] for row in pool.rows.tolist()])
    if name in graphs.graph_data:
        return np.asarray(graphs.graph_data[name])
    known = SHORT_NAMES.get(name, name)
    if known not in descriptor_names():
        return None
    return rdkit_descriptors(molecules_behind(graphs), [known])[:, 0]


def _new_candidates(model: Any, graphs: GraphCollection, seen: RefinedGraphs) -> np.ndarray:
    """Positions of graphs that are not in the training data and repeat no other."""
    measured, repeated = known_graphs(model.model_, graphs, seen)
    if measured.all():
        raise ValueError("No candidate is left: the model was fitted to all of them.")
    notes = {
        "already in the training data": measured.sum(),
        "repeats of others": (repeated & ~measured).sum(),
    }
    for what, count in notes.items():
        if count:
            warnings.warn(f"{count} of {len(graphs)} candidates left out: {what}.")
    return np.flatnonzero(~measured & ~repeated)


# --- the batch ------------------------------------------------------------------------------------


def _chosen(
    model: Any, graphs: GraphCollection, found: Predictions, fresh: np.ndarray, n: int, aim: Aim,
    maximize: bool, wanted: Any, rng: np.random.Generator,
) -> Batch:  # fmt: skip
    """The batch, by values or decision values with the sign that makes large ones wanted."""
    assert found.variance is not None
    if is_regressor(model):
        column, sign = 0, 1.0 if maximize else -1.0
        aim = aim._replace(best=np.sort(sign * _likely_values(model))[-len(aim.best) :])
    else:
        column, sign = decision_column(model, wanted_code(model, wanted, maximize))
        aim = aim._replace(best=np.zeros(1), near=True)

    def joint(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = model.model_.joint(graphs[fresh[positions]], model._n_jobs())
        return sign * mean[:, column], covariance

    mean, variance = sign * found.mean[fresh, column], found.variance[fresh] - model.noise_
    batch = shortlisted_batch(
        mean, np.maximum(variance, 0.0), joint, model.noise_, n, aim, rng, LARGEST_SHORTLIST
    )
    return batch._replace(positions=fresh[batch.positions])


def _likely_values(model: Any) -> np.ndarray:
    """Measured values; of limits what the other graphs predict, at least as far as the limit."""
    values, limits = model.train_values_, model.train_limits_
    if limits is None:
        return values
    predicted = limits * np.maximum(limits * model.loo_.predictions, limits * values)
    return np.where(limits == 0, values, predicted)


def decision_column(model: Any, code: int) -> tuple[int, float]:
    """The column of decision values that is about a class, and its sign."""
    return (code, 1.0) if len(model.classes_) > 2 else (0, 1.0 if code else -1.0)


def wanted_code(model: Any, wanted: Any, maximize: bool = True) -> int:
    """The position of the class that is looked for."""
    classes = model.classes_.tolist()
    if wanted is None and len(classes) == 2:
        return int(maximize)
    found = [k for k, each in enumerate(classes) if each == wanted or str(each) == str(wanted)]
    if not found:
        raise ValueError(
            f"wanted={wanted}: name the class to look for, one of {', '.join(map(str, classes))}."
        )
    return found[0]


def _described(
    model: Any, graphs: GraphCollection, index: np.ndarray, batch: Batch, maximize: bool
) -> pd.DataFrame:
    """The table of a batch."""
    known = {"index": index, "name": graphs.names, "smiles": smiles_of(graphs)}
    left = pd.DataFrame({name: x for name, x in known.items() if x is not None})
    table = prediction_table(model, graphs).reset_index(drop=True).drop(columns="nearest")
    if is_regressor(model):
        mean, std = model.predict(graphs, return_std=True, learned_scale=True)
        sign = 1.0 if maximize else -1.0
        best = (sign * _likely_values(model)).max()
        table.insert(4, "probability_better", ndtr((sign * mean - best) / std))
    near = model.kneighbors(graphs, 1).drop(columns=["graph", "neighbor", "similarity"])
    table = pd.concat([left, table, near.add_prefix("nearest_")], axis=1)
    return table.assign(score=batch.scores)
