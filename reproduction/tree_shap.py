"""SHAP values of forests, by the package ``shap``, which only studies need."""

from __future__ import annotations

from typing import Any

import numpy as np

N_BACKGROUND = 100  # molecules that others are compared with


class TreeShap:
    """What each feature adds to a forest's predictions, beside those of some other rows.

    The other form of TreeSHAP, which goes by the rows that passed each split, is numerically
    unstable on trees that are fifty splits deep: its values did not add up to predictions.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Of two classes or of numbers.
    background : ndarray, shape (n_rows, n_features)
        What predictions are explained against; the first hundred rows are taken.
    """

    def __init__(self, forest: Any, background: np.ndarray) -> None:
        self._explainer = _shap().TreeExplainer(
            forest, data=background[:N_BACKGROUND], feature_perturbation="interventional"
        )

    @property
    def base(self) -> float:
        """What the forest predicts for the background, on average."""
        return float(np.ravel(self._explainer.expected_value)[-1])

    def of(self, rows: np.ndarray) -> np.ndarray:
        """What features add to ``base``, of classes to the second: (n_rows, n_features)."""
        found = np.asarray(self._explainer.shap_values(rows))
        return found[..., 1] if found.ndim == 3 else found


def _shap() -> Any:
    try:
        import shap
    except ImportError as error:
        raise ImportError(
            "SHAP values need the package shap: pip install -e '.[studies]'."
        ) from error
    return shap
