"""A linear model on explicit features: decisions, what patterns add to them, its stored form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from treelens.explain.contributions import KernelDecision
from treelens.graphs.collection import GraphCollection
from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.approximate import (
    RandomFourierFeatures,
    UnaryFeatures,
    cauchy_sums,
)
from treelens.kernels.binning import RandomBinning
from treelens.kernels.table import SUM_KERNELS, UNARY_KERNELS
from treelens.patterns.features import Features
from treelens.patterns.histograms import SparseRows
from treelens.patterns.pairs import PairFeatures
from treelens.storage.stored_records import check_thresholds, checked_feature_numbers

if TYPE_CHECKING:
    from treelens.estimators.svc import GraphSVC
    from treelens.storage.stored import Stored


@dataclass(frozen=True)
class LinearOnFeatures:
    """Decision values ``features @ coefficients.T + intercepts``.

    Attributes
    ----------
    feature_map : RandomBinning, RandomFourierFeatures or UnaryFeatures
    coefficients : ndarray, shape (n_outputs, n_features)
    intercepts : ndarray, shape (n_outputs,)
    """

    feature_map: RandomBinning | RandomFourierFeatures | UnaryFeatures
    coefficients: np.ndarray
    intercepts: np.ndarray
    pairwise: ClassVar[bool] = False  # several classes: each against the rest

    @property
    def per_class(self) -> tuple[np.ndarray, np.ndarray]:
        """The same face as :class:`~treelens.models.svm.SVM`."""
        return self.coefficients, self.intercepts

    def decide(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """Decision values of graphs, shape (n_graphs, n_outputs)."""
        mapped = self.feature_map.transform(features, n_jobs=n_jobs)
        return mapped @ self.coefficients.T + self.intercepts

    def contributions(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """What the patterns of one graph add to every decision value.

        Returns
        -------
        bases : ndarray, shape (n_outputs,)
            Decision values before any known pattern is counted.
        contributions : ndarray, shape (n_outputs, n_entries)
            One column per entry of the graph's row; ``bases`` and these add up to the decision.
        """
        if isinstance(self.feature_map, RandomFourierFeatures):
            return self._along_the_path(self.feature_map, features)
        if isinstance(self.feature_map, RandomBinning):
            starts, terms = self.feature_map.path_terms(features, self.coefficients)
            return self.intercepts + starts, terms
        mapped = self.feature_map.transform(features)
        offsets = self.feature_map.threshold_offsets
        pattern = np.searchsorted(offsets, mapped.indices, side="right") - 1
        terms = np.zeros((len(self.intercepts), features.pairs.n_patterns))
        for output, coefficients in enumerate(self.coefficients):
            np.add.at(terms[output], pattern, coefficients[mapped.indices] * mapped.data)
        return self.intercepts, terms[:, features.pairs.rows.indices]

    def _along_the_path(
        self, feature_map: RandomFourierFeatures, features: Features
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gather the slope while all frequencies grow from 0 to what they are, in proportion.

        On the way, at ``t`` from 0 to 1, the features are ``start exp(growth t)`` times cosines
        and sines of ``t angle``. The integrals of both are parts of one complex exponential; a
        pattern's share of every angle, and of the growth, is its term in their sums.
        """
        rows, weights, half_gamma = (
            features.pairs.rows,
            feature_map.weights,
            0.5 * feature_map.gamma,
        )
        n = feature_map.n_components // 2
        sums = cauchy_sums(features.pairs, n, feature_map.seed, weights)[0]
        known = float(features.pairs.diagonal(weights)[0])
        growth = half_gamma * known if feature_map.kernel == "wwl" else 0.0
        start = float(feature_map.row_factors(features)[0]) * np.exp(-growth) / np.sqrt(n)
        integral = _mean_of_exponential(growth + 1j * half_gamma * sums)  # (n,)
        cosines, sines = self.coefficients[:, :n], self.coefficients[:, n:]
        per_angle = start * (sines * integral.real - cosines * integral.imag)  # (n_outputs, n)
        slopes = np.empty((len(self.intercepts), len(rows.indices)))
        for output in range(len(slopes)):
            compiled.cauchy_projections(
                rows.indices, feature_map.seed, per_angle[output], slopes[output]
            )
        if growth:
            per_growth = start * (cosines * integral.real + sines * integral.imag).sum(axis=1)
            slopes += per_growth[:, None]
        values = rows.values if weights is None else rows.values * weights[rows.indices]
        return self.intercepts + start * cosines.sum(axis=1), half_gamma * values * slopes


