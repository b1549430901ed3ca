"""Which graphs a page shows in detail."""

from __future__ import annotations

import numpy as np

from treelens.report import details, graph_map, summarize
from treelens.report.details import choose_graphs
from treelens.report.given import look_at
from treelens.report.render import render


def test_a_sample_holds_the_wrong_and_the_uncertain(learned, synthetic):
    graphs, y = synthetic
    given = look_at(learned.model_, graphs, np.where(np.arange(len(y)) < 4, -y, y))
    chosen = choose_graphs(given, most_graphs=12)
    assert len(chosen) == 12
    assert set(given.most_wrong[:4]) <= set(chosen)
    assert set(given.most_uncertain[:4]) <= set(chosen)
    assert len(choose_graphs(given, most_nodes=40)) < 6
    assert given.graphs.sizes[choose_graphs(given, most_nodes=40)].sum() <= 40


def test_a_page_says_that_it_shows_a_sample(learned, synthetic, monkeypatch):
    monkeypatch.setattr(details.choose_graphs, "__defaults__", (10, 60_000))
    monkeypatch.setattr(graph_map, "_MOST_POINTS", 30)
    page = render(summarize(learned.model_, *synthetic))
    assert "in this file for 10 of 64 graphs" in page
    assert "The map holds 30 of 64 graphs" in page
