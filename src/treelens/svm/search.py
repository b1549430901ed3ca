"""Choosing a kernel by cross-validation, with the work shared between grid points.

All graphs are refined and counted once. That leaks nothing: a kernel value depends only on
patterns that both graphs hold, so the entries between validation and training graphs are the
same whether or not the vocabulary has other patterns too. What is *learned*, the weights and the
machine, comes from the training part of each split alone.

For one depth and one weight vector there is one matrix of sums; every kernel, scale and ``C``
derives from it. Candidates race: after each split those that fall clearly behind are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.voting import class_values, margin_signs, mean_margins, n_classes_of
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.pairwise.settings import limited
from treelens.parallel import in_threads
from treelens.patterns.features import Features, select_features
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.svm.search_result import Base, BestParams, Candidate, SearchResult
from treelens.svm.svm import fit_svm_path, own_margins

Split = tuple[np.ndarray, np.ndarray]
# Candidates behind the leader by more than this many standard errors leave the race.
_RACE_WIDTH = 2.0
# Relative gap and number of iterations that suffice to compare candidates.
_ROUGH_GAP = 1e-2
_ROUGH_STEPS = 40
# A training set smaller than this is split several times over.
_SMALL = 1000
_MOST_REPETITIONS = 5
# From this many graphs on, larger radii are tried.
_MANY = 1500
# Below this many graphs, starting threads costs more than they bring.
_WORTH_THREADS = 500


# Outputs of the validation graphs of every split.
HeldOut = dict[Candidate, list[np.ndarray]]


class Calibrating(NamedTuple):
    """Held-out graphs: what probabilities are made from, decision values, and classes."""

    margins: np.ndarray
    decisions: np.ndarray
    codes: np.ndarray


@dataclass(eq=False)
class KernelSearch:
    """Scores settings on given splits of one training set.

    A subclass may say otherwise how outputs are found (``_outputs``), what they mean
    (``_decisions``, ``_loss``), how weights are learned (``learned``) and where (``leading``).
    """

    sums_of_all: ClassVar[bool] = True  # made at once; where graphs are many, only those in use
    histograms: PatternHistograms  # of all training graphs, every depth that may be tried
    codes: np.ndarray  # classes 0, 1, ...
    splits: list[Split]
    learner: Any  # cloned with each radius; learns on the training part of a split
    first_depth: int
    sample_weight: np.ndarray
    score: Callable[[np.ndarray, np.ndarray], float]  # of codes and decisions
    n_jobs: int = 1
    tick: Callable[[str], None] = lambda what: None  # told about every finished unit of work
    final: bool = False  # weights are learned to the learner's own tolerance, not roughly
    facts: BestParams = field(default_factory=lambda: BestParams())  # about the search itself

    def __post_init__(self) -> None:
        if len(self.codes) < _WORTH_THREADS:
            self.n_jobs = 1

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    def run(self, candidates: Sequence[Candidate], result: SearchResult | None = None,
            race: bool = True) -> SearchResult:  # fmt: skip
        """Score candidates split by split; ``result`` of an earlier stage joins the race."""
        result = result or SearchResult(len(self.splits), _test_to_train(self.splits))
        held_out: HeldOut = {c: [] for c in candidates}
        remaining = list(candidates)
        for number in range(len(self.splits)):
            codes = self.codes[self.splits[number][1]]
            for candidate, score, outputs in self._score_split(remaining, number):
                result.scores.setdefault(candidate, []).append(score)
                result.losses.setdefault(candidate, []).append(self._loss(codes, outputs))
                held_out[candidate].append(outputs)
            if race and number + 1 < len(self.splits):
                remaining = self._still_racing(remaining, result, number + 1)
        self._keep({c: held_out[c] for c in remaining}, result)
        return result

    def _still_racing(
        self, candidates: list[Candidate], result: SearchResult, n_done: int
    ) -> list[Candidate]:
        """Drop the candidates whose mean so far is clearly below the best mean so far."""
        means = {
            c: float(np.mean(x[:n_done])) for c, x in result.scores.items() if len(x) >= n_done
        }
        leader = max(means.values())
        n_seen = sum(len(validation) for _, validation in self.splits[:n_done])
        error = np.sqrt(max(leader * (1 - leader), 0.01) / n_seen)
        return [c for c in candidates if means[c] >= leader - _RACE_WIDTH * error]

    def _score_split(
        self, candidates: list[Candidate], number: int
    ) -> Iterator[tuple[Candidate, float, np.ndarray]]:
        train, validation = self.splits[number]
        for base, group in by_base(candidates).items():
            weights = self.weights_for(base, train)
            features = self.features(base, weights)
            for candidate, outputs in self._outputs(group, features, weights, train, validation):
                score = self.score(self.codes[validation], self._decisions(outputs))
                yield candidate, score, outputs
            self.tick(f"depth {base.depth}, weight radius {base.weight_radius:g}")

    # --- weights and features -----------------------------------------------------------------

    def weights_for(self, base: Base, train: np.ndarray) -> np.ndarray | None:
        """Weights learned from the graphs of ``train``; None: uniform."""
        if base.weight_radius == 0:
            return None
        with warnings.catch_warnings():
            # Rough weights will do to compare candidates; what is chosen is learned in full.
            warnings.simplefilter("ignore")
            return self.learn(base, train, rough=not self.final).weights_

    def features(self, base: Base, weights: np.ndarray | None) -> Features:
        """Of all graphs."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        pairs = PairFeatures.from_histograms(histograms, base.kind, unit=False)
        return Features(pairs, pairs.diagonal(weights))

    def learn(self, base: Base, train: np.ndarray, rough: bool = False) -> Any:
        """The learner, fitted to the graphs of ``train``; other patterns keep weight one."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        part = histograms if len(train) == histograms.n_graphs else histograms.select_graphs(train)
        return self.learned(part, self.codes[train], base, rough)

    def learned(
        self, histograms: PatternHistograms, codes: np.ndarray, base: Base, rough: bool = False
    ) -> Any:
        """The learner, fitted to all graphs of some histograms."""
        learner = clone(self.learner)
        if rough:
            learner = limited(learner, tol=_ROUGH_GAP, max_iter=_ROUGH_STEPS)
        learner.set_params(radius=base.weight_radius)
        return learner.fit(PairFeatures.from_histograms(histograms, base.kind), codes)

    # --- how a candidate is scored ------------------------------------------------------------

    def _outputs(
        self,
        group: list[Candidate],
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Of SVMs on the exact kernel, for candidates of one base."""
        if self.sums_of_all:
            sums = pair_sums(features.pairs, weights=weights, n_jobs=self.n_jobs)
            known, new = sums[np.ix_(train, train)], sums[np.ix_(validation, train)]
        else:
            left, right = (select_features(features, part).pairs for part in (train, validation))
            known = pair_sums(left, weights=weights, n_jobs=self.n_jobs)
            new = pair_sums(right, left, weights, n_jobs=self.n_jobs)
        own, others = features.diagonal[train], features.diagonal[validation]

        def of_kernel(block: list[Candidate]) -> list[np.ndarray]:
            """Candidates that differ only in ``C``: one kernel matrix, several SVMs."""
            kernel = WeightedKernel(block[0].kernel, None, block[0].gamma, float(own.max()))
            svms = fit_svm_path(
                kernel.of_sums(known, own, own), self.codes[train], self.n_classes,
                [c.C for c in block], self.sample_weight[train],
            )  # fmt: skip
            new_matrix = kernel.of_sums(new, others, own)
            return [svm.outputs(new_matrix) for svm in svms]

        blocks = by_kernel(group)
        found = in_threads(of_kernel, blocks, self.n_jobs)
        for block, outputs in zip(blocks, found, strict=True):
            yield from zip(block, outputs, strict=True)

    def _decisions(self, outputs: np.ndarray) -> np.ndarray:
        return decisions_of(outputs)

    def _loss(self, codes: np.ndarray, outputs: np.ndarray) -> float:
        return pairwise_hinge_loss(codes, outputs)

    def leading(self, result: SearchResult, learned: list[Candidate]) -> list[Candidate]:
        """Those of the candidates with learned weights that are worth a try."""
        settings = set(leading_settings(result))
        return [c for c in learned if c._replace(weight_radius=0.0) in settings]

    # --- what was held out --------------------------------------------------------------------

    def _keep(self, held_out: HeldOut, result: SearchResult) -> None:
        """Decisions and margins of every graph, the means over repetitions."""
        parts = [validation for _, validation in self.splits]
        repetitions = np.bincount(np.concatenate(parts), minlength=len(self.codes))
        for candidate, outputs in held_out.items():
            for kept, meaning in ((result.decisions, decisions_of), (result.margins, margins_of)):
                total = np.zeros((len(self.codes), 1 if self.n_classes == 2 else self.n_classes))
                for validation, part in zip(parts, outputs, strict=True):
                    total[validation] += meaning(part)
                kept[candidate] = total / repetitions.clip(1)[:, None]
                kept[candidate][repetitions == 0] = np.nan

    def calibrating(self, chosen: Candidate, result: SearchResult) -> Calibrating:
        """What was held out at the chosen settings; a splitter need not cover every graph."""
        margins = result.margins[chosen]
        known = np.isfinite(margins).all(axis=1)
        return Calibrating(margins[known], result.decisions[chosen][known], self.codes[known])


