"""Patterns of the report: weights, support, environments and SMARTS."""

from __future__ import annotations

import pytest

import treelens as tl
from treelens.graphs.molecules import smiles_to_collection
from treelens.report import summarize


def test_patterns(learned, summary):
    section = summary["patterns"]
    table = learned.patterns_
    assert section["n_all"] == len(table)
    assert section["n_shown"] == len(section["rows"]) == 100
    assert [row["weight"] for row in section["rows"]] == sorted(
        (row["weight"] for row in section["rows"]), reverse=True
    )
    first = section["rows"][0]
    assert first["text"] == "0(0,1,2)"  # the planted pattern
    assert first["leans_to"] == "1"
    expected = table.loc[first["id"]]
    assert (first["depth"], first["support"]) == (expected["depth"], expected["support"])
    assert first["frequencies"] == [expected["frequency -1"], expected["frequency 1"]]
    assert first["tree"]["labels"] == ["0", "0", "1", "2"]
    place = first["occurrence"]
    assert place["labels"][place["root"]] == "0"
    assert sorted(place["labels"][node] for node in place["nodes"]) == ["0", "0", "1", "2"]


def test_molecules_have_environments_salts_included():
    pytest.importorskip("rdkit")
    smiles = ["CCO.Cl", "CCCO.Cl", "CCCCO.Cl", "CCN.Cl", "CCCN.Cl", "CCCCN.Cl"]
    graphs, y = tl.as_graph_collection(smiles), ["alcohol"] * 3 + ["amine"] * 3
    model = tl.GraphSVC("wwl-linear", 1, 0, C=10.0, cv=2, progress=False).fit(graphs, y)
    rows = summarize(model.model_, graphs, y)["patterns"]["rows"]
    places = {row["text"]: row["occurrence"] for row in rows}
    assert places["O(-C)"]["smiles"] in ("OC", "CO")


@pytest.mark.parametrize("atom_label", ["element", "element+aromatic"])
def test_the_smarts_of_a_pattern_matches_as_many_molecules_as_hold_it(atom_label):
    chem = pytest.importorskip("rdkit.Chem")
    smiles = ["CCN", "CNC", "CN(C)C", "c1ccccc1N", "CCO", "COC", "c1ccccc1O", "CC(=O)OC"]
    graphs = smiles_to_collection(smiles, atom_label=atom_label)
    y = ["amine"] * 4 + ["other"] * 4
    model = tl.GraphSVC("wwl-linear", 2, 0, C=10.0, cv=2, progress=False).fit(graphs, y)
    molecules = [chem.MolFromSmiles(x) for x in smiles]
    rows = summarize(model.model_, graphs, y)["patterns"]["rows"]
    assert len(rows) > 20
    for row in rows:
        query = chem.MolFromSmarts(row["smarts"])
        assert sum(x.HasSubstructMatch(query) for x in molecules) == row["support"], row["text"]


def test_no_smarts_where_graphs_are_no_molecules(summary):
    assert {row["smarts"] for row in summary["patterns"]["rows"]} == {None}
