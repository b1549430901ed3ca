"""What fitted Gaussian processes tell beside predictions, and predictions as tables."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from treelens._sklearn_compat import check_sample_weight
from treelens.estimators.base import FittedEstimator, view
from treelens.evaluation.metrics import NINETY
from treelens.gp.fitting import LearningGain, condition
from treelens.gp.model import Domain, FittedGP, expected_error, feature_blocks
from treelens.gp.posterior import class_columns
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import Transform, check_graphs, holds_blocks, learned_transform
from treelens.graphs.descriptors import PREFIX
from treelens.kernels.weighted import nearest_graphs

if TYPE_CHECKING:
    from typing_extensions import Self

INTERVALS = ("posterior", "scaffold")
DOMAIN_COLUMNS = ("in_domain", "expected_error", "similarity", "nearest", "out_of_vocabulary")


class FittedGaussianProcess(FittedEstimator):
    """The part of the regressor and the classifier that needs nothing but the fitted model."""

    model_: FittedGP
    _domain: Domain | None = None
    _intervals = "posterior"

    # For the subclasses to say: targets with those of more graphs, and scores of left-out ones.
    _targets_with_more: Callable[..., Any]
    _scored: Callable[..., tuple[Any, float | None]]

    @property
    def uses_descriptors_(self) -> bool:
        """Whether descriptors of molecules stand beside the patterns."""
        return any(name.startswith(PREFIX) for name in self.covariates_)

    best_depth_: int = view("weighted.forest.depth", "The depth of the patterns in use.")
    best_weights_: str = view(
        "record.learned", 'The weights in use: ``"uniform"``, ``"depths"`` or ``"branches"``.'
    )
    # Numbers are standardised; of several classes it is the mean over their columns.
    evidence_: float = view(
        "record.evidence",
        "Log of the marginal likelihood times the priors, up to a constant of the patterns.",
    )
    history_: pd.DataFrame = view(
        "record.history", "``stage``, ``evidence`` and more after every iteration of the search."
    )
    converged_: bool = view("record.converged", "Whether the search for the weights converged.")
    learning_gain_: LearningGain = view(
        "record.learning_gain", "Learned against uniform weights, on held-out training graphs."
    )

    @property
    def noise_(self) -> float:
        """The variance of the noise of a measurement of weight one, in units of the kernel."""
        return self._fitted_model.noise * self._fitted_model.target_scale**2

    @property
    def domain_(self) -> Domain:
        """The domain of applicability, computed when it is first used."""
        model = self._fitted_model
        if self._domain is None or self._domain.model is not model:
            self._domain = Domain.of(model, self._left_out_errors(), self._n_jobs())
        return self._domain

    def _left_out_errors(self) -> np.ndarray:
        """Return leave-one-out errors of the training graphs, shape (n_graphs, n_columns)."""
        training, left_out = self._fitted_model.training, self._fitted_model.record.left_out
        if self.model_.classes is not None:
            columns = class_columns(training.targets, len(self.model_.classes))
            return columns - left_out.decisions.reshape(columns.shape)
        errors = training.targets - left_out.predictions
        if training.limits is not None:
            errors[training.limits * errors < 0] = 0.0  # a limit that holds is no error
        return errors[:, None]

    def _html_repr(self) -> str:
        """Return the HTML that a notebook shows: facts and scores of a fitted model."""
        from treelens.estimators.fit_summary import model_html

        return model_html(self) if hasattr(self, "model_") else super()._html_repr()  # type: ignore[misc]

    def predict_table(self, X: Any, intervals: str = "posterior") -> pd.DataFrame:
        """Return predictions, their uncertainty and the domain, one row per graph.

        Parameters
        ----------
        X : graphs
        intervals : {"posterior", "scaffold"}, default="posterior"
            Of numbers, ``std`` and the 90 % interval; ``"scaffold"`` widens them for molecules of
            new scaffolds, as in :meth:`GraphRegressor.predict`.

        Returns
        -------
        DataFrame
            Numbers: ``prediction``, ``std``, ``lower_90``, ``upper_90``. Classes: ``class``,
            ``probability`` (of it), ``decision``, and ``probability CLASS`` for each. Where the
            model has covariates or chose descriptors, ``from_covariates``: what they add to the
            prediction or decision. Then the columns of :meth:`domain`. Of a model that learned on
            another scale, predictions and bounds are in the units of the table (the prediction is a
            median); ``std_log10`` and other columns that end in ``_log10`` are on that scale.
        """
        return prediction_table(self, self._new_graphs(X), intervals)

    def domain(self, X: Any) -> pd.DataFrame:
        """Return whether graphs lie in the domain of applicability, and why.

        Returns
        -------
        DataFrame
            ``in_domain``: whether the expected error and the similarity to the nearest training
            graph are both such as 97.5 % of training graphs have when left out; ``expected_error``:
            the standard deviation, corrected by the leave-one-out errors of the nearest training
            graphs, on the scale that was learned, and of classes in units of the decision value,
            where the two classes are -1 and 1 (one minus ``probability`` of
            :meth:`predict_table` is the chance of being wrong); ``similarity``: the learned
            Tanimoto similarity to the nearest training graph, whose position is ``nearest``;
            ``out_of_vocabulary``: the fraction of patterns that training never saw.
        """
        table = self.predict_table(X)
        return table[[name for name in table.columns if name.startswith(DOMAIN_COLUMNS)]]

    def kernel_matrix(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the learned kernel: prior covariances of the values, (n_x, n_x) or (n_x, n_y).

        They are without noise, in squared units of the targets, on the scale that was learned; of
        classes, of decision values. Patterns that training never saw count, too, with the weight of
        the pattern they refine. It is a kernel for scikit-learn's ``kernel="precomputed"``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
        >>> model.kernel_matrix(graphs[:3], graphs).shape
        (3, 40)
        """
        graphs, others = self._new_graphs(X), None if Y is None else self._new_graphs(Y)
        kernel = self.model_.kernel_among(graphs, others, self._n_jobs())
        return self.model_.target_scale**2 * kernel

    def distance_matrix(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return distances ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))`` of the learned kernel.

        They are a metric: the prior standard deviation of the difference of two values. ``X``,
        ``Y`` and the shape are as in :meth:`kernel_matrix`.
        """
        kernel = self.kernel_matrix(X, Y)
        variance = self.model_.target_scale**2 * self.model_.kernel.variance
        squares = np.maximum(variance - kernel, 0.0)
        squares[squares < 1e-14 * variance] = 0.0  # rounding
        return np.sqrt(2.0 * squares)

    def kneighbors(self, X: Any, n_neighbors: int = 5) -> pd.DataFrame:
        """Return the most similar training graphs of each graph, with their measured values.

        Returns
        -------
        DataFrame
            One row per graph and neighbour, the most similar first: ``graph`` (position in ``X``),
            ``neighbor`` (position among the training graphs), ``name`` and ``smiles`` of the
            neighbour where the model keeps them, ``similarity`` (learned Tanimoto, from 0 to 1) and
            ``value``, the measured value in the units of the table, or the class. Where some
            training values are limits, ``limit``: ``">"``, ``"<"`` or empty.
        """
        if n_neighbors < 1:
            raise ValueError(f"n_neighbors must be 1 or more, got {n_neighbors}.")
        graphs, n_jobs = self._new_graphs(X), self._n_jobs()
        model, training = self.model_, self._fitted_model.training
        parts = [
            nearest_graphs(block, model.training_graphs, model.weights, n_neighbors, n_jobs=n_jobs)
            for block in feature_blocks(model.refine(graphs, n_jobs).features, len(graphs))
        ]
        near = np.concatenate([part.positions for part in parts])  # (n_graphs, n_neighbors)
        positions = near.ravel()
        columns: dict[str, Any] = {
            "graph": np.repeat(np.arange(len(graphs)), near.shape[1]),
            "neighbor": positions,
        }
        for name, kept in (("name", training.names), ("smiles", training.smiles)):
            if kept is not None:
                columns[name] = [kept[k] for k in positions.tolist()]
        columns["similarity"] = np.concatenate([part.similarity for part in parts]).ravel()
        return pd.DataFrame(columns | measured_values(model, positions))

    def condition(
        self, X: Any, y: Any, sample_weight: Any = None, *, covariates: Any = None
    ) -> Self:
        """Return a new model given more data, under the same weights, scales and noise.

        Rows are added to the Cholesky factor: it is exact and takes a small part of the time of
        ``fit``. Patterns that training never saw have the weight of the pattern they refine.
        Leave-one-out scores and the calibration of probabilities are those of all graphs; limits
        among the old values keep the approximation found in ``fit``, and ``evidence_``,
        ``history_``, ``learning_gain_`` remain those of ``fit``.

        Parameters
        ----------
        X, y, covariates :
            As in ``fit`` and ``predict``; no blocks.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight; 1 is the mean weight in ``fit``.

        Returns
        -------
        A fitted copy; models that predict through landmarks raise a ``ValueError``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs[::2], y[::2])
        >>> len(model.condition(graphs[1::2], y[1::2]).train_codes_)
        40
        """
        model, train = self._fitted_model, self._fitted_graphs
        if holds_blocks(X):
            raise TypeError("condition takes graphs, no blocks: they are added all at once.")
        graphs = self._new_graphs(self._beside(X, covariates))
        weights = check_sample_weight(sample_weight, np.empty((len(graphs), 1)), dtype=np.float64)
        if not (weights > 0).all():
            raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
        known = self._targets_with_more(self._on_learned_scale(y, model.recipe), weights)
        training = model.training.extended(graphs, known.given)
        extended, left_out = condition(model, graphs, training, known.targets, self._n_jobs())
        other = copy(self)
        scores, slope = self._scored(left_out, known)
        other.model_ = replace(extended, slope=slope, record=replace(model.record, left_out=scores))
        other._fitted_graphs = other._fragments = None
        if train is not None and training.smiles is None:  # SMILES are read when they are needed
            other._fitted_graphs = check_graphs([*train, *graphs])
        return other


# --- predictions as tables ----------------------------------------------------------------------


def prediction_table(
    model: Any, graphs: GraphCollection, intervals: str | None = None
) -> pd.DataFrame:
    """Return the predictions of a fitted model; the index has the names of the graphs, if any.

    ``intervals=None``: those that were set for the model.
    """
    intervals = intervals or getattr(model, "_intervals", "posterior")
    if intervals != "posterior" and not is_regressor(model):
        raise ValueError("Intervals are those of numbers: a classifier has probabilities.")
    has_domain = isinstance(model.model_, FittedGP)
    found = model._decide(graphs, **({"variance": True} if has_domain else {}))
    scale, suffix = learned_scale(model)
    columns: dict[str, Any] = {"out_of_vocabulary": found.out_of_vocabulary}
    if hasattr(model, "classes_"):
        chances, codes, rows = found.probabilities, found.predicted_codes, np.arange(len(graphs))
        one = found.decisions.shape[1] == 1
        columns |= {
            "class": model.classes_[codes],
            "probability": chances[rows, codes],
            "decision": found.decisions[:, 0] if one else found.decisions[rows, codes],
            **{f"probability {c}": chances[:, k] for k, c in enumerate(model.classes_.tolist())},
        }
    else:
        factor = 1.0 if intervals == "posterior" else model._widening(intervals)
        mean, std = found.mean[:, 0], factor * np.sqrt(found.variance)
        values = [mean, mean - NINETY * std, mean + NINETY * std]
        if scale is not None:
            values = [scale.inverse(value) for value in values]
        columns |= zip(("prediction", "lower_90", "upper_90"), values, strict=True)
        columns["std" + suffix] = std
    if found.from_covariates is not None and found.from_covariates.shape[1] == 1:
        columns["from_covariates" + suffix] = found.from_covariates[:, 0]
    if has_domain:
        around = model.domain_.around(found.graphs.features, model._n_jobs())
        expected = expected_error(np.sqrt(found.variance), around)
        columns |= {
            "in_domain": model.domain_.holds(expected, around),
            "expected_error" + suffix: expected,
            "similarity": around.similarity,
            "nearest": around.nearest,
        }
    index = None if graphs.names is None else pd.Index(list(graphs.names), name="name")
    return pd.DataFrame(columns, index=index)[table_columns(model)]


def table_columns(model: Any) -> list[str]:
    """Return the columns of :func:`prediction_table` for a fitted model, in order."""
    _, suffix = learned_scale(model)
    if hasattr(model, "classes_"):
        columns = ["class", "probability", "decision"]
        columns += [f"probability {c}" for c in model.classes_.tolist()]
    else:
        columns = ["prediction", "std" + suffix, "lower_90", "upper_90"]
    if model.covariates_ and len(getattr(model, "classes_", [])) < 3:
        columns.append("from_covariates" + suffix)
    if not isinstance(model.model_, FittedGP):
        return [*columns, "out_of_vocabulary"]
    return columns + [n + suffix if n == "expected_error" else n for n in DOMAIN_COLUMNS]


def file_columns(model: Any) -> list[str]:
    """Return the columns of files: of the nearest training graph its name and value, if known."""
    columns, training = table_columns(model), model.model_.training
    if "nearest" in columns:
        has_identity = training.names is not None or training.smiles is not None
        known = ["nearest_name", *nearest_columns(model, np.empty(0, dtype=int))]
        place = columns.index("nearest")
        columns[place : place + 1] = known if has_identity else []
    return columns


def measured_values(model: FittedGP, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return values of training graphs in the units of the table, and limits; or their classes."""
    assert model.training is not None
    targets, limits = model.training.targets[positions], model.training.limits
    if model.classes is not None:
        return {"value": model.classes[targets]}
    scale = learned_transform(model.recipe)
    found = {"value": targets if scale is None else scale.inverse(targets)}
    if limits is not None:
        found["limit"] = np.array(["", ">", "<"])[limits[positions]]
    return found


def nearest_columns(model: Any, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return what files have of the nearest training graphs."""
    found = measured_values(model.model_, positions)
    if hasattr(model, "classes_"):
        return {"nearest_class": found["value"]}
    return {f"nearest_{name}": values for name, values in found.items()}


def learned_scale(model: Any) -> tuple[Transform | None, str]:
    """Return the scale that numbers were learned on, and the end of names of columns on it."""
    scale = learned_transform(model.recipe_) if is_regressor(model) else None
    return scale, "" if scale is None else f"_{scale.name}"
