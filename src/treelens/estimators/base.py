"""The base of the estimators with one fitted model: predictions, explanations, reports, files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from inspect import getattr_static
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin
from treelens.errors import GraphDataError
from treelens.explain.contributions import Explanation, explain, pattern_table
from treelens.gp.keyed_rows import with_rows
from treelens.gp.views import DESCRIPTORS, with_covariates
from treelens.graphs.blocks import check_beside_blocks, loaded
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import (
    as_single_graph,
    check_graphs,
    holds_blocks,
)
from treelens.graphs.kinds import GraphRecipe
from treelens.maps import TargetMap
from treelens.models.fitted import (
    FittedModel,
    check_one_endpoint,
    not_of_panels,
    reported_values,
)
from treelens.models.predictions import Predictions
from treelens.parallel import ThreadCount, thread_count
from treelens.targets import Targets, check_class_labels

if TYPE_CHECKING:
    from treelens.explain.fragments import FragmentTable


def _called(method: FunctionType, name: str) -> FunctionType:
    """Return the same function under another name."""
    parts = method.__globals__, method.__name__, method.__defaults__, method.__closure__
    renamed = FunctionType(method.__code__, *parts)
    for attribute in ("__annotations__", "__doc__", "__kwdefaults__", "__module__"):
        setattr(renamed, attribute, getattr(method, attribute))
    renamed.__qualname__ = name
    return renamed


class GraphEstimator(BaseEstimator):
    """Base of all estimators that take graphs instead of tables."""

    n_jobs: int | None
    recipe_: Any

    def __init_subclass__(cls, **more: Any) -> None:
        """Let inherited methods have the name of the class, which Python's own messages say.

        ``GraphRegressor(depht=3)`` is an unexpected keyword of ``GraphRegressor.__init__()``, not
        of a class that nobody has heard of.
        """
        super().__init_subclass__(**more)
        for name in dir(cls):
            method = getattr_static(cls, name)
            public = name == "__init__" or not name.startswith("_")
            ours = isinstance(method, FunctionType) and method.__module__.startswith("treelens.")
            if public and ours and name not in vars(cls) and not hasattr(method, "__wrapped__"):
                setattr(cls, name, _called(method, f"{cls.__name__}.{name}"))

    def _n_jobs(self) -> int:
        """Threads to use: no more than four for each processor."""
        found, most = thread_count(self.n_jobs), 4 * (os.cpu_count() or 1)
        return found if found <= most else ThreadCount.of(most, min(found.for_blas, most))

    def _new_graphs(self, X: object) -> GraphCollection:
        """Return graphs that are read as the training graphs were."""
        check_is_fitted(self)
        return check_graphs(X, self.recipe_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


class _View(property):
    """A property that reads a part of the fitted model; it knows by which name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


def view(path: str, doc: str, several: bool = False) -> Any:
    """Return a property that reads a part of the fitted model, such as ``record.evidence``.

    ``several``: models of several endpoints have it, too.
    """
    read = attrgetter(path)

    def get(estimator: FittedEstimator) -> Any:
        model = estimator._fitted_model
        if model.endpoint_names and not several:
            raise AttributeError(str(not_of_panels(found.name, model.endpoint_names)))
        return read(model)

    found = _View(get, doc=doc)
    return found


