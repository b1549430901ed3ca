"""What else a chemist would run: a Tanimoto process and a forest on circular fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from treelens.kernels.gram import pair_sums
from treelens.kernels.normalize import normalize_kernel
from treelens.patterns.histograms import SparseRows
from treelens.patterns.pairs import PairFeatures


def fingerprint_counts(smiles: Sequence[str], radius: int) -> sparse.csr_array:
    """Unfolded counts of circular environments, shape (n_molecules, n_environments)."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    make = rdFingerprintGenerator.GetMorganGenerator(radius=radius)
    columns: dict[int, int] = {}
    rows, indices, counts = [0], [], []
    with rdBase.BlockLogs():
        for text in smiles:
            found = make.GetSparseCountFingerprint(Chem.MolFromSmiles(text)).GetNonzeroElements()
            indices += [columns.setdefault(bit, len(columns)) for bit in found]
            counts += list(found.values())
            rows.append(len(indices))
    table = sparse.csr_array(
        (np.array(counts, float), np.array(indices, np.int32), np.array(rows, np.int64)),
        shape=(len(smiles), len(columns)),
    )
    table.sort_indices()
    return table


def tanimoto_matrix(left: sparse.csr_array, right: sparse.csr_array) -> np.ndarray:
    """Tanimoto (min-max) similarity of counts, by the library's own sums of minima."""
    sides = [_pairs_of(table) for table in (left, right)]
    sums = pair_sums(*sides, n_jobs=2)
    own = [side.diagonal() for side in sides]
    return normalize_kernel(sums, *own, "tanimoto")


def _pairs_of(table: sparse.csr_array) -> PairFeatures:
    by_row = table.tocsr()
    rows = SparseRows(by_row.indptr.astype(np.int64), by_row.indices.astype(np.int32), by_row.data)
    n, width = table.shape
    return PairFeatures(rows.transposed(width), rows, np.array([0, width]), True, np.ones(n))


_RANGE = (1e-5, 1e3)  # of amplitude and noise, as for our own processes


@dataclass
class TanimotoProcess:
    """A Gaussian process on ``amplitude T``; amplitude and noise by marginal likelihood."""

    amplitude: float = 1.0
    noise: float = 0.1

    def fit(self, similarity: np.ndarray, y: np.ndarray) -> TanimotoProcess:
        """From Tanimoto similarities (n, n) of the training molecules and their values."""
        self.mean, self.scale = float(y.mean()), float(y.std())
        z = (y - self.mean) / self.scale
        spectrum, basis = np.linalg.eigh(similarity)
        spectrum, turned = np.maximum(spectrum, 0.0), basis.T @ z

        def surprise(log_parameters: np.ndarray) -> float:
            amplitude, noise = np.exp(np.clip(log_parameters, *np.log(_RANGE)))
            variance = amplitude * spectrum + noise
            return 0.5 * float((turned**2 / variance + np.log(variance)).sum())

        starts = [(0.0, np.log(0.1)), (1.0, np.log(0.3)), (0.0, np.log(0.01))]
        found = min(
            (optimize.minimize(surprise, start, method="Nelder-Mead") for start in starts),
            key=lambda result: result.fun,
        )
        self.amplitude, self.noise = np.exp(np.clip(found.x, *np.log(_RANGE))).tolist()
        variance = self.amplitude * spectrum + self.noise
        self._coefficients = basis @ (turned / variance)
        self._half = basis / np.sqrt(variance)
        return self

    def predict(self, similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations from similarities (n_new, n) with training molecules."""
        kernel = self.amplitude * similarity
        mean = self.mean + self.scale * (kernel @ self._coefficients)
        left = self.amplitude - ((kernel @ self._half) ** 2).sum(axis=1)
        return mean, self.scale * np.sqrt(np.maximum(left, 0.0) + self.noise)
