"""The whole way from graphs to classes in one estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treelens.estimators.base import DecidesOnGraphs, checked_decisions, checked_graphs
from treelens.estimators.bound import model_bound
from treelens.estimators.pattern_table import pattern_table
from treelens.estimators.weights import PairwiseWeights
from treelens.explain.contributions import (
    Explanation,
    KernelDecision,
    explain_decision,
    usual_unseen_share,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_single_graph
from treelens.kernels.forms import FORMS, form_kernel
from treelens.kernels.gram import pair_sums
from treelens.kernels.voting import class_values, mean_margins
from treelens.models.feature_machine import FeatureMachine, additive_decision
from treelens.models.svm import (
    calibrated_probabilities,
    class_weights,
    fit_calibration,
    fit_machine,
    predicted_codes,
)
from treelens.patterns.features import Features, PatternExtractor, first_depth_of
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.scale.approximation import APPROXIMATIONS, fit_approximate, forms_for
from treelens.selection.gain import learning_gain
from treelens.selection.progress import progress_ticks
from treelens.selection.search import (
    SCORES,
    Candidate,
    KernelSearch,
    grid,
    radii_for,
    staged_search,
)
from treelens.selection.settings import (
    AUTO_CS,
    AUTO_DEPTHS,
    AUTO_GAMMAS,
    checked_classes,
    inner_splits,
    listed,
    listed_forms,
    rarest_class,
    resolved_class_weight,
    resolved_scoring,
    warn_if_nothing_shared,
    warn_if_one_class_is_all,
)


class MachinePredictions(NamedTuple):
    """What a machine says of new graphs."""

    decisions: np.ndarray  # (n_graphs, n_outputs)
    probabilities: np.ndarray  # (n_graphs, n_classes)
    unseen_fraction: np.ndarray  # (n_graphs,) of the mass, that on patterns training never saw


class GraphSVC(DecidesOnGraphs, BaseEstimator):
    """Weisfeiler-Lehman patterns, learned weights, kernel and C-SVC in one estimator.

    Everything left at ``"auto"`` is chosen by cross-validation on the training graphs: first
    form, depth, ``gamma`` and ``C`` with uniform weights, then, at the best depth of each form,
    the radius within which the weights may be learned. Radius 0, uniform weights, is always among
    the candidates, and :attr:`learning_gain_` says whether learning beat it.

    Parameters
    ----------
    form : str or sequence of str, default="auto"
        Keys of ``treelens.kernels.forms.FORMS``; "auto" tries "exponential" and
        "tanimoto-exponential".
    depth : int or sequence of int, default="auto"
        Largest pattern depth; "auto" tries 1 to 6.
    radius : float or sequence of float, default="auto"
        How far, per depth, the weights may move from one (Euclidean); 0 means uniform. "auto"
        tries 0 and three radii that depend on the number of graphs.
    gamma : float or sequence of float, default="auto"
        Scale of the exponential forms; "auto" tries 0.1, 1, 3 and 10.
    C : float or sequence of float, default="auto"
        Cost of the support vector machine, relative to the kernel's mean diagonal; "auto" tries
        0.1, 1, 3, 10 and 100.
    include_depth_zero : bool, default=True
        Whether the node labels themselves count as patterns.
    edge_labels : bool or "auto", default="auto"
        Whether patterns tell edge labels apart; "auto": where the training graphs have them.
    learner : PairwiseWeights, optional
        How weights are learned; its radius is set by the search.
    cv : int or splitter, default=5
        Folds of the inner cross-validation, repeated for small training sets; or a splitter.
    scoring : {"auto", "accuracy", "balanced_accuracy", "roc_auc"}, default="auto"
        What the inner cross-validation maximises. "auto" is the accuracy, unless a class is rare
        (less than half of an even share: with two classes, below 25 %). Then a model could score
        high without ever naming that class, and "auto" is "roc_auc" for two classes and
        "balanced_accuracy" for more.
    class_weight : "auto", None, "balanced" or dict, default="auto"
        Weight of errors by class. "auto" is "balanced" where a class is rare and ``scoring`` is
        "auto" or "balanced_accuracy", else None: all errors weigh the same.
    approximation : {None, "random-bins", "random-features", "nystroem", "unary"}, default=None
        Replace the kernel matrix by explicit features and the SVM by a linear model on them: time
        and memory linear in the number of graphs. Settings are then chosen on held-out parts.
        Random bins, and with more noise random features, approximate the exponential and metric
        forms, Nyström features any form; unary ones are exact for forms that are sums over
        patterns.
    n_components : int, default=2048
        Number of grids of random bins, of random features or of landmarks.
    n_jobs : int, optional
        Threads; -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the splits and the learner.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    classes_ : ndarray
    recipe_ : GraphRecipe or None
        What made the training graphs: molecules are read alike, and graphs that were made in
        another way are refused.
    choice_ : dict
        The chosen form, depth, radius, gamma and C, with the inner score; what "auto" stood for
        in ``scoring`` and ``class_weight``, and the ``rare_class`` (or None) that it depends on.
    learning_gain_ : dict or None
        Best learned against best uniform candidate in the inner validation: the paired
        difference, its standard error and a p-value. None if no radius above 0 was tried, or if
        none was good enough to be tried on every split.
    weights_ : ndarray, shape (n_patterns,)
    learner_ : PairwiseWeights or None
        The learner fitted to all training graphs; None with uniform weights.
    vocabulary_ : PatternVocabulary
    search_ : SearchResult or None
        Scores of every candidate.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphSVC(depth=2, radius=0, gamma=1.0, C=10.0, form="exponential")
    >>> model.fit(graphs, y).predict(graphs[:2]).tolist() == y[:2].tolist()
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "form": [StrOptions({"auto", *FORMS}), list, tuple],
        "depth": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left"), "array-like"],
        "radius": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), "array-like"],
        "gamma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "C": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", StrOptions({"auto"})],
        "learner": [HasMethods(["fit", "get_params"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"])],
        "scoring": [StrOptions({"auto", *SCORES})],
        "class_weight": [StrOptions({"auto", "balanced"}), dict, None],
        "approximation": [StrOptions(set(APPROXIMATIONS)), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        form: str | Sequence[str] = "auto",
        depth: Any = "auto",
        radius: Any = "auto",
        gamma: Any = "auto",
        C: Any = "auto",
        *,
        include_depth_zero: bool = True,
        edge_labels: bool | str = "auto",
        learner: Any = None,
        cv: Any = 5,
        scoring: str = "auto",
        class_weight: Any = "auto",
        approximation: str | None = None,
        n_components: int = 2048,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.form = form
        self.depth = depth
        self.radius = radius
        self.gamma = gamma
        self.C = C
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.learner = learner
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.approximation = approximation
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> GraphSVC:
        """Choose and fit a model.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, shape (n_graphs,)
            Classes of any kind.
        """
        self._validate_params()
        graphs = checked_graphs(X)
        self.recipe_ = graphs.recipe
        self.classes_, codes = checked_classes(y, len(graphs))
        self._scoring = resolved_scoring(self.scoring, codes)
        self._class_weight = resolved_class_weight(self.class_weight, self.scoring, codes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        candidates = self._grid(len(graphs))
        self._uses_edge_labels = self._resolve_edge_labels(graphs)
        if self.approximation is not None:
            fit_approximate(self, graphs, codes, candidates, seed)
            return self
        deepest = max(c.depth for c in candidates)
        vocabulary, colors = PatternVocabulary.fit(
            graphs, deepest, self._uses_edge_labels, self._n_jobs()
        )
        histograms = PatternHistograms.from_colors(vocabulary, colors, self._n_jobs())
        splits = inner_splits(self.cv, codes, self.classes_, seed)
        search = self._search(histograms, codes, splits, seed)
        with progress_ticks(self.progress, "Choosing a kernel") as search.tick:
            self.search_, chosen = staged_search(search, candidates)
        self._record_choice(chosen, candidates, codes)
        self._fit_chosen(chosen, vocabulary, search, graphs)
        return self

    def _grid(self, n_graphs: int) -> list[Candidate]:
        depths = listed(self.depth, AUTO_DEPTHS, "depth", Integral, 0)
        first_depth_of(min(depths), self.include_depth_zero)
        candidates = grid(
            self._listed_forms(),
            depths,
            listed(self.radius, (0.0, *radii_for(n_graphs)), "radius", Real, 0),
            listed(self.gamma, AUTO_GAMMAS, "gamma", Real, 0, positive=True),
            listed(self.C, AUTO_CS, "C", Real, 0, positive=True),
        )
        return candidates

    def _listed_forms(self) -> list[str]:
        if self.approximation is None:
            return listed_forms(self.form)
        return forms_for(self.approximation, self.form)

    def _resolve_edge_labels(self, graphs: GraphCollection) -> bool:
        if self.edge_labels == "auto":
            return graphs.edge_codes is not None
        return bool(self.edge_labels)

    def _search(
        self, histograms: PatternHistograms, codes: np.ndarray, splits: list[Any], seed: int
    ) -> KernelSearch:
        return KernelSearch(
            histograms,
            codes,
            splits,
            self._seeded_learner(seed),
            first_depth=0 if self.include_depth_zero else 1,
            sample_weight=class_weights(self._class_weight, self.classes_, codes),
            score=SCORES[self._scoring],
            n_jobs=self._n_jobs(),
        )

    def _seeded_learner(self, seed: int) -> Any:
        """The learner that was given, or the default; without a seed of its own it gets ours."""
        if self.learner is None:
            return PairwiseWeights(n_jobs=self.n_jobs, random_state=seed)
        learner = clone(self.learner)
        if learner.get_params().get("random_state", seed) is None:
            learner.set_params(random_state=seed)
        return learner

    def _record_choice(
        self, chosen: Candidate, candidates: list[Candidate], codes: np.ndarray
    ) -> None:
        result = self.search_
        self.choice_ = {
            "form": chosen.form,
            "depth": chosen.depth,
            "radius": chosen.radius,
            "gamma": chosen.gamma,
            "C": chosen.C,
            "edge_labels": self._uses_edge_labels,
            "include_depth_zero": self.include_depth_zero,
            "scoring": self._scoring,
            "class_weight": self._class_weight,
            "rare_class": rarest_class(self.classes_, codes),
            "score": result.mean(chosen),
            "n_candidates": len(candidates),
            "n_splits": result.n_splits,
        }
        self.learning_gain_ = learning_gain(result)

    def _fit_chosen(
        self,
        chosen: Candidate,
        vocabulary: PatternVocabulary,
        search: KernelSearch,
        graphs: GraphCollection,
    ) -> None:
        """Weights and machine on all training graphs, keeping the graphs that carry it."""
        everything = np.arange(len(graphs))
        self.vocabulary_ = vocabulary.truncated(chosen.depth)
        first_depth = 0 if self.include_depth_zero else 1
        self._extractor = PatternExtractor(self.vocabulary_, first_depth, FORMS[chosen.form].kind)
        histograms = search.histograms.select_depths(first_depth, chosen.depth)
        if chosen.radius == 0:  # else the learner itself says so
            warn_if_nothing_shared(histograms)
        self.learner_ = None if chosen.radius == 0 else search.learn(chosen.base, everything)
        self.weights_ = (
            np.ones(histograms.n_patterns) if self.learner_ is None else self.learner_.weights_
        )
        pairs = self._extractor.pairs(histograms)
        sums = pair_sums(pairs, weights=self._weights(), n_jobs=self._n_jobs())
        selves = pairs.self_sums(self._weights())
        self.offset_ = float(selves.max())
        kernel = form_kernel(chosen.form, sums, selves, selves, self.offset_, chosen.gamma)
        machine = fit_machine(
            kernel, search.codes, search.n_classes, chosen.C, search.sample_weight
        )
        self.support_ = machine.support
        self._machine = machine.on(self.support_)
        self._support_pairs = self._extractor.pairs(histograms.select_graphs(self.support_))
        self._support_selves = selves[self.support_]
        held_out = self.search_.margins[chosen]
        known = np.isfinite(held_out).all(axis=1)  # a splitter need not cover every graph
        self._calibration = fit_calibration(held_out[known], search.codes[known])
        named = predicted_codes(self.search_.decisions[chosen][known])
        warn_if_one_class_is_all(named, self.classes_)
        self.train_histograms_ = histograms
        self.train_codes_ = search.codes

    # --- predicting -------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes).

        A logistic map fitted to decision values that the inner cross-validation held out; of
        several classes to :meth:`mean_margins`, which tell more of doubt than votes do.
        """
        check_is_fitted(self)
        probabilities = calibrated_probabilities(self._margins(X), *self._calibration)
        return checked_decisions(probabilities)

    def unseen_share(self, X: Any) -> np.ndarray:
        """Share of each graph's mass on patterns that training never saw, shape (n_graphs,)."""
        check_is_fitted(self)
        return self._extractor.histograms(self._new_graphs(X), self._n_jobs()).unseen_share()

    def decide(self, X: Any) -> MachinePredictions:
        """Decision values, probabilities and unseen shares; every graph is refined once."""
        check_is_fitted(self)
        graphs = self._new_graphs(X)
        histograms = self._extractor.histograms(graphs, self._n_jobs())
        features = self._extractor.features_of(graphs, histograms, self._weights())
        outputs = self._outputs_of(features)
        pairwise = self._machine.pairwise
        margins = mean_margins(outputs.T).T if pairwise else outputs
        probabilities = calibrated_probabilities(margins, *self._calibration)
        return MachinePredictions(
            class_values(outputs) if pairwise else outputs,
            checked_decisions(probabilities),
            histograms.unseen_share(),
        )

    def _margins(self, X: Any) -> np.ndarray:
        """As :meth:`mean_margins`, but one column for two classes."""
        outputs = self._outputs(X)
        return mean_margins(outputs.T).T if self._machine.pairwise else outputs

    def _decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        outputs = self._outputs(X)
        return class_values(outputs) if self._machine.pairwise else outputs

    def _outputs(self, X: Any) -> np.ndarray:
        """What the machine says, shape (n_graphs, n_outputs)."""
        graphs = self._new_graphs(X)
        return self._outputs_of(self._extractor.features(graphs, self._weights(), self._n_jobs()))

    def _outputs_of(self, features: Features) -> np.ndarray:
        if isinstance(self._machine, FeatureMachine):
            return checked_decisions(self._machine.decide(features, self._n_jobs()))
        sums = pair_sums(
            features.pairs, self._support_pairs, self._weights(), n_jobs=self._n_jobs()
        )
        kernel = form_kernel(
            self.choice_["form"], sums, features.self_sums, self._support_selves, self.offset_,
            self.choice_["gamma"],
        )  # fmt: skip
        return checked_decisions(self._machine.outputs(kernel))

    def mean_margins(self, X: Any) -> np.ndarray:
        """What :meth:`explain` explains: one value per class that is linear in the kernel.

        Of several classes, each of which a machine tells from each other one, it is the mean of the
        decisions for the class against the others. The class with the most votes, which is the
        predicted one, nearly always has the largest. With an ``approximation`` there is one
        decision per class in the first place, and this is it.

        Returns
        -------
        ndarray, shape (n_graphs, n_classes)

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphSVC("exponential", 2, 0, gamma=1.0, C=10.0).fit(graphs, y)
        >>> bool((model.mean_margins(graphs)[:, 1] == model.decision_function(graphs)).all())
        True
        """
        check_is_fitted(self)
        margins = self._margins(X)
        return np.hstack([-margins, margins]) if margins.shape[1] == 1 else margins

    # --- looking inside ---------------------------------------------------------------------

    @property
    def patterns_(self) -> Any:
        """DataFrame of all patterns: text, depth, weight, support, share of mass per class."""
        check_is_fitted(self)
        return pattern_table(
            self.vocabulary_,
            self.train_histograms_,
            self.weights_,
            self.train_codes_,
            self.classes_,
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
            ``edge_contributions``, ``neighbors`` and ``unseen_share``.
        """
        check_is_fitted(self)
        single = as_single_graph(graph, self.recipe_)
        explanation = explain_decision(
            single, self._decision_on(single), class_label=class_label, n_neighbors=n_neighbors
        )
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    def _decision_on(self, graph: GraphCollection) -> KernelDecision:
        """What explains the decision on one graph: on features no training graph carries it."""
        if isinstance(self._machine, FeatureMachine):
            return additive_decision(self, graph, usual_unseen_share(self.train_histograms_))
        return self._decision

    @property
    def _decision(self) -> KernelDecision:
        """The fitted model as plain data, which is what the explain room works on."""
        machine = self._machine
        coefficients, intercepts = machine.per_class
        return KernelDecision(
            vocabulary=self.vocabulary_,
            first_depth=self._extractor.first_depth,
            form=self.choice_["form"],
            weights=self.weights_,
            offset=self.offset_,
            gamma=self.choice_["gamma"],
            pairs=self._support_pairs,
            self_sums=self._support_selves,
            coefficients=coefficients,
            intercepts=intercepts,
            classes=self.classes_,
            training_indices=self.support_,
            training_codes=self.train_codes_[self.support_],
            unseen_limit=usual_unseen_share(self.train_histograms_),
            votes=(machine.coefficients, machine.intercepts) if machine.pairwise else None,
        )

    def generalization_bound(self, delta: float = 0.05) -> dict[str, Any]:
        """How much worse than on training pairs the learned distance can do on pairs of new graphs.

        The bounds are about the *pair loss*: the mean over pairs of graphs of the smoothed hinges
        that ask different classes to be far apart and equal ones near. They do not bound the
        classification error, nor do they know of the kernel's form and the machine. With
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
        >>> model = tl.GraphSVC("exponential", 2, 0, gamma=1.0, C=10.0).fit(graphs, y)
        >>> bound = model.generalization_bound()
        >>> bound["stability"]["k_n"]  # uniform weights
        0.0
        """
        check_is_fitted(self)
        return model_bound(self, delta)

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

        return summarize(self, X, y, names=names)

    def report(self, path: Any, X: Any = None, y: Any = None, *, names: Any = None) -> Any:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_report

        return write_report(self, path, X, y, names=names)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved."""
        from treelens.storage.persistence import save_model

        save_model(self, path)

    def _weights(self) -> np.ndarray | None:
        return None if self.learner_ is None else self.weights_
