"""Labels and numbers of atoms and standard forms, in any combination: as RDKit has them."""

from itertools import combinations

import numpy as np
import pytest

import treelens as tl
from treelens.chem.atoms import ATOM_PARTS, FINE_PARTS, atom_parts
from treelens.chem.molecules import molecules_to_collection, smiles_to_collection
from treelens.chem.parsing import parsed_smiles, smiles_parser
from treelens.chem.standardize import STEPS, changes_in_words, checked_steps
from treelens.errors import GraphDataError
from treelens.patterns.forest import usual_trees
from treelens.storage.classes import ModelClasses
from treelens.storage.state import from_state, to_state

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

SMILES = [
    "C[C@H](N)C(=O)[O-]",
    "c1cc[nH]c1",
    "[13CH3]C1CCC1",
    "C[N+](C)(C)C",
    "[2H]O[2H]",
    "[Fe+2]",
    "C[C@@H](O)[C@H](F)Cl",
    "*c1ccccc1",
    "O=S(=O)(O)c1ccc2ccccc2c1",
    "[C-]#[O+]",
]


def naive_label(atom, parts) -> str:
    """One part after the other, in words."""
    if "chirality" in parts:
        from rdkit.Chem import rdCIPLabeler

        rdCIPLabeler.AssignCIPLabels(atom.GetOwningMol())
    small = atom.GetIsAromatic() and "aromatic" in parts
    name = str(atom.GetIsotope()) if "isotope" in parts and atom.GetIsotope() else ""
    if "element" in parts:
        name += atom.GetSymbol().lower() if small else atom.GetSymbol()
    elif small:
        name += "a"
    n_h = atom.GetTotalNumHs()
    name += {0: "", 1: "H"}.get(n_h, f"H{n_h}") if "hydrogens" in parts else ""
    charge = atom.GetFormalCharge()
    name += f"{charge:+d}" if "charge" in parts and charge else ""
    name += "@" if "ring" in parts and atom.IsInRing() and not small else ""
    name += f"D{atom.GetDegree()}" if "degree" in parts else ""
    if "chirality" in parts and atom.HasProp("_CIPCode"):
        name += "_" + atom.GetProp("_CIPCode")
    return name or "-"


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_combination_of_parts(size) -> None:
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    for parts in combinations(ATOM_PARTS, size):
        graphs = smiles_to_collection(SMILES, atom_label="+".join(parts))
        for graph, molecule in zip(graphs, molecules, strict=True):
            assert graph.node_labels == tuple(naive_label(a, parts) for a in molecule.GetAtoms())


def test_fine_labels_refine_the_labels() -> None:
    """The tree of fine labels refines the other one: a fine label has one plain label."""
    for label in ("element", "degree+chirality", "element+isotope"):
        graphs = smiles_to_collection(SMILES, atom_label=label)
        plain_of: dict[int, set[int]] = {}
        for fine, plain in zip(graphs.fine_codes, graphs.node_codes, strict=True):
            plain_of.setdefault(int(fine), set()).add(int(plain))
        assert all(len(found) == 1 for found in plain_of.values())
        expected = FINE_PARTS | atom_parts(label)
        molecule = Chem.MolFromSmiles(SMILES[0])
        assert graphs[0].fine_labels == tuple(naive_label(a, expected) for a in molecule.GetAtoms())


def test_sides_of_double_bonds() -> None:
    smiles = ["C/C=C/C", r"C/C=C\C", "CC=CC", "c1ccccc1"]
    graphs = smiles_to_collection(smiles, bond_label="order+stereo")
    assert [graph.edge_labels[1] for graph in graphs] == ["=E", "=Z", "=", ":"]
    assert usual_trees(graphs) == ("labels", "fine", "fine+edges")
    plain = smiles_to_collection(smiles)
    assert plain[0].edge_labels == plain[1].edge_labels == ("-", "=", "-")
    assert usual_trees(plain) == ("labels", "fine")
    assert [g.edges for g in plain] == [g.edges for g in graphs]


