"""A fitted model reads molecules as its training graphs were read, from a file as well."""

import json
import zipfile

import numpy as np
import pytest

import treelens as tl
from treelens.errors import GraphDataError

pytest.importorskip("rdkit")

from rdkit import Chem

from treelens.chem.molecules import smiles_to_collection

# The same molecules charged and not: without charges there is nothing to tell them apart by.
NEUTRAL = [f"{'C' * n}{end}" for n in range(1, 11) for end in ("N", "C(=O)O")]
CHARGED = [f"{'C' * n}{end}" for n in range(1, 11) for end in ("[NH3+]", "C(=O)[O-]")]
SMILES = NEUTRAL + CHARGED
Y = np.array(["neutral"] * len(NEUTRAL) + ["charged"] * len(CHARGED))
GRAPHS = smiles_to_collection(SMILES, atom_label="element+charge")


def svc():
    return tl.GraphSVC("wwl-linear", 1, 0, C=10.0, cv=2, random_state=0)


def blockwise():
    return tl.GraphClassifier(depth=1, views=[tl.WLPatterns(trees=["labels"])], random_state=0)


@pytest.fixture(scope="module", params=["exact", "exact loaded", "blocks", "blocks loaded"])
def either(request, tmp_path_factory):
    if "exact" in request.param:
        model = svc().fit(GRAPHS, Y)
    else:
        model = blockwise().fit(tl.CollectionBlocks(GRAPHS, Y, block_size=15))
    if "loaded" not in request.param:
        return model
    path = tmp_path_factory.mktemp("recipe") / "model.treelens"
    model.save(path)
    return tl.load(path)


def test_no_class_flips_between_graphs_and_raw_molecules(either, tmp_path):
    """Read as plain elements, charged and neutral molecules would be the same graphs."""
    assert either.score(GRAPHS, Y) == 1.0
    expected = either.decision_function(GRAPHS)
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    path = tmp_path / "m.sdf"
    with Chem.SDWriter(str(path)) as writer:
        for molecule in molecules:
            writer.write(molecule)
    by_hand = [graph.to_networkx() for graph in GRAPHS]  # without a recipe
    for raw in (SMILES, molecules, [Chem.AddHs(m) for m in molecules], path, by_hand):
        np.testing.assert_allclose(either.decision_function(raw), expected, rtol=1e-12)
        assert either.score(raw, Y) == 1.0
    np.testing.assert_array_equal(
        either.explain(SMILES[-1]).node_contributions, either.explain(GRAPHS[-1]).node_contributions
    )


@pytest.mark.parametrize(
    "settings", [{}, {"atom_label": "element+charge", "hydrogens": True}], ids=str
)
def test_graphs_of_another_recipe_are_refused_by_every_method(either, settings):
    others = smiles_to_collection(SMILES, **settings)
    methods = [
        lambda: either.predict(others),
        lambda: either.decision_function(others),
        lambda: either.score(others, Y),
        lambda: either.explain(others[0]),
        lambda: either.predict(list(others)),
        lambda: either.explain(others[:1]),
    ]
    if isinstance(either, tl.GraphSVC):
        methods += [
            lambda: either.predict_proba(others),
            lambda: either.out_of_vocabulary(others),
            lambda: either.summary(others, Y),
        ]
    else:
        methods += [lambda: either.predict(tl.CollectionBlocks(others))]
    for method in methods:
        with pytest.raises(GraphDataError) as caught:
            method()
        assert str(others.recipe) in str(caught.value)
        assert str(either.recipe_) in str(caught.value)


def test_a_function_is_applied_until_a_file_has_lost_it(tmp_path):
    graphs = smiles_to_collection(SMILES, atom_label=charge_and_element)
    model = svc().fit(graphs, Y)
    assert model.score(SMILES, Y) == 1.0
    model.save(tmp_path / "m.treelens")
    with zipfile.ZipFile(tmp_path / "m.treelens") as file:
        recipe = json.loads(file.read("model.json"))["model"]["recipe"]
    assert recipe["atom_label"] == "function:charge_and_element"
    loaded = tl.load(tmp_path / "m.treelens")
    assert loaded.score(graphs, Y) == 1.0
    with pytest.raises(GraphDataError, match=r"charge_and_element.*does not keep functions"):
        loaded.predict(SMILES)


def charge_and_element(atom):
    return (atom.GetFormalCharge(), atom.GetSymbol())


def test_blocks_of_a_file_have_a_recipe_too(tmp_path):
    path, rows = tmp_path / "m.csv", [f"{s},{y}" for s, y in zip(SMILES, Y, strict=True)]
    path.write_text("\n".join(["smiles,label", *rows]) + "\n")
    model = blockwise().fit(tl.SmilesBlocks(path, atom_label="element+charge", block_size=9))
    assert model.recipe_ == GRAPHS.recipe
    assert model.score(SMILES, Y) == 1.0
    blocks = [(SMILES[:20], None), (SMILES[20:], None)]  # raw, in blocks
    np.testing.assert_array_equal(model.predict(blocks), Y)
    np.testing.assert_array_equal(model.predict(tl.CollectionBlocks(SMILES)), Y)
    with pytest.raises(GraphDataError, match=r"made from SMILES with atom_label='element',"):
        model.predict(tl.SmilesBlocks(path))

    mixed = [(smiles_to_collection(SMILES[::2]), Y[::2]), (GRAPHS[1::2], Y[1::2])]
    with pytest.raises(GraphDataError, match="Some of these graphs were made from"):
        blockwise().fit(mixed)


def test_kernels_read_alike_and_refuse_as_well():
    kernel = tl.WLSubtree(depth=1).fit(GRAPHS)
    np.testing.assert_array_equal(kernel.transform(SMILES), kernel.transform(GRAPHS))
    with pytest.raises(GraphDataError, match="labels of the one do not mean"):
        kernel.transform(smiles_to_collection(SMILES))
    with pytest.raises(GraphDataError, match="labels of the one do not mean"):
        tl.WassersteinWL(depth=1).distance(GRAPHS, smiles_to_collection(SMILES))
