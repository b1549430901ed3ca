"""Names of well-known groups: each fits its own molecules, and nearly all of its row."""

import numpy as np

import treelens as tl
from explain.test_fragment_table import TAILS


def test_group_names_fit_their_own_molecules():
    """A name says nothing wrong: nitro is no nitroso, although both are N=O."""
    from rdkit import Chem

    from treelens.explain.fragment_names import GROUPS

    queries = {name: Chem.MolFromSmarts(smarts) for name, smarts in GROUPS.items()}
    assert all(query is not None for query in queries.values())
    for smiles, name, is_one in (
        ("Cc1ccccc1[N+](=O)[O-]", "nitroso", False),
        ("CN(C)N=O", "N-nitroso", True),
        ("C1CO1", "epoxide", True),
        ("C1CCOC1", "epoxide", False),
        ("Nc1ccccc1", "primary aromatic amine", True),
        ("CC(=O)Nc1ccccc1", "primary aromatic amine", False),
    ):
        assert Chem.MolFromSmiles(smiles).HasSubstructMatch(queries[name]) is is_one, smiles


def test_a_name_holds_for_nearly_all_molecules_of_its_row():
    """A row of aryl and alkyl bromides is one of bromides."""
    from rdkit import Chem

    from treelens.explain.fragment_names import GROUPS

    tails = [t for t in TAILS if t != "CO"]
    aryl = [f"{t}c1ccc(Br)cc1" for t in tails] * 2
    alkyl = [f"{t}CCCBr" for t in tails]
    without = [f"{t}c1ccccc1C" for t in tails] + [f"{t}CCCN" for t in tails]
    molecules = [*aryl, *alkyl, *without]
    y = np.array([1] * (len(aryl) + len(alkyl)) + [0] * len(without))
    table = tl.GraphClassifier(depth=1, random_state=0).fit(molecules, y).fragments_
    named = table[table["name"].isin(GROUPS)]
    assert named["name"].str.contains("bromide").any()
    parsed = [Chem.MolFromSmiles(text) for text in molecules]
    for name, smarts in zip(named["name"], named["smarts"], strict=True):
        row, group = Chem.MolFromSmarts(smarts), Chem.MolFromSmarts(GROUPS[name])
        holders = [mol for mol in parsed if mol.HasSubstructMatch(row)]
        assert np.mean([mol.HasSubstructMatch(group) for mol in holders]) >= 0.9, name
