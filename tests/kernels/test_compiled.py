"""Every compiled loop of the kernels room against its plain-Python twin, to the last bit."""

from dataclasses import astuple, dataclass

import numpy as np
import pytest
from scipy import sparse

from naive import kernels as naive
from treelens.kernels import _compiled
from treelens.patterns.histograms import SparseRows

pytestmark = pytest.mark.interpreted


@dataclass
class Side:
    """Sparse rows by graph, in all the forms that the loops take."""

    table: np.ndarray  # (n_graphs, n_patterns)
    n_dense: int = 0  # the first patterns are held as dense columns

    @property
    def rows(self):
        """Offsets, indices and values by graph."""
        return astuple(SparseRows.of(sparse.csr_array(self.table)))

    @property
    def lists(self):
        """The same by pattern."""
        return astuple(SparseRows.of(sparse.csc_array(self.table)))

    @property
    def dense_of_pattern(self) -> np.ndarray:
        result = np.full(self.table.shape[1], -1, np.int32)
        result[: self.n_dense] = np.arange(self.n_dense)
        return result

    @property
    def dense(self) -> np.ndarray:
        return np.ascontiguousarray(self.table[:, : max(self.n_dense, 1)].T)

    @property
    def dicts(self) -> list[dict[int, float]]:
        return [{int(p): float(row[p]) for p in np.flatnonzero(row)} for row in self.table]


def random_side(rng: np.random.Generator, n_graphs: int, n_dense: int) -> Side:
    table = np.where(rng.random((n_graphs, 12)) < 0.5, rng.random((n_graphs, 12)), 0.0)
    return Side(table, n_dense)


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("n_dense", [0, 3, 5, 12])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("offset", [np.nan, 0.7])
def test_sum_rows(minimum, n_dense, step, upper, offset, rng) -> None:
    right = random_side(rng, 8, n_dense)
    left = right if upper else random_side(rng, 5, n_dense)
    scale = rng.random(8)
    left_scale = scale if upper else rng.random(5)
    out = np.full((len(left_scale), 8), np.nan)
    for first in range(step):
        _compiled.sum_rows(
            first,
            len(out),
            step,
            0,
            upper,
            *left.rows,
            *right.lists,
            right.dense_of_pattern,
            right.dense,
            minimum,
            left_scale,
            scale,
            right.lists[0][:-1].copy(),
            out,
            offset,
        )
    expected = np.array(
        naive.sum_rows(
            left.dicts,
            right.dicts,
            set(range(n_dense)),
            minimum,
            left_scale.tolist(),
            scale.tolist(),
        )
    )
    if not np.isnan(offset):
        expected = np.maximum(0.0, offset - expected)
    if upper:
        assert np.isnan(out[np.tril_indices(8, -1)]).all()
        out, expected = out[np.triu_indices(8)], expected[np.triu_indices(8)]
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("n_dense", [0, 3, 12])
@pytest.mark.parametrize("n", [8, 150])
def test_gather_rows(minimum, n_dense, n, rng) -> None:
    side, slopes = random_side(rng, n, n_dense), np.triu(rng.normal(size=(n, n)))
    found, lanes = np.zeros(12), np.empty((2, _compiled.LANES))
    for first, last in ((0, 3), (3, n)):  # in blocks of rows
        _compiled.gather_rows(
            first,
            last,
            1,
            first,
            slopes[first:last],
            *side.rows,
            *side.lists,
            side.dense_of_pattern,
            side.dense,
            minimum,
            side.lists[0][:-1].copy(),
            lanes,
            found,
        )
    expected = naive.gather_rows(side.table, slopes, minimum)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
