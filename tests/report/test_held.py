"""What an estimator hands to a report beside its model."""

from __future__ import annotations

import treelens as tl
from treelens.report.held import Held


def test_training_graphs_have_names_only_where_they_are_still_known():
    graphs = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})] * 2)
    named = tl.GraphCollection(**(graphs._arguments() | {"names": ["first", "second"]}))
    assert Held(train_graphs=named).training_name(1) == "second"
    assert Held(train_graphs=graphs).training_name(1) is None
    assert Held().training_name(1) is None
