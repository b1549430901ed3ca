"""A fitted SVM on graphs, frozen, and its fit: choose by cross-validation, then fit all graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from treelens.array_checks import (
    LARGEST,
    check_array,
    check_classes_ascend,
    check_positions,
    check_positive,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.kernels.table import KERNELS, check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.models.fitted import ComparedWeights, FittedModel, HeldOut, Learning, SearchEnd
from treelens.models.predictions import (
    CountedPart,
    KernelExpansion,
    Predictions,
    TrainingGraphs,
    class_weights,
    has_rare_class,
    predicted_codes,
    warn_if_one_class,
)
from treelens.pairwise.bounds import fitted_bound
from treelens.pairwise.learn import LearnedWeights, PairwiseWeights
from treelens.parallel import progress_ticks
from treelens.patterns.forest import PatternExtractor, SeenGraphs
from treelens.patterns.histograms import Features, GraphViews, PairFeatures, PatternHistograms
from treelens.svm.search import (
    SCORES,
    BestParams,
    Candidate,
    KernelSearch,
    SearchResult,
    Split,
    learning_gain,
    repetitions_for,
    staged_search,
)
from treelens.svm.solver import (
    SVM,
    calibrated_probabilities,
    decisions_of,
    fit_calibration,
    fit_svm_path,
    margins_of,
)

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

# What "auto" stands for. Wide enough that the choice is rarely at an edge.
AUTO_KERNELS = ("wwl", "tanimoto-rbf")
AUTO_DEPTHS = (1, 2, 3, 4, 5, 6)
AUTO_GAMMAS = (0.1, 1.0, 3.0, 10.0)
AUTO_CS = (0.1, 1.0, 3.0, 10.0, 100.0)
SCORE_NAMES = {"balanced_accuracy": "balanced accuracy", "roc_auc": "area under the ROC curve"}
_MOST_CANDIDATES = 10  # that a summary lists


@dataclass(frozen=True, eq=False)
class LinearOnKernel:
    """Outputs that are linear in kernel values with the support vectors."""

    kernel: WeightedKernel
    basis_indices: np.ndarray  # of the support vectors among the training graphs
    svm: SVM


@dataclass(frozen=True, eq=False)
class Choice:
    """How a model was chosen."""

    best_params: BestParams
    learning_gain: dict[str, Any] | None
    cv_results: SearchResult
    learner: dict[str, Any] | None  # its parameters; None if it is not a PairwiseWeights
    learned: LearnedWeights | None  # its record; None with uniform weights

    def to_stored(self) -> Choice:
        """Return all scores, and held-out decisions of the best candidate of each kind only."""
        search = self.cv_results
        best = [
            search.best(keep)
            for keep in (
                lambda c: True,
                lambda c: c.weight_radius == 0,
                lambda c: c.weight_radius > 0,
            )
        ]
        decisions = {c: x for c, x in search.decisions.items() if c in best}
        return replace(self, cv_results=replace(search, decisions=decisions, margins={}))

    def validate(self) -> None:
        search = self.cv_results
        check_positive(search.n_splits, "n_splits", 1e6)
        check_positive(search.test_to_train, "test_to_train", zero=True)
        for candidate, scores in search.scores.items():
            known = candidate.kernel in KERNELS and candidate.depth >= 0
            n_losses = len(search.losses.get(candidate, ()))
            if not known or not n_losses == len(scores) <= search.n_splits:
                raise ValueError("candidates must have a known kernel, and a score per split")
        if set(search.decisions) - set(search.scores) or search.best() is None:
            raise ValueError("one candidate must have been scored on all splits")
        for name in ("difference", "learned_score", "uniform_score", "standard_error", "p_value"):
            value = 0.0 if self.learning_gain is None else self.learning_gain[name]
            alone = search.n_splits == 1 and name in ("standard_error", "p_value")
            if not alone or value is not None:  # one split has no spread
                check_array(np.array(value), name, np.float64, (), -LARGEST)


@dataclass(frozen=True, eq=False)
class FittedSVM(FittedModel):
    """All that predictions, explanations, reports and model files need."""

    method: ClassVar = "svc"

    classes: np.ndarray
    patterns: PatternExtractor  # the vocabulary, and what the kernel takes from it
    decision: LinearOnKernel
    recipe: GraphRecipe | None  # how the training graphs were made
    calibration: tuple[np.ndarray, np.ndarray]  # a logistic map from margins to probabilities
    training: TrainingGraphs
    choice: Choice

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored model do not fit together."""
        check_classes_ascend(self.classes)
        histograms, first = self.training.histograms, self.patterns.first_depth
        n_classes, n_graphs = len(self.classes), histograms.n_graphs
        indices = self.decision.basis_indices
        forest = self.patterns.forest
        offsets = forest.level_offsets
        if not 0 <= first < len(offsets) - 1 or histograms.first_depth != first:
            raise ValueError("first_depth must be a depth of the vocabulary, and the histograms'")
        if not np.array_equal(histograms.level_offsets, offsets[first:] - offsets[first]):
            raise ValueError("the histograms must count the patterns of the vocabulary")
        for name in ("level_depths", "level_shares"):
            if not np.array_equal(getattr(histograms, name), getattr(forest, name)[first:]):
                raise ValueError(f"{name} must be those of the vocabulary")
        histograms.check_every_node()
        if self.patterns.kind != self.kernel.pair_feature:
            raise ValueError("the kind of pair feature must be that of the kernel")
        check_array(self.weights, "weights", np.float64, (histograms.n_patterns,))
        check_array(self.training.targets, "targets", np.int64, (n_graphs,), 0, n_classes)
        check_positions(indices, "basis_indices", n_graphs)
        svm, n_pairs = self.decision.svm, n_classes * (n_classes - 1) // 2
        check_array(svm.coefficients, "coefficients", np.float64, (n_pairs, len(indices)))
        check_array(svm.intercepts, "intercepts", np.float64, (n_pairs,))
        n_outputs = 1 if n_classes == 2 else n_classes
        check_array(self.calibration[0], "calibration", np.float64, (n_outputs, n_outputs))
        check_array(self.calibration[1], "calibration", np.float64, (n_outputs,))
        for held_out in self.choice.cv_results.decisions.values():
            check_array(held_out, "decisions", np.float64, (n_graphs, n_outputs))
        learned = self.choice.learned
        if (learned is None) != (self.kernel.weights is None):
            raise ValueError("learned weights must be those of the kernel")
        if learned is not None and len(learned.moved) != histograms.n_depths:
            raise ValueError("moved must have one entry per depth")

    @property
    def kernel(self) -> WeightedKernel:
        return self.decision.kernel

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""
        if self.kernel.weights is not None:
            return self.kernel.weights
        offsets = self.patterns.forest.level_offsets
        return np.ones(int(offsets[-1] - offsets[self.patterns.first_depth]))

    @cached_property
    def training_graphs(self) -> GraphViews:
        """All training graphs, of which the support vectors are a part."""
        return GraphViews((self._features(self.training.histograms),))

    @cached_property
    def basis(self) -> Features:
        """Features of the support vectors."""
        return self._features(self.training.histograms.select_graphs(self.decision.basis_indices))

    def _features(self, histograms: PatternHistograms) -> Features:
        pairs = self.patterns.pairs(histograms)
        return Features.of(pairs, self.kernel.weights)

    @cached_property
    def expansion(self) -> KernelExpansion:
        """Of several classes, the mean of the decisions for each against each other class."""
        first = self.patterns.first_depth
        part = CountedPart(0, self.patterns.forest, first, self.kernel, self.weights)
        return KernelExpansion(
            (part,),
            GraphViews((self.basis,)),
            self.decision.basis_indices,
            *self.decision.svm.per_class,
            self.classes,
            self.refine,
        )

    kernel_scale: ClassVar = 1.0

    def kernel_among(
        self, graphs: GraphCollection, others: GraphCollection | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Kernel values among any graphs; patterns that training never saw have weight one."""
        sides = [graphs] if others is None else [graphs, others]
        kernel, shown = self._wider(sides, n_jobs)
        return kernel.matrix(shown[0], shown[-1], n_jobs)

    def kernel_of_each(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        """Kernel values of graphs with themselves, shape (n_graphs,)."""
        kernel, (shown,) = self._wider([graphs], n_jobs)
        diagonal = shown.diagonal
        rows = (kernel.of_sums(x[:, None], x, x) for x in diagonal[:, None])
        return np.array([row[0, 0] for row in rows]).reshape(len(graphs))

    def _wider(
        self, sides: Sequence[GraphCollection], n_jobs: int
    ) -> tuple[WeightedKernel, list[Features]]:
        """Return the kernel with the patterns of new graphs added, and these graphs."""
        patterns, first, weights = self.patterns, self.patterns.first_depth, self.kernel.weights
        for some in sides:
            patterns = replace(patterns, forest=patterns.forest.extend(some, n_jobs)[0])
        if weights is not None:
            before, after = self.patterns.forest.level_offsets, patterns.forest.level_offsets
            known, weights = weights, np.ones(int(after[-1] - after[first]))
            for level in range(first, len(before) - 1):  # known patterns come first in each
                start, n = int(after[level] - after[first]), int(before[level + 1] - before[level])
                old = int(before[level] - before[first])
                weights[start : start + n] = known[old : old + n]
        shown = [patterns.refine(some, weights, n_jobs).features for some in sides]
        return replace(self.kernel, weights=weights), shown

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the model sees them."""
        return SeenGraphs((self.patterns.refine(graphs, self.kernel.weights, n_jobs),))

    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        device: str = "cpu",
    ) -> Predictions:
        if variance or device != "cpu":
            raise ValueError("A support vector machine has no variances, and predicts on the CPU.")
        seen = self.refine(graphs, n_jobs)
        rows = self.kernel.matrix(seen.patterns.features, self.basis, n_jobs)
        outputs = self.decision.svm.outputs(rows)
        margins = margins_of(outputs)
        return Predictions(
            decisions_of(outputs),
            seen.patterns.histograms.out_of_vocabulary(),
            seen,
            margins,
            calibrated_probabilities(margins, *self.calibration),
        ).checked()

    # --- how it was fitted ----------------------------------------------------------------------

    @property
    def held_out(self) -> HeldOut | None:
        best, kept = self.choice.best_params, self.choice.cv_results.decisions
        chosen = [c for c in kept if c._asdict().items() <= best.items()]
        decisions = kept[chosen[0]] if chosen else np.empty((0, 1))
        # A splitter need not hold out every graph.
        known = np.asarray(np.isfinite(decisions).all(axis=1))
        if not known.any():
            return None
        probabilities = None
        if decisions.shape[1] == 1:  # of more classes, a model file has votes but no margins
            probabilities = calibrated_probabilities(decisions, *self.calibration)
        codes = predicted_codes(decisions)
        return HeldOut("cross-validation", known, codes, None, probabilities, decisions)

    @property
    def learning(self) -> Learning:
        gain, best = self.choice.learning_gain, self.choice.best_params
        measure = SCORE_NAMES.get(best["scoring"], best["scoring"])
        used = "learned" if best["weight_radius"] > 0 else "uniform"
        if gain is None:
            sentence = f"{used} weights; no other weights were compared."
            return Learning(used, sentence, measure, (), {})
        error = p_value = ""
        if gain["p_value"] is not None:
            error = f" ± {100 * gain['standard_error']:.1f}"
            p_value = f" (p = {gain['p_value']:.2f})"
        sentence = (
            f"{used} weights. In cross-validation the {measure} of learned weights differs from "
            f"that of uniform weights by {100 * gain['difference']:+.1f}{error} points{p_value}."
        )
        compared = tuple(
            ComparedWeights(f"{name} weights", gain[f"{name}_score"], name == used)
            for name in ("uniform", "learned")
        )
        return Learning(used, sentence, measure, compared, {})

    @property
    def search_end(self) -> SearchEnd | None:
        learned = self.choice.learned
        if learned is None:
            return None
        return SearchEnd(learned.converged, learned.n_iter, False, "iterations")

    def settings(self) -> dict[str, Any]:
        """Return the settings, and the candidates that scored best."""
        best, result = self.choice.best_params, self.choice.cv_results
        leading = sorted(result.finished(), key=result.mean, reverse=True)[:_MOST_CANDIDATES]
        candidates = [
            {
                **candidate._asdict(),
                "score": result.mean(candidate),
                "std": float(np.std(result.scores[candidate])),
                "chosen": candidate._asdict().items() <= best.items(),
            }
            for candidate in leading
        ]
        kernel = KERNELS[best["kernel"]]
        words = {"formula": kernel.formula, "words": kernel.words}
        score = {"score_name": SCORE_NAMES.get(best["scoring"], best["scoring"])}
        return {**best, **words, **score, "candidates": candidates}


