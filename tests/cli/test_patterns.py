"""Patterns of a model as a table."""

from __future__ import annotations

import pandas as pd

import treelens as tl
from cli.conftest import run


def test_patterns(model, tmp_path):
    done = run("patterns", model, "--top", 4, "--json")
    shown = done.data["patterns"]
    differences = [row["difference"] for row in shown]
    assert differences == sorted(differences, key=abs, reverse=True)
    assert differences == [row["frequency amine"] - row["frequency alcohol"] for row in shown]
    assert min(differences) < 0 < max(differences)
    assert "amine - alcohol" in run("patterns", model).out
    assert {"O", "N"} <= {row["pattern"] for row in shown}
    by_support = run("patterns", model, "--sort", "support", "--json").data["patterns"]
    assert by_support[0]["pattern"] == "C"
    done = run("patterns", model, "--out", tmp_path / "patterns.csv")
    assert "C(-C,-O)" in done.out
    assert len(pd.read_csv(tmp_path / "patterns.csv")) == len(tl.load(model).patterns_)
    assert run("patterns", model, "--sort", "beauty").code == 2
