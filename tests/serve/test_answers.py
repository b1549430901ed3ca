"""The answers of the page are those of the library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from serve.conftest import EVIL, workbench_of
from treelens.report.sections import group_evidence
from treelens.serve.answers import Deadline


def test_tables_have_the_predictions_of_the_models(workbench, models):
    rows = workbench.predict_smiles(["CCCO propanol", "CCc1ccccc1", "C1CC"], {})
    assert rows["problem"].ne("").tolist() == [False, False, True]
    assert rows["name"].tolist() == ["propanol", "", ""]
    smiles = ["CCCO", "CCc1ccccc1"]
    for name in ("logS", "Kd (nM)"):
        own = rows[f"{name}_prediction"].to_numpy(dtype=float)
        np.testing.assert_allclose(own[:2], models[name].predict(smiles), rtol=1e-12)
        assert np.isnan(own[2])
    assert rows["acid_class"][:2].tolist() == models["acid"].predict(smiles).tolist()


def test_cards_agree_with_the_estimator(workbench, models):
    smiles, other = "CCCCC(=O)O", "CCCCO"
    number, logarithm, label = workbench.cards(smiles, other, {})
    model = models["logS"]
    assert number["predicted"] == pytest.approx(model.predict([smiles])[0])
    explained = model.explain(smiles)
    np.testing.assert_allclose(
        number["contributions"], explained.node_contributions, rtol=1e-4, atol=1e-6
    )
    near = model.kneighbors([smiles], 3)
    assert [row["index"] for row in number["neighbors"]] == near["neighbor"].tolist()
    assert [row["value"] for row in number["neighbors"]] == near["value"].tolist()
    assert [row["name"] for row in number["neighbors"]] == near["name"].tolist()
    assert all(row["svg"].startswith("<svg") for row in number["neighbors"])
    mean, cov = model.predict([smiles, other], return_cov=True, include_noise=False)
    assert number["difference"]["predicted"] == pytest.approx(mean[0] - mean[1])
    spread = np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
    assert number["difference"]["std"] == pytest.approx(spread)
    # In the units of the table, though learned as a logarithm.
    table = models["Kd (nM)"].predict_table([smiles])
    assert logarithm["predicted"] == pytest.approx(table["prediction"].iloc[0])
    assert logarithm["upper_90"] == pytest.approx(table["upper_90"].iloc[0])
    near = models["Kd (nM)"].kneighbors([smiles], 3)
    np.testing.assert_allclose([row["value"] for row in logarithm["neighbors"]], near["value"])
    assert logarithm["model"]["unit"] == "nM"
    assert label["predicted"] == "acid"
    assert label["probability"] + label["probability_wrong"] == pytest.approx(1.0)


def test_endpoints_of_a_panel_have_a_column_and_a_card_each(panel_bench, panel):
    facts = panel_bench.facts()
    assert [fact["name"] for fact in facts] == panel.endpoints_
    assert panel_bench.as_cells
    smiles, other = "CCCCC(=O)O", "CCCCO"
    rows = panel_bench.predict_smiles([smiles, "C1CC"], {})
    table = panel.predict_table([smiles])
    for name in ("logS_prediction", "Kd (nM)_upper_90", "acid_probability"):
        assert float(rows[name][0]) == pytest.approx(table[name].iloc[0])
    cards = panel_bench.cards(smiles, other, {})
    assert [card["model"]["name"] for card in cards] == panel.endpoints_
    number = cards[0]
    assert number["predicted"] == pytest.approx(table["logS_prediction"].iloc[0])
    expected = panel.explain(smiles, endpoint="logS").node_contributions
    np.testing.assert_allclose(number["contributions"], expected, rtol=1e-4, atol=1e-6)
    assert number["in_domain"] == table["logS_in_domain"].iloc[0]
    change = panel.model_.decide(panel._new_graphs([smiles, other])).mean[:, 0]
    assert number["difference"] == {"predicted": pytest.approx(change[0] - change[1]), "std": None}
    one = panel_bench.cards(smiles, None, {}, targets=["Kd (nM)"])
    assert [card["model"]["unit"] for card in one] == ["nM"]
    with pytest.raises(ValueError, match="'logP' is none of the targets"):
        panel_bench.cards(smiles, None, {}, targets=["logP"])


def test_groups_with_what_was_measured(workbench, models):
    card = workbench.cards("CCCCC(=O)O", None, {})[0]
    groups = {row["name"]: row for row in card["groups"]}
    acid = groups["carboxylic acid"]
    assert acid["effect"] == pytest.approx(sum(card["contributions"][3:]))
    training = models["logS"].model_.training
    has = np.array(["C(=O)O" in text for text in training.smiles])
    assert acid["measured"]["n"] == has.sum()
    assert acid["measured"]["with"] == pytest.approx(training.targets[has].mean())
    assert acid["measured"]["without"] == pytest.approx(training.targets[~has].mean())
    shares = group_evidence(models["acid"])["carboxylic acid"]
    assert shares["with"] == {"acid": 1.0, EVIL: 0.0}
    assert card["difference"] is None


def test_domain_in_one_sentence(workbench, models):
    inside, outside = "CCCCO", "O=S(=O)(c1ccncc1)N1CCN(Br)CC1"
    for smiles in (inside, outside):
        card = workbench.cards(smiles, None, {})[0]
        expected = bool(models["logS"].domain([smiles])["in_domain"].iloc[0])
        assert card["in_domain"] is expected
        assert card["domain"].startswith("Inside" if expected else "Outside")
    assert not card["in_domain"]


def test_files(workbench):
    from rdkit import Chem

    record = Chem.MolToMolBlock(Chem.MolFromSmiles("CCCO"))
    files = {
        "csv": b"id;structure\n1;CCCO\n",
        "smi": b"CCCO propanol\n",
        "sdf": f"{record}$$$$\n".encode(),
    }
    found = [workbench.predict_file(kind, data) for kind, data in files.items()]
    values = [float(rows["logS_prediction"].iloc[0]) for rows in found]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        ("csv", b"", "empty"),
        ("csv", b"smiles\n", "no molecule"),
        ("csv", b"x,y\n1,2\n", "smiles"),
        ("csv", b"\x00\xff\x00", "no text"),
        ("smi", b"CCO\n" * 61, "61 molecules"),
        ("smi", b"C" * 201, "201 characters"),
        ("sdf", b"x\n\n\n$$$$\n" * 61, "61 molecules"),
    ],
)
def test_files_that_are_refused(workbench, kind, data, error):
    with pytest.raises(ValueError, match=error):
        workbench.predict_file(kind, data)


def test_a_request_that_takes_too_long_ends(workbench):
    with pytest.raises(TimeoutError):
        workbench.predict_smiles(["CCO"], {}, deadline=Deadline(0.0))
    with pytest.raises(TimeoutError):
        workbench.cards("CCO", None, {}, deadline=Deadline(0.0))


def test_covariates(models):
    bench = workbench_of(models["beside"])
    assert bench.covariates == ["assay"]
    one = bench.cards("CCCCO", None, {"assay": "a"})[0]
    expected = models["beside"].predict(["CCCCO"], covariates=pd.DataFrame({"assay": ["a"]}))
    assert one["predicted"] == pytest.approx(expected[0])
    rows = bench.predict_smiles(["CCCCO"], {"assay": "a"})
    assert float(rows["prediction"].iloc[0]) == pytest.approx(expected[0])


def test_a_support_vector_machine_has_cards_too():
    smiles = [chain + end for chain in ("C", "CC", "CCC", "CCCC") for end in ("O", "N")] * 2
    model = tl.GraphSVC("wwl", 1, 0.0, 1.0, 10.0, cv=2, progress=False)
    model.fit(tl.as_graph_collection(smiles), ["alcohol", "amine"] * 8)
    card = workbench_of(model).cards("CCCCCO", None, {})[0]
    assert card["predicted"] == "alcohol"
    assert "similarity" in card["domain"]
    assert card["neighbors"][0]["class"] == "alcohol"


def test_models_of_other_graphs_are_refused():
    graphs, y = tl.make_synthetic(n_per_substructure=4, random_state=0)
    with pytest.raises(ValueError, match="not fitted to molecules"):
        workbench_of(tl.GraphClassifier(depth=1).fit(graphs, y))
