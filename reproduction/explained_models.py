"""Models that predict parts of molecules and explain their predictions.

Kept atoms keep the labels that they have in the whole molecule, for graphs and for fingerprints:
a model is asked about less of the same molecule, not about another one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import treelens as tl

N_TREES = 200
N_BACKGROUND = 100  # molecules that others are compared with


# Each class predicts the molecule at an index with some of its atoms kept (flags), and returns what
# its atoms contribute; ``usual`` is the mean prediction for the molecules trained on.


class OwnModel:
    """A Gaussian process of this library with the contributions of ``explain``."""

    def __init__(
        self, graphs: tl.GraphCollection, y: np.ndarray, train: np.ndarray, n_jobs: int
    ) -> None:
        made = tl.GraphClassifier if y.dtype.kind in "iu" else tl.GraphRegressor
        self.graphs = graphs  # whose parts have no SMILES to compute descriptors from
        model = made(descriptors=False, n_jobs=n_jobs, random_state=0)
        self.model = model.fit(graphs[train], y[train])
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
        made = RandomForestClassifier if y.dtype.kind in "iu" else RandomForestRegressor
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
        beside = [self.fingerprints.of(self.molecules[k]) for k in train.tolist()]
        self.shap = TreeShap(self.forest, np.array(beside))

    def worth_of(self, bits: np.ndarray) -> np.ndarray:
        return self.shap.of(bits[None, :])[0]


def path_contributions(forest: Any, row: np.ndarray) -> np.ndarray:
    """What each feature adds to a forest's prediction of one row: (n_features,)."""
    # With the mean over trees of what their roots predict, they add up to the prediction.
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


# --- parts of molecules ---------------------------------------------------------------------


def parts_of(graph: tl.GraphCollection, kept: Sequence[np.ndarray]) -> tl.GraphCollection:
    """Copies of one graph, each with some of its nodes (flags) and the edges between them."""
    source = np.repeat(np.arange(graph.n_nodes), np.diff(graph.neighbor_offsets))
    offsets, sizes, neighbors, degrees, nodes, arcs = [0], [], [], [], [], []
    for flags in kept:
        place = np.cumsum(flags) - 1
        held = flags[source] & flags[graph.neighbors]
        neighbors.append(place[graph.neighbors[held]])
        degrees.append(np.bincount(source[held], minlength=len(flags))[flags])
        arcs.append(np.flatnonzero(held))
        nodes.append(np.flatnonzero(flags))
        sizes.append(len(nodes[-1]))
    node, arc = np.concatenate(nodes), np.concatenate(arcs)
    changes: dict[str, Any] = {
        "node_offsets": np.cumsum([*offsets, *sizes]),
        "neighbor_offsets": np.concatenate([[0], np.cumsum(np.concatenate(degrees))]),
        "neighbors": np.concatenate(neighbors),
        "node_codes": graph.node_codes[node],
        "names": None,
        "graph_data": {},
    }
    if graph.edge_codes is not None:
        changes["edge_codes"] = graph.edge_codes[arc]
    if graph.fine_codes is not None:
        changes["fine_codes"] = graph.fine_codes[node]
    return replace(graph, **changes)


class Fingerprints:
    """ECFP4 counts of molecules and of parts of them, and the atoms behind each count."""

    N_BITS = 2048

    def __init__(self) -> None:
        from rdkit.Chem import rdFingerprintGenerator as made

        self._generator = made.GetMorganGenerator(
            radius=2, fpSize=self.N_BITS, includeRedundantEnvironments=True
        )
        self._output = made.AdditionalOutput

    def of(self, molecule: Any) -> np.ndarray:
        return self._generator.GetCountFingerprintAsNumPy(molecule).astype(np.float32)

    def of_parts(self, molecule: Any, kept: Sequence[np.ndarray]) -> np.ndarray:
        """A row for every set of atoms (flags): (n_parts, n_bits)."""
        from rdkit.Chem import rdMolDescriptors

        labels = list(rdMolDescriptors.GetConnectivityInvariants(molecule))
        return np.array([self._part(molecule, labels, flags) for flags in kept])

    def _part(self, molecule: Any, labels: list[int], flags: np.ndarray) -> np.ndarray:
        from rdkit import Chem

        part = Chem.RWMol(molecule)
        part.BeginBatchEdit()
        for atom in np.flatnonzero(~flags).tolist():
            part.RemoveAtom(atom)
        part.CommitBatchEdit()
        part.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(part)
        own = [label for label, keep in zip(labels, flags.tolist(), strict=True) if keep]
        found = self._generator.GetCountFingerprintAsNumPy(part, customAtomInvariants=own)
        return found.astype(np.float32)

    def spread(self, molecule: Any, worth: np.ndarray) -> np.ndarray:
        """What atoms are worth if each bit's worth is shared by the atoms of its environments."""
        from rdkit import Chem

        output = self._output()
        output.AllocateBitInfoMap()
        self._generator.GetCountFingerprint(molecule, additionalOutput=output)
        atoms = np.zeros(molecule.GetNumAtoms())
        near = Chem.GetDistanceMatrix(molecule)
        for bit, places in output.GetBitInfoMap().items():
            for atom, radius in places:
                reached = near[atom] <= radius
                atoms[reached] += worth[bit] / (len(places) * reached.sum())
        return atoms


# --- SHAP values ----------------------------------------------------------------------------


class TreeShap:
    """What each feature adds to a forest's predictions, beside those of some other rows.

    The other form of TreeSHAP, which goes by the rows that passed each split, is numerically
    unstable on trees that are fifty splits deep: its values did not add up to predictions.

    ``forest`` is of two classes or of numbers; predictions are explained against the first hundred
    rows of ``background``.
    """

    def __init__(self, forest: Any, background: np.ndarray) -> None:
        import shap  # pip install -e '.[studies]'

        self._explainer = shap.TreeExplainer(
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


MODELS: dict[str, type[Any]] = {
    "treelens": OwnModel,
    "ECFP4 forest": ForestModel,
    "ECFP4 forest by SHAP": ForestByShap,
}
