"""The page: well formed, self-contained, escaped; its numbers and charts."""

from __future__ import annotations

import base64
import datetime
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, QUICK, outline_of
from treelens.report.render import Chart, Units, number, percent, plain_summary, render, ticks
from treelens.report.summary import write_report

KINDS = ["numbers", "classes", "svm"]


def words_of(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page).replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize("name", KINDS)
def test_well_formed_and_self_contained(summaries, name):
    page = render(summaries[name])
    outline = outline_of(page)
    assert len(set(outline.ids)) == len(outline.ids)
    sections = {"glance", "cards", "fragments", "scores", "predictions", "patterns"}
    assert sections | {"learning", "model"} <= set(outline.ids)
    assert ("pairs" in outline.ids) == (summaries[name]["pairs"] is not None)
    assert ("domain" in outline.ids) == (name != "svm")
    assert outline.fetched[0] == "data:,"
    tables = outline.fetched[1:]
    assert len(tables) == 2
    assert all(table.startswith("data:text/csv;charset=utf-8;base64,") for table in tables)
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # not requested
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert outside <= names | {"http://www.rdkit.org/xml"}
    assert not re.search(r"\bnan\b|\bNaN\b|\binf\b|>None<", page)
    assert render(summaries[name]) == page
    drawings = re.findall(r'<svg[^>]*role="img"[^>]*>\s*(<title>)?', page)
    assert len(drawings) > 20
    assert all(drawings)  # with a text


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_given", [0, 1, 5])
def test_pages_without_truth(cases, name, n_given):
    model, graphs, _ = cases[name]
    page = render(model.summary(graphs[1 : 1 + n_given] if n_given else None))
    outline = outline_of(page)
    assert ("cards" in outline.ids) == bool(n_given)
    assert "Test set" not in page
    if n_given:  # new graphs come first
        assert page.index("<h1>") < page.index('id="cards"') < page.index('id="glance"')


@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_those_of_the_summary(summaries, name):
    summary = summaries[name]
    words, units = words_of(render(summary)), Units.of(summary["model"]["training_values"])
    score = summary["scores"]["rmse" if name == "numbers" else "accuracy"]
    assert (units(score) if name == "numbers" else f"{100 * score:.1f}") in words
    assert summary["learning"]["sentence"].replace("graph", summary["noun"]) in words
    for check in summary["checks"]:
        assert check["text"] in words
    sums = re.findall(
        r"(\S+) \(base\) (\S+) \((?:atoms|nodes)\)(?: (\S+) \(descriptors\))? = (\S+)", words
    )
    assert len(sums) == len(summary["cards"]["rows"])
    for (base, rest, beside, total), row in zip(sums, summary["cards"]["rows"], strict=True):
        parts = float(base) + float(rest) + float(beside or 0.0)
        assert parts == pytest.approx(float(total), abs=1e-9)
        assert float(total) == pytest.approx(row["decision"], abs=0.0051)


@pytest.mark.parametrize("make", [tl.GraphClassifier, tl.GraphSVC])
def test_many_classes_and_uniform_weights(synthetic, make):
    graphs, _ = synthetic
    y = np.asarray(graphs.graph_data["substructure"], int)  # eight classes
    settings = {"weights": "uniform", "depth": 1}
    if make is tl.GraphSVC:
        settings = {"kernel": "wl-subtree-cosine", "depth": 1, "weight_radius": 0, **QUICK}
    model = make(**settings).fit(graphs[::2], y[::2])
    page = render(model.summary(graphs[1::2], y[1::2]))
    outline = outline_of(page)
    assert "threshold" not in outline.ids
    assert "8 classes" in page


def test_molecules_with_coordinates_and_large_graphs(cases):
    chem = pytest.importorskip("rdkit.Chem")
    molecules = [chem.MolFromSmiles(x) for x in ("CCO", "CCCCC", "c1ccccc1")]
    page = render(cases["numbers"][0].summary(molecules))
    assert page.count("coloured by contribution") == 3
    long = ([(k, k + 1) for k in range(200)], dict.fromkeys(range(201), 0))
    assert "Too large to be drawn: 201 nodes" in render(cases["classes"][0].summary([long]))


def table_of(page: str, name: str) -> pd.DataFrame:
    data = re.search(rf'base64,([^"]+)" download="{name}\.csv"', page)[1]
    text = base64.b64decode(data).decode("utf-8-sig")
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def test_downloads(summaries, cases):
    model, graphs, y = cases["numbers"]
    found = table_of(render(summaries["numbers"]), "predictions")
    np.testing.assert_allclose(found["predicted"], model.predict(graphs[1::2]), rtol=1e-5)
    np.testing.assert_allclose(found["measured"], y[1::2], rtol=1e-5)
    rows = summaries["classes"]["fragments"]["rows"]
    found = table_of(render(summaries["classes"]), "fragments")
    np.testing.assert_allclose(found["effect"], [row["effect"] for row in rows], rtol=1e-5)
    for label, n, *_ in rows[0]["by_class"]:
        assert found[f"support {label}"][0] == n


