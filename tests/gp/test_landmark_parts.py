"""However graphs are cut and whoever works on them, the sums over landmarks have the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.gp import landmark_parts, sparse_evidence
from treelens.gp.executors import JoblibExecutor, SerialExecutor
from treelens.gp.fitting import Targets
from treelens.gp.landmark_parts import in_chunks, runs_of
from treelens.graphs.blocks import CollectionBlocks
from treelens.graphs.errors import GraphDataError

SETTINGS = {"depth": 1, "random_state": 0, "exact_size": 60, "n_landmarks": 15, "n_jobs": 1}


@pytest.fixture(scope="module")
def many():
    """More small graphs than two chunks hold, and a number for each."""
    rng = np.random.default_rng(0)
    kinds = tl.as_graph_collection(["C" * k + end for k in range(1, 9) for end in "NOF"])
    chosen = rng.integers(len(kinds), size=5000)
    graphs = kinds[chosen]
    return graphs, graphs.sizes + rng.normal(0, 0.3, len(graphs))


def assert_same_bits(one, other):
    one, other = one.model_.posterior, other.model_.posterior
    assert (one.coefficients == other.coefficients).all()
    assert (one.precision_gain == other.precision_gain).all()


def test_rows_are_cut_where_chunks_begin(monkeypatch):
    monkeypatch.setattr(sparse_evidence, "BLOCK", 4)
    rows = np.arange(22.0).reshape(11, 2)
    for first, sizes in ((0, [4, 4, 3]), (2, [2, 4, 4, 1]), (4, [4, 4, 3]), (7, [1, 4, 4, 2])):
        for cuts in ([3, 5], [1], [10], []):
            chunks = list(in_chunks(np.split(rows, cuts), first))
            assert [len(chunk) for _, chunk in chunks] == sizes
            assert all(
                (rows[where.start - first : where.stop - first] == chunk).all()
                for where, chunk in chunks
            )
    assert list(in_chunks([])) == []


@pytest.fixture(scope="module")
def alone(many):
    return tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(*many, 5000))


@pytest.mark.parametrize(
    ("size", "executor"),
    [(700, SerialExecutor()), (2048, SerialExecutor()), (700, JoblibExecutor(2))],
)
def test_the_model_of_one_process(many, alone, size, executor, monkeypatch):
    monkeypatch.setattr(landmark_parts, "_CHUNKS_PER_RUN", 1)  # so that runs share chunks
    graphs, y = many
    model = tl.GraphRegressor(**SETTINGS).fit(CollectionBlocks(graphs, y, size), executor=executor)
    assert_same_bits(model, alone)


@pytest.mark.parametrize("in_pieces", [True, False])
def test_runs_hold_every_part_once(monkeypatch, in_pieces):
    monkeypatch.setattr(sparse_evidence, "BLOCK", 2)  # a run of sixteen graphs
    sizes = [5, 0, 9, 7, 1, 30, 0]
    targets = Targets(np.arange(52.0)[:, None], np.zeros(1), 1.0, np.ones(52))
    runs = list(runs_of(iter(range(7)), sizes, targets, in_pieces))
    assert [part for run in runs for part in run.parts] == list(range(7))
    assert np.concatenate([run.targets.values for run in runs]).ravel().tolist() == list(range(52))
    assert [run.first for run in runs] == ([0, 5, 14, 21, 22, 52] if in_pieces else [0, 21, 52])


class Growing:
    """Blocks that hold more, or fewer, each time they are read."""

    def __init__(self, graphs, y, sizes) -> None:
        self.graphs, self.y, self.sizes = graphs, y, list(sizes)

    def __iter__(self):
        n = self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]
        return iter(CollectionBlocks(self.graphs[:n], self.y[:n], 50))


@pytest.mark.parametrize(
    ("again", "executor"), [(120, None), (180, None), (155, None), (145, SerialExecutor())]
)
def test_blocks_that_change_between_readings_are_refused(many, again, executor):
    graphs, y = many
    blocks = Growing(graphs, y, [150, 150, again])  # looked at, read, read again
    with pytest.raises(GraphDataError, match="read twice, and must hold the same graphs"):
        tl.GraphRegressor(**SETTINGS).fit(blocks, executor=executor)


def test_an_executor_without_blocks_is_refused(many):
    graphs, y = many
    with pytest.raises(TypeError, match="An executor works on blocks"):
        tl.GraphRegressor(**SETTINGS).fit(graphs[:50], y[:50], executor=SerialExecutor())
    blocks = CollectionBlocks(graphs[:50], y[:50], 20)
    with pytest.raises(TypeError, match="executor must be one of"):
        tl.GraphRegressor(**SETTINGS).fit(blocks, executor="dask")
