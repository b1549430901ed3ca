"""The molecules that the demo learns from."""

from __future__ import annotations

import numpy as np

from treelens.cli import demo


def test_the_demo_has_molecules_to_learn_from():
    data, story = demo.demo_data()
    assert len(data.graphs) == 1017
    assert f"pIC50, from {data.y.min():g} to {data.y.max():g}" in story
    assert data.task == "regression"
    assert np.median(data.y) == 6.44


def test_without_rdkit_the_demo_has_made_up_graphs(monkeypatch):
    monkeypatch.setattr(demo, "_rdkit_examples", lambda: None)
    data, story = demo.demo_data()
    assert len(data.graphs) == 160
    assert "pip install 'treelens[chem]'" in story
