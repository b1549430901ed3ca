"""Effects of patterns: those of the explanations, with weight and support."""

from __future__ import annotations

import numpy as np
import pytest

from report.conftest import outline_of
from treelens.report import summarize_evidence
from treelens.report.evidence_page import render_evidence


@pytest.mark.filterwarnings("ignore:Training never saw")
def test_effects_are_those_of_the_explanations(number_model, molecules):
    graphs, _ = molecules
    few = graphs[1:9:2]
    rows = summarize_evidence(number_model.model_, few)["patterns"]["rows"]
    added = [number_model.explain(g).pattern_contributions["contribution"] for g in few]
    for row in rows[:20]:
        held = [frame[row["id"]] for frame in added if row["id"] in frame.index]
        assert row["n_holders"] == len(held)
        assert row["effect"] == pytest.approx(np.mean(held))
        assert row["size"] == pytest.approx(np.abs(held).sum() / len(few))
        if len(held) > 1:
            expected = np.std(held, ddof=1) / np.sqrt(len(held))
            assert row["effect_error"] == pytest.approx(expected, abs=1e-12)
        else:
            assert row["effect_error"] is None
    assert [row["size"] for row in rows] == sorted((r["size"] for r in rows), reverse=True)


def test_patterns_carry_weight_support_and_exact_smarts(of_numbers, number_model, molecules):
    chem = pytest.importorskip("rdkit.Chem")
    table = number_model.patterns_
    training = [chem.MolFromSmiles(x) for x in molecules[0][::2].graph_data["smiles"]]
    for row in of_numbers["patterns"]["rows"]:
        expected = table.loc[row["id"]]
        assert (row["text"], row["support"]) == (expected["pattern"], expected["support"])
        assert row["weight"] == pytest.approx(expected["weight"])
        query = chem.MolFromSmarts(row["smarts"])
        assert sum(x.HasSubstructMatch(query) for x in training) == row["support"], row["text"]
    assert {row["forest_tree"] for row in of_numbers["patterns"]["rows"]} == {"labels", "fine"}


def test_without_graphs_effects_are_those_in_training(number_model, molecules):
    found = summarize_evidence(number_model.model_)
    for name in ("scores", "given", "cases", "examples"):
        assert found[name] is None
    assert not found["patterns"]["of_given"]
    assert found["patterns"]["n_graphs"] == len(molecules[1][::2])
    same = summarize_evidence(number_model.model_, molecules[0][::2])["patterns"]
    for ours, theirs in zip(found["patterns"]["rows"], same["rows"], strict=True):
        assert ours["size"] == pytest.approx(theirs["size"])
    outline_of(render_evidence(found))


def test_parts_of_similarity_add_up_to_all_of_it(of_numbers, number_model):
    levels = of_numbers["learning"]["levels"]
    assert sum(level["share"] for level in levels) == pytest.approx(1.0)
    given = [level["weight"] for level in levels]
    np.testing.assert_allclose(given, number_model.model_.weighted.level_weights)
    assert of_numbers["learning"]["sentence"] == number_model.learning_gain_.sentence
