"""A kernel matrix in a file: complete or not there, and that of the estimators."""

from __future__ import annotations

import numpy as np
import pytest

from treelens import PatternVocabulary
from treelens.graphs.errors import GraphDataError
from treelens.svm import disk_gram as gram
from treelens.svm.disk_gram import gram_to_disk

pytest.importorskip("distributed")


def test_a_kernel_matrix_appears_only_when_it_is_complete(mutag, tmp_path, monkeypatch):
    graphs, path = mutag[0][:20], tmp_path / "kernel.npy"
    old = np.array(gram_to_disk(path, graphs, depth=1))
    calls, there = [], gram._tile

    def failing_tile(*given):
        calls.append(path.read_bytes())  # the old file, whole, all the while
        if len(calls) == 3:
            raise KeyboardInterrupt
        return there(*given)

    monkeypatch.setattr(gram, "_tile", failing_tile)
    with pytest.raises(KeyboardInterrupt):
        gram_to_disk(path, graphs, depth=2, block_size=5)
    assert len(set(calls)) == 1
    np.testing.assert_array_equal(np.load(path), old)
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.npy"]


def test_the_kernel_matrix_takes_graphs_as_the_estimators_do(tmp_path):
    smiles = ["CCO", "C=CO", "CCN"]
    kernel = gram_to_disk(tmp_path / "a.npy", smiles, "wl-oa", 1)
    bonds = gram_to_disk(tmp_path / "b.npy", smiles, "wl-oa", 1, edge_labels=True)
    atoms = gram_to_disk(tmp_path / "c.npy", smiles, "wl-oa", 1, edge_labels=False)
    np.testing.assert_array_equal(kernel, bonds)
    assert kernel[0, 1] < atoms[0, 1]  # the same atoms and neighbours but for the double bond


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "none"}, "kernel must be one of"),
        ({"depth": -1}, "'depth' parameter of gram_to_disk"),
        ({"depth": 0, "include_depth_zero": False}, "leaves no pattern"),
        ({"gamma": None}, "'gamma' parameter of gram_to_disk"),
        ({"gamma": -1.0}, "'gamma' parameter of gram_to_disk"),
        ({"gamma": np.inf}, "'gamma' parameter of gram_to_disk"),
        ({"block_size": 0}, "block_size must be"),
        ({"edge_labels": "yes"}, "'edge_labels' parameter of gram_to_disk"),
        ({"weights": np.ones(3)}, r"each of the \d+ patterns .* shape \(3,\)"),
        ({"client": 8786}, "client must be a dask.distributed.Client"),
    ],
)
def test_mistakes_about_the_kernel_matrix_leave_no_file(mutag, tmp_path, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gram_to_disk(tmp_path / "kernel.npy", mutag[0][:10], **settings)
    assert not list(tmp_path.iterdir())


def test_graphs_and_weights_of_a_kernel_matrix_are_checked(mutag, tmp_path):
    graphs = mutag[0][:10]
    n_patterns = PatternVocabulary.fit(graphs, 1, edge_labels=True)[0].n_patterns
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="finite and not negative"):
            gram_to_disk(
                tmp_path / "k.npy", graphs, depth=1, weights=[bad] + [1.0] * (n_patterns - 1)
            )
    for not_graphs in (graphs[:0], [1, 2], None):
        with pytest.raises(GraphDataError, match="graph"):
            gram_to_disk(tmp_path / "k.npy", not_graphs)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        gram_to_disk(tmp_path / "none" / "k.npy", graphs)
    gram_to_disk(tmp_path / "k.npy", graphs, "wl-oa", 1, None)  # a form without gamma
