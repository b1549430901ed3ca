"""Chemprop as a rival: its command line with its defaults, one network or an ensemble of five.

It needs ``pip install chemprop`` in the environment that runs it, and trains on a GPU if there is
one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class _Chemprop(BaseEstimator):
    """A directed message-passing network; a tenth of the training part stops its training."""

    _task: str

    def __init__(self, n_networks: int = 1, n_jobs: int = 1, random_state: int = 0) -> None:
        self.n_networks, self.n_jobs, self.random_state = n_networks, n_jobs, random_state

    def fit(self, X: Any, y: Any) -> Any:
        """Train the networks on the SMILES of graphs."""
        from torch.cuda import is_available

        self._folder = tempfile.TemporaryDirectory()
        accelerator = "gpu" if is_available() else "cpu"
        self.best_params_ = {"n_networks": self.n_networks, "accelerator": accelerator}
        self._write("train.csv", X, value=y)
        self._chemprop(
            "train",
            "--data-path",
            self._path("train.csv"),
            "--task-type",
            self._task,
            "--split-sizes",
            "0.9",
            "0.1",
            "0.0",
            "--ensemble-size",
            str(self.n_networks),
            "--data-seed",
            str(self.random_state),
            "--pytorch-seed",
            str(self.random_state),
            "--output-dir",
            self._path("model"),
        )
        return self

    def _predicted(self, X: Any) -> np.ndarray:
        """Return the mean over networks, shape (n_graphs,)."""
        self._write("test.csv", X)
        self._chemprop(
            "predict",
            "--test-path",
            self._path("test.csv"),
            "--model-path",
            self._path("model"),
            "--preds-path",
            self._path("predicted.csv"),
        )
        return pd.read_csv(self._path("predicted.csv"))["value"].to_numpy()

    def _path(self, name: str) -> str:
        return str(Path(self._folder.name) / name)

    def _write(self, name: str, X: Any, **columns: Any) -> None:
        table = pd.DataFrame({"smiles": list(X.graph_data["smiles"]), **columns})
        table.to_csv(self._path(name), index=False)

    def _chemprop(self, command: str, *options: str) -> None:
        program = Path(sys.executable).with_name("chemprop")
        common = (
            "--accelerator",
            self.best_params_["accelerator"],
            "--num-workers",
            "0",
            "--smiles-columns",
            "smiles",
        )
        subprocess.run([program, command, *options, *common], check=True, capture_output=True)


class ChempropRegressor(RegressorMixin, _Chemprop):
    """Chemprop for numbers."""

    _task = "regression"

    def predict(self, X: Any) -> np.ndarray:
        """Return values, shape (n_graphs,)."""
        return self._predicted(X)


class ChempropClassifier(ClassifierMixin, _Chemprop):
    """Chemprop for two classes with the codes 0 and 1."""

    _task = "classification"
    classes_ = np.arange(2)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (n_graphs, 2)."""
        positive = self._predicted(X)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Return the likelier class, shape (n_graphs,)."""
        return self.predict_proba(X).argmax(axis=1)