def accuracy(codes: np.ndarray, decisions: np.ndarray) -> float:
    """Share of graphs put into their class."""
    return float(np.mean(predicted_codes(decisions) == codes))


def balanced_accuracy(codes: np.ndarray, decisions: np.ndarray) -> float:
    """Mean over the classes of the share of their graphs that is recognised."""
    return float(balanced_accuracy_score(codes, predicted_codes(decisions)))


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
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "roc_auc": roc_auc,
}


def hinge_loss(codes: np.ndarray, decisions: np.ndarray) -> float:
    """Mean hinge loss of decision values; of several, the lead of the class over the next best."""
    return float(np.maximum(0.0, 1.0 - own_margins(codes, decisions)).mean())


def pairwise_hinge_loss(codes: np.ndarray, outputs: np.ndarray) -> float:
    """Mean hinge loss of the outputs that are of a graph's class: the SVM's own loss.

    Two classes have one output, and every graph counts for it.
    """
    signs = margin_signs(n_classes_of(outputs.shape[1]))[codes]  # (n_graphs, n_pairs)
    losses = np.maximum(0.0, 1.0 - signs * outputs)
    return float(losses[signs != 0].mean())


def decisions_of(outputs: np.ndarray) -> np.ndarray:
    """Decision values from the outputs of a kernel machine: votes where there are several."""
    return outputs if outputs.shape[1] == 1 else class_values(outputs)


