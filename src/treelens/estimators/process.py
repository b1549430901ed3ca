"""What estimators by a Gaussian process share: patterns, evidence, prediction, explanation."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import (
    BaseEstimator,
    Interval,
    StrOptions,
)
from treelens.estimators.fragments import ShowsFragments
from treelens.estimators.prediction_table import TellsDomain
from treelens.explain.contributions import Explanation, explain_decision
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_single_graph
from treelens.models.fitting import (
    FittedEvidence,
    Targets,
    evidence_history,
    fit_gaussian_process,
)
from treelens.models.gaussian_process import EvidenceRecord, FittedGaussianProcess
from treelens.models.leave_one_out import (
    LearningGain,
    density_gain,
)
from treelens.models.memory import check_memory
from treelens.models.sampling import draw_by_group, draw_evenly, landmarks_for
from treelens.patterns.forest import TREES, PatternForest, usual_trees
from treelens.patterns.histograms import PatternHistograms
from treelens.selection.progress import progress_ticks

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class GaussianProcessOnGraphs(ShowsFragments, TellsDomain, BaseEstimator):
    """What the regressor and the classifier share: patterns, evidence, prediction."""

    model_: FittedGaussianProcess

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"uniform", "depths", "branches"})],
        "trees": [StrOptions({"auto"}), list, tuple],
        "prior_strength": [Interval(Real, 0, None, closed="neither")],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        depth: int = 4,
        weights: str = "branches",
        *,
        trees: Any = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 3000,
        exact_size: int = 12_000,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.depth = depth
        self.weights = weights
        self.trees = trees
        self.prior_strength = prior_strength
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.n_landmarks = n_landmarks
        self.max_steps = max_steps
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _condition(
        self, graphs: GraphCollection, targets: Targets, groups: np.ndarray
    ) -> tuple[FittedEvidence, PatternHistograms]:
        """Learn and condition; ``groups`` (n_graphs,) are what a sample is drawn evenly from."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs = self._n_jobs()
        draw = draw_evenly if self._has_rare_class(groups) else draw_by_group
        sample = draw(groups, self.learning_size, seed)
        landmarks = landmarks_for(groups, self.exact_size, self.n_landmarks, seed)
        check_memory(len(graphs), len(sample), None if landmarks is None else landmarks.n_landmarks)
        forest, colors = PatternForest.fit(graphs, self.depth, self._trees(graphs), n_jobs)
        histograms = forest.count(colors, n_jobs)
        with progress_ticks(self.progress, "Learning by evidence") as tick:
            fitted = fit_gaussian_process(
                forest,
                histograms,
                targets,
                learned=self.weights,
                sample=sample,
                landmarks=landmarks,
                strength=self.prior_strength,
                max_steps=self.max_steps,
                n_jobs=n_jobs,
                device=self.device,
                tick=tick,
            )
        self._train_graphs, self._fragments = graphs, None
        return fitted, histograms

    def _has_rare_class(self, groups: np.ndarray) -> bool:
        """Whether the groups are classes one of which is rare."""
        return False

    def _record(self, fitted: FittedEvidence, targets: Targets, left_out: Any) -> EvidenceRecord:
        gain = density_gain(fitted, targets, self.weights)
        history = evidence_history(fitted.search, len(fitted.sample))
        return EvidenceRecord(self.weights, history, fitted.search.converged, gain, left_out)

    def _trees(self, graphs: GraphCollection) -> tuple[str, ...]:
        if isinstance(self.trees, str):
            return usual_trees(graphs)
        unknown = [t for t in self.trees if not isinstance(t, str) or t not in TREES]
        if unknown or not self.trees or len(set(self.trees)) < len(self.trees):
            raise ValueError(
                f"trees must be 'auto' or different ones among {', '.join(TREES)}; got "
                f"{list(self.trees)!r}."
            )
        return tuple(tree for tree in TREES if tree in self.trees)  # coarse before fine

    # --- what the model tells -------------------------------------------------------------------

    @property
    def evidence_(self) -> float:
        """Log of the marginal likelihood times the priors."""
        return self._fitted_model.record.evidence

    @property
    def history_(self) -> pd.DataFrame:
        """``stage``, ``evidence``, ``gradient_norm`` and ``n_evaluations`` after every step."""
        return self._fitted_model.record.history

    @property
    def converged_(self) -> bool:
        """Whether the search for the weights converged."""
        return self._fitted_model.record.converged

    @property
    def learning_gain_(self) -> LearningGain:
        """Learned against uniform weights."""
        return self._fitted_model.record.learning_gain

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved.

        The factor of the covariance matrix, by far its largest part, is left out: a loaded model
        computes it anew when it is first asked for standard deviations.
        """
        from treelens.estimators.files import save_process

        save_process(self, path)

    def explain(self, graph: Any, class_label: Any = None, n_neighbors: int = 5) -> Explanation:
        """Why one graph is predicted the way it is: contributions of patterns, nodes and edges.

        Parameters
        ----------
        graph : one graph, of any kind that :func:`treelens.as_graph_collection` takes
        class_label : optional
            The class to explain; by default, with two classes, the second, whose decision values
            are positive, and with more the predicted one. Numbers have none.
        n_neighbors : int, default=5
            How many training graphs that spoke for and against to name.

        Returns
        -------
        Explanation
            ``base`` and ``node_contributions`` (of molecules, ``atom_contributions``) add up to
            ``decision``, the prediction, in the units of the targets.
        """
        check_is_fitted(self)
        single = as_single_graph(graph, self.recipe_)
        decision = self._decision
        explanation = explain_decision(single, decision, class_label, n_neighbors)
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their values or classes, optional
            What to score and to show, not the training graphs: on those the model has the
            leave-one-out scores. Without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize_evidence

        check_is_fitted(self)
        return summarize_evidence(
            self.model_, X, y, names=names, n_jobs=self._n_jobs(), held=self._held
        )

    def report(self, path: str | Path, X: Any = None, y: Any = None, *, names: Any = None) -> Path:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_evidence_report

        check_is_fitted(self)
        return write_evidence_report(
            self.model_, path, X, y, names=names, n_jobs=self._n_jobs(), held=self._held
        )

    @property
    def _held(self) -> Any:
        """What a report takes from the estimator, made when it is needed."""
        from treelens.report.held import Held

        graphs = self._train_graphs
        fragments: Any = None if graphs is None else lambda: self.fragments_
        return Held(lambda: self.domain_, graphs, fragments)