@pytest.mark.parametrize("make", [tl.GraphClassifier, tl.GraphSVC])
@pytest.mark.parametrize("name", ["=HYPERLINK(1)", EVIL, 'a",@b\n"', "+cmd|x"])
def test_hostile_names_labels_and_classes_stay_text(hostile, name, make):
    plain, y = hostile
    graphs = plain.with_names([name] * len(plain))
    settings = QUICK if make is tl.GraphSVC else {}
    page = render(make(depth=1, **settings).fit(graphs, y).summary(graphs, y))
    outline = outline_of(page)
    assert outline.tags.count("script") == 2
    assert "img" not in outline.tags
    assert EVIL not in page
    assert EVIL_CLASS not in page
    expected = f"'{name}" if name[0] in "=+" else name
    assert table_of(page, "predictions")["name"][0] == expected
    assert table_of(page, "fragments")["examples"][0].startswith(expected)


def test_writing(cases, tmp_path, monkeypatch):
    model, graphs, _ = cases["numbers"]
    path = tmp_path / "report.html"
    assert model.report(path, graphs[1:9]) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr("treelens.report.summary.summarize", lambda *_, **__: pytest.fail("worked"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(model, tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="HTML page"):
        write_report(model, tmp_path / "report.png")


# --- numbers and charts ---------------------------------------------------------------------------


def test_a_summary_can_be_encoded():
    found = plain_summary({"a\ud800": ["ü\udc80", "ü"], "y": np.array([1.0, np.inf])})
    assert found == {"a\\ud800": ["ü\\udc80", "ü"], "y": [1.0, None]}
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    classes = [datetime.date(2020, 2, 29), ("a", 1)]
    assert plain_summary({"classes": classes}) == {"classes": ["2020-02-29", ["a", 1]]}


def test_numbers_and_per_cent():
    space = "\N{NARROW NO-BREAK SPACE}"
    assert percent(0.8934) == f"89.3{space}%"
    assert percent(1.0, digits=0) == f"100{space}%"
    assert percent(None) == number(None) == "–"
    assert (number(1234567), number(0.012345), number(-3)) == ("1,234,567", "0.0123", "−3")


@pytest.mark.parametrize(
    ("std", "value", "text"),
    [
        (2.0, -3.14159, "−3.14"),
        (0.02, 0.5, "0.5000"),
        (300.0, 12345.6, "12,346"),
        (1e-9, 2.5e-9, "2.5e−09"),
        (0.0, 1.0, "1.00"),
        (2.0, -0.001, "0.00"),
        (9.99, 1.0, "1.00"),
        (10.0, 1.0, "1.0"),
        (1000.0, 1e9, "1e+09"),
    ],
)
def test_decimals_follow_the_spread_of_the_values(std, value, text):
    assert Units.of({"std": std})(value) == text


def test_signs():
    units = Units(1)
    assert (units.signed(2.04), units.signed(-2.06), units.signed(2.04, more=1)) == (
        "+2.0",
        "−2.1",
        "+2.04",
    )
    assert units.signed(-0.01) == "+0.0"  # no minus before a zero
    assert units(None) == units.signed(None) == "–"
    assert Units.of(None) == Units.of({"std": float("nan")}) == Units(2)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_within_the_range(low, span):
    places = [place for place, _ in ticks((low, low + span))]
    slack = 1e-6 * max(span, abs(low) * 1e-3)
    assert all(low - slack <= place <= low + span + slack for place in places)
    assert 2 <= len(places) <= 6
    steps = np.diff(places)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3)


def test_axes_point_right_and_up():
    chart = Chart((0.0, 10.0))
    chart.add_line([0.0, 5.0], [5.0, 10.0])
    left, top, right, bottom = chart.box
    assert chart.lines == [f"M{left} {(top + bottom) / 2}L{(left + right) / 2} {top}"]
    x = [place for place, _ in chart.x_ticks]
    y = [place for place, _ in chart.y_ticks]
    assert (x[0], x[-1]) == (left, right)
    assert (y[0], y[-1]) == (bottom, top)


def test_intervals_are_cut_where_the_range_ends():
    chart = Chart()
    chart.add_dot(1.0, 1.0, (-5.0, 5.0), "a", "wrong")
    chart.add_dot(0.5, 0.0, (0.0, 0.25), "b")
    left, top, right, bottom = chart.box
    middle, quarter = (left + right) / 2, bottom - (bottom - top) / 4
    assert chart.dots[0] == (right, top, top, bottom, "wrong", "a")
    assert chart.dots[1] == (middle, bottom, quarter, bottom, "", "b")
