"""Training molecules in model files: kept to be shown, or left out."""

import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import treelens as tl

pytest.importorskip("rdkit")

SMILES = [
    "CCO",
    "CCN",
    "CCC",
    "CCCl",
    "CCBr",
    "c1ccccc1O",
    "c1ccccc1N",
    "c1ccccc1C",
    "CC(=O)O",
    "CC(=O)N",
    "CCOC",
    "CCCCO",
    "CCCN",
    "C1CCCCC1",
    "C1CCNCC1",
    "OCCO",
    "NCCN",
    "CC#N",
    "C=CC",
    "CC=O",
    "COC",
    "CSC",
    "CCS",
    "c1ccncc1",
]
IDS = [f"cpd-{k}" for k in range(len(SMILES))]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "t.csv"
    values = 10.0 ** np.array([len(s) / 4 for s in SMILES])
    pd.DataFrame({"id": IDS, "smiles": SMILES, "Ki": values}).to_csv(path, index=False)
    return tl.read_table(path, target="Ki", names="id", transform="log10")


@pytest.fixture(scope="module", params=["regressor", "classifier", "svc"])
def model(request, table):
    graphs, y = table.graphs, table.targets.values
    made = {
        "regressor": lambda: tl.GraphRegressor(depth=1).fit(graphs, y),
        "classifier": lambda: tl.GraphClassifier(depth=1).fit(graphs, y > 30),
        "svc": lambda: tl.GraphSVC(depth=1, gamma=1.0, C=1.0).fit(graphs, y > 30),
    }
    return made[request.param]()


def cards(model):
    return model.summary(["CCCCN", "c1ccccc1Cl"])["cards"]["rows"]


def test_a_report_from_a_file_draws_measured_neighbours(model, tmp_path):
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    for ours, theirs in zip(cards(model), cards(loaded), strict=True):
        assert ours["neighbors"] == theirs["neighbors"]
        for near in theirs["neighbors"]:
            assert near["name"] == IDS[near["index"]]
            assert near["drawing"]["molecule"] == {"smiles": SMILES[near["index"]]}
            assert "value" in near or "class" in near
    pd.testing.assert_frame_equal(loaded.fragments_, model.fragments_)


def test_molecules_can_be_left_out(model, tmp_path):
    model.save(tmp_path / "full.treelens")
    model.save(tmp_path / "bare.treelens", training_data=False)
    loaded = tl.load(tmp_path / "bare.treelens")
    np.testing.assert_array_equal(loaded.predict(SMILES[:5]), model.predict(SMILES[:5]))
    with zipfile.ZipFile(tmp_path / "bare.treelens") as archive:
        text = b"".join(archive.read(name) for name in archive.namelist())
    assert b"cpd-1" not in text
    assert b"c1ccccc1" not in text
    near = cards(loaded)[0]["neighbors"][0]
    assert near["name"] is None
    assert near["drawing"] is None
    assert loaded._train_graphs is None
    assert model.model_.training.smiles == tuple(SMILES)  # the model itself keeps them
    if not isinstance(model, tl.GraphSVC):
        bare, full = (x.kneighbors(["CCCCN"], 2) for x in (loaded, model))
        assert list(bare) == ["graph", "neighbor", "similarity", "value"]
        pd.testing.assert_frame_equal(bare, full[list(bare)])
        full_file = tl.load(tmp_path / "full.treelens").kneighbors(["CCCCN"], 2)
        pd.testing.assert_frame_equal(full_file, full)


def test_molecules_of_rdkit_are_kept_as_smiles_unless_they_were_changed(tmp_path):
    from rdkit import Chem

    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    model = tl.GraphRegressor(depth=1).fit(molecules, np.arange(len(SMILES), dtype=float))
    model.save(tmp_path / "m.treelens")
    graphs = tl.load(tmp_path / "m.treelens")._train_graphs
    np.testing.assert_array_equal(graphs.sizes, model._train_graphs.sizes)
    training = replace(model.model_.training, smiles=("CCCCCCCC", *SMILES[1:]))
    model.model_ = replace(model.model_, training=training)
    model.save(tmp_path / "m.treelens")
    assert tl.load(tmp_path / "m.treelens")._train_graphs is None  # its counts do not fit


def test_covariates_come_back_with_the_molecules(tmp_path):
    year = 2020.0 + np.random.default_rng(0).normal(size=24)
    year[[3, 5]] = np.nan, 1e9  # unknown, and beyond the limit
    table = {"t": year, "assay": np.array(["a", "b", None] * 8, dtype=object)}
    values = np.array([len(s) for s in SMILES], dtype=float)
    model = tl.GraphRegressor(depth=1).fit(SMILES, values, covariates=table)
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    ours, theirs = (m.predict(SMILES, covariates=table) for m in (model, loaded))
    np.testing.assert_array_equal(ours, theirs)
    for k, kept in loaded.model_.tables.items():
        encoded = kept.encode(loaded._train_graphs)
        np.testing.assert_array_equal(encoded, model.model_.training.views[k])
    pd.testing.assert_frame_equal(loaded.fragments_, model.fragments_)
