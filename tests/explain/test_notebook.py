"""An explanation in a notebook: a drawing, a sentence that adds up, a table; all escaped."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from treelens.explain import notebook
from treelens.explain.notebook import explanation_html, summary_sentence
from treelens.graphs.collection import Graph

EVIL = "<script>x</script>"


def explanation(**changes) -> SimpleNamespace:
    rows = [
        {"contribution": 1.5 - k, "pattern": f"p{k}", "depth": k, "count": 2} for k in range(12)
    ]
    given = {
        "decision": 1.25, "base": -0.5, "class_label": "yes", "predicted_class": "yes",
        "graph": Graph(("a", "b"), ((0, 1),)), "node_contributions": np.array([1.0, 0.75]),
        "pattern_contributions": pd.DataFrame(rows),
    }  # fmt: skip
    return SimpleNamespace(**(given | changes))


def test_base_and_nodes_make_up_the_decision() -> None:
    assert summary_sentence(explanation()) == (
        "Predicted yes; decision +1.250 for yes: base -0.500, nodes together +1.750."
    )
    number = summary_sentence(explanation(class_label=None))
    assert number == "Predicted 1.250: base -0.500, nodes together +1.750."


def test_the_strongest_patterns_are_listed_and_no_more() -> None:
    page = explanation_html(explanation())
    assert page.count("<tr>") == 1 + notebook._MOST_PATTERNS
    assert "<td>+1.500</td><td><code>p0</code></td><td>0</td><td>2</td>" in page
    assert f"p{notebook._MOST_PATTERNS}</code>" not in page


@pytest.mark.parametrize(("n_nodes", "drawn"), [(0, 0), (1, 1), (400, 1), (401, 0)])
def test_graphs_are_drawn_up_to_a_size(n_nodes: int, drawn: int) -> None:
    graph = Graph(("a",) * n_nodes, tuple((k, k + 1) for k in range(n_nodes - 1)))
    page = explanation_html(explanation(graph=graph, node_contributions=np.ones(n_nodes)))
    assert page.count("<svg") == drawn


def test_numbers_are_raised_and_lowered_and_classes_spoken_for() -> None:
    assert "raises" in explanation_html(explanation(class_label=None))
    assert "for yes" in explanation_html(explanation())


def test_everything_out_of_data_is_escaped() -> None:
    table = pd.DataFrame([{"contribution": 1.0, "pattern": EVIL, "depth": 0, "count": 1}])
    page = explanation_html(
        explanation(
            class_label=EVIL, predicted_class=EVIL, pattern_contributions=table,
            graph=Graph((EVIL, "b"), ((0, 1),)),
        )
    )  # fmt: skip
    assert EVIL not in page
    assert "&lt;script&gt;" in page
