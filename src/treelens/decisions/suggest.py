"""Which candidates of a pool to measure next.

A batch is chosen one candidate after the other. Whatever the measurement of a candidate will be, it
reduces the variances of all others by an amount that the covariance gives exactly; the means are
left as they are, as if the candidate came out as predicted (the "kriging believer" of Ginsbourger
et al. 2010; for upper confidence bounds the batches of Desautels et al. 2014). So a near copy of a
chosen candidate has little uncertainty left, and loses its place to something new.

Of several endpoints candidates have a probability to meet a profile, and no covariance. There the
similarity of their patterns stands for the covariance, in the same rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import is_regressor

from treelens.array_checks import LARGEST
from treelens.chem.descriptors import descriptor_names, rdkit_descriptors
from treelens.chem.measured_cells import measured_cells
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.parsing import molecules_behind
from treelens.decisions.conditions import SHORT_NAMES, column_of_cells, rows_where
from treelens.decisions.profile import profile_rows
from treelens.errors import (
    check_choice,
    check_number,
    check_truth,
    check_whole,
    first_few,
)
from treelens.estimators.base import FittedEstimator
from treelens.estimators.gaussian_process import GaussianProcessEstimator
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.estimators.prediction_table import prediction_table
from treelens.estimators.profile import IN_PROFILE, Profile
from treelens.gp.views import columns_of
from treelens.graphs.collection import GraphCollection
from treelens.kernels.weighted import similarities
from treelens.models.fitted import check_one_endpoint
from treelens.models.predictions import known_graphs, smiles_of
from treelens.parallel import progress_ticks
from treelens.patterns.forest import SeenGraphs
from treelens.targets import positive_code

_IN_PROFILE = ("expected_improvement", "greedy")  # strategies
STRATEGIES = ("expected_improvement", "thompson", "ucb", "greedy", "uncertainty")
_LEAST = 1e-12  # relative to the largest variance
_JITTER = 1e-8
LARGEST_SHORTLIST = 3000  # candidates whose covariance is computed: 72 MB a matrix


@progress_ticks(None, "Choosing")
def suggest(
    model: FittedEstimator,
    pool: object,
    n: int = 24,
    strategy: str = "expected_improvement",
    maximize: bool = True,
    *,
    where: str | None = None,
    wanted: object = None,
    exploration: float = 1.0,
    n_best: int | None = None,
    random_state: int | None = 0,
    profile: Profile | Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Choose the candidates of a pool to measure next, as one batch.

    Parameters
    ----------
    model : GraphRegressor, GraphClassifier or GraphPanel
        Fitted to what has been measured so far; of several endpoints with a ``profile``.
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
        With a classifier, the class that is looked for: by default the second of two, or the
        first if the second negates it, as "inactive" does (with ``maximize=False`` the other). A
        batch is chosen by decision values; the value to improve on is the boundary.
    exploration : float, default=1.0
        Standard deviations that ``"ucb"`` adds, 0 or more.
    n_best : int, optional
        Of ``"expected_improvement"``: how many good candidates are looked for. A new value improves
        the best ``n_best`` by what it exceeds the last of them. By default ``n``; 1 is the usual
        expected improvement, which looks for one best candidate.
    random_state : int or None, default=0
        Of joint samples.
    profile : Profile or dict, optional
        What is wanted of the endpoints, in place of ``maximize`` and ``wanted``. The score is the
        probability that all conditions hold; with ``"expected_improvement"`` times the share of
        variance that the earlier choices leave, where the Tanimoto similarity of learned patterns
        is the covariance, so that near copies come late; with ``"greedy"`` by itself. What a
        :class:`MoleculeTable` has of the endpoints counts as known.

    Returns
    -------
    DataFrame
        One row per choice, the first choice first: ``index``, the position in the pool (of a
        :class:`MoleculeTable` the row of the table, from 0); ``name`` and ``smiles`` where known;
        the columns of ``predict_table``; of numbers ``probability_better``, that a measurement
        beats the best one so far; of the nearest measured graph ``nearest_name``,
        ``nearest_smiles``, ``nearest_value`` and, where some values are limits, ``nearest_limit``;
        ``score``, what it was chosen by: on the learned scale, with the sign changed where small
        values are wanted. With a profile: the columns of :func:`profile_table`, ``nearest_name``
        and ``score``. ``attrs["n_candidates"]`` is how many met the condition,
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
    check_whole("n", n, 1)
    check_whole("n_best", 1 if n_best is None else n_best, 1)
    check_whole("random_state", 0 if random_state is None else random_state, 0)
    check_number("exploration", exploration, 0.0, LARGEST)
    if not isinstance(where, (str, type(None))):
        raise ValueError(f"where must be a condition in a string; got {where!r}.")
    if profile is not None:
        if wanted is not None or not maximize:
            raise ValueError(
                "The profile says what is wanted: leave wanted and maximize (--minimize) out."
            )
        return _suggested_in_profile(model, pool, n, strategy, where, Profile.of(profile))
    if isinstance(model, PanelEstimator) and len(model.endpoints_) > 1:
        raise ValueError(
            f"The model has {len(model.endpoints_)} endpoints ({first_few(model.endpoints_)}): say "
            "what is wanted of them, of one or of several, with profile= (--profile FILE), such as "
            f'{{"{model.endpoints_[0]}": "> 1"}}.'
        )
    code, column, sign = direction(model, wanted, maximize)
    graphs, kept = _candidates(model, pool, where)
    if model.covariates_:  # descriptors are computed once
        graphs = graphs.with_data(columns_of(graphs, model.covariates_))
    best = np.zeros(1)  # the boundary of classes
    if code is None:
        best = np.sort(sign * _likely_values(model))[-(n_best or n) :]
    aim = Aim(strategy, best, exploration, near=code is not None)
    batch = _chosen(model, graphs, n, aim, column, sign, np.random.default_rng(random_state))
    index = _rows_of(pool, kept[batch.positions])
    table = _described(model, graphs[batch.positions], index, sign, best[-1])
    classes = None if strategy == "uncertainty" else model.model_.classes
    looked_for = None if classes is None else str(classes[code])
    table.attrs = {"n_candidates": len(graphs), "wanted": looked_for}
    return table.assign(score=batch.scores)


def _candidates(
    model: FittedEstimator, pool: object, where: str | None
) -> tuple[GraphCollection, np.ndarray]:
    """Return the candidates that meet the condition, and their positions in the pool."""
    graphs = model._new_graphs(pool.graphs if isinstance(pool, MoleculeTable) else pool)
    if where is None:
        return graphs, np.arange(len(graphs))
    kept = np.flatnonzero(rows_where(where, lambda name: _column(pool, graphs, name)))
    if not len(kept):
        raise ValueError(f"No candidate of {len(graphs)} meets the condition {where!r}.")
    return graphs[kept], kept


def _rows_of(pool: object, positions: np.ndarray) -> np.ndarray:
    """Return what positions in the pool are called by: of a table its rows."""
    return np.asarray(pool.rows[positions]) if isinstance(pool, MoleculeTable) else positions


def _suggested_in_profile(
    model: FittedEstimator,
    pool: object,
    n: int,
    strategy: str,
    where: str | None,
    profile: Profile,
) -> pd.DataFrame:
    """Choose by the probability of a profile; near copies of chosen candidates come late."""
    check_choice("strategy of a profile", strategy, _IN_PROFILE)
    profile.check(model._fitted_model)
    graphs, kept = _candidates(model, pool, where)
    cells = _known_cells(model, pool)
    if cells is not None:
        cells = cells.iloc[kept]
        left = ~cells[list(profile.conditions)].notna().all(axis=1).to_numpy()
        if not left.any():
            raise ValueError("No candidate is left: all endpoints of the profile are measured.")
        if not left.all():
            n_done = len(left) - int(left.sum())
            warnings.warn(f"{n_done} of {len(left)} candidates left out: measured in the pool.")
        graphs, kept, cells = graphs[left], kept[left], cells[left]
    n_jobs = model._n_jobs()
    seen = model.model_.refine(graphs, n_jobs)
    fresh = _new_candidates(model, graphs, seen, n)
    given = None if cells is None else cells.iloc[fresh]
    table = profile_rows(model, graphs[fresh], profile, given)
    chances = table[IN_PROFILE].to_numpy()

    def joint(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        some = seen.patterns.features.select(fresh[positions])
        alike = similarities(some, some, n_jobs)
        np.fill_diagonal(alike, 1.0)  # unseen patterns of a graph are its own
        return chances[positions], alike

    aim = Aim("greedy" if strategy == "greedy" else "probability", np.zeros(1), near=True)
    rng = np.random.default_rng(0)  # of joint samples, which there are none of
    free, n = np.ones(len(fresh)), min(n, len(fresh))
    batch = shortlisted_batch(chances, free, joint, _LEAST, n, aim, rng, LARGEST_SHORTLIST)
    found = table.iloc[batch.positions].reset_index(drop=True)
    found["index"] = _rows_of(pool, kept[fresh[batch.positions]])
    called = model.model_.training.called
    found["nearest"] = [called(k) for k in found["nearest"].tolist()]
    found = found.rename(columns={"nearest": "nearest_name"})
    found.attrs = {"n_candidates": len(graphs), "wanted": None}
    return found.assign(score=batch.scores)


def _known_cells(model: Any, pool: object) -> pd.DataFrame | None:
    """What the table of a pool has of the endpoints of a model of several."""
    if not isinstance(pool, MoleculeTable) or not model.model_.endpoint_names:
        return None
    notes = list[str]()
    cells = measured_cells(model.model_, pool, notes)
    for note in notes:
        warnings.warn(note)
    return cells


def _column(pool: object, graphs: GraphCollection, name: str) -> np.ndarray | None:
    """A column of the pool's table, else a descriptor of its molecules."""
    if isinstance(pool, MoleculeTable) and pool.table is not None and name in pool.table.columns:
        cells = pool.table.column(name, "where")
        return column_of_cells([cells[row] for row in pool.rows.tolist()])
    if name in graphs.graph_data:
        return np.asarray(graphs.graph_data[name])
    known = SHORT_NAMES.get(name, name)
    if known not in descriptor_names():
        return None
    return rdkit_descriptors(molecules_behind(graphs), [known])[:, 0]


