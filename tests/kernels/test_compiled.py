"""Every compiled loop of the kernels room against its plain-Python twin, to the last bit."""

from dataclasses import dataclass

import numpy as np
import pytest

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
        present = self.table > 0
        offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return offsets, np.nonzero(present)[1].astype(np.int32), self.table[present]

    @property
    def lists(self):
        """The same by pattern."""
        turned = SparseRows(*self.rows).transposed(self.table.shape[1])
        return turned.offsets, turned.indices, turned.values

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
def test_sweep(minimum: bool, rng: np.random.Generator) -> None:
    row, columns, x = rng.random(9), rng.random((4, 9)), rng.random(4)
    expected = naive.sweep(row.tolist(), columns.tolist(), x.tolist(), minimum)
    _compiled._sweep(row, *columns, *x, minimum)
    assert row.tolist() == expected


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("n_dense", [0, 1, 4, 6, 12])
def test_add_dense(minimum: bool, n_dense: int, rng: np.random.Generator) -> None:
    side = random_side(rng, 7, n_dense)
    start = 2
    row = rng.random(7)
    patterns = np.flatnonzero(side.table[0]).astype(np.int32)
    values = side.table[0, patterns]
    common = patterns[patterns < n_dense]
    expected = row.tolist()
    expected[start:] = naive.sweep(
        expected[start:], side.table[start:, common].T.tolist(), values[: len(common)].tolist(),
        minimum,
    )  # fmt: skip
    _compiled._add_dense(row, start, patterns, values, side.dense_of_pattern, side.dense, minimum)
    assert row.tolist() == expected


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("n_dense", [0, 3, 5, 12])
@pytest.mark.parametrize("step", [1, 3])
def test_cross_rows(minimum: bool, n_dense: int, step: int, rng: np.random.Generator) -> None:
    left, right = random_side(rng, 5, n_dense), random_side(rng, 7, n_dense)
    left_scale, scale = rng.random(5), rng.random(7)
    out = np.full((5, 7), np.nan)
    for first in range(step):
        _compiled.cross_rows(
            first, step, *left.rows, right.dense_of_pattern, right.dense, *right.lists, minimum,
            left_scale, scale, -3.0, 0.4, out,
        )  # fmt: skip
    expected = naive.cross_rows(
        left.dicts, right.dicts, set(range(n_dense)), minimum, left_scale.tolist(),
        scale.tolist(), -3.0, 0.4,
    )  # fmt: skip
    assert out.tolist() == expected
    assert out.min() == 0.0 < out.max()  # never below


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("n_dense", [0, 3, 5, 12])
@pytest.mark.parametrize("step", [1, 3])
def test_upper_rows(minimum: bool, n_dense: int, step: int, rng: np.random.Generator) -> None:
    side = random_side(rng, 8, n_dense)
    scale = rng.random(8)
    out = np.full((8, 8), np.nan)
    for first in range(step):
        _compiled.upper_rows(
            first, step, *side.rows, side.dense_of_pattern, side.dense, *side.lists, minimum,
            scale, 2.0, 0.25, out,
        )  # fmt: skip
    expected = np.array(
        naive.cross_rows(
            side.dicts, side.dicts, set(range(n_dense)), minimum, scale.tolist(), scale.tolist(),
            2.0, 0.25,
        )
    )  # fmt: skip
    upper = np.triu_indices(8)
    assert out[upper].tolist() == expected[upper].tolist()
    assert np.isnan(out[np.tril_indices(8, -1)]).all()


@pytest.mark.parametrize("n", [1, 5, 16, 19])
@pytest.mark.parametrize("step", [1, 3])
def test_mirror(n: int, step: int, rng: np.random.Generator) -> None:
    out = rng.random((n, n))
    expected = naive.mirror(out.tolist())
    for first in range(step):
        _compiled.mirror(first, step, 4, out)
    assert out.tolist() == expected
