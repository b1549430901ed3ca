"""Scaffolds of large molecules: the same groups as RDKit's, in a fraction of the time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

from rdkit import Chem, RDConfig

from treelens.chem import scaffolds
from treelens.chem.scaffolds import scaffold_smiles

HARD = [
    "CCO",
    "O=C1CCCCC1",
    "CC1CCCCC1=O",
    "C1CC1C(=O)C1CC1",
    "C1CC1CC(C)C1CC1",
    "C=C1CC1",
    "C1CC1=C=C",
    "C1CCC2(CC1)CCCC2",
    "c1ccc(cc1)S(=O)(=O)Nc1ccccc1",
    "c1ccc(cc1)S(=O)(=O)Nc1ccccc1C",
    "CCCCCCC#N",
    "[Na+].c1ccccc1C(=O)[O-]",
]


def test_pruning_finds_the_groups_of_rdkit(monkeypatch):
    path = Path(RDConfig.RDContribDir, "FreeWilson", "data", "CHEMBL2321810.smi")
    known = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
    molecules = [Chem.MolFromSmiles(smiles) for smiles in HARD + known]
    theirs = [scaffold_smiles(molecule) for molecule in molecules]
    monkeypatch.setattr(scaffolds, "_MOST_ATOMS", 0)
    ours = [scaffold_smiles(molecule) for molecule in molecules]
    assert [not text for text in ours] == [not text for text in theirs]
    pairs = set(zip(ours, theirs, strict=True))
    assert len(pairs) == len(set(ours)) == len(set(theirs)) > 8


def test_large_molecules_take_no_longer_than_many_small_ones():
    side = "".join("C(O)C(N)" for _ in range(750))
    large = Chem.MolFromSmiles("c1ccccc1" + side + "C2CCCC2")
    same = Chem.MolFromSmiles("c1ccccc1" + side.replace("N", "F") + "C2CCC(C)C2")
    other = Chem.MolFromSmiles("c1ccccc1" + side + "C2CCCCC2")
    small = [Chem.MolFromSmiles("Cc1ccccc1C2CCCC2") for _ in range(3000)]
    started = time.perf_counter()
    assert scaffold_smiles(large) == scaffold_smiles(same) != scaffold_smiles(other)
    of_large = time.perf_counter() - started
    for molecule in small:
        scaffold_smiles(molecule)
    assert of_large < 10 * (time.perf_counter() - started - of_large)
