"""Which candidates of a pool to measure next.

A batch is chosen one candidate after the other. Whatever the measurement of a candidate will be, it
reduces the variances of all others by an amount that the covariance gives exactly; the means are
left as they are, as if the candidate came out as predicted (the "kriging believer" of Ginsbourger
et al. 2010; for upper confidence bounds the batches of Desautels et al. 2014). So a near copy of a
chosen candidate has little uncertainty left, and loses its place to something new.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import is_regressor

from treelens.array_checks import LARGEST
from treelens.chem.descriptors import descriptor_names, rdkit_descriptors
from treelens.chem.ecfp import molecules_behind
from treelens.chem.molecule_table import MoleculeTable
from treelens.errors import (
    GraphDataError,
    check_choice,
    check_number,
    check_truth,
    check_whole,
)
from treelens.estimators.gaussian_process import GaussianProcessEstimator
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.estimators.prediction_table import prediction_table
from treelens.gp.covariates import columns_of
from treelens.graphs.collection import GraphCollection
from treelens.models.fitted import check_one_endpoint
from treelens.models.predictions import known_graphs, smiles_of
from treelens.patterns.forest import SeenGraphs
from treelens.targets import positive_code

STRATEGIES = ("expected_improvement", "thompson", "ucb", "greedy", "uncertainty")
_LEAST = 1e-12  # relative to the largest variance
_JITTER = 1e-8
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
    check_whole("n", n, 1)
    check_whole("n_best", 1 if n_best is None else n_best, 1)
    check_whole("random_state", 0 if random_state is None else random_state, 0)
    check_number("exploration", exploration, 0.0, LARGEST)
    if not isinstance(where, (str, type(None))):
        raise ValueError(f"where must be a condition in a string; got {where!r}.")
    code, column, sign = direction(model, wanted, maximize)
    graphs = model._new_graphs(pool.graphs if isinstance(pool, MoleculeTable) else pool)
    kept = np.arange(len(graphs))
    if where is not None:
        kept = np.flatnonzero(rows_where(where, lambda name: _column(pool, graphs, name)))
        if not len(kept):
            raise ValueError(f"No candidate of {len(graphs)} meets the condition {where!r}.")
        graphs = graphs[kept]
    if model.covariates_:  # descriptors are computed once
        graphs = graphs.with_data(columns_of(graphs, model.covariates_))
    best = np.zeros(1)  # the boundary of classes
    if code is None:
        best = np.sort(sign * _likely_values(model))[-(n_best or n) :]
    aim = Aim(strategy, best, exploration, near=code is not None)
    batch = _chosen(model, graphs, n, aim, column, sign, np.random.default_rng(random_state))
    index = kept[batch.positions]
    if isinstance(pool, MoleculeTable):
        index = pool.rows[index]
    table = _described(model, graphs[batch.positions], index, sign, best[-1])
    named = code is not None and strategy != "uncertainty"
    looked_for = str(model.classes_[code]) if named else None
    table.attrs = {"n_candidates": len(graphs), "wanted": looked_for}
    return table.assign(score=batch.scores)


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


def _new_candidates(model: Any, graphs: GraphCollection, seen: SeenGraphs) -> np.ndarray:
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
    fresh = _new_candidates(model, graphs, found.graphs)
    if len(fresh) < n:
        warnings.warn(f"Only {len(fresh)} candidates are left: all of them are returned.")

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


def direction(model: Any, wanted: Any, maximize: bool) -> tuple[int | None, int, float]:
    """The code of the class that is looked for; the column that is about it, and its sign."""
    check_truth("maximize", maximize)
    if isinstance(model, PanelEstimator):
        check_one_endpoint(model._fitted_model, "Choosing what to measure, or to change,")
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
    model: Any, graphs: GraphCollection, index: np.ndarray, sign: float, best: float
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


# --- conditions on candidates ---------------------------------------------------------------------


# Names that chemists use, and RDKit's.
SHORT_NAMES = {
    "MW": "MolWt",
    "logP": "MolLogP",
    "clogP": "MolLogP",
    "HBD": "NumHDonors",
    "HBA": "NumHAcceptors",
    "RotB": "NumRotatableBonds",
    "rings": "RingCount",
    "heavy_atoms": "HeavyAtomCount",
}
_OPERATORS: dict[type, Any] = {
    ast.And: operator.and_,
    ast.Or: operator.or_,
    ast.Not: operator.invert,
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_QUOTED = re.compile(r"`([^`]+)`")
_LONGEST = 1000  # characters: deeper nesting would exhaust the parser


def rows_where(condition: str, column: Callable[[str], np.ndarray | None]) -> np.ndarray:
    """Return which rows meet a condition, shape (n_rows,).

    Rows where it cannot be computed, as a number is missing or divided by 0, do not meet it: a
    warning counts them. ``column`` returns the numbers or texts of a column, or None where there is
    none of this name. Backticks stand around a name with blanks in it.
    """
    text, quoted = _as_python(condition)

    def given(part: str) -> str:
        """Return a part of the text as it was in the condition."""
        return reduce(lambda x, name: x.replace(name, f"`{quoted[name]}`"), quoted, part)

    def computed(node: Any) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            return given(node.value) if isinstance(node.value, str) else node.value
        if isinstance(node, ast.Name):
            name = quoted.get(node.id, node.id)
            if (values := column(name)) is None:
                known = ", ".join(SHORT_NAMES)
                raise ValueError(f"there is no column or descriptor {name!r}; some are {known}")
            return values if values.dtype.kind in "OU" else pd.array(values, dtype="Float64")
        marks = node.ops if isinstance(node, ast.Compare) else [getattr(node, "op", None)]
        if not {type(mark) for mark in marks} <= set(_OPERATORS):
            raise ValueError(
                "use names of columns, numbers, texts in quotes, <, <=, >, >=, ==, !=, and, or, "
                "not, + - * / only"
            )
        sides = [computed(x) for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
        kinds, operators = set(map(_kind, sides)), [_OPERATORS[type(x)] for x in marks]
        if isinstance(node, ast.Compare):
            steps = list(zip(operators, sides[:-1], sides[1:], strict=True))
            if len(kinds) > 1 or any(np.isscalar(a) and np.isscalar(b) for _, a, b in steps):
                raise ValueError("compare a column with numbers, or with a text in quotes")
            compared = [pd.array(compare(a, b), dtype="boolean") for compare, a, b in steps]
            return reduce(operator.and_, compared)
        logical = isinstance(marks[0], (ast.And, ast.Or, ast.Not))
        if kinds != {"truth" if logical else "number"}:
            raise ValueError(f"the parts of {given(ast.unparse(node))!r} do not fit together")
        result = reduce(operators[0], sides) if len(sides) > 1 else operators[0](sides[0])
        return result if logical or np.isscalar(result) else _finite(result)

    try:
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        found = computed(ast.parse(text, mode="eval").body)
        if _kind(found) != "truth":
            raise ValueError("compare something, as in 'MW < 500 and logP <= 5'")
    except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError) as error:
        words = {
            SyntaxError: "write it like 'MW < 500 and logP <= 5'",
            RecursionError: "it is nested too deeply",
        }
        why = words.get(type(error), error)
        raise GraphDataError(f"The condition {condition[:200]!r} cannot be used: {why}.") from None
    if unknown := int(found.isna().sum()):
        warnings.warn(
            f"{unknown} of {len(found)} candidates left out: the condition {condition!r} cannot be "
            "computed for them, as a number is missing or divided by 0."
        )
    return found.to_numpy(dtype=bool, na_value=False)


def _as_python(condition: str) -> tuple[str, dict[str, str]]:
    """Return a condition with plain names for those in backticks, and what they stand for."""
    stand_in = "quoted_"
    while stand_in in condition:
        stand_in += "_"
    pieces = _QUOTED.split(condition)  # every second one stood in backticks
    quoted = {f"{stand_in}{k}_": name for k, name in enumerate(pieces[1::2])}
    return "".join(chain(*zip_longest(pieces[::2], quoted, fillvalue=""))).strip(), quoted


def _kind(value: Any) -> str:
    letter = getattr(value, "dtype", np.asarray(value).dtype).kind
    return "truth" if letter == "b" else "text" if letter in "OU" else "number"


def _finite(numbers: pd.api.extensions.ExtensionArray) -> pd.api.extensions.ExtensionArray:
    """Return computed numbers; those that cannot be computed count as missing."""
    known = numbers.to_numpy(dtype=float, na_value=np.nan)
    return pd.array(np.where(np.isfinite(known), known, np.nan), dtype="Float64")


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
