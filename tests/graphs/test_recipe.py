"""Recipes: how a collection was made, whether two agree, and reading new molecules by one."""

import copy
import pickle
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from treelens import as_graph_collection, read_smiles
from treelens.chem.blocks import SmilesBlocks
from treelens.chem.recipe import MoleculeRecipe
from treelens.errors import GraphDataError, NotGraphsError
from treelens.graphs.convert import as_single_graph
from treelens.graphs.kinds import GraphRecipe, check_agreement, common_recipe

pytest.importorskip("rdkit")

from rdkit import Chem

from treelens.chem.molecules import molecules_to_collection, smiles_to_collection

CHARGED = MoleculeRecipe.of("smiles", "element+charge")
PLAIN = MoleculeRecipe.of("smiles")
SMILES = ["CC[NH3+]", "CCO", "CC(=O)[O-]"]


def charge_of(atom):
    return atom.GetFormalCharge()


def test_every_reader_records_a_recipe(tmp_path: Path, mutag) -> None:
    table = tmp_path / "m.csv"
    table.write_text("smiles,label\nCC[NH3+],1\nCCO,0\n")
    graphs, _ = read_smiles(table, atom_label="element+charge")
    assert graphs.recipe == CHARGED
    assert smiles_to_collection(SMILES, hydrogens=True).recipe == replace(PLAIN, hydrogens=True)
    assert as_graph_collection(SMILES).recipe == PLAIN
    assert next(iter(SmilesBlocks(table))).load().graphs.recipe == PLAIN
    assert write_sdf(tmp_path / "m.sdf").recipe == replace(PLAIN, reader="sdf")
    assert mutag[0].recipe == GraphRecipe("tudataset")
    drawn = nx.Graph()
    drawn.add_node(0, element="C", label="wrong")
    recipe = as_graph_collection([drawn], node_label="element").recipe
    assert recipe == GraphRecipe("networkx", node_label="element")
    assert as_graph_collection([drawn], recipe=recipe)[0].node_labels == ("C",)
    assert as_graph_collection([([(0, 1)], {0: 1, 1: 2})]).recipe == GraphRecipe("grakel")
    with pytest.raises(NotGraphsError, match=r"m.csv. Read tables of molecules with .*read_smiles"):
        as_graph_collection(table)


def write_sdf(path: Path):
    with Chem.SDWriter(str(path)) as writer:
        for smiles in SMILES:
            writer.write(Chem.MolFromSmiles(smiles))
    return as_graph_collection(path)


def test_hydrogens_that_are_atoms_of_molecules_are_noticed() -> None:
    bare = [Chem.MolFromSmiles(s) for s in ("CCO", "ClC(Cl)(Cl)Cl")]
    full = [Chem.AddHs(m) for m in bare]
    assert molecules_to_collection(bare).recipe.hydrogens is False
    assert molecules_to_collection(full).recipe.hydrogens is True
    assert molecules_to_collection(bare, hydrogens=True).recipe.hydrogens is True
    assert molecules_to_collection([bare[0], full[0]]).recipe.hydrogens is None


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g[1:],
        lambda g: g[[2, 0]],
        lambda g: g[::-1],
        lambda g: g[:0],
        copy.deepcopy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: as_graph_collection(list(g)),
        lambda g: as_single_graph(g[1]),
    ],
)
def test_it_travels_along(change) -> None:
    assert change(smiles_to_collection(SMILES, atom_label="element+charge")).recipe == CHARGED


def test_graphs_that_are_put_together_must_agree() -> None:
    charged = list(smiles_to_collection(SMILES, atom_label="element+charge"))
    plain = list(smiles_to_collection(SMILES))
    with pytest.raises(GraphDataError, match=r"element\+charge.*others from .*'element'"):
        as_graph_collection(charged + plain)
    unknown = list(as_graph_collection([([(0, 1)], {0: "C", 1: "O"}, {(0, 1): "-"})]))
    assert as_graph_collection(charged + [replace(g, recipe=None) for g in unknown]).recipe is None
    assert common_recipe([]) is None
    assert common_recipe([CHARGED, replace(CHARGED, reader="sdf")]) == CHARGED


@pytest.mark.parametrize(
    "other",
    [
        None,
        CHARGED,
        replace(CHARGED, reader="rdkit"),
        replace(CHARGED, hydrogens=None),
        GraphRecipe("networkx"),
        GraphRecipe("tudataset"),
        GraphRecipe(),
    ],
    ids=str,
)
def test_what_agrees_with_charged_molecules(other) -> None:
    check_agreement(CHARGED, other)
    check_agreement(other, CHARGED)


@pytest.mark.parametrize(
    "other",
    [
        PLAIN,
        replace(CHARGED, hydrogens=True),
        replace(CHARGED, bond_label="type"),
        replace(CHARGED, standardize=("largest fragment",)),
        replace(CHARGED, atom_label="function:charge_of"),
    ],
    ids=str,
)
def test_what_does_not(other) -> None:
    with pytest.raises(GraphDataError, match=re.escape(f"from {other}, the training graphs from")):
        check_agreement(CHARGED, other)


def test_two_functions_of_one_name_are_two() -> None:
    first = smiles_to_collection(SMILES, atom_label=lambda atom: atom.GetDegree())
    second = smiles_to_collection(SMILES, atom_label=lambda atom: atom.GetTotalNumHs())
    check_agreement(first.recipe, first[1:].recipe)
    with pytest.raises(GraphDataError, match="labels of the one do not mean"):
        check_agreement(first.recipe, second.recipe)
    with pytest.raises(GraphDataError, match="labels do not mean the same"):
        as_graph_collection([*first, *second])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"atom_label": "element+charge"},
        {"hydrogens": True},
        {"atom_label": charge_of},
        {"atom_label": "element+aromatic", "hydrogens": True},
        {"standardize": True},
    ],
    ids=["plain", "charges", "hydrogens", "a function", "aromatic with hydrogens", "standard"],
)
def test_raw_molecules_of_every_kind_become_the_same_graphs(settings, tmp_path) -> None:
    graphs = smiles_to_collection(SMILES, **settings)
    plain = [Chem.MolFromSmiles(s) for s in SMILES]
    write_sdf(tmp_path / "m.sdf")
    for raw in (
        SMILES,
        np.array(SMILES),
        plain,
        [Chem.AddHs(m) for m in plain],
        tmp_path / "m.sdf",
    ):
        again = as_graph_collection(raw, recipe=graphs.recipe)
        assert [g.node_labels for g in again] == [g.node_labels for g in graphs]
        assert [g.edges for g in again] == [g.edges for g in graphs]
        check_agreement(graphs.recipe, again.recipe)
