"""What every view and every estimator does: fit, predict, explain, fragments, report, files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import treelens as tl

pytest.importorskip("rdkit")

from treelens import chem

ENDS = ("O", "N", "Cl", "C(=O)O", "c1ccccc1")
SMILES = [f"{'C' * n}{end}" for n in range(1, 10) for end in ENDS]
NAMES = [f"m{k}" for k in range(len(SMILES))]
HEAT = pd.DataFrame({"id": NAMES, "heat": np.linspace(0.0, 1.0, len(SMILES))})


@dataclass(frozen=True)
class Ends(tl.PatternView):
    """The labels at the ends of edges."""

    name = "ends"

    def occurrences(self, graph):
        for ends in graph.edges:
            yield "all", "-".join(sorted(str(graph.node_labels[k]) for k in ends)), ends


VIEWS = {
    "patterns": [tl.WLPatterns()],
    "paths": [tl.Paths()],
    "ecfp": [chem.Ecfp(2)],
    "walks": [tl.Walks(2)],
    "own": [Ends()],
    "descriptors": [tl.WLPatterns(), chem.Descriptors("compact")],
    "table": [tl.WLPatterns(), tl.Table(HEAT)],
    "all": [tl.WLPatterns(), tl.Paths(), chem.Ecfp(1), Ends(), chem.Descriptors(), tl.Table(HEAT)],
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    graphs = tl.as_graph_collection(SMILES).with_names(NAMES)
    values = np.array([len(text) for text in SMILES]) + 0.3 * rng.normal(size=len(SMILES))
    return graphs, values, np.array(["acid" if "=O" in text else "other" for text in SMILES])


@pytest.fixture(scope="module", params=["numbers", "classes"])
def kind(request):
    return request.param


@pytest.fixture(scope="module", params=VIEWS)
def fitted(request, data, kind):
    graphs, values, names = data
    made = tl.GraphRegressor if kind == "numbers" else tl.GraphClassifier
    model = made(2, "depths", views=VIEWS[request.param], max_steps=10, n_jobs=1)
    return clone(model).fit(graphs[::2], (values if kind == "numbers" else names)[::2])


def _said(model, graphs):
    numbers = isinstance(model, tl.GraphRegressor)
    return model.predict(graphs) if numbers else model.predict_proba(graphs)


def _with_tables(model, graphs):
    """New graphs carry their row where the model has a table."""
    return model._with_numbers(graphs, tables=HEAT) if model.model_.keyed_tables else graphs


def test_predictions(fitted, data):
    new = _with_tables(fitted, data[0][1::2])
    said = _said(fitted, new)
    assert len(said) == len(new)
    assert np.isfinite(said).all()
    np.testing.assert_allclose(_said(fitted, new[:3]), said[:3], rtol=1e-9)
    table = fitted.predict_table(new)
    assert {"in_domain", "similarity"} <= set(table)


def test_explanations_add_up(fitted, data):
    graphs = _with_tables(fitted, data[0][1::2])
    bases = []
    for k in (0, 7):
        found = fitted.explain(graphs[k])
        whole = found.base + found.node_contributions.sum() + found.rest["contribution"].sum()
        assert whole == pytest.approx(found.decision)
        bases.append(found.base)
        assert found.draw().startswith("<svg")
    assert bases[0] == pytest.approx(bases[1])


def test_shares_fragments_and_report(fitted, data, tmp_path):
    graphs = _with_tables(fitted, data[0][1::2])
    assert fitted.shares_.sum() == pytest.approx(1.0)
    assert fitted.shares_.index.tolist() == fitted.model_.view_names
    fragments = fitted.fragments(graphs, n_fragments=5, smarts=False)
    assert set(fragments) >= {"effect", "support"} or not len(fragments)
    page = fitted.report(tmp_path / "r.html", graphs).read_text("utf-8")
    assert page.rstrip().endswith("</html>")


def test_files_give_the_same_answers(fitted, data, tmp_path):
    graphs = _with_tables(fitted, data[0][1::2])
    fitted.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens", classes=[Ends])
    np.testing.assert_allclose(_said(loaded, graphs), _said(fitted, graphs), rtol=1e-9)
    np.testing.assert_allclose(
        loaded.explain(graphs[0]).node_contributions, fitted.explain(graphs[0]).node_contributions
    )
