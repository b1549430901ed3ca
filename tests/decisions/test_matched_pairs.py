"""Matched pairs: a change applied to one molecule of a pair must give the other."""

from __future__ import annotations

import pytest

Chem = pytest.importorskip("rdkit.Chem")

from treelens.decisions.matched_pairs import (  # noqa: E402
    HYDROGEN,
    MatchedPairs,
    attachment,
    cuts_of,
    hydrogen_cuts,
    joined,
    substituent_text,
)

SMILES = [
    "Fc1ccccc1", "Clc1ccccc1", "c1ccccc1", "COc1ccc(F)cc1", "COc1ccc(Cl)cc1", "Oc1ccc(Cl)cc1",
    "CC(=O)Nc1ccc(F)cc1", "CC(=O)N(C)c1ccc(F)cc1", "C[C@H](N)C(=O)O", "C[C@H](N)C(=O)OC",
    "c1ccc2[nH]ccc2c1", "Cn1ccc2ccccc12", "C1CCNCC1", "CN1CCNCC1", "[O-][N+](=O)c1ccccc1", "CCO",
]  # fmt: skip


def canonical(smiles):
    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles))


@pytest.mark.parametrize("smiles", SMILES)
def test_the_parts_of_every_cut_make_the_molecule_again(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    cuts = cuts_of(molecule, 20) | hydrogen_cuts(molecule)
    assert cuts
    for constant, variable in cuts:
        assert joined(constant, variable) == canonical(smiles), (constant, variable)


@pytest.mark.parametrize("smiles", ["C[C@H](N)C(=O)O", "F[C@@H](Cl)Br", "O[C@H]1CCC[C@@H]1N"])
def test_taking_a_hydrogen_off_keeps_the_stereochemistry(smiles):
    """The oracle: RDKit's explicit hydrogens, one of them made an attachment point."""
    molecule = Chem.MolFromSmiles(smiles)
    whole, expected = Chem.AddHs(molecule), set()
    for atom in whole.GetAtoms():
        if atom.GetAtomicNum() == 1:
            opened = Chem.RWMol(whole)
            opened.GetAtomWithIdx(atom.GetIdx()).SetAtomicNum(0)
            opened.GetAtomWithIdx(atom.GetIdx()).SetAtomMapNum(1)
            expected.add(canonical(Chem.MolToSmiles(Chem.RemoveHs(opened))))
    assert {canonical(cut.constant) for cut in hydrogen_cuts(molecule)} == expected


def test_pairs_differ_by_their_change_and_by_nothing_else():
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    pairs = MatchedPairs.of(molecules)
    found = {(change.text, SMILES[one], SMILES[other]) for change, one, other in pairs}
    assert ("F >> Cl", "COc1ccc(F)cc1", "COc1ccc(Cl)cc1") in found
    assert ("H >> C", "C[C@H](N)C(=O)O", "C[C@H](N)C(=O)OC") in found
    assert ("H >> C", "c1ccc2[nH]ccc2c1", "Cn1ccc2ccccc12") in found
    assert ("H >> [N+](=O)[O-]", "c1ccccc1", "[O-][N+](=O)c1ccccc1") in found
    for change, one, other in pairs:
        cuts = cuts_of(molecules[one], 10) | hydrogen_cuts(molecules[one])
        made = {
            joined(cut.constant, change.after)
            for cut in cuts
            if cut.variable == change.before and attachment(cut.constant)[0] == change.at
        }
        assert canonical(SMILES[other]) in made


def test_changes_have_both_directions():
    pairs = list(MatchedPairs.of([Chem.MolFromSmiles(s) for s in SMILES]))
    there = {(change.before, change.after, change.at, one, other) for change, one, other in pairs}
    assert there == {(after, before, at, other, one) for before, after, at, one, other in there}


def test_large_substituents_and_large_molecules_are_not_cut():
    molecule = Chem.MolFromSmiles("c1ccccc1OCCN1CCCCC1")
    assert all(Chem.MolFromSmiles(v).GetNumHeavyAtoms() <= 3 for _, v in cuts_of(molecule, 2))
    assert not cuts_of(Chem.MolFromSmiles("C" * 150), 5)


def test_changes_from_some_substituents():
    molecules = [Chem.MolFromSmiles(s) for s in SMILES[:5]]
    changes = MatchedPairs.of(molecules).changes_from(["F[*:1]"])
    texts = {change.text: pairs for change, pairs in changes.items()}
    assert sorted(texts["F >> Cl"]) == [(0, 1), (3, 4)]
    assert all(text.startswith("F >>") for text in texts)


def test_substituents_are_written_from_where_they_are_joined():
    assert substituent_text("CO[*:1]") == "OC"
    assert substituent_text("O=C(O)[*:1]") == "C(=O)O"
    assert substituent_text(HYDROGEN) == "H"
