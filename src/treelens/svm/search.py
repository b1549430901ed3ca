"""Choosing a kernel by cross-validation, with the work shared between grid points.

All graphs are refined and counted once. That leaks nothing: a kernel value depends only on
patterns that both graphs contain, so the entries between validation and training graphs are the
same whether or not the vocabulary has other patterns too. What is *learned*, the weights and the
SVM, comes from the training part of each split alone.

For one depth and one weight vector there is one matrix of sums; every kernel, scale and ``C``
derives from it. Candidates race: after each split those that fall clearly behind are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from treelens.evaluation.statistics import corrected_t_test, size_ratio
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.pairwise.learn import PairwiseWeights
from treelens.parallel import in_threads
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.svm.solver import decisions_of, fit_svm_path, margins_of, pairwise_hinge_loss

Split = tuple[np.ndarray, np.ndarray]
# Candidates behind the leader by more than this many standard errors leave the race.
_RACE_WIDTH = 2.0
_ROUGH_GAP, _ROUGH_STEPS = 1e-2, 40  # relative gap and iterations, enough to compare candidates
_SMALL, _MOST_REPETITIONS = 1000, 5  # a smaller training set is split several times over
_MOST_KEPT_BYTES = 2**29  # of sums with uniform weights
_MANY = 1500  # from so many graphs on, larger radii are tried


class BestParams(TypedDict, total=False):
    """The chosen settings, with "auto" resolved; model files are checked by it."""

    kernel: str
    depth: int
    weight_radius: float
    gamma: float | None
    C: float
    edge_labels: bool
    include_depth_zero: bool
    scoring: str
    class_weight: Any
    rare_class: dict[str, Any] | None
    score: float
    n_candidates: int
    n_splits: int


class Base(NamedTuple):
    """Settings that share one matrix of sums per split."""

    kind: str
    depth: int
    weight_radius: float


class Candidate(NamedTuple):
    """One point of the grid. Ordered so that, among equals, the simpler one comes first."""

    weight_radius: float
    depth: int
    kernel: str
    gamma: float | None
    C: float

    @property
    def base(self) -> Base:
        return Base(KERNELS[self.kernel].pair_feature, self.depth, self.weight_radius)


@dataclass
class SearchResult:
    """Scores of all candidates that were tried.

    ``losses``, hinge losses, rank candidates of equal score; a candidate that left the race has
    fewer of both. ``decisions`` and ``margins`` are held-out decision values, and values linear in
    the kernel, of candidates that finished: shape (n_graphs, n_outputs), averaged over
    repetitions, NaN for graphs that no split held out.
    """

    n_splits: int
    test_to_train: float  # size of the validation parts divided by that of the training parts
    scores: dict[Candidate, list[float]] = field(default_factory=dict)
    losses: dict[Candidate, list[float]] = field(default_factory=dict)
    decisions: dict[Candidate, np.ndarray] = field(default_factory=dict, metadata={"nan": True})
    margins: dict[Candidate, np.ndarray] = field(default_factory=dict)

    def finished(self) -> list[Candidate]:
        """Candidates scored on every split, the simpler first."""
        done = [c for c, x in self.scores.items() if len(x) == self.n_splits]
        return sorted(done, key=lambda c: tuple(-1.0 if x is None else x for x in c))

    def best(self, keep: Callable[[Candidate], bool] = lambda c: True) -> Candidate | None:
        """The best finished candidate: by score, then by hinge loss, then the simplest."""
        return max(filter(keep, self.finished()), key=self.merit, default=None)

    def winner(self) -> Candidate:
        """The best of all: the leader of a race always finishes."""
        return max(self.finished(), key=self.merit)

    def merit(self, candidate: Candidate) -> tuple[float, float]:
        loss = float(np.mean(self.losses[candidate]))
        return round(self.mean(candidate), 12), -round(loss, 12)

    def mean(self, candidate: Candidate) -> float:
        return float(np.mean(self.scores[candidate]))


@dataclass(eq=False)
class KernelSearch:
    """Scores settings on given splits of one training set."""

    counts: Callable[[int], PatternHistograms]  # of all training graphs up to a depth
    codes: np.ndarray  # classes 0, 1, ...
    splits: list[Split]
    learner: Any  # cloned with each radius; learns on the training part of a split
    sample_weight: np.ndarray
    score: Callable[[np.ndarray, np.ndarray], float]  # of codes and decisions
    n_jobs: int = 1
    tick: Callable[[str], None] = lambda what: None  # called after every finished unit of work
    _uniform: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False
    )
    _last_part: Any = field(default=None, init=False)  # (key, what _part returned)
    final: bool = False  # weights are learned to the learner's own tolerance, not roughly

    def run(
        self, candidates: Sequence[Candidate], result: SearchResult | None = None, race: bool = True
    ) -> SearchResult:
        """Score candidates split by split; ``result`` of an earlier stage joins the race."""
        if result is None:
            sizes = [len(v) for _, v in self.splits], [len(t) for t, _ in self.splits]
            result = SearchResult(len(self.splits), size_ratio(*sizes))
        held_out: dict[Candidate, list[np.ndarray]] = {c: [] for c in candidates}
        remaining = list(candidates)
        for number, (train, validation) in enumerate(self.splits, start=1):
            codes = self.codes[validation]
            groups: dict[Base, list[Candidate]] = {}
            for c in remaining:
                groups.setdefault(c.base, []).append(c)
            for base, group in sorted(groups.items()):  # radii of one depth in turn
                for c, outputs in self._outputs(base, group, train, validation):
                    score = self.score(codes, decisions_of(outputs))
                    result.scores.setdefault(c, []).append(score)
                    loss = pairwise_hinge_loss(codes, outputs)
                    result.losses.setdefault(c, []).append(loss)
                    held_out[c].append(outputs)
                self.tick(f"depth {base.depth}, weight radius {base.weight_radius:g}")
            if race and number < len(self.splits):
                remaining = self._still_racing(remaining, result, number)
        for candidate in remaining:
            result.decisions[candidate] = self._average(held_out[candidate], decisions_of)
            result.margins[candidate] = self._average(held_out[candidate], margins_of)
        return result

    def _still_racing(
        self, candidates: list[Candidate], result: SearchResult, n_done: int
    ) -> list[Candidate]:
        """Drop the candidates whose mean so far is clearly below the best mean so far."""
        # The error is that of a share of distinct graphs: repeated folds are not independent.
        means = {c: np.mean(x[:n_done]) for c, x in result.scores.items() if len(x) >= n_done}
        leader = float(max(means.values()))
        n_graphs = len(np.unique(np.concatenate([part for _, part in self.splits[:n_done]])))
        error = np.sqrt(max(leader * (1 - leader), 0.01) / n_graphs)
        return [c for c in candidates if means[c] >= leader - _RACE_WIDTH * error]

    def _outputs(
        self, base: Base, group: list[Candidate], train: np.ndarray, validation: np.ndarray
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Outputs of the validation graphs for candidates of one base."""
        weights = self.weights_for(base, train)
        sums, diagonal = self._sums(base, weights)
        columns = sums.take(train, axis=1)  # faster than both axes at once
        known, new = columns.take(train, axis=0), columns.take(validation, axis=0)
        own, others = diagonal[train], diagonal[validation]
        offset = float(own.max())
        # Kernels of one form differ in their scale only: their distances are computed once.
        unscaled = {}
        for name in {c.kernel: None for c in group}:
            form = WeightedKernel(name, None, None, offset)
            unscaled[name] = form.unscaled(known, own, own), form.unscaled(new, others, own)

        # Candidates that differ only in C: one kernel matrix, several SVMs.
        def of_kernel(block: list[Candidate]) -> list[np.ndarray]:
            kernel = WeightedKernel(block[0].kernel, None, block[0].gamma, offset)
            within, across = unscaled[block[0].kernel]
            svms = fit_svm_path(
                kernel.scaled(within),
                self.codes[train],
                int(self.codes.max()) + 1,
                [c.C for c in block],
                self.sample_weight[train],
            )
            new_matrix = kernel.scaled(across)
            return [svm.outputs(new_matrix) for svm in svms]

        by_kernel: dict[tuple[str, float | None], list[Candidate]] = {}
        for c in sorted(group, key=lambda c: c.C):
            by_kernel.setdefault((c.kernel, c.gamma), []).append(c)
        blocks = list(by_kernel.values())
        for block, outputs in zip(blocks, in_threads(of_kernel, blocks, self.n_jobs), strict=True):
            yield from zip(block, outputs, strict=True)

    def _sums(self, base: Base, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over all pairs of graphs, and the diagonal; uniform ones are kept."""
        key = base.kind, base.depth
        if weights is None and key in self._uniform:
            return self._uniform[key]
        histograms = self.counts(base.depth)
        pairs = PairFeatures.from_histograms(histograms, base.kind, unit=False)
        sums = pair_sums(pairs, weights=weights, n_jobs=self.n_jobs)
        found = sums, pairs.diagonal(weights)
        if weights is None and sums.nbytes * (len(self._uniform) + 1) <= _MOST_KEPT_BYTES:
            self._uniform[key] = found  # the same for every split
        return found

    def weights_for(self, base: Base, train: np.ndarray) -> np.ndarray | None:
        """Weights learned from the graphs of ``train``; None: uniform."""
        if base.weight_radius == 0:
            return None
        with warnings.catch_warnings():
            # Rough weights suffice to compare candidates; the chosen ones are learned in full.
            warnings.simplefilter("ignore")
            return self.learn(base, train, rough=not self.final).weights_

    def learn(self, base: Base, train: np.ndarray, rough: bool = False) -> Any:
        """The learner, fitted to the graphs of ``train``; other patterns keep weight one."""
        learner = clone(self.learner).set_params(radius=base.weight_radius)
        features, found = self._part(base, train)
        if rough and hasattr(learner, "used_solver"):
            learner.solver = solver = learner.used_solver()
            solver.tol = max(solver.tol, _ROUGH_GAP)
            if hasattr(solver, "max_iter"):
                solver.max_iter = min(solver.max_iter, _ROUGH_STEPS)
            learner.set_params(**found)
        learner.fit(features, self.codes[train])
        if rough and isinstance(learner, PairwiseWeights):
            margins = learner.result_.margins
            found.update(margins=(margins.alpha1, margins.alpha2), sigma=margins.sigma)
        return learner

    def _part(self, base: Base, train: np.ndarray) -> tuple[PairFeatures, dict[str, Any]]:
        """Features of the graphs of ``train``, and margins that another radius found for them."""
        key = base.kind, base.depth, train.tobytes()
        if self._last_part is None or self._last_part[0] != key:
            histograms = self.counts(base.depth)
            if len(train) < histograms.n_graphs:
                histograms = histograms.select_graphs(train)
            self._last_part = key, (PairFeatures.from_histograms(histograms, base.kind), {})
        return self._last_part[1]

    def _average(
        self, outputs: list[np.ndarray], values_of: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Means over repetitions of held-out values, NaN where a graph was never held out."""
        parts = [validation for _, validation in self.splits]
        repetitions = np.bincount(np.concatenate(parts), minlength=len(self.codes))
        total = np.zeros((len(self.codes), values_of(outputs[0]).shape[1]))
        for validation, part in zip(parts, outputs, strict=True):
            total[validation] += values_of(part)
        total /= repetitions.clip(1)[:, None]
        total[repetitions == 0] = np.nan
        return total


# --- scores -----------------------------------------------------------------------------------


def roc_auc(codes: np.ndarray, decisions: np.ndarray) -> float:
    """Area under the ROC curve; for several classes the mean of one against the rest."""
    targets = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    areas = [
        roc_auc_score(codes == target, decisions[:, column])
        for column, target in enumerate(targets)
        if 0 < np.count_nonzero(codes == target) < len(codes)
    ]
    return float(np.mean(areas)) if areas else 0.5


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda codes, found: float(np.mean(predicted_codes(found) == codes)),
    "balanced_accuracy": lambda codes, found: float(
        balanced_accuracy_score(codes, predicted_codes(found))
    ),
    "roc_auc": roc_auc,
}


