"""Dask: the same model, also when a worker is killed."""

import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from treelens import GraphSVC
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import GraphDataError, InvalidMoleculesWarning
from treelens.gp import executors as gp_blocks
from treelens.gp.executors import DaskExecutor, SerialExecutor, fit_distributed
from treelens.graphs.blocks import CollectionBlocks

distributed = pytest.importorskip("distributed")


@contextmanager
def two_workers():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two,
        distributed.Client(two) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def many():
    """More small graphs than two chunks hold, their classes, and the model of one process."""
    kinds = tl.as_graph_collection(["C" * k + end for k in range(1, 9) for end in "NOF"])
    graphs = kinds[np.random.default_rng(0).integers(len(kinds), size=4500)]
    y = np.where(graphs.sizes > 5, "large", "small")
    settings = {"depth": 1, "random_state": 0, "exact_size": 60, "n_landmarks": 15, "n_jobs": 1}
    model = tl.GraphClassifier(**settings)
    return graphs, y, model, clone(model).fit(CollectionBlocks(graphs, y, 1000))


def assert_same_process(model, other):
    one, other = model.model_.posterior, other.model_.posterior
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.precision_gain, other.precision_gain, rtol=1e-3, atol=1e-3)


def test_a_killed_worker_changes_nothing(many, tmp_path, monkeypatch):
    monkeypatch.setattr(gp_blocks, "_TASK_SIZE", 1000)  # something to do for both workers
    graphs, y, model, alone = many
    blocks = slow_parts(CollectionBlocks(graphs, y, 500), tmp_path)
    with two_workers() as client, one_worker_killed(client, tmp_path):
        model.fit(blocks, executor=DaskExecutor(client))
    assert_same_process(model, alone)


def test_a_bad_row_on_a_worker_is_named(tmp_path, client):
    smiles = ["CCO", "CCN", "CCC", "COC", "bad!", "CCCl"]
    path = tmp_path / "molecules.csv"
    path.write_text("smiles,label\n" + "".join(f"{s},{i % 2}\n" for i, s in enumerate(smiles)))
    model = tl.GraphClassifier(depth=1, random_state=0)
    with pytest.raises(GraphDataError, match=r"row 5 \(line 6\) 'bad!'"):
        fit_distributed(model, SmilesBlocks(path, block_size=2), client)
    with pytest.warns(InvalidMoleculesWarning, match=r"row 5 \(line 6\)"):
        fit_distributed(model, SmilesBlocks(path, block_size=2, on_invalid="skip"), client)
    assert len(model.train_codes_) == 5


def test_a_model_is_the_same_wherever_blocks_are_worked_on(many, client):
    graphs, y, model, alone = many
    blocks = CollectionBlocks(graphs, y, 300)
    for where in (client, client.scheduler.address):
        assert_same_process(fit_distributed(clone(model), blocks, where), alone)
    assert client.submit(len, "abc").result() == 3  # the cluster goes on


def test_workers_read_their_parts_once_and_keep_them(tmp_path, client):
    """The client sends no text and gets no graphs but those that may be drawn."""
    path = tmp_path / "molecules.csv"
    rows = [f"{'C' * (1 + k % 7)}{'NOF'[k % 3]},{k % 7}\n" for k in range(400)]
    path.write_text("smiles,label\n" + "".join(rows))
    blocks = SmilesBlocks(path, block_size=50)
    parts = list(blocks)
    assert max(len(pickle.dumps(part)) for part in parts) < 1500
    model = tl.GraphRegressor(depth=1, random_state=0, exact_size=60, n_landmarks=10, n_jobs=1)
    (tmp_path / "loads").mkdir()
    counted = slow_parts(parts, tmp_path / "loads")
    fitted = clone(model).fit(counted, executor=DaskExecutor(client))
    loads = [path.name.split(".")[0] for path in (tmp_path / "loads").iterdir()]
    assert sorted(map(int, loads)) == list(range(len(parts)))
    assert_same_process(fitted, model.fit(blocks))


def test_sums_are_added_up_by_the_workers(client, monkeypatch):
    monkeypatch.setattr(gp_blocks, "_TASKS_ADDED", 3)
    parts = [(np.full(3, float(k)), np.eye(2) * k) for k in range(20)]
    expected = SerialExecutor().total(tuple, ((part,) for part in parts))
    found = DaskExecutor(client).total(tuple, ((part,) for part in parts))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert expected[0].tolist() == [20 * 19 / 2] * 3
    np.testing.assert_array_equal(parts[1][0], 1.0)  # what was added up is left alone


@pytest.mark.parametrize("model", [GraphSVC(), tl.GraphRegressor, None])
def test_a_model_that_takes_no_blocks_is_refused_before_anything_starts(model, monkeypatch):
    def started(**_):
        raise AssertionError("started too early")

    monkeypatch.setattr("dask.distributed.LocalCluster", started)
    with pytest.raises(TypeError, match=r"by GraphRegressor\(\).* got .*(SVC|GraphRegr|None)"):
        fit_distributed(model, [])
    with pytest.raises(AssertionError, match="started too early"):
        fit_distributed(tl.GraphClassifier(), [])


def slow_parts(blocks, folder):
    """Parts that take their time and leave a file with the number of the process at work."""

    class SlowPart:  # defined here, it travels to the workers by value
        def __init__(self, part, name) -> None:
            self.part, self.name = part, name

        def load(self):
            (folder / f"{self.name}.{time.time_ns()}.{os.getpid()}").touch()
            time.sleep(0.1)
            return self.part.load()

    return [SlowPart(part, i) for i, part in enumerate(blocks)]


@contextmanager
def one_worker_killed(client, folder):
    """Meanwhile a worker is killed, while it works on a part."""
    victim = client.submit(os.getpid, pure=False).result()
    over = threading.Event()

    def kill_at_work() -> None:
        while not over.is_set() and not any(folder.glob(f"*.{victim}")):
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_at_work, daemon=True)
    killer.start()
    yield
    assert any(folder.glob(f"*.{victim}")), "the worker had nothing to do"
    assert victim not in client.run(os.getpid).values()
    over.set()
    killer.join()