def _new_candidates(
    model: FittedEstimator, graphs: GraphCollection, seen: SeenGraphs, n: int
) -> np.ndarray:
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
    fresh = np.flatnonzero(~measured & ~repeated)
    if len(fresh) < n:
        warnings.warn(f"Only {len(fresh)} candidates are left: all of them are returned.")
    return fresh


def _chosen(
    model: Any,
    graphs: GraphCollection,
    n: int,
    aim: Aim,
    column: int,
    sign: float,
    rng: np.random.Generator,
) -> Batch:
    """The batch, by a column of decision values with the sign that makes large ones wanted."""
    found = model.model_.decide(graphs, variance=True, n_jobs=model._n_jobs())
    fresh = _new_candidates(model, graphs, found.graphs, n)

    def joint(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = model.model_.joint(graphs[fresh[positions]], model._n_jobs())
        return sign * mean[:, column], covariance

    mean = sign * found.mean[fresh, column]
    variance = np.maximum(found.variance[fresh] - model.noise_, 0.0)
    n = min(n, len(fresh))
    batch = shortlisted_batch(mean, variance, joint, model.noise_, n, aim, rng, LARGEST_SHORTLIST)
    return batch._replace(positions=fresh[batch.positions])


def _likely_values(model: Any) -> np.ndarray:
    """Measured values; of limits what the other graphs predict, at least as far as the limit.

    They are on the scale that was learned, as predictions of candidates are.
    """
    values, limits = model.model_.training.targets, model.train_limits_
    if limits is None:
        return values
    left_out = model.model_.held_out.predicted
    predicted = limits * np.maximum(limits * left_out, limits * values)
    return np.where(limits == 0, values, predicted)


def direction(
    model: FittedEstimator, wanted: object, maximize: bool
) -> tuple[int | None, int, float]:
    """The code of the class that is looked for; the column that is about it, and its sign."""
    check_truth("maximize", maximize)
    if isinstance(model, PanelEstimator):
        check_one_endpoint(model._fitted_model, "Proposing changes (advise)")
    if not isinstance(model, GaussianProcessEstimator):
        raise ValueError("The model must be a Gaussian process: GraphRegressor or GraphClassifier.")
    if is_regressor(model):
        if wanted is not None:
            raise ValueError(f"wanted={wanted!r} names a class, and this model predicts numbers.")
        return None, 0, 1.0 if maximize else -1.0
    if wanted is not None and not maximize:
        raise ValueError(
            f"wanted={wanted!r} names the class to look for: leave maximize=False (--minimize) out."
        )
    classes = getattr(model, "classes_", np.empty(0))
    if wanted is None and (code := positive_code(classes)) is not None:
        wanted = classes[code if maximize else 1 - code]
    found = [k for k, each in enumerate(classes) if each == wanted or str(each) == str(wanted)]
    if not found:
        names = ", ".join(map(str, classes))
        raise ValueError(f"wanted={wanted}: name the class to look for, one of {names}.")
    return (found[0], *((found[0], 1.0) if len(classes) > 2 else (0, 1.0 if found[0] else -1.0)))


def _described(
    model: Any,
    graphs: GraphCollection,
    index: np.ndarray,
    sign: float,
    best: float,
) -> pd.DataFrame:
    """The table of a batch."""
    known = {"index": index, "name": graphs.names, "smiles": smiles_of(graphs)}
    left = pd.DataFrame({name: x for name, x in known.items() if x is not None})
    table = prediction_table(model, graphs).reset_index(drop=True).drop(columns="nearest")
    if is_regressor(model):
        mean, std = model.predict(graphs, return_std=True, learned_scale=True)
        table.insert(4, "probability_better", ndtr((sign * mean - best) / std))
    near = model.kneighbors(graphs, 1).drop(columns=["graph", "neighbor", "similarity"])
    return pd.concat([left, table, near.add_prefix("nearest_")], axis=1)


# --- batches from a joint normal distribution -----------------------------------------------------


class Aim(NamedTuple):
    """What is wanted of candidates whose values are to be large.

    With ``near``, the value to improve on stays, as the boundary of two classes, and a strategy of
    uncertainty looks for values near it.
    """

    strategy: str
    best: np.ndarray  # to improve on: a new value joins them in the place of the smallest
    exploration: float = 1.0  # standard deviations that "ucb" adds to the mean
    near: bool = False


class Batch(NamedTuple):
    """Chosen candidates, in order, and the score that each was chosen by."""

    positions: np.ndarray
    scores: np.ndarray


def expected_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Return the expected amount by which normal variables exceed ``best``."""
    above = mean - best
    scaled = above / std
    density = np.exp(-0.5 * np.minimum(scaled**2, 1400.0)) / np.sqrt(2.0 * np.pi)
    return np.maximum(above * ndtr(scaled) + std * density, 0.0)


def score(mean: np.ndarray, variance: np.ndarray, aim: Aim) -> np.ndarray:
    """Return how much each candidate is wanted by itself; never more with a smaller variance."""
    std = np.sqrt(np.maximum(variance, _LEAST * max(float(variance.max(initial=0.0)), 1e-300)))
    if aim.strategy == "greedy":
        return mean
    if aim.strategy == "probability":  # whose covariance is a similarity
        return mean * variance
    if aim.strategy == "ucb":
        return mean + aim.exploration * std
    if aim.strategy == "uncertainty":
        return 1.96 * std - np.abs(mean - aim.best.min()) if aim.near else std
    return expected_improvement(mean, std, float(aim.best.min()))


def choose_batch(
    mean: np.ndarray,
    covariance: np.ndarray,
    noise: float,
    n: int,
    aim: Aim,
    rng: np.random.Generator,
) -> Batch:
    """Choose by means and covariance of noise-free values; ``noise`` is that of measurements."""
    chosen, scores = np.empty(n, dtype=np.int64), np.empty(n)
    if aim.strategy == "thompson":  # the largest value of each of n samples, without repetition
        for k, sample in enumerate(joint_samples(mean, covariance, n, rng)):
            sample[chosen[:k]] = -np.inf
            chosen[k] = sample.argmax()
            scores[k] = sample[chosen[k]]
        return Batch(chosen, scores)
    left = np.diagonal(covariance).copy()  # variances given the batch so far
    known = np.zeros((n, len(mean)))  # rows of a Cholesky factor of the batch
    free = np.ones(len(mean), dtype=bool)
    for k in range(n):
        wanted = np.where(free, score(mean, left, aim), -np.inf)
        pick = int(wanted.argmax())
        chosen[k], scores[k], free[pick] = pick, wanted[pick], False
        row = covariance[pick] - known[:k, pick] @ known[:k]
        known[k] = row / np.sqrt(max(left[pick], 0.0) + noise)
        left = np.maximum(left - known[k] ** 2, 0.0)
        if not aim.near:
            aim = aim._replace(best=np.sort([*aim.best, mean[pick]])[1:])
    return Batch(chosen, scores)


def joint_samples(
    mean: np.ndarray, covariance: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return samples of a joint normal distribution, shape (n, n_candidates)."""
    own = np.diagonal(covariance)
    jittered = covariance + np.diag(np.full(len(own), _JITTER * max(float(own.max()), 1e-300)))
    try:
        return rng.multivariate_normal(mean, jittered, n, "ignore", method="cholesky")
    except np.linalg.LinAlgError:  # rounding of a nearly singular matrix
        return rng.multivariate_normal(mean, jittered, n, "ignore", method="eigh")


def shortlisted_batch(
    mean: np.ndarray,
    variance: np.ndarray,
    joint: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    noise: float,
    n: int,
    aim: Aim,
    rng: np.random.Generator,
    largest: int,
) -> Batch:
    """Choose a batch with the covariance of a few candidates only.

    Scores only fall while a batch grows, so the batch is that of all candidates once its last score
    is no less than the best score beside the shortlist, which is doubled until then. Joint samples
    have no such bound: there the ``largest`` highest bounds of three deviations are shortlisted.
    """
    if aim.strategy == "greedy":
        order = np.argsort(-mean, kind="stable")[:n]
        return Batch(order, mean[order])
    sampled = aim.strategy == "thompson"
    wanted = score(mean, variance, Aim("ucb", aim.best, 3.0) if sampled else aim)
    order = np.argsort(-wanted, kind="stable")
    size = largest if sampled else min(max(10 * n, 300), largest)
    while True:
        some = order[:size]
        batch = choose_batch(*joint(some), noise, n, aim, rng)
        if sampled or size >= min(largest, len(order)) or batch.scores[-1] >= wanted[order[size]]:
            return Batch(some[batch.positions], batch.scores)
        size = min(2 * size, largest)
