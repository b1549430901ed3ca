"""Parameters, labels and patterns in a model file, there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import treelens as tl
from storage.conftest import (
    GRAPHS,
    assert_same_predictions,
    fitted,
    refuse,
)
from storage.test_persistence import saved_and_loaded
from treelens.graphs.collection import Graph


def test_parameters_without_a_plain_form_come_back_as_defaults(tmp_path):
    model = fitted(weight_radius=0.0, cv=StratifiedKFold(2), random_state=np.random.RandomState(0))
    loaded = saved_and_loaded(model, tmp_path)
    assert (loaded.cv, loaded.random_state) == (5, None)
    assert_same_predictions(model, loaded)


def test_edge_labels_and_leaving_out_depth_zero(mutag, tmp_path):
    graphs, y = mutag
    model = fitted("tanimoto", 0.0, y[:60], graphs[:60], include_depth_zero=False)
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.vocabulary_.uses_edge_labels
    assert loaded.train_histograms_.first_depth == 1
    assert_same_predictions(model, loaded, graphs[60:])
    assert model.patterns_.equals(loaded.patterns_)


def relabelled(labels):
    """The same graphs with other node labels, of which there are four."""
    return tl.as_graph_collection(
        [Graph(tuple(labels[x] for x in g.node_labels), g.edges) for g in GRAPHS]
    )


@pytest.mark.parametrize(
    "labels",
    [
        ["C", "Br", "ü\ud800", ""],
        [0, -5, 2**70, 7],
        [0.5, -0.0, 1e-300, float("inf")],
        [True, False, 2, 3],
        [("C", 1), ("C", 2, (0.5,)), (), ("C", True)],
        [np.int64(3), np.float32(0.1), np.str_("x"), np.bool_(True)],
        ["C", 1, 0.5, ("N", 1)],
    ],
    ids=["text", "integers", "floats", "booleans", "tuples", "numpy", "mixed"],
)
def test_labels_keep_value_and_kind(labels, tmp_path):
    graphs = relabelled(labels)
    model = fitted("wwl-linear", 0.0, graphs=graphs)
    loaded = saved_and_loaded(model, tmp_path)
    ours, theirs = model.vocabulary_.node_alphabet, loaded.vocabulary_.node_alphabet
    assert ours == theirs
    assert [type(x) for x in ours] == [type(x) for x in theirs]
    assert_same_predictions(model, loaded, graphs)


@pytest.mark.parametrize("label", [frozenset("C"), b"C", 1j, Path("C")])
def test_labels_of_other_kinds_are_an_error_that_names_them(label, tmp_path):
    model = fitted("wwl-linear", 0.0, graphs=relabelled(["N", "O", label, "S"]))
    with pytest.raises(TypeError, match=r"node label .* cannot be kept in a file.*expected int"):
        model.save(tmp_path / "x.treelens")
    assert not list(tmp_path.iterdir())


def test_patterns_that_are_all_alike(path):
    """A table of ten thousand equal patterns would be searched from end to end."""

    def alike(repacked):
        repacked.set_array("level_1_own", np.zeros(10_000, dtype=np.int32))
        repacked.set_array("level_1_child_offsets", np.zeros(10_001, dtype=np.int64))
        repacked.set_array("level_1_child_keys", np.zeros(0, dtype=np.int64))

    refuse(path, alike, "the patterns of 'level_1' should differ from each other")