def test_molecules_that_were_just_read_are_those_that_rdkit_parses() -> None:
    texts = [
        "C[C@H](O)F",
        "F/C=C/F",
        "CC(O)F",
        "CC=NO",
        "[C@@H](C)(C)C",
        "CN(=O)=O",
        "[H]OCC",
        "[2H]CO",
        "C[Pt](Cl)(N)N",
        "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O",
        "CC |^1:0|",
        "c1cc[nH]c1",
    ]

    def facts(molecule) -> list[object]:
        parts = [*molecule.GetAtoms(), *molecule.GetBonds()]
        known = [part.GetPropsAsDict(True, True) for part in parts]
        shown = [{name: x for name, x in one.items() if name != "__computedProps"} for one in known]
        return [molecule.ToBinary(), *shown]

    graphs = smiles_to_collection(texts)
    for stereo in (False, True):
        found = parsed_smiles(graphs.graph_data["smiles"], stereo)
        assert [Chem.MolToSmiles(m, False) for m in found] == [
            Chem.MolToSmiles(Chem.MolFromSmiles(text), False) for text in texts
        ]
    for molecule, text in zip(found, texts, strict=True):
        assert facts(molecule) == facts(Chem.MolFromSmiles(text))


@pytest.mark.parametrize("wrong", ["C(C)(C)(C)(C)C", "c1cccc1", "C1CC", "(C", "\ud800"])
def test_what_rdkit_cannot_sanitise_is_no_molecule(wrong) -> None:
    assert [smiles_parser(stereo=stereo)(wrong) for stereo in (False, True)] == [None, None]


def test_names_are_put_in_order_and_checked() -> None:
    assert smiles_to_collection(["C"], atom_label="ring+element").recipe.atom_label == (
        "element+ring"
    )
    bad = [("atom_label", x) for x in ("", "element+", "element+element", "colour", "Element", 3)]
    others = {"bond_label": "type", "standardize": ["salt"], "atom_attributes": ["mulliken"]}
    for name, value in [*bad, *others.items()]:
        with pytest.raises(ValueError, match=f"{name} must be"):
            smiles_to_collection(["C"], **{name: value})


@pytest.mark.parametrize("hydrogens", [False, True])
def test_atoms_do_not_depend_on_the_molecules_before(hydrogens) -> None:
    smiles = ["O", "[2H]O[2H]", "[H]O[2H]", "C[2H]", "C", "CC", "[H][H]", "*C", "c1ccccc1"]
    smiles.append("C1=CCC=CC1")
    for order in (smiles, smiles[::-1]):
        graphs = smiles_to_collection(order, atom_label="element+hydrogens", hydrogens=hydrogens)
        for graph, text in zip(graphs, order, strict=True):
            alone = smiles_to_collection([text], hydrogens=hydrogens)[0]
            assert graph.fine_labels == alone.fine_labels
            molecule = Chem.MolFromSmiles(text)
            molecule = Chem.AddHs(molecule) if hydrogens else molecule
            assert graph.fine_labels == tuple(
                naive_label(atom, FINE_PARTS) for atom in molecule.GetAtoms()
            )


def test_atoms_of_real_molecules_are_told_apart(data_folder) -> None:
    """Most atoms are known by a hash of theirs only: no two kinds of atoms must share one."""
    graphs, _ = tl.load_dataset("BBBP", folder=data_folder)
    for graph in graphs:
        atoms = Chem.MolFromSmiles(graph.data["smiles"]).GetAtoms()
        assert graph.fine_labels == tuple(naive_label(atom, FINE_PARTS) for atom in atoms)


# --- numbers of atoms ---------------------------------------------------------------------------

