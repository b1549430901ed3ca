"""The fragments that move predictions, as estimators show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treelens.estimators.base import HoldsModel
from treelens.explain.classifier import ClassifierExplainer
from treelens.explain.gaussian import GaussianDecision
from treelens.svm.model import FittedSVM

if TYPE_CHECKING:
    import pandas as pd

    from treelens.explain.comparison import Comparison
    from treelens.graphs.collection import GraphCollection


class ComparesModels(HoldsModel):
    """``compare``: what this model and another one see differently."""

    @property
    def _decision(self) -> Any:
        """What is explained: the decision behind the fitted model."""
        if isinstance(self._fitted_model, FittedSVM):
            return ClassifierExplainer(self._fitted_model)
        return GaussianDecision(self._fitted_model)

    def compare(self, other: Any, X: Any, y: Any = None, **options: Any) -> Comparison:
        """What this model (``a``) and another one (``b``) see differently in some graphs.

        Parameters
        ----------
        other : GraphClassifier, GraphRegressor or GraphSVC
            Fitted to the same classes, or to numbers as this one.
        X : graphs
            Best those that neither was trained on. Each model reads them in its own way.
        y : array-like, shape (n_graphs,), optional
            Their classes or values.
        **options :
            ``class_label``, ``n_fragments`` and ``min_support``: see
            :func:`treelens.explain.comparison.compare_on`.

        Returns
        -------
        Comparison
            With ``agreement`` of the predictions, ``fragments`` whose effects differ (with
            errors), and ``graphs`` that the two disagree on most; a notebook draws it.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> deep, flat = (tl.GraphClassifier(depth=d).fit(graphs, y) for d in (2, 0))
        >>> found = deep.compare(flat, graphs, y)
        >>> found.agreement["score_a"] > found.agreement["score_b"]
        True
        >>> found.fragments["found_by"].iloc[0]
        'a'
        """
        from treelens.explain.comparison import compare_on

        if not isinstance(other, ComparesModels):
            raise TypeError(
                f"other is a {type(other).__name__}: a model is compared with a fitted "
                "GraphClassifier, GraphRegressor or GraphSVC."
            )
        return compare_on(self, other, self._new_graphs(X), other._new_graphs(X), y, **options)


class ShowsFragments(ComparesModels):
    """Fragments that move predictions: over the training graphs, or over any others."""

    _train_graphs: GraphCollection | None = None
    _fragments: pd.DataFrame | None = None

    def fragments(self, X: Any, y: Any = None, **options: Any) -> pd.DataFrame:
        """The fragments that move the predictions of some graphs; see :attr:`fragments_`.

        Parameters
        ----------
        X : graphs
            If these are the training graphs, each is explained by the others alone.
        y : array-like, shape (n_graphs,), optional
            Their classes or values, for the columns that count them.
        **options :
            ``class_label``, ``n_fragments``, ``min_support``, ``refits`` and ``smarts``: see
            :func:`treelens.explain.fragment_refits.fragments_of_model`.

        Returns
        -------
        DataFrame
        """
        from treelens.explain.fragment_refits import fragments_of_model

        return fragments_of_model(self, self._new_graphs(X), y, **options)

    @property
    def fragments_(self) -> pd.DataFrame:
        """DataFrame of the fragments that move predictions most, over the training graphs.

        A row is a pattern that adds to what the pattern it refines says, and that no row above it
        has said already. Each training graph is explained by the others alone (of a ``GraphSVC``,
        which has no closed form for that, by all of them). Columns: ``name``
        (of a well-known group, where one fits), of molecules ``smarts`` (its matches are the
        fragment's occurrences), ``pattern``, ``depth``, ``effect`` (what the nodes of an occurrence
        add to a prediction together, averaged over graphs) with its standard ``error``,
        ``conditional_effect`` (what of that neither the rows above nor the pattern's parent say)
        with ``conditional_error``, ``total`` (over all its occurrences in a graph), ``support``
        (graphs that hold it), ``support CLASS`` or ``mean_value``, ``examples``.
        """
        model = self._fitted_model
        if self._train_graphs is None:
            raise AttributeError(
                "A model out of a file does not hold its training graphs: call "
                "model.fragments(graphs) with them, or with others."
            )
        if self._fragments is None:
            from treelens.explain.fragments import fragment_table

            self._fragments = fragment_table(
                self._decision, self._train_graphs, model.training.targets, n_jobs=self._n_jobs()
            )
        return self._fragments.copy()
