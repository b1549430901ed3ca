"""Tables that the page carries in itself: what they hold, and no formulas."""

from __future__ import annotations

import base64
import io

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, outline_of
from treelens.report.downloads import downloads_of
from treelens.report.evidence_page import render_evidence


def table_of(summary, name: str) -> pd.DataFrame:
    """A table as somebody reads it who downloads it."""
    address = downloads_of(summary)[name]
    text = base64.b64decode(address.partition("base64,")[2]).decode("utf-8-sig")
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def test_downloads_hold_the_tables(of_numbers, of_classes, number_model, molecules):
    graphs, y = molecules
    predictions = table_of(of_numbers, "predictions")
    np.testing.assert_allclose(predictions["predicted"], number_model.predict(graphs[1::2]))
    np.testing.assert_allclose(predictions["measured"], y[1::2])
    assert predictions["in_domain"].tolist() == number_model.domain(graphs[1::2])[
        "in_domain"
    ].tolist()  # fmt: skip
    fragments = table_of(of_classes, "fragments")
    rows = of_classes["fragments"]["rows"]
    np.testing.assert_allclose(fragments["effect"], [row["effect"] for row in rows])
    for label, n in rows[0]["by_class"]:
        assert fragments[f"support {label}"][0] == n


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", EVIL, 'a",@b\n"', "+cmd|x"])
def test_hostile_names_stay_text_on_the_page_and_in_tables(name):
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    unnamed = tl.as_graph_collection([star, path] * 6)
    graphs = tl.GraphCollection(**(unnamed._arguments() | {"names": [name] * len(unnamed)}))
    y = [EVIL_CLASS, "plain"] * 6
    model = tl.GraphClassifier(depth=1).fit(graphs, y)
    summary = model.summary(graphs, y)
    assert summary["fragments"]["rows"][0]["examples"][0] == name
    page = render_evidence(summary)
    outline = outline_of(page)
    assert outline.tags.count("script") == 2
    assert "img" not in outline.tags
    assert EVIL not in page
    assert EVIL_CLASS not in page
    formula = name[0] in "=+"
    told = table_of(summary, "predictions")["name"][0]
    assert told == (f"'{name}" if formula else name)
    examples = table_of(summary, "fragments")["examples"][0]
    assert examples.startswith(f"'{name}" if formula else name)
