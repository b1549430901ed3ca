"""The base of the estimators with one fitted model: predictions, explanations, reports, files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import BaseEstimator
from treelens.explain.contributions import Explanation, explain
from treelens.graphs.blocks import holds_blocks, loaded
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_single_graph, check_graphs
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe
from treelens.models.predictions import FittedModel, Predictions
from treelens.models.targets import check_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from treelens.explain.fragments import FragmentTable


def thread_count(n_jobs: int | None) -> int:
    """Threads to use: no more than four for each processor."""
    return min(effective_n_jobs(n_jobs), 4 * (os.cpu_count() or 1))


class FittedEstimator(BaseEstimator):
    """Base of the estimators with one fitted model, ``model_``."""

    model_: FittedModel
    n_jobs: int | None
    _fitted_graphs: GraphCollection | None = None
    _fragments: FragmentTable | None = None

    @property
    def recipe_(self) -> GraphRecipe | None:
        """How the training graphs were read; None if unknown."""
        return self._fitted_model.recipe

    @property
    def weights_(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""
        return self._fitted_model.weights

    @property
    def _fitted_model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    @property
    def _train_graphs(self) -> GraphCollection | None:
        """The training graphs; from a file, molecules that it keeps are read again."""
        if self._fitted_graphs is None:
            model = self._fitted_model
            graphs = model.training.restored(model.recipe)
            covariates = getattr(model, "covariates", None)  # an SVM has none
            if graphs is not None and covariates is not None:
                graphs = graphs.with_data(covariates.table.decode(covariates.training))
            self._fitted_graphs = graphs
        return self._fitted_graphs

    def _n_jobs(self) -> int:
        return thread_count(self.n_jobs)

    def _new_graphs(self, X: Any) -> GraphCollection:
        """Return graphs that are read as the training graphs were."""
        return check_graphs(X, self.recipe_)

    def _on_learned_scale(self, y: Any, recipe: GraphRecipe | None) -> Any:
        """Return targets on the scale of the record's transform; only numbers have one."""
        return y

    def _decide(self, X: Any, **options: Any) -> Predictions:
        """Return the predictions of graphs, each refined once."""
        return self.model_.decide(self._new_graphs(X), n_jobs=self._n_jobs(), **options)

    def _each(self, X: Any, **options: Any) -> Iterator[Predictions]:
        """Yield the predictions of graphs, or of blocks of them one after the other."""
        check_is_fitted(self)
        if not holds_blocks(X):
            yield self._decide(X, **options)
            return
        none_yet = True
        for block in loaded(X, self.recipe_):
            none_yet = False
            yield self._decide(block.graphs, **options)
        if none_yet:
            raise GraphDataError("The blocks contain no graph; at least one is needed.")

    def _collect(self, name: str, X: Any) -> np.ndarray:
        """Return an attribute of the predictions of graphs, or of all blocks of them."""
        return np.concatenate([getattr(found, name) for found in self._each(X)])

    def out_of_vocabulary(self, X: Any) -> np.ndarray:
        """Fraction of each graph's patterns that training never saw, shape (n_graphs,)."""
        return self._collect("out_of_vocabulary", X)

    def explain(self, graph: Any, class_label: Any = None, n_neighbors: int = 5) -> Explanation:
        """Divide the prediction of one graph among its patterns, nodes and edges.

        Parameters
        ----------
        graph : one graph, of any kind that :func:`treelens.as_graph_collection` takes
        class_label : optional
            The class to explain; by default, with two classes, the second, whose decision values
            are positive, and with more the predicted one. Leave it out for regression.

            Contributions add up to the predicted number, or with two classes to the decision
            value. A ``GraphSVC`` of more classes predicts by votes; there they add up to the mean
            of the decisions of the class against each of the others.
        n_neighbors : int, default=5
            How many of the most similar training graphs to list in ``neighbors``.

        Returns
        -------
        Explanation
            ``base`` and ``node_contributions`` (of molecules, ``atom_contributions``) add up to
            ``decision``, the prediction, in the units of the targets.
        """
        single = as_single_graph(graph, self.recipe_)
        explanation = explain(self._fitted_model, single, class_label, n_neighbors)
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    def fragments(
        self,
        X: Any,
        y: Any = None,
        *,
        class_label: Any = None,
        n_fragments: int = 40,
        min_support: int | None = None,
        smarts: bool = True,
    ) -> FragmentTable:
        """The fragments that move the predictions of some graphs; see :attr:`fragments_`.

        A graph with the same patterns as a training graph is explained without that training
        graph, whatever the order of ``X``; a ``GraphSVC`` and models with landmarks, which have no
        closed form for that, explain it by all coefficients.

        Parameters
        ----------
        X : graphs
        y : array-like, shape (n_graphs,), optional
            Their classes or values, for the columns ``support CLASS`` or ``mean_value``.
        class_label : object, optional
            The class that positive effects favour: by default, with two classes the second; with
            more, each row has its own.
        n_fragments : int, default=40
            The largest number of rows.
        min_support : int, optional
            The smallest number of graphs with a fragment; by default 0.4 % of them, at least 3.
        smarts : bool, default=True
            Whether fragments of molecules are written as SMARTS, which takes a while.

        Returns
        -------
        FragmentTable
            A DataFrame.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
        >>> model.fragments(graphs, y)["pattern"].iloc[0]
        '0(0,1,2)'
        """
        from treelens.explain.fragments import fragment_table
        from treelens.report.predicted import class_codes

        graphs, model, targets = self._new_graphs(X), self._fitted_model, None
        if y is not None and model.classes is None:
            targets = check_numbers(y, len(graphs))
        elif y is not None:
            targets = class_codes(y, model.classes, len(graphs))
        return fragment_table(
            model.expansion, graphs, targets, class_label,
            n_fragments=n_fragments, min_support=min_support, n_jobs=self._n_jobs(), smarts=smarts,
        )  # fmt: skip

    @property
    def fragments_(self) -> FragmentTable:
        """DataFrame of the fragments that move predictions most, over the training graphs.

        A row is a pattern whose effect goes beyond that of the pattern it refines and of the rows
        above. Fragments in 95 % or more of the graphs are left out. Each training graph is
        explained by the others alone, as in :meth:`fragments`. Columns: ``name`` (a well-known
        group that fits at least 95 % of the occurrences, else empty), for molecules ``smarts``
        (its matches are the occurrences), ``pattern``, ``depth``, ``effect`` (the sum of the
        contributions of the nodes of an occurrence, averaged over graphs) with its standard
        ``error`` (over graphs and, for an exact Gaussian process, over the sample of training
        graphs), ``conditional_effect`` (its part beyond the rows above and the pattern's parent)
        with ``conditional_error`` over graphs, ``total`` (over all its occurrences in a graph),
        ``support`` (graphs that have it), ``support CLASS`` or ``mean_value``, ``examples``.
        """
        if self._train_graphs is None:
            raise AttributeError(
                "The file of this model does not have its training graphs: call "
                "model.fragments(graphs) with them, or with others."
            )
        if self._fragments is None:
            from treelens.explain.fragments import fragment_table

            model = self._fitted_model
            self._fragments = fragment_table(
                model.expansion, self._train_graphs, model.training.targets, n_jobs=self._n_jobs()
            )
        return self._fragments.copy()

    def save(self, path: Any, training_data: bool = True) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved.

        The factor of the covariance matrix of a Gaussian process, by far its largest part, is left
        out: a loaded model computes it anew when it is first asked for standard deviations.

        Parameters
        ----------
        path : str or Path
        training_data : bool, default=True
            Whether to keep names and SMILES of the training molecules, which reports and
            ``kneighbors`` show beside a prediction. Without them the file still has what
            predictions are computed from: how often each pattern occurs in each training graph,
            and the measured values. That is no protection against somebody who wants to
            reconstruct the molecules.
        """
        from treelens.estimators.files import save_model

        save_model(self, path, training_data)

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their values or classes, optional
            What to score and to show, not the training graphs: on those the model has held-out
            scores. Without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize

        return summarize(self, X, self._on_learned_scale(y, self.recipe_), names=names)

    def report(self, path: str | Path, X: Any = None, y: Any = None, *, names: Any = None) -> Path:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_report

        return write_report(self, path, X, self._on_learned_scale(y, self.recipe_), names=names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