# --- the grid and its two stages --------------------------------------------------------------


def grid(
    kernels: Sequence[str],
    depths: Sequence[int],
    radii: Sequence[float],
    gammas: Sequence[float],
    Cs: Sequence[float],
) -> list[Candidate]:
    """All combinations, each once; kernels without a scale have ``gamma=None``."""
    candidates = [
        Candidate(float(weight_radius), int(depth), kernel, gamma, float(C))
        for weight_radius in radii
        for depth in depths
        for kernel in kernels
        for gamma in (gammas if KERNELS[kernel].has_gamma else [None])
        for C in Cs
    ]
    return list(dict.fromkeys(candidates))


def staged_search(search: KernelSearch, candidates: list[Candidate]) -> SearchResult:
    """Uniform weights over the whole grid, then radii at settings that led at the end."""
    uniform = [c for c in candidates if c.weight_radius == 0]
    learned = [c for c in candidates if c.weight_radius > 0]
    result = search.run(uniform or learned)
    leading = set(leading_settings(result))  # none if all candidates are learned: all were tried
    second = [c for c in learned if c._replace(weight_radius=0.0) in leading]
    return search.run(second, result) if second else result


def leading_settings(result: SearchResult) -> list[Candidate]:
    """Settings to learn weights at: finished candidates at the best depth of each kernel."""
    best: dict[str, Candidate] = {}
    uniform = [c for c in result.finished() if c.weight_radius == 0]
    for c in sorted(uniform, key=result.merit, reverse=True):
        best.setdefault(c.kernel, c)
    return [c for c in uniform if c.depth == best[c.kernel].depth]


def radii_for(n_graphs: int) -> tuple[float, ...]:
    """The radii to try, beside 0: larger ones need many graphs, which have many patterns."""
    return (0.3, 1.0, 3.0) if n_graphs < _MANY else (1.0, 10.0, 30.0)


def repetitions_for(n_graphs: int) -> int:
    """How often to repeat a cross-validation: small sets are split several times."""
    return int(np.clip(_SMALL // max(n_graphs, 1), 1, _MOST_REPETITIONS))


def learning_gain(result: SearchResult) -> dict[str, Any] | None:
    """Paired difference of the best learned and the best uniform candidate; None without both."""
    # Both were chosen on these same splits: it describes the choice rather than proving a gain.
    learned = result.best(lambda c: c.weight_radius > 0)
    uniform = result.best(lambda c: c.weight_radius == 0)
    if learned is None or uniform is None:
        return None
    scores = result.scores
    test = corrected_t_test(scores[learned], scores[uniform], result.test_to_train)
    return {
        "difference": test.difference,
        "standard_error": test.standard_error,
        "p_value": test.p_value,
        "learned_score": result.mean(learned),
        "uniform_score": result.mean(uniform),
        "learned_candidate": learned._asdict(),
        "uniform_candidate": uniform._asdict(),
    }
