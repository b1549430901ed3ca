"""What a classifier shows of its fitted model: attributes, explanations, bound, report, file."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treelens.estimators.fragments import ShowsFragments
from treelens.explain.classifier import ClassifierExplainer
from treelens.explain.contributions import Explanation
from treelens.explain.pattern_table import pattern_table
from treelens.graphs.convert import as_single_graph
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.model import FittedSVM
from treelens.svm.model_bound import model_bound
from treelens.svm.search_result import BestParams, SearchResult


class ViewsOfClassifier(ShowsFragments):
    """What ``GraphSVC`` shows of its model."""

    model_: FittedSVM

    @property
    def vocabulary_(self) -> PatternVocabulary:
        """All patterns that training saw."""
        return self._fitted_model.patterns.vocabulary

    @property
    def best_params_(self) -> BestParams:
        """The chosen settings, and what "auto" stood for."""
        return self._choice.best_params

    @property
    def cv_results_(self) -> SearchResult:
        """Scores of every candidate."""
        return self._choice.cv_results

    @property
    def learning_gain_(self) -> dict[str, Any] | None:
        """Best learned against best uniform candidate."""
        return self._choice.learning_gain

    @property
    def train_histograms_(self) -> Any:
        """Pattern counts of the training graphs, the depths in use."""
        return self._fitted_model.training.histograms

    @property
    def offset_(self) -> float:
        """The constant ``b`` of the kernel."""
        return self._fitted_model.kernel.offset

    @property
    def support_vectors_(self) -> np.ndarray:
        """Positions of the training graphs that carry the SVM; none with an approximation."""
        return self._basis if "approximation" not in self.best_params_ else self._basis[:0]

    @property
    def landmarks_(self) -> np.ndarray:
        """Positions of the training graphs that Nyström features compare with, else none."""
        nystroem = self.best_params_.get("approximation") == "nystroem"
        return self._basis if nystroem else self._basis[:0]

    @property
    def _basis(self) -> np.ndarray:
        nothing = np.zeros(0, dtype=np.int64)
        return getattr(self._fitted_model.decision, "basis_indices", nothing)

    @property
    def _choice(self) -> Any:
        return self._fitted_model.choice

    @property
    def patterns_(self) -> Any:
        """DataFrame of all patterns: text, depth, weight, support, relative frequency per class."""
        check_is_fitted(self)
        return pattern_table(
            self.vocabulary_,
            self.train_histograms_,
            self.weights_,
            self._fitted_model.training.targets,
            self._fitted_model.classes,
        )

    def explain(self, graph: Any, class_label: Any = None, n_neighbors: int = 5) -> Explanation:
        """Why one graph is decided the way it is: contributions of patterns, nodes and edges.

        Parameters
        ----------
        graph : one graph, of any kind that :func:`treelens.as_graph_collection` takes
        class_label : optional
            The class to explain; by default, with two classes, the second, whose decision values
            are positive, and with more the predicted one.

            What is explained must be linear in the kernel. With two classes that is the decision
            value; with more, where :meth:`decision_function` counts votes, it is the mean of the
            decisions of the class against each of the others, which :meth:`mean_margins` gives.
        n_neighbors : int, default=5
            How many training graphs that spoke for and against to name.

        Returns
        -------
        Explanation
            With ``decision``, ``base``, ``pattern_contributions``, ``node_contributions``,
            ``edge_contributions``, ``neighbors`` and ``out_of_vocabulary``.
        """
        check_is_fitted(self)
        single = as_single_graph(graph, self.recipe_)
        explainer, said = ClassifierExplainer(self.model_), self.model_.decide(single)
        explanation = explainer.explain(single, said, 0, class_label, n_neighbors)
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    def generalization_bound(self, delta: float = 0.05) -> dict[str, Any]:
        """How much worse than on training pairs the learned distance can do on pairs of new graphs.

        The bounds are about the *pair loss*: the mean over pairs of graphs of the smoothed hinges
        that ask different classes to be far apart and equal ones near. They do not bound the
        classification error, nor do they know of the kernel and the support vector machine. With
        probability ``1 - delta`` the loss over new pairs is at most ``loss + gap``.

        There are two, and ``gap`` is the smaller of those that are about these weights.
        ``"stability"`` is the paper's: for T single-pair steps of size mu, with
        ``k_n = 4 mu T L² / n``, it is ``2 k_n + (n k_n + M) sqrt((2 / n) log(2 / delta))``. For
        weights of the stochastic solver the steps are its own; with uniform weights ``k_n`` is 0.
        For another solver the theorem says nothing: the figure is then that of a stand-in, a
        stochastic run that would keep nine tenths of what the solver gained (``"assumed"`` says so)
        and ``gap`` leaves it out. ``"any_solver"`` holds for all weights within the radius at once,
        however they were found.

        Parameters
        ----------
        delta : float, default=0.05
            Probability with which a bound may fail.

        Returns
        -------
        dict
            ``gap`` (None where neither bound applies), ``loss`` over the training pairs,
            ``vacuous`` (whether ``loss + gap`` says no more than the largest loss there is),
            ``stability`` and ``any_solver`` with their parts or the reason why there is none,
            ``constants``, ``caveats`` (what the theorems take as fixed and this model took from
            the data), ``meaning``, ``n_graphs`` and ``delta``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphSVC("wwl", 2, 0, gamma=1.0, C=10.0).fit(graphs, y)
        >>> bound = model.generalization_bound()
        >>> bound["stability"]["k_n"]  # uniform weights
        0.0
        """
        check_is_fitted(self)
        return model_bound(self.model_, delta)

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their classes, optional
            What to score and to show; without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize

        check_is_fitted(self)
        return summarize(self.model_, X, y, names=names, n_jobs=self._n_jobs())

    def report(self, path: Any, X: Any = None, y: Any = None, *, names: Any = None) -> Any:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_report

        check_is_fitted(self)
        return write_report(self.model_, path, X, y, names=names, n_jobs=self._n_jobs())

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved."""
        from treelens.estimators.files import save_model

        save_model(self, path)
