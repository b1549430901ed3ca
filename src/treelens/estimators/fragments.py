"""Methods of estimators that explain predictions and list the fragments that move them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treelens.estimators.base import FittedEstimator
from treelens.explain.contributions import Explanation, explain
from treelens.graphs.convert import as_single_graph

if TYPE_CHECKING:
    from treelens.explain.fragments import FragmentTable
    from treelens.graphs.collection import GraphCollection


class ExplainingEstimator(FittedEstimator):
    """Base with ``explain`` of one graph, and ``fragments`` of the training graphs or of others."""

    _fitted_graphs: GraphCollection | None = None
    _fragments: FragmentTable | None = None

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
        check_is_fitted(self)
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

        graphs, expansion = self._new_graphs(X), self._fitted_model.expansion
        targets = None if y is None else _targets(expansion.classes, y, len(graphs))
        return fragment_table(
            expansion, graphs, targets, class_label,
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

            self._fragments = fragment_table(
                self._fitted_model.expansion, self._train_graphs,
                self._fitted_model.training.targets, n_jobs=self._n_jobs(),
            )  # fmt: skip
        return self._fragments.copy()


def _targets(classes: np.ndarray | None, y: Any, n: int) -> np.ndarray:
    """Class codes or values, one for each graph."""
    y = np.asarray(y)
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries for {n} graphs.")
    if classes is None:
        return y.astype(float)
    codes = np.searchsorted(classes, y)
    known = classes[np.minimum(codes, len(classes) - 1)] == y
    if not known.all():
        wrong = y[~known].tolist()[0]
        raise ValueError(f"y has {wrong!r}, which is none of the classes {classes.tolist()}.")
    return codes