class FittedEstimator(GraphEstimator):
    """Base of the estimators with one fitted model, ``model_``."""

    model_: FittedModel
    device = "cpu"
    _fitted_graphs: GraphCollection | None = None
    _fragments: FragmentTable | None = None

    recipe_: GraphRecipe | None = view(
        "recipe", "How the training graphs were read, if known.", True
    )
    weights_: np.ndarray = view(
        "weights",
        "One weight per pattern in use, (n_patterns,); without learning, 1 on average.",
        True,
    )

    @property
    def patterns_(self) -> pd.DataFrame:
        """DataFrame of all patterns: text, depth, weight, support, and what goes with each.

        That is its relative frequency in each class, or the mean value with and without it.
        """
        model = self._of_one_endpoint("patterns_")
        training = model.training
        return pattern_table(
            model.expansion.source,
            training.histograms,
            model.weights,
            training.reported,
            model.classes,
        )

    @property
    def covariates_(self) -> list[str]:
        """Names of the covariates that the model was fitted with; an SVM has none."""
        names: list[str] = self._fitted_model.covariate_names
        return names

    @property
    def _fitted_model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _of_one_endpoint(self, what: str) -> Any:
        """Return the fitted model, or raise where it has several endpoints."""
        check_one_endpoint(self._fitted_model, what)
        return self._fitted_model

    @property
    def _train_graphs(self) -> GraphCollection | None:
        """The training graphs; from a file, molecules that it keeps are read again."""
        if self._fitted_graphs is None:
            model = self._fitted_model
            graphs = model.training.restored(model.recipe)
            if graphs is not None and self.covariates_:
                graphs = graphs.with_data(model.numbers)
            self._fitted_graphs = graphs
        return self._fitted_graphs

    @property
    def _scale(self) -> TargetMap | None:
        """The scale that numbers were learned on; None where it is theirs, and of classes."""
        scale: TargetMap | None = self._fitted_model.training.record.scale
        return scale

    def _with_numbers(self, X: object, covariates: object = None, tables: object = None) -> Any:
        """Return new graphs that carry the covariates and the rows of tables given with them."""
        if covariates is None and tables is None:
            return X
        if holds_blocks(X):
            check_beside_blocks(covariates=covariates, tables=tables)
        graphs = self._new_graphs(X)
        if tables is not None:
            graphs = with_rows(graphs, tables, self._fitted_model.keyed_tables)
        return graphs if covariates is None else self._with_covariates(graphs, covariates)

    def _with_covariates(self, graphs: GraphCollection, covariates: object) -> GraphCollection:
        graphs, given = with_covariates(graphs, covariates)
        own = self._fitted_model.given_columns
        needless = not own and not (self.covariates_ and given == [DESCRIPTORS])
        if needless or not set(own) <= set(given):
            raise ValueError(
                f"covariates must be those that the model was fitted with, {own or 'none'}; got "
                f"{given}."
            )
        return graphs

    def _decide(self, X: object, **options: Any) -> Predictions:
        """Return the predictions of graphs, each refined once."""
        if self.device != "cpu":
            from treelens.kernels.device import device_or_cpu

            options["device"] = device_or_cpu(self.device)
        return self.model_.decide(self._new_graphs(X), n_jobs=self._n_jobs(), **options)

    def _each(self, X: object, **options: Any) -> Iterator[Predictions]:
        """Yield the predictions of graphs, or of blocks of them one after the other."""
        check_is_fitted(self)
        if not holds_blocks(X):
            yield self._decide(X, **options)
            return
        block = None
        for block in loaded(X, self.recipe_):
            yield self._decide(block.graphs, **options)
        if block is None:
            raise GraphDataError("The blocks contain no graph; at least one is needed.")

    def _collect(self, name: str, X: object) -> np.ndarray:
        """Return an attribute of the predictions of graphs, or of all blocks of them."""
        return np.concatenate([getattr(found, name) for found in self._each(X)])

    def out_of_vocabulary(self, X: object) -> np.ndarray:
        """Fraction of each graph's patterns that training never saw, shape (n_graphs,)."""
        return self._collect("out_of_vocabulary", X)

    def explain(
        self,
        graph: object,
        class_label: object = None,
        n_neighbors: int = 5,
        *,
        endpoint: str | None = None,
        covariates: object = None,
        tables: object = None,
    ) -> Explanation:
        """Divide the prediction of one graph among its patterns, descriptors, nodes and edges.

        Parameters
        ----------
        graph : one graph, of any kind that :func:`treelens.as_graph_collection` takes
        class_label : optional
            The class to explain; by default, with two classes, the second (the first if the second
            negates it, as "inactive" does), and with more the predicted one. Leave it out for
            regression.
        n_neighbors : int, default=5
            How many of the most similar training graphs to list in ``neighbors``.
        endpoint : str, optional
            Of a model of several endpoints, the one to explain.
        covariates, tables : optional
            As for ``predict``, with a row for this graph.

        Returns
        -------
        Explanation
            ``base``, ``node_contributions`` (of molecules, ``atom_contributions``) and the
            contributions in ``rest``, where there are any, add up to ``decision``: the prediction
            on the scale that was learned; of a ``GraphSVC`` with more than two classes, the mean
            of the decisions of the class against each of the others.
        """
        model = self._fitted_model.endpoint(endpoint)
        single = self._with_numbers(as_single_graph(graph, self.recipe_), covariates, tables)
        explanation = explain(model, single, class_label, n_neighbors)
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    def fragments(
        self,
        X: object,
        y: object = None,
        *,
        endpoint: str | None = None,
        class_label: object = None,
        n_fragments: int = 40,
        min_support: int | None = None,
        smarts: bool = True,
    ) -> FragmentTable:
        """The fragments that move the predictions of some graphs; see :attr:`fragments_`.

        A graph with the same patterns as a training graph is explained without that training
        graph, but for a ``GraphSVC`` and models with landmarks, which have no closed form for that.

        Parameters
        ----------
        X, y : graphs, and optionally their classes or values
            With these, the table has the columns ``support CLASS`` or ``mean_value``.
        endpoint : str, optional
            Of a model of several endpoints, the one that the table is about; without it the table
            is about all of them, and its first column is ``endpoint``. Where ``y`` is given, the
            fragments of an endpoint are those of the graphs with a value of it.
        class_label : optional
            The class that positive effects favour: by default, with two classes that of
            :meth:`explain`; with more, each row has its own.
        n_fragments : int, default=40
            The largest number of rows, of each endpoint.
        min_support : int, optional
            The smallest number of graphs with a fragment; by default 0.4 % of molecules and 1 % of
            other graphs, at least 3.
        smarts : bool, default=True
            Whether fragments of molecules are written as SMARTS, which takes a while.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
        >>> model.fragments(graphs, y)["pattern"].iloc[0]
        '0(0,1,2)'
        """
        graphs = self._new_graphs(X)
        options = {
            "class_label": class_label,
            "n_fragments": n_fragments,
            "min_support": min_support,
            "smarts": smarts,
        }
        if self._fitted_model.endpoint_names:
            return self._fragments_of_endpoints(graphs, y, endpoint, options)
        model = self._fitted_model.endpoint(endpoint)
        known = None if y is None else Targets.of(y, len(graphs))
        targets = None if known is None else reported_values(model, known)
        return self._fragment_table(graphs, targets, **options)

    def _fragment_table(
        self, graphs: GraphCollection, targets: np.ndarray | None, **more: Any
    ) -> FragmentTable:
        from treelens.explain.fragments import fragment_table

        expansion = self._fitted_model.expansion
        return fragment_table(expansion, graphs, targets, n_jobs=self._n_jobs(), **more)

    @property
    def fragments_(self) -> FragmentTable:
        """DataFrame of the fragments that move predictions most, over the training graphs.

        A row is a pattern whose effect goes beyond that of the pattern it refines and of the rows
        above, and beyond two standard errors. Fragments in 95 % or more of the graphs are left
        out. Each training graph is explained by the others alone, as in :meth:`fragments`. Columns:
        ``name`` (the most specific well-known group that fits at least 90 % of the occurrences,
        else empty), for molecules ``smarts`` (its matches are the occurrences), ``pattern``,
        ``depth``, ``effect`` (the sum of the contributions of the nodes of an occurrence, those of
        descriptors among them, averaged over graphs) with its standard
        ``error`` (over graphs and, for an exact Gaussian process, over the sample of training
        graphs), ``conditional_effect`` (its part beyond the rows above and the pattern's parent)
        with ``conditional_error`` over graphs, ``total`` (over all its occurrences in a graph),
        ``support`` (graphs that have it), ``support CLASS`` or ``mean_value``, ``examples``,
        ``drawing`` (the fragment in a small graph, which goes with its row wherever that goes). Of
        several endpoints there is a column ``endpoint``, and each is about the graphs that have a
        value of it.
        """
        if self._train_graphs is None:
            raise AttributeError(
                "The file of this model does not have its training graphs: call "
                "model.fragments(graphs) with them, or with others."
            )
        if self._fragments is None:
            model = self._fitted_model
            self._fragments = (
                self._training_fragments_of_endpoints()
                if model.endpoint_names
                else self._fragment_table(self._train_graphs, model.training.reported)
            )
        return self._fragments.copy()

    def _fragments_of_endpoints(
        self, graphs: GraphCollection, y: object, endpoint: str | None, options: dict[str, Any]
    ) -> FragmentTable:
        """Return the fragments of one of several endpoints, or of all of them."""
        raise NotImplementedError  # estimators of panels have it

    def _training_fragments_of_endpoints(self) -> FragmentTable:
        raise NotImplementedError

    def save(self, path: str | Path, training_data: bool = True, variances: bool = False) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved.

        The largest part of a Gaussian process, the factor of its covariance matrix, is left out
        unless ``variances`` asks for it: a loaded model computes it anew when it is first asked for
        standard deviations.

        Parameters
        ----------
        path : str or Path
        training_data : bool, default=True
            Whether to keep names and SMILES of the training molecules, which reports and
            ``kneighbors`` show. Without them the file still has how often each pattern occurs in
            each training graph, and the measured values: no protection against somebody who wants
            to reconstruct the molecules.
        variances : bool, default=False
            Whether to keep what standard deviations need, rounded to seven digits, so that the
            first ones come at once: 2 bytes for every pair of training graphs (130 MB for 8,000),
            of several endpoints for every pair of measured cells, and of landmarks 4. They differ
            from those without rounding by less than 0.1 %; where the noise is too small for that, a
            warning says that nothing is kept.
        """
        from treelens.estimators.model_files import write_model

        model = self._fitted_model
        if not training_data:
            model = replace(model, training=model.training.without_identity())
        if variances:
            model = model.with_rounded_factor(self._n_jobs())
        write_model(self, model, path)

    def summary(self, X: object = None, y: object = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their values or classes, optional
            What to score and to show, not the training graphs: on those the model has held-out
            scores. Without them the summary is about the model alone.
        """
        from treelens.report.summary import summarize

        return summarize(self, X, y)

    def report(self, path: str | Path, X: object = None, y: object = None) -> Path:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report.summary import write_report

        return write_report(self, path, X, y)