DRUGS = ["CC(=O)Oc1ccccc1C(=O)O", "C[NH3+]", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"]


def columns(graphs: tl.GraphCollection) -> dict[str, np.ndarray]:
    return dict(zip(graphs.attribute_names, graphs.node_attributes.T, strict=True))


def test_contributions_add_up_to_the_descriptors_of_rdkit() -> None:
    from rdkit.Chem import Crippen, rdMolDescriptors

    names = ["crippen", "tpsa", "labute", "estate"]
    graphs = smiles_to_collection(DRUGS, hydrogens=True, atom_attributes=names)
    found = columns(graphs)
    assert tuple(found) == ("crippen logP", "crippen MR", "tpsa", "labute", "estate")
    for index, smiles in enumerate(DRUGS):
        molecule, graph = Chem.AddHs(Chem.MolFromSmiles(smiles)), graphs[index]
        # of the surface, a part belongs to hydrogens that are no atoms
        hydrogens = rdMolDescriptors._CalcLabuteASAContribs(molecule)[1]
        for name, whole in (
            ("crippen logP", Crippen.MolLogP(molecule)),
            ("crippen MR", Crippen.MolMR(molecule)),
            ("tpsa", rdMolDescriptors.CalcTPSA(molecule)),
            ("labute", rdMolDescriptors.CalcLabuteASA(molecule) - hydrogens),
        ):
            assert sum(graph.node_attributes[name]) == pytest.approx(whole)


def test_charges_add_up_and_are_missing_for_elements_without_parameters() -> None:
    graphs = smiles_to_collection([*DRUGS, "C[Se]C"], hydrogens=True, atom_attributes=["gasteiger"])
    for graph, charge in zip(graphs[:3], (0, 1, 0), strict=True):
        assert sum(graph.node_attributes["gasteiger"]) == pytest.approx(charge, abs=1e-6)
    assert np.isnan(graphs[3].node_attributes["gasteiger"]).any()


def test_new_molecules_get_the_same_attributes(tmp_path) -> None:
    options = {"atom_attributes": ["gasteiger", "crippen"], "atom_label": "element+charge"}
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\n" + "".join(f"{s},{i}\n" for i, s in enumerate(DRUGS)))
    expected = smiles_to_collection(DRUGS, **options)
    recipe = from_state(*to_state(expected.recipe, ModelClasses()), ModelClasses())
    assert recipe == expected.recipe
    assert "atom_attributes" in str(recipe)
    for graphs in (
        tl.read_smiles(path, **options)[0],
        tl.read_table(path, target="label", **options).graphs,
        next(iter(tl.SmilesBlocks(path, **options))).load().graphs,
        molecules_to_collection([Chem.MolFromSmiles(s) for s in DRUGS], **options),
        tl.as_graph_collection(DRUGS, recipe=recipe),
        tl.as_graph_collection([Chem.MolFromSmiles(s) for s in DRUGS], recipe=recipe),
        tl.as_graph_collection(list(expected)),
    ):
        assert graphs.attribute_names == expected.attribute_names
        np.testing.assert_array_equal(graphs.node_attributes, expected.node_attributes)
    assert smiles_to_collection(DRUGS).node_attributes is None


def numbers(molecule) -> dict:
    return {
        "z": [atom.GetAtomicNum() for atom in molecule.GetAtoms()],
        "none": np.full(molecule.GetNumAtoms(), np.nan),
    }


def test_a_function_of_the_molecule() -> None:
    graphs = smiles_to_collection(DRUGS, atom_attributes=numbers)
    assert graphs[1].node_attributes["z"] == (6.0, 7.0)
    assert np.isnan(columns(graphs)["none"]).all()
    again = tl.as_graph_collection(DRUGS, recipe=graphs.recipe)
    np.testing.assert_array_equal(again.node_attributes, graphs.node_attributes)
    stored = from_state(*to_state(graphs.recipe, ModelClasses()), ModelClasses())
    with pytest.raises(GraphDataError, match=r"numbers.*does not keep functions"):
        tl.as_graph_collection(DRUGS, recipe=stored)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m: {"q": [1.0]}, r"Graph 0: .*each of 13 atoms"),
        (lambda m: {"q": ["x"] * m.GetNumAtoms()}, "must give a number"),
        (lambda m: {str(m.GetNumAtoms()): np.zeros(m.GetNumAtoms())}, r"Graph 1: .*'13'"),
        (lambda m: {"q": np.full(m.GetNumAtoms(), np.inf)}, "'q' has the value inf"),
    ],
)
def test_functions_that_do_not_fit(function, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        smiles_to_collection(DRUGS, atom_attributes=function)


# --- standard forms -----------------------------------------------------------------------------

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
        "reduced to the largest fragment": 2,
        "neutralised": 2,
        "turned into the canonical tautomer": 1,
    }
    graphs = smiles_to_collection(list(FORMS), standardize="fragment")
    assert graphs.graph_data["smiles"][0] == "CC(=O)[O-]"
    assert graphs.recipe.standardize == ("fragment",)
    assert checked_steps(("tautomer", "fragment")) == ("fragment", "tautomer")