def model_bound(model: FittedSVM, delta: float) -> dict[str, Any]:
    """The generalisation bound of a fitted SVM; see ``GraphSVC.generalization_bound``."""
    codes, choice = model.training.targets, model.choice
    pairs = PairFeatures.from_histograms(model.training.histograms, model.patterns.kind)
    learner = PairwiseWeights.from_flat({**(choice.learner or {}), "n_jobs": 1})
    learned = choice.learned
    if learned is None:  # uniform weights: the margins are those it would have learned with
        learned = learner.set_params(radius=0.0).fit(pairs, codes).result_
    bound = fitted_bound(pairs, codes, learner, learned, delta)
    n_candidates = choice.best_params["n_candidates"]
    if n_candidates > 1:
        bound["caveats"].append(
            f"The model was chosen among {n_candidates} candidates by cross-validation on the "
            "same graphs; the theorems are about one fixed beforehand."
        )
    return bound


# --- settings -----------------------------------------------------------------------------------


def inner_splits(cv: Any, codes: np.ndarray, classes: np.ndarray, seed: int) -> list[Split]:
    """Splits of the training graphs: the user's, or stratified folds, repeated for small sets."""
    if not isinstance(cv, Integral):
        splits = [
            (np.asarray(train, dtype=int), np.asarray(part, dtype=int))
            for train, part in cv.split(codes, codes)
        ]
        held_out = {code for _, part in splits for code in codes[part].tolist()}
        usable = all(len(np.unique(codes[train])) > 1 and len(part) for train, part in splits)
        if not usable or len(held_out) < len(classes):
            raise ValueError(
                "Each split of cv must have training graphs of two classes and a validation graph, "
                "and every class must be held out by some split: use StratifiedKFold."
            )
        return splits
    counts = np.bincount(codes)
    smallest, rare = int(counts.min()), classes.tolist()[int(counts.argmin())]
    if smallest < 2:
        raise ValueError(
            f"Class {rare!r} has one member: cross-validation needs at least 2 of every class. "
            "Drop the class, merge it with another or collect more of it."
        )
    n_folds = min(int(cv), smallest)
    if n_folds < int(cv):
        warnings.warn(
            f"Class {rare!r} has {smallest} members, fewer than cv={cv} folds: "
            f"cross-validating with {n_folds} folds, so that each contains one of them.",
            stacklevel=3,
        )
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=repetitions_for(len(codes)), random_state=seed
    )
    return list(splitter.split(codes, codes))


