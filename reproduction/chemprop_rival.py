"""Chemprop as a rival: its command line with its defaults, one network or an ensemble of five.

It needs ``pip install chemprop`` in the environment that runs it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin


class ChempropRegressor(RegressorMixin, BaseEstimator):
    """A directed message-passing network; a tenth of the training part stops its training."""

    def __init__(self, n_networks: int = 1, n_jobs: int = 1, random_state: int = 0) -> None:
        self.n_networks, self.n_jobs, self.random_state = n_networks, n_jobs, random_state

    def fit(self, X: Any, y: Any) -> ChempropRegressor:
        """Train the networks on the SMILES of graphs."""
        self._folder = tempfile.TemporaryDirectory()
        self.best_params_ = {"n_networks": self.n_networks}
        smiles = list(X.graph_data["smiles"])
        pd.DataFrame({"smiles": smiles, "value": y}).to_csv(self._path("train.csv"), index=False)
        self._chemprop(
            "train", "--data-path", self._path("train.csv"), "--task-type", "regression",
            "--split-sizes", "0.9", "0.1", "0.0", "--ensemble-size", str(self.n_networks),
            "--data-seed", str(self.random_state), "--pytorch-seed", str(self.random_state),
            "--output-dir", self._path("model"),
        )  # fmt: skip
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean over networks, shape (n_graphs,)."""
        smiles = list(X.graph_data["smiles"])
        pd.DataFrame({"smiles": smiles}).to_csv(self._path("test.csv"), index=False)
        self._chemprop(
            "predict", "--test-path", self._path("test.csv"), "--model-path", self._path("model"),
            "--preds-path", self._path("predicted.csv"),
        )  # fmt: skip
        return pd.read_csv(self._path("predicted.csv"))["value"].to_numpy()

    def _path(self, name: str) -> str:
        return str(Path(self._folder.name) / name)

    def _chemprop(self, command: str, *options: str) -> None:
        program = Path(sys.executable).with_name("chemprop")
        common = ("--accelerator", "cpu", "--num-workers", "0", "--smiles-columns", "smiles")
        subprocess.run([program, command, *options, *common], check=True, capture_output=True)
