"""What a fitted model says of graphs, refined once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.models.thresholds import Threshold
from treelens.patterns.features import RefinedGraphs


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of new graphs; everything that follows reads this.

    Attributes
    ----------
    decisions : ndarray, shape (n_graphs, n_columns)
        Decision values, one column for two classes; or the numbers that are predicted.
    out_of_vocabulary : ndarray, shape (n_graphs,)
        Fraction of each graph's patterns that training never saw.
    graphs : RefinedGraphs
        The graphs as the model sees them, for contributions on demand.
    margins : ndarray, shape (n_graphs, n_columns)
        What is linear in the kernel: ``decisions``, but of an SVM with several classes, whose
        decision values count votes, the mean margin of every class.
    probabilities : ndarray, shape (n_graphs, n_classes), or None
    variance : ndarray, shape (n_graphs,), or None
        Of a new target, noise included; None where it was not asked for or there is none.
    threshold : Threshold or None
        What a rare class is named by; None: the class of the largest decision value is named.
    from_covariates : ndarray, shape (n_graphs, n_columns), or None
        What covariates add to the decisions; None where the model has none.
    """

    decisions: np.ndarray
    out_of_vocabulary: np.ndarray
    graphs: RefinedGraphs
    margins: np.ndarray
    probabilities: np.ndarray | None = None
    variance: np.ndarray | None = None
    threshold: Threshold | None = None
    from_covariates: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """The decision values by the name they have of a Gaussian process: posterior means."""
        return self.decisions

    @property
    def predicted_codes(self) -> np.ndarray:
        """Classes as positions in the model's list of them, shape (n_graphs,)."""
        if self.threshold is None:
            return predicted_codes(self.decisions)
        assert self.probabilities is not None
        return self.threshold.name(self.probabilities)

    def checked(self) -> Predictions:
        """These predictions, or an error where one is no number."""
        for values in (self.decisions, self.margins, self.probabilities):
            if values is not None:
                check_finite(values)
        if self.variance is not None:
            check_finite(self.variance[:, None])
        return self


def predicted_codes(decisions: np.ndarray) -> np.ndarray:
    """Class codes from decision values, shape (n,)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(int)
    return decisions.argmax(axis=1)


def check_finite(decisions: np.ndarray) -> None:
    """An error where a decision value or probability is no number."""
    if not np.isfinite(decisions).all():
        row = int(np.flatnonzero(~np.isfinite(decisions).all(axis=1))[0])
        raise ValueError(
            f"The decision value of graph {row} is not a finite number: the model's weights, gamma "
            "or coefficients are out of any sensible range. Fit the model again, with a smaller "
            "gamma; if it came from a file, get the file from a source you trust."
        )