def margins_of(outputs: np.ndarray) -> np.ndarray:
    """What is linear in the kernel, per class where there are several."""
    return outputs if outputs.shape[1] == 1 else mean_margins(outputs.T).T


def _test_to_train(splits: list[Split]) -> float:
    return float(np.mean([len(validation) / len(train) for train, validation in splits]))


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


def staged_search(
    search: KernelSearch, candidates: list[Candidate]
) -> tuple[SearchResult, Candidate]:
    """Uniform weights over the whole grid, then radii at the best depth of every kernel.

    The second stage tries only settings that were still in the race at the end of the first.
    """
    uniform = [c for c in candidates if c.weight_radius == 0]
    learned = [c for c in candidates if c.weight_radius > 0]
    if not uniform:  # the caller wants learned weights only: search all of them
        result = search.run(learned)
        return result, result.winner()
    result = search.run(uniform)
    second = search.leading(result, learned)
    if second:
        result = search.run(second, result)
    return result, result.winner()


def leading_settings(result: SearchResult) -> list[Candidate]:
    """Settings to try learned weights at: what finished the race at the best depth of each kernel.

    ``result`` is a finished search with uniform weights.
    """
    settings = []
    for kernel in sorted({c.kernel for c in result.scores}):
        leader = result.best(lambda c, kernel=kernel: c.kernel == kernel and c.weight_radius == 0)  # type: ignore[misc]
        if leader is not None:
            settings += [
                c
                for c in result.finished()
                if c.kernel == kernel and c.depth == leader.depth and c.weight_radius == 0
            ]
    return settings


def radii_for(n_graphs: int) -> tuple[float, ...]:
    """The radii to try, beside 0, for a training set of this size.

    Many graphs hold many patterns, and the norm of as many weights is larger; few graphs do not
    support a large one.
    """
    return (0.3, 1.0, 3.0) if n_graphs < _MANY else (1.0, 10.0, 30.0)


def repetitions_for(n_graphs: int) -> int:
    """How often to repeat a cross-validation: small sets are split anew, to steady the choice."""
    return int(np.clip(_SMALL // max(n_graphs, 1), 1, _MOST_REPETITIONS))


def by_base(candidates: Sequence[Candidate]) -> dict[Base, list[Candidate]]:
    """Candidates that share one matrix of sums."""
    groups: dict[Base, list[Candidate]] = {}
    for c in candidates:
        groups.setdefault(c.base, []).append(c)
    return groups


def by_kernel(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Candidates of one base that differ in C alone together, C ascending."""
    groups: dict[tuple[str, float | None], list[Candidate]] = {}
    for c in candidates:
        groups.setdefault((c.kernel, c.gamma), []).append(c)
    return [sorted(group, key=lambda c: c.C) for group in groups.values()]
