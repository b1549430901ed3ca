"""Graphs that a report is about: their names, their classes, and which to look at first."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.report.given import codes_of, graph_name, least_certain, look_at, surest_of_the_wrong

PROBABILITIES = np.array([[0.5, 0.3, 0.2], [0.45, 0.45, 0.1], [0.1, 0.1, 0.8], [0.0, 0.3, 0.7]])


def test_the_closest_calls_come_first():
    assert least_certain(PROBABILITIES).tolist() == [1, 0, 3, 2]


def test_of_the_wrong_the_least_likely_truth_comes_first():
    predicted, codes = np.array([0, 0, 2, 2]), np.array([2, 1, 2, 0])
    assert surest_of_the_wrong(PROBABILITIES, predicted, codes).tolist() == [3, 0, 1]
    assert surest_of_the_wrong(PROBABILITIES, predicted, None).tolist() == []


def test_classes_as_the_model_has_them_or_as_their_texts():
    classes = np.array([-1, 1])
    assert codes_of(["1", "-1"], classes, 2).tolist() == [1, 0]
    assert codes_of([1, -1, 1], classes, 3).tolist() == [1, 0, 1]
    assert codes_of([1.0, -1.0], classes, 2).tolist() == [1, 0]
    assert codes_of([1, 2], np.array(["1", "2"]), 2).tolist() == [0, 1]


def test_classes_that_the_model_never_learned():
    with pytest.raises(ValueError, match=r"y\[1\] is 'c', a class that the model never learned"):
        codes_of(["a", "c"], np.array(["a", "b"]), 2)
    with pytest.raises(ValueError, match=r"one class for each of the 3 graphs; got the shape \(2"):
        codes_of(["a", "b"], np.array(["a", "b"]), 3)


def test_a_graph_is_called_by_its_name_else_by_its_smiles():
    pytest.importorskip("rdkit")
    plain = tl.as_graph_collection(["CCO", "CN"])
    assert graph_name(plain, 1) == "CN"
    named = tl.GraphCollection(**(plain._arguments() | {"names": ["ethanol", None]}))
    assert graph_name(named, 0) == "ethanol"
    assert graph_name(named, 1) == "CN"
    assert graph_name(tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})]), 0) is None


def test_classes_without_graphs_are_refused():
    assert look_at(None, None, None) is None
    with pytest.raises(ValueError, match="y was given without X"):
        look_at(None, None, ["a"])
