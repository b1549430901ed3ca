"""What a notebook shows of a model: scores, and no text that acts."""

import warnings

import numpy as np

import treelens as tl


def test_a_notebook_shows_scores_and_escapes_everything():
    evil = "<script>alert(1)</script>"
    labels = [evil if i % 2 else "C" for i in range(4)]
    graphs = [tl.Graph(tuple(labels[: 2 + i % 3]), ((0, 1),)) for i in range(24)]
    y = np.where(np.arange(24) % 3 == 0, evil, "b<b>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tl.GraphClassifier(depth=1, weights="uniform").fit(graphs, y)
    shown = model._repr_html_()
    assert shown == model._repr_mimebundle_()["text/html"]
    assert "ROC AUC" in shown
    assert "<script>" not in shown
    assert "b<b>" not in shown
    assert "&lt;script&gt;" in shown
    table = model.predict_table(graphs)._repr_html_()
    assert "<script>" not in table
    assert "in_domain" in table


def test_before_the_fit_scikit_learns_own_is_shown():
    assert "sk-" in tl.GraphRegressor()._repr_html_()


def test_a_regressor_in_a_notebook():
    graphs = [tl.Graph(("C",) * n, tuple((i, i + 1) for i in range(n - 1))) for n in range(2, 14)]
    model = tl.GraphRegressor(depth=1).fit(graphs, np.arange(12.0))
    shown = model._repr_html_()
    for words in ("GraphRegressor", "12 graphs", "RMSE", "heaviest patterns"):
        assert words in shown
