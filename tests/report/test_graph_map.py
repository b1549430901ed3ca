"""The map of graphs keeps their distances."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.report import graph_map
from treelens.report.given import look_at
from treelens.report.graph_map import place_graphs


def test_the_map_keeps_distances(learned, synthetic):
    """Three graphs fit on a plane without loss: squares on paper are twice the distance."""
    given = look_at(learned.model_, synthetic[0][[0, 20, 40]], None)
    places, share = place_graphs(learned.model_.kernel, given.said.graphs.features)
    assert share == pytest.approx(1.0)
    found = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    frequencies = given.histograms.to_sparse("frequencies").toarray()
    gaps = np.abs(frequencies[:, None] - frequencies[None])  # (3, 3, n_patterns)
    distance = 0.5 * (gaps * learned.weights_).sum(axis=2) / given.histograms.n_depths
    np.testing.assert_allclose(found, 2 * distance, atol=1e-9)


def test_landmarks_place_the_others_as_the_whole_does(learned, synthetic, monkeypatch):
    given = look_at(learned.model_, synthetic[0], None)
    arguments = (learned.model_.kernel, given.said.graphs.features)
    whole, _ = place_graphs(*arguments)
    monkeypatch.setattr(graph_map, "_MOST_LANDMARKS", 48)
    some, _ = place_graphs(*arguments)
    gaps = [np.hypot(*(p[:, None] - p[None]).transpose(2, 0, 1)).ravel() for p in (whole, some)]
    assert np.corrcoef(*gaps)[0, 1] > 0.95