def _mean_of_exponential(rate: np.ndarray) -> np.ndarray:
    """The integral of ``exp(rate t)`` over t from 0 to 1."""
    small = np.abs(rate) < 1e-6
    safe = np.where(small, 1.0, rate)
    return np.where(small, 1.0 + 0.5 * rate, (np.exp(safe) - 1.0) / safe)


def additive_decision(
    model: Any, graph: GraphCollection, out_of_vocabulary_limit: float
) -> KernelDecision:
    """The decision on one graph as a sum over its patterns, in the terms of the explain room.

    Every pattern of the graph stands for one training "graph" that holds nothing else, with the
    coefficient that gives the pattern its contribution.
    """
    extractor, weights = model._extractor, model.weights_
    features = extractor.features(graph, weights)
    bases, terms = model._machine.contributions(features)
    rows, minimum = features.pairs.rows, features.pairs.minimum
    units = weights[rows.indices] * (rows.values if minimum else rows.values**2)
    n = len(rows.indices)
    alone = SparseRows(np.arange(n + 1, dtype=np.int64), rows.indices, rows.values)
    pairs = PairFeatures(
        alone.transposed(features.pairs.n_patterns), alone, features.pairs.level_offsets, minimum,
        np.ones(n),
    )  # fmt: skip
    return KernelDecision(
        vocabulary=model.vocabulary_,
        first_depth=extractor.first_depth,
        kernel=SUM_KERNELS[extractor.kind],
        weights=weights,
        offset=model.offset_,
        gamma=None,
        pairs=pairs,
        diagonal=units,
        coefficients=np.divide(terms, units, out=np.zeros_like(terms), where=units > 0),
        intercepts=bases,
        classes=model.classes_,
        training_indices=np.full(n, -1),
        training_codes=np.zeros(n, dtype=int),
        out_of_vocabulary_limit=out_of_vocabulary_limit,
    )


# --- model files ------------------------------------------------------------------------------


def put_feature_map(machine: Any, data: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Store what a feature machine has beyond coefficients; nothing for a kernel machine."""
    if not isinstance(machine, LinearOnFeatures):
        return
    feature_map = machine.feature_map
    if not isinstance(feature_map, UnaryFeatures):
        data["feature_map"] = {
            "kind": "random-fourier",
            "seed": feature_map.seed,
            "n_components": feature_map.n_components,
        }
        if isinstance(feature_map, RandomBinning):
            data["feature_map"] |= {"kind": "random-binning", "n_buckets": feature_map.n_buckets}
        return
    data["feature_map"] = {"kind": "unary"}
    arrays["threshold_offsets"] = feature_map.threshold_offsets
    arrays["thresholds"] = feature_map.thresholds


def get_linear_on_features(stored: Stored, model: GraphSVC, n_outputs: int) -> LinearOnFeatures:
    """The feature machine of a model whose patterns, weights and choice are there already."""
    record, choice = stored.value("feature_map", dict), model.best_params_
    feature_map: Any
    if record.get("kind") in ("random-fourier", "random-binning"):
        given = (
            *checked_feature_numbers(stored, record), choice["kernel"], choice["gamma"],
            model.offset_, model._weights(),
        )  # fmt: skip
        try:
            if record["kind"] == "random-binning":
                n_buckets = stored.whole(record.get("n_buckets"), "'n_buckets'", 1, 2**31)
                feature_map = RandomBinning(*given, n_buckets)
            else:
                feature_map = RandomFourierFeatures(*given)
        except ValueError as error:
            raise stored.error(f"'feature_map' cannot be used ({error})") from error
    elif record.get("kind") == "unary":
        if choice["kernel"] not in UNARY_KERNELS:
            raise stored.error(f"'feature_map' has no features for the kernel {choice['kernel']!r}")
        thresholds = stored.floats("thresholds", (None,))
        n_patterns = model.train_histograms_.n_patterns
        offsets = stored.offsets("threshold_offsets", n_patterns, len(thresholds))
        check_thresholds(stored, offsets, thresholds, minimum=model._extractor.kind != "subtree")
        feature_map = UnaryFeatures(choice["kernel"], model._weights(), offsets, thresholds)
    else:
        raise stored.error(f"'feature_map' is of the kind {str(record.get('kind'))[:40]!r}")
    bins = isinstance(feature_map, RandomBinning)
    n_features = feature_map.n_features if bins else feature_map.n_components
    return LinearOnFeatures(
        feature_map,
        stored.floats("coefficients", (n_outputs, n_features)),
        stored.floats("intercepts", (n_outputs,)),
    )
