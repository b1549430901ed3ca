"""Standard forms: what they are, what is counted, and that a model uses them on new molecules."""

import pytest

import treelens as tl
from treelens.graphs.atoms import STEPS, changes_in_words, checked_steps
from treelens.graphs.errors import GraphDataError
from treelens.graphs.molecules import molecule_of, molecules_to_collection, smiles_to_collection

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

FORMS = {
    "CC(=O)[O-].[Na+]": ("CC(=O)O", "fragment+uncharge"),
    "CCN.Cl": ("CCN", "fragment"),
    "CC[NH3+]": ("CCN", "uncharge"),
    "Oc1ccccn1": ("O=c1cccc[nH]1", "tautomer"),
    "CCO": ("CCO", ""),
}


def test_every_step() -> None:
    graphs = smiles_to_collection(list(FORMS), standardize=True)
    found = zip(graphs.graph_data["smiles"], graphs.graph_data["standardized"], strict=True)
    assert list(found) == list(FORMS.values())
    assert graphs.graph_data["smiles_given"].tolist() == list(FORMS)
    assert graphs.recipe.standardize == STEPS
    assert changes_in_words(graphs.graph_data["standardized"]) == {
        "reduced to the largest fragment": 2, "neutralised": 2,
        "turned into the canonical tautomer": 1,
    }  # fmt: skip


def test_atoms_of_the_molecule_behind_a_graph_are_its_nodes() -> None:
    for graphs in (
        smiles_to_collection(list(FORMS), standardize=True),
        molecules_to_collection([Chem.MolFromSmiles(s) for s in FORMS], standardize=True),
    ):
        for graph, (form, _) in zip(graphs, FORMS.values(), strict=True):
            molecule = molecule_of(graph)
            assert Chem.MolToSmiles(molecule) == form
            assert tuple(a.GetSymbol() for a in molecule.GetAtoms()) == graph.node_labels


def test_steps_can_be_chosen_and_are_checked() -> None:
    graphs = smiles_to_collection(list(FORMS), standardize="fragment")
    assert graphs.graph_data["smiles"][0] == "CC(=O)[O-]"
    assert graphs.recipe.standardize == ("fragment",)
    assert checked_steps(("tautomer", "fragment")) == ("fragment", "tautomer")
    with pytest.raises(ValueError, match="standardize must be True, False or some of 'fragment'"):
        smiles_to_collection(["C"], standardize=["salt"])


def test_a_model_brings_new_molecules_into_the_same_form(tmp_path) -> None:
    acids, amines = (
        [f"{'C' * n}{end}" for n in range(1, 9)] for end in ("C(=O)[O-].[Na+]", "[NH3+].[Cl-]")
    )
    y = ["acid"] * 8 + ["amine"] * 8
    graphs = smiles_to_collection(acids + amines, standardize=True)
    model = tl.GraphClassifier(depth=1, random_state=0).fit(graphs, y)
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    assert loaded.recipe_.standardize == STEPS
    salts, free = ["CCC(=O)[O-].[K+]", "CCC[NH3+].[Br-]"], ["CCC(=O)O", "CCCN"]
    assert (loaded.predict_proba(salts) == loaded.predict_proba(free)).all()
    with pytest.raises(GraphDataError, match="standardize"):
        loaded.predict(smiles_to_collection(salts))
