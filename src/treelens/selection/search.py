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
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.voting import class_values, margin_signs, mean_margins, n_classes_of
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.models.svm import fit_svm_path, own_margins
from treelens.models.tried import Base, Candidate, SearchResult
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures

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


class KernelSearch:
    """Scores kernels on given splits of one training set.

    Parameters
    ----------
    histograms : PatternHistograms
        Of all training graphs, every depth that may be tried.
    codes : ndarray of int
        Classes 0, 1, ...
    splits : list of (train, validation)
    learner : PairwiseWeights
        Cloned with each radius; learns on the training part of a split.
    first_depth : int
    sample_weight : ndarray
    score : callable
        ``score(codes, decisions) -> float``.
    n_jobs : int
    tick : callable
        Told about every finished unit of work, for progress.
    final : bool
        Whether weights are learned to the learner's own tolerance instead of roughly.
    """

    def __init__(
        self,
        histograms: PatternHistograms,
        codes: np.ndarray,
        splits: list[Split],
        learner: Any,
        first_depth: int,
        sample_weight: np.ndarray,
        score: Callable[[np.ndarray, np.ndarray], float],
        n_jobs: int = 1,
        tick: Callable[[str], None] = lambda what: None,
        final: bool = False,
    ) -> None:
        self.histograms = histograms
        self.codes = codes
        self.n_classes = int(codes.max()) + 1
        self.splits = splits
        self.learner = learner
        self.first_depth = first_depth
        self.sample_weight = sample_weight
        self.score = score
        self.n_jobs = n_jobs if len(codes) >= _WORTH_THREADS else 1
        self.tick = tick
        self.final = final

    def run(self, candidates: Sequence[Candidate], result: SearchResult | None = None,
            race: bool = True) -> SearchResult:  # fmt: skip
        """Score candidates split by split; ``result`` of an earlier stage joins the race."""
        result = result or SearchResult(len(self.splits), _test_to_train(self.splits))
        outputs = 1 if self.n_classes == 2 else self.n_classes
        # Of every candidate the decision values, and what is linear in the kernel.
        held_out = {c: np.zeros((2, len(self.codes), outputs)) for c in candidates}
        remaining = list(candidates)
        for number in range(len(self.splits)):
            validation = self.splits[number][1]
            for candidate, score, said in self._score_split(remaining, number):
                result.scores.setdefault(candidate, []).append(score)
                loss = pairwise_hinge_loss(self.codes[validation], said)
                result.losses.setdefault(candidate, []).append(loss)
                held_out[candidate][:, validation] += decisions_of(said), margins_of(said)
            if race and number + 1 < len(self.splits):
                remaining = self._still_racing(remaining, result, number + 1)
        repetitions = np.bincount(
            np.concatenate([validation for _, validation in self.splits]),
            minlength=len(self.codes),
        )
        for candidate in remaining:
            means = held_out[candidate] / repetitions.clip(1)[:, None]
            means[:, repetitions == 0] = np.nan
            result.decisions[candidate], result.margins[candidate] = means
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
            pairs, weights = self.weighted_pairs(base, train)
            sums = pair_sums(pairs, weights=weights, n_jobs=self.n_jobs)
            diagonal = pairs.diagonal(weights)
            offset = float(diagonal[train].max())
            blocks = by_kernel(group)
            scored = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(self._score_kernel)(block, sums, diagonal, offset, train, validation)
                for block in blocks
            )
            self.tick(f"depth {base.depth}, weight radius {base.weight_radius:g}")
            for block in scored:
                yield from block

    def weighted_pairs(
        self, base: Base, train: np.ndarray
    ) -> tuple[PairFeatures, np.ndarray | None]:
        """Pair features of all graphs, and weights learned from the graphs of ``train``."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        pairs = PairFeatures.from_histograms(histograms, base.kind, unit=False)
        if base.weight_radius == 0:
            return pairs, None
        with warnings.catch_warnings():
            # Rough weights will do to compare candidates; what is chosen is learned in full.
            warnings.simplefilter("ignore")
            return pairs, self.learn(base, train, rough=not self.final).weights_

    def learn(self, base: Base, train: np.ndarray, rough: bool = False) -> Any:
        """The learner, fitted to the graphs of ``train``; other patterns keep weight one."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        part = histograms if len(train) == histograms.n_graphs else histograms.select_graphs(train)
        unit_pairs = PairFeatures.from_histograms(part, base.kind)
        learner = clone(self.learner).set_params(radius=base.weight_radius)
        if rough:
            limits = {"tol": (max, _ROUGH_GAP), "max_iter": (min, _ROUGH_STEPS)}
            known = learner.get_params(deep=False)
            rougher = {k: f(known[k], limit) for k, (f, limit) in limits.items() if k in known}
            learner.set_params(**rougher)
        return learner.fit(unit_pairs, self.codes[train])

    def _score_kernel(
        self,
        block: list[Candidate],
        sums: np.ndarray,
        diagonal: np.ndarray,
        offset: float,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> list[tuple[Candidate, float, np.ndarray]]:
        """Candidates that differ only in ``C``: one kernel matrix, several SVMs."""
        kernel = WeightedKernel(block[0].kernel, None, block[0].gamma, offset)
        own, others = diagonal[train], diagonal[validation]
        new_matrix = kernel.of_sums(sums[np.ix_(validation, train)], others, own)
        svms = fit_svm_path(
            kernel.of_sums(sums[np.ix_(train, train)], own, own), self.codes[train], self.n_classes,
            [c.C for c in block], self.sample_weight[train],
        )  # fmt: skip
        all_outputs = [svm.outputs(new_matrix) for svm in svms]
        return [
            (candidate, self.score(self.codes[validation], decisions_of(outputs)), outputs)
            for candidate, outputs in zip(block, all_outputs, strict=True)
        ]


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
    settings = set(leading_settings(result))
    second = [c for c in learned if c._replace(weight_radius=0.0) in settings]
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
