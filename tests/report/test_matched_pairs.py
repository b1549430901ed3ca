"""Training graphs that are alike and differ in their targets."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.kernels.gram import pair_sums
from treelens.report.evidence_page import render_evidence
from treelens.report.matched_pairs import striking_pairs, what_differs


def test_pairs_are_the_most_similar_of_different_classes():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N")]
    model = tl.GraphClassifier(depth=1).fit(smiles, ["alcohol", "amine"] * 7)
    pairs, n = striking_pairs(model.model_)
    assert n == 14
    targets = model.model_.training.targets
    graphs = model.model_.basis_graphs
    shared = pair_sums(graphs.pairs, None, model.model_.weights)
    alike = shared / (graphs.diagonal[:, None] + graphs.diagonal - shared)
    other = np.where(targets[:, None] != targets, alike, 0.0)
    assert all(targets[pair.one] != targets[pair.other] for pair in pairs)
    assert pairs[0].similarity == pytest.approx(other.max())
    assert len({x for pair in pairs for x in pair[:2]}) == 2 * len(pairs), "each graph once"
    found = model.summary()["pairs"]["rows"][0]["sides"]
    for side in found:
        end = {"alcohol": "O", "amine": "N"}[side["class"]]
        assert [side["labels"][k] for k in side["nodes"]] == [end]


def test_pairs_of_numbers_are_cliffs(number_model):
    pairs, _ = striking_pairs(number_model.model_)
    values = number_model.train_values_
    index = [abs(values[p.one] - values[p.other]) / (1 - p.similarity) for p in pairs]
    assert index == sorted(index, reverse=True)


def test_what_differs_in_graphs_that_are_no_molecules():
    one = tl.as_graph_collection([([(0, 1), (1, 2)], {0: "a", 1: "b", 2: "c"})])[0]
    other = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})])[0]
    assert what_differs(one, other) == ((1, 2), (1,))
    assert what_differs(one, one) == ((), ())


def test_a_model_out_of_a_file_has_no_pairs_and_no_drawn_neighbours(number_model, molecules):
    from treelens.report import summarize_evidence

    graphs, y = molecules
    found = summarize_evidence(number_model.model_, graphs[1:5], y[1:5])
    assert found["pairs"] is None
    assert all(x["picture"] is None for row in found["examples"]["rows"] for x in row["neighbors"])
    assert 'id="pairs"' not in render_evidence(found)