def resolved(scoring: str, class_weight: object, codes: np.ndarray) -> tuple[str, Any]:
    """Score and class weights behind "auto": accuracy and none, unless a class is rare."""
    rare = has_rare_class(codes)
    if isinstance(class_weight, str) and class_weight == "auto":
        regards_it = scoring in ("auto", "balanced_accuracy")
        class_weight = "balanced" if rare and regards_it else None
    if scoring == "auto":
        for_rare = "roc_auc" if codes.max() == 1 else "balanced_accuracy"
        scoring = for_rare if rare else "accuracy"
    return scoring, class_weight


def listed_kernels(kernel: str | Sequence[str]) -> list[str]:
    """The kernels to try."""
    if isinstance(kernel, str):
        return list(AUTO_KERNELS) if kernel == "auto" else [kernel]
    for name in kernel or [""]:  # none at all is no kernel either
        check_kernel(name)
    return list(kernel)


def listed(
    value: Any, auto: Iterable[Any], name: str, kind: Any, positive: bool = False
) -> list[Any]:
    """A parameter that may be "auto", one number or several, as a list of numbers."""
    if isinstance(value, str):
        return list(auto)
    values = [value] if isinstance(value, kind) else list(value)
    if not values or not all(
        isinstance(v, kind) and 0 <= v < np.inf and (v > 0 or not positive) for v in values
    ):
        numbers = "whole numbers" if kind is Integral else "numbers"
        bound = "above 0" if positive else "of at least 0"
        raise ValueError(f"{name} must be 'auto' or finite {numbers} {bound}, got {value!r}.")
    return values


