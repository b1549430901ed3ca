"""What a report tells its reader to distrust."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treelens as tl
from treelens.kernels.gram import pair_sums
from treelens.report import doubts
from treelens.report.evidence_page import render_evidence


def levels_of(summary) -> dict[str, str]:
    return {item["text"]: item["level"] for item in summary["doubts"]}


def test_memory_is_called_memory(number_model, molecules):
    graphs, y = molecules
    found = levels_of(number_model.summary(graphs[::2], y[::2]))
    (text,) = (text for text in found if "may remember" in text)
    assert found[text] == "alarm"
    assert f"{len(y[::2])} of the {len(y[::2])} graphs" in text


def test_a_model_of_blocks_says_that_its_training_graphs_are_a_sample(molecules, tmp_path):
    graphs, y = molecules
    model = tl.GraphRegressor(depth=1, exact_size=12, n_landmarks=6, random_state=0)
    model.fit(tl.CollectionBlocks(graphs, y, 20)).save(tmp_path / "m.treelens")
    for fitted in (model, tl.load(tmp_path / "m.treelens")):
        found = fitted.summary()
        assert found["model"]["n_in_all"] == len(y)
        words = f"fitted to {len(y)} graphs in blocks. Training graphs here are a sample of 12"
        assert any(words in item["text"] for item in found["doubts"])
        assert f"a sample of the {len(y)} that" in render_evidence(found)
    page = render_evidence(model.summary(graphs, y))
    assert "outside the sample" in page
    assert "graphs not trained on" not in page
    whole = tl.GraphRegressor(depth=1, random_state=0)
    whole = whole.fit(tl.CollectionBlocks(graphs, y, 20)).summary()
    assert whole["model"]["n_in_all"] is None


def test_strange_graphs_are_noticed(number_model):
    pytest.importorskip("rdkit")
    found = levels_of(number_model.summary(["[Na+].[Cl-]", "FC(F)(F)I", "BrBr"]))
    (unseen,) = (text for text in found if "never saw" in text)
    (far,) = (text for text in found if "less like any training graph" in text)
    assert found[unseen] == found[far] == "alarm"
    assert unseen.startswith("3 of the 3")


def test_a_search_that_did_not_converge_comes_first(molecules):
    graphs, y = molecules
    with pytest.warns(ConvergenceWarning):
        model = tl.GraphRegressor(depth=1, max_steps=1).fit(graphs[::2], y[::2])
    assert not model.converged_
    first = model.summary()["doubts"][0]
    assert first["level"] == "alarm"
    assert "before it converged" in first["text"]


@pytest.mark.parametrize(
    ("interval", "level"),
    [
        ((0.5, 0.8), "alarm"), ((0.85, 0.95), "fine"), ((0.905, 0.915), "fine"),
        ((0.93, 1.0), "notice"),
    ],
)  # fmt: skip
def test_intervals_are_judged_by_what_so_many_graphs_can_tell(interval, level):
    scores = {"coverage": sum(interval) / 2, "coverage_interval": interval}
    assert doubts._coverage(scores, "the test set")["level"] == level


def test_usual_similarity_is_that_of_training_graphs(number_model):
    fitted = number_model.model_
    graphs = fitted.basis_graphs
    shared = pair_sums(graphs.pairs, None, fitted.weights)
    union = graphs.diagonal[:, None] + graphs.diagonal - shared
    tanimoto = shared / union
    np.fill_diagonal(tanimoto, 0.0)
    expected = np.quantile(tanimoto.max(axis=1), 0.05)
    assert doubts.usual_similarity(number_model.model_) == pytest.approx(expected)