class FittedClassifier(ClassifierMixin, FittedEstimator):
    """Base of the estimators that predict classes."""

    classes_: Any = view("classes", "The classes, ascending.")
    train_codes_: np.ndarray = view(
        "training.targets", "Classes of the training graphs, as positions in ``classes_``."
    )

    def decision_function(self, X: object) -> np.ndarray:
        """Decision values: (n_graphs,) for two classes, else (n_graphs, n_classes)."""
        decisions = self._collect("decisions", X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: object) -> np.ndarray:
        """Classes, shape (n_graphs,).

        Parameters
        ----------
        X : graphs, or blocks of them
            Blocks (such as ``SmilesBlocks(path, target=None)``) are read one at a time, and need no
            targets. What ``on_invalid="skip"`` leaves out has no entry; the warning names it.
        """
        predicted: np.ndarray = self.classes_[self._collect("predicted_codes", X)]
        return predicted

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the share of graphs whose class is predicted."""
        predicted = self.predict(X)
        targets = Targets.of(y, len(predicted), sample_weight=sample_weight)
        check_class_labels(targets.values)
        weights = targets.sample_weight
        return float(accuracy_score(targets.values, predicted, sample_weight=weights))

    def predict_proba(self, X: object) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes); ``X`` as for ``predict``.

        A logistic function of decision values (of a ``GraphSVC`` with several classes, of
        ``mean_margins``) that is calibrated on held-out training graphs.
        """
        return self._collect("probabilities", X)
