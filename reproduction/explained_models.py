"""Models whose predictions can be asked for parts of molecules, with their own explanations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

import treelens as tl
from reproduction.partial import Fingerprints, parts_of
from reproduction.tree_shap import N_BACKGROUND, TreeShap

N_TREES = 200


class ExplainedModel(Protocol):
    """Numbers predicted for molecules and parts of them, and what atoms add to these."""

    usual: float  # the mean prediction for the molecules trained on

    def predict(self, index: int, kept: Sequence[np.ndarray]) -> np.ndarray: ...
    def contributions(self, index: int) -> np.ndarray: ...


class OwnModel:
    """A Gaussian process of this library: its decision value or number, its own contributions."""

    def __init__(
        self, graphs: tl.GraphCollection, y: np.ndarray, train: np.ndarray, n_jobs: int
    ) -> None:
        made = tl.GraphClassifier if _are_classes(y) else tl.GraphRegressor
        self.graphs = graphs
        self.model = made(n_jobs=n_jobs, random_state=0).fit(graphs[train], y[train])
        self.usual = float(self._predict(graphs[train]).mean())

    def predict(self, index: int, kept: Sequence[np.ndarray]) -> np.ndarray:
        return self._predict(parts_of(self.graphs[index : index + 1], kept))

    def _predict(self, graphs: tl.GraphCollection) -> np.ndarray:
        if isinstance(self.model, tl.GraphClassifier):
            return self.model.decision_function(graphs)
        return self.model.predict(graphs)

    def contributions(self, index: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that much of a molecule is unseen
            return self.model.explain(self.graphs[index : index + 1]).node_contributions


class ForestModel:
    """A forest on ECFP4 counts, explained by the exact parts that splits add along each path.

    What a tree predicts is its root's mean plus what each split on the way changes (Saabas'
    decomposition); each change belongs to the bit that was split on, a bit to the atoms of its
    environments.
    """

    def __init__(
        self, graphs: tl.GraphCollection, y: np.ndarray, train: np.ndarray, n_jobs: int
    ) -> None:
        from rdkit import Chem
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        self.fingerprints = Fingerprints()
        self.molecules = [Chem.MolFromSmiles(x) for x in graphs.graph_data["smiles"]]
        made = RandomForestClassifier if _are_classes(y) else RandomForestRegressor
        bits = np.array([self.fingerprints.of(self.molecules[k]) for k in train.tolist()])
        self.forest = made(N_TREES, n_jobs=n_jobs, random_state=0).fit(bits, y[train])
        self.usual = float(self._predict(bits).mean())

    def predict(self, index: int, kept: Sequence[np.ndarray]) -> np.ndarray:
        return self._predict(self.fingerprints.of_parts(self.molecules[index], kept))

    def _predict(self, bits: np.ndarray) -> np.ndarray:
        if hasattr(self.forest, "predict_proba"):
            return self.forest.predict_proba(bits)[:, 1]
        return self.forest.predict(bits)

    def contributions(self, index: int) -> np.ndarray:
        molecule = self.molecules[index]
        return self.fingerprints.spread(molecule, self.worth_of(self.fingerprints.of(molecule)))

    def worth_of(self, bits: np.ndarray) -> np.ndarray:
        """What each bit of a molecule adds to its prediction."""
        return path_contributions(self.forest, bits)


class ForestByShap(ForestModel):
    """The same forest, its bits worth their SHAP values."""

    def __init__(
        self, graphs: tl.GraphCollection, y: np.ndarray, train: np.ndarray, n_jobs: int
    ) -> None:
        super().__init__(graphs, y, train, n_jobs)
        beside = [self.fingerprints.of(self.molecules[k]) for k in train[:N_BACKGROUND].tolist()]
        self.shap = TreeShap(self.forest, np.array(beside))

    def worth_of(self, bits: np.ndarray) -> np.ndarray:
        return self.shap.of(bits[None, :])[0]


def path_contributions(forest: Any, row: np.ndarray) -> np.ndarray:
    """What each feature adds to a forest's prediction of one row: (n_features,).

    With the mean over trees of what their roots predict, they add up to the prediction.
    """
    worth = np.zeros(len(row))
    for tree in forest.estimators_:
        value = node_values(tree)
        path = tree.decision_path(row[None, :]).indices  # ascending, as paths go down
        worth += np.bincount(
            tree.tree_.feature[path[:-1]], weights=np.diff(value[path]), minlength=len(row)
        )
    return worth / len(forest.estimators_)


def node_values(tree: Any) -> np.ndarray:
    """What each node of a tree predicts: a number, or the probability of the second class."""
    values = tree.tree_.value[:, 0, :]  # (n_nodes, n_classes or 1)
    return values[:, 0] if values.shape[1] == 1 else values[:, 1] / values.sum(axis=1)


def _are_classes(y: np.ndarray) -> bool:
    return y.dtype.kind in "iu"


MODELS: dict[str, type[Any]] = {
    "treelens": OwnModel,
    "ECFP4 forest": ForestModel,
    "ECFP4 forest by SHAP": ForestByShap,
}
