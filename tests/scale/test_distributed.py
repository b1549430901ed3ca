"""Dask with worker processes: the same model, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from treelens import PatternVocabulary
from treelens.distributed.executor import DaskExecutor, client_or_local, fit_distributed
from treelens.distributed.gram import gram_to_disk
from treelens.estimators.streaming import StreamingGraphClassifier
from treelens.graphs.blocks import CollectionBlocks, SmilesBlocks
from treelens.graphs.errors import GraphDataError, InvalidMoleculesWarning
from treelens.kernels.forms import form_kernel
from treelens.kernels.gram import pair_sums
from treelens.patterns.features import PatternExtractor

pytest.importorskip("distributed")
SETTINGS = {"depth": 2, "radius": 1.0, "n_components": 64, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    with client_or_local(n_workers=2) as client:
        yield client


def assert_same_model(model, other, graphs) -> None:
    names = model.vocabulary_.feature_names().tolist()
    assert names == other.vocabulary_.feature_names().tolist()
    np.testing.assert_array_equal(model.weights_, other.weights_)
    np.testing.assert_allclose(
        model.decision_function(graphs), other.decision_function(graphs), atol=1e-7
    )


def test_workers_give_the_model_of_one_process(mutag, client):
    graphs, y = mutag
    alone = StreamingGraphClassifier(**SETTINGS).fit([(graphs, y)])
    model = StreamingGraphClassifier(**SETTINGS)
    fit_distributed(model, CollectionBlocks(graphs, y, 30), client)
    assert_same_model(model, alone, graphs)


def test_a_bad_row_on_a_worker_is_named(tmp_path, client):
    smiles = ["CCO", "CCN", "CCC", "COC", "bad!", "CCCl"]
    path = tmp_path / "molecules.csv"
    path.write_text("smiles,label\n" + "".join(f"{s},{i % 2}\n" for i, s in enumerate(smiles)))
    model = StreamingGraphClassifier(depth=1, n_components=16, random_state=0)
    with pytest.raises(GraphDataError, match=r"row 5 \(line 6\) 'bad!'"):
        fit_distributed(model, SmilesBlocks(path, block_size=2), client)
    with pytest.warns(InvalidMoleculesWarning, match=r"row 5 \(line 6\)"):
        fit_distributed(model, SmilesBlocks(path, block_size=2, on_invalid="skip"), client)
    assert model.n_graphs_ == 5


def test_the_kernel_matrix_in_a_file_is_the_one_in_memory(mutag, client, tmp_path):
    graphs, _ = mutag
    vocabulary, _ = PatternVocabulary.fit(graphs, 2)
    features = PatternExtractor(vocabulary, 0, "wasserstein").features(graphs)
    selves = features.self_sums
    expected = form_kernel("metric", pair_sums(features.pairs), selves, selves, 1.0, 2.0)
    here = gram_to_disk(tmp_path / "a.npy", graphs, "metric", 2, 2.0, block_size=50)
    np.testing.assert_allclose(here, expected, rtol=1e-13)
    assert (here == here.T).all()
    there = gram_to_disk(tmp_path / "b.npy", graphs, "metric", 2, 2.0, block_size=50, client=client)
    np.testing.assert_array_equal(here, there)


def slow_parts(blocks, folder):
    """Parts that take their time, so that a worker can be killed while it works on one."""

    class SlowPart:  # defined here, it travels to the workers by value
        def __init__(self, part, started) -> None:
            self.part, self.started = part, started

        def load(self):
            self.started.touch()
            time.sleep(0.2)
            return self.part.load()

    return [SlowPart(part, folder / f"{i}") for i, part in enumerate(blocks)]


def test_a_killed_worker_changes_nothing(mutag, tmp_path):
    graphs, y = mutag
    alone = StreamingGraphClassifier(**SETTINGS).fit([(graphs, y)])
    parts = slow_parts(CollectionBlocks(graphs, y, 20), tmp_path)
    model = StreamingGraphClassifier(**SETTINGS, edge_labels=True)
    with client_or_local(n_workers=2) as client:
        victim = client.submit(os.getpid, pure=False).result()

        def kill_in_the_middle() -> None:
            deadline = time.monotonic() + 60
            while not (tmp_path / "3").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_in_the_middle, daemon=True)
        killer.start()
        model.fit(parts, executor=DaskExecutor(client))
        killer.join()
        assert victim not in client.run(os.getpid).values()
    assert_same_model(model, alone, graphs)
