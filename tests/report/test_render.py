"""The page as a file: complete, small, escaped, written whole or not at all."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import treelens as tl
from report.conftest import QUICK, outline_of
from treelens.report import summarize, write_report
from treelens.report.render import number, render


def test_the_page_is_well_formed(page):
    outline = outline_of(page)
    assert len(set(outline.ids)) == len(outline.ids)
    sections = {"glance", "patterns", "map", "examples", "scores", "learning", "model", "data"}
    assert sections <= set(outline.ids)


def test_nothing_is_fetched(page):
    assert outline_of(page).fetched == ["data:,"]
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert outside <= {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_data_of_the_page_is_json(page, summary):
    text = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page)[1]
    assert "<" not in text
    assert json.loads(text)["graphs"] == summary["graphs"]["rows"]


def test_a_page_on_the_model_alone(learned):
    outline = outline_of(render(summarize(learned.model_)))
    assert "map" not in outline.ids
    assert "scores" in outline.ids


def test_a_page_on_graphs_without_classes(learned, synthetic):
    outline = outline_of(render(summarize(learned.model_, synthetic[0])))
    assert "only-wrong" not in outline.ids
    assert "map" in outline.ids


def test_one_graph_is_enough(learned, synthetic):
    graphs, y = synthetic
    outline_of(render(summarize(learned.model_, graphs[:1], y[:1])))


def test_uniform_weights_and_many_classes(synthetic):
    graphs, _ = synthetic
    y = np.asarray(graphs.graph_data["substructure"], int)  # eight classes
    model = tl.GraphSVC("wl-subtree-cosine", 1, 0, **QUICK).fit(graphs, y)
    page = render(summarize(model.model_, graphs, y))
    outline_of(page)
    assert "What tells 8 classes of graphs apart" in page


def test_numbers_of_the_page_are_those_of_the_summary(page, summary):
    words = re.sub(r"<[^>]+>", "", page)
    assert f"{100 * summary['held_out']['accuracy']:.1f}" in words
    assert summary["learning"]["headline"] in words
    assert f"{summary['patterns']['rows'][0]['weight']:.2f}" in words


def test_writing(learned, synthetic, tmp_path):
    path = tmp_path / "report.html"
    assert learned.report(path, *synthetic) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_refused_before_the_work(learned, tmp_path, monkeypatch):
    monkeypatch.setattr("treelens.report.render.summarize", lambda *_, **__: pytest.fail("worked"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(learned.model_, tmp_path / "nowhere" / "report.html")


def test_the_same_input_gives_the_same_page(learned, synthetic, page):
    assert render(summarize(learned.model_, *synthetic)) == page


# --- many graphs ------------------------------------------------------------------------------


def test_numbers_are_written_for_people():
    assert number(1234567) == "1,234,567"
    assert number(0.012345) == "0.0123"
    assert number(-3) == "\N{MINUS SIGN}3"
    assert number(None) == "–"