# --- fitting ------------------------------------------------------------------------------------


def fit_chosen(
    graphs: GraphCollection,
    classes: np.ndarray,
    codes: np.ndarray,
    candidates: list[Candidate],
    *,
    learner: object,
    first_depth: int,
    edge_labels: bool,
    attributes: bool,
    scoring: str,
    class_weight: object,
    sample_weight: np.ndarray | None,
    cv: int | BaseCrossValidator,
    seed: int,
    n_jobs: int,
    progress: bool | None,
) -> tuple[FittedSVM, Any]:
    """Return a model with settings chosen on held-out parts, and its learner (None: uniform)."""
    scoring, class_weight = resolved(scoring, class_weight, codes)
    patterns, colors = PatternExtractor.fit(
        graphs,
        max(c.depth for c in candidates),
        first_depth,
        KERNELS[candidates[0].kernel].pair_feature,
        edge_labels=edge_labels,
        attributes=attributes,
        n_jobs=n_jobs,
    )
    everything = patterns.count(colors)

    def counts(depth: int) -> PatternHistograms:
        return everything.select_levels(everything.level_depths <= depth)

    costs = class_weights(class_weight, classes, codes)
    if sample_weight is not None:
        costs = costs * sample_weight
    search = KernelSearch(
        counts,
        codes,
        inner_splits(cv, codes, classes, seed),
        learner,
        costs,
        SCORES[scoring],
        n_jobs,
    )
    with progress_ticks(progress, "Choosing a kernel") as search.tick:
        result = staged_search(search, candidates)
    chosen = result.winner()
    # A splitter of the user's need not hold out every graph.
    known = np.isfinite(result.margins[chosen]).all(axis=1)
    calibration = fit_calibration(result.margins[chosen][known], codes[known])

    histograms = counts(chosen.depth)
    kind = KERNELS[chosen.kernel].pair_feature
    patterns = replace(patterns, forest=patterns.forest.truncated(chosen.depth), kind=kind)
    fitted = None
    if chosen.weight_radius > 0:
        fitted = search.learn(chosen.base, np.arange(len(codes)))
    elif not (histograms.support >= 2).any():  # a learner warns about this itself
        warnings.warn(
            "No two training graphs share a pattern: the weights are uniform and predictions "
            "little better than chance. Do the node labels identify single nodes?",
            stacklevel=3,
        )
    warn_if_one_class(predicted_codes(result.decisions[chosen][known]), classes)
    weights = None if fitted is None else fitted.weights_
    pairs = patterns.pairs(histograms)
    features = Features.of(pairs, weights)
    kernel = WeightedKernel(chosen.kernel, weights, chosen.gamma, float(features.diagonal.max()))
    matrix = kernel.matrix(features, n_jobs=n_jobs)
    svm = fit_svm_path(matrix, codes, len(classes), [chosen.C], costs)[0]
    svm, support = SVM(svm.coefficients[:, svm.support], svm.intercepts), svm.support
    sizes = np.bincount(codes)
    rarest = int(sizes.argmin())
    rare_class = {"class": classes.tolist()[rarest], "share": float(sizes[rarest] / len(codes))}
    used = learner if fitted is None else fitted
    best_params: Any = {
        **chosen._asdict(),
        "edge_labels": edge_labels,
        "include_depth_zero": first_depth == 0,
        "scoring": scoring,
        "class_weight": class_weight,
        "rare_class": rare_class if has_rare_class(codes) else None,
        "score": result.mean(chosen),
        "n_candidates": len(candidates),
        "n_splits": result.n_splits,
    }
    choice = Choice(
        best_params,
        learning_gain(result),
        result,
        used.flat_parameters() if hasattr(used, "flat_parameters") else None,
        getattr(fitted, "result_", None),
    )
    training = TrainingGraphs((histograms,), codes).with_identity(graphs)
    decision = LinearOnKernel(kernel, support, svm)
    model = FittedSVM(classes, patterns, decision, graphs.recipe, calibration, training, choice)
    return model, fitted
