"""``predict`` and ``evaluate`` with a model of several targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import FAST, SMALL, ok, refused, run, write_csv

SMILES = ["C" * n + end for n in range(1, 13) for end in ("O", "N", "C(=O)O", "Cl", "c1ccccc1")]
HEADER = "name,smiles,LogD,KSOL (uM),kind"


@pytest.fixture(scope="module")
def rows():
    """LogD, solubility and a class go together beyond what the structure tells."""
    rng = np.random.default_rng(0)
    hidden = np.array([len(s) for s in SMILES]) + 2.0 * rng.normal(size=len(SMILES))
    found = []
    for k, (smiles, value) in enumerate(zip(SMILES, hidden, strict=True)):
        logd = f"{value / 5:.3f}" if k % 3 else ""
        solubility = f"{900 - 40 * value + 5 * rng.normal():.1f}" if k % 4 else ""
        kind = ("big" if value > 9 else "small") if k % 5 else ""
        found.append((f"m{k}", smiles, logd, solubility, kind))
    return found


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """A model, rows that it was not fitted to, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("several")
    train = write_csv(folder / "train.csv", rows[::2], HEADER)
    write_csv(folder / "new.csv", [*rows[1::2], ("bad", "C(C", "1", "2", "big")], HEADER)
    target = ["--target", "LogD,KSOL (uM),kind", "--transform", "none"]
    ok("fit", train, *target, "-o", folder / "p.treelens", *SMALL)
    return folder


def _predicted(folder, *options):
    out = folder / "out.csv"
    done = ok("predict", folder / "p.treelens", folder / "new.csv", "-o", out, *options, "--json")
    return pd.read_csv(out), done.data


def test_measured_columns_fill_in_the_others(folder):
    table, found = _predicted(folder)
    alone, found_alone = _predicted(folder, "--ignore-measured")
    assert len(table) == 31
    assert table["problem"].notna().tolist() == [False] * 30 + [True]
    model, new = tl.load(folder / "p.treelens"), pd.read_csv(folder / "new.csv")[:30]
    measured = new[["LogD", "KSOL (uM)", "kind"]]
    smiles = new["smiles"].tolist()
    for own, known in ((table, measured), (alone, None)):
        mean, std = model.predict(smiles, return_std=True, measured=known)
        got = own["KSOL (uM)_prediction"][:30].to_numpy()
        np.testing.assert_allclose(got, mean[:, 1].astype(float), rtol=1e-5)
        np.testing.assert_allclose(own["LogD_std"][:30], std[:, 0], rtol=1e-5)
        assert own["kind_class"][:30].tolist() == mean[:, 2].tolist()
        width = own["LogD_upper_90"] - own["LogD_lower_90"]
        np.testing.assert_allclose(width, 2 * 1.6448536 * own["LogD_std"], rtol=1e-4)
        assert set(own["LogD_in_domain"][:30].astype(str)) <= {"True", "False"}
    pd.testing.assert_series_equal(table["LogD_measured"][:30], new["LogD"], check_names=False)
    # siblings help, and scores are per endpoint
    scores = {each["endpoint"]: each for each in found["endpoints"]}
    before = {each["endpoint"]: each for each in found_alone["endpoints"]}
    assert scores["LogD"]["n"] == int(new["LogD"].notna().sum())
    assert scores["LogD"]["rmse"] < before["LogD"]["rmse"]
    truth = new["LogD"].to_numpy()
    off = (table["LogD_prediction"][:30].to_numpy() - truth)[~np.isnan(truth)]
    assert scores["LogD"]["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-4)
    assert scores["kind"]["roc_auc"] > 0.8
    assert found["n_unreadable"] == 1


def test_scores_of_training_molecules_are_said_to_be_too_good(folder):
    done = ok("predict", folder / "p.treelens", folder / "train.csv", "--json")
    assert done.data["n_trained_on"] == done.data["n_scored"] > 20
    assert "the scores are too good" in " ".join(done.err.split())


def test_tables_without_any_of_the_columns(folder):
    write_csv(folder / "bare.csv", [(s,) for s in SMILES[:4]], "smiles")
    done = ok("predict", folder / "p.treelens", folder / "bare.csv", "--json")
    assert [each["n"] for each in done.data["endpoints"]] == [0, 0, 0]
    assert "rmse" not in done.data["endpoints"][0]
    text = ok("predict", folder / "p.treelens", "CCCO").out
    assert "KSOL (uM)_prediction" in text


def test_parts_of_a_table_have_the_same_types(folder):
    content, new = (folder / "p.treelens").read_bytes(), pd.read_csv(folder / "new.csv", dtype=str)
    found = [tl.predict_partition(content, new[some]) for some in (slice(0, 3), slice(29, 31))]
    assert (found[0].dtypes == found[1].dtypes).all()
    assert found[0]["LogD_prediction"].dtype == float
    assert set(found[0]["kind_class"]) <= {"big", "small"}
    assert found[1]["LogD_in_domain"].iloc[1] == ""


def test_units_and_limits_of_new_cells(folder):
    new = [(SMILES[1], "1.5", "500"), (SMILES[3], "<1", "400")]
    write_csv(folder / "limits.csv", new, "smiles,LogD,KSOL (uM)")
    done = ok("predict", folder / "p.treelens", folder / "limits.csv", "--json")
    assert "'LogD' has limits in 1 rows" in done.err
    assert [row["LogD_measured"] for row in done.data["predictions"]] == [1.5, None]
    write_csv(folder / "text.csv", [(SMILES[1], "high"), (SMILES[3], "low")], "smiles,LogD")
    done = ok("predict", folder / "p.treelens", folder / "text.csv")
    assert "'LogD' holds no number in 2 rows" in done.err


def test_evaluate_scores_each_target(folder):
    target = ["--target", "LogD,KSOL (uM),kind"]
    done = ok("evaluate", folder / "train.csv", *target, *FAST, "--json")
    found = {each["endpoint"]: each for each in done.data["endpoints"]}
    assert list(found) == ["LogD", "KSOL (uM)", "kind"]
    assert found["LogD"]["n"] == 20
    assert found["LogD"]["gap"]["rmse"] < found["LogD"]["new"]["rmse"]
    assert set(found["kind"]["single"]) >= {"roc_auc", "accuracy"}
    text = ok("evaluate", folder / "train.csv", *target, *FAST).out
    assert "by itself" in text
    for option in (["--baselines"], ["--models", "gp"], ["--score", "r2"]):
        refused(run("evaluate", folder / "train.csv", *target, *FAST, *option), "one --target")


def test_what_is_for_one_target(folder):
    model, new = folder / "p.treelens", folder / "new.csv"
    refused(run("predict", model, new, "--target", "LogD"), "scored on the columns")
    refused(run("predict", model, new, "--intervals", "scaffold"), "--intervals scaffold is for")
    refused(run("suggest", model, new), "say what is wanted of them", "--profile FILE")
    refused(run("fragments", model, new, "--target", "LogD"), "found by their names")
    refused(run("explain", model, new, "--endpoint", "logd"), "endpoint must be one of LogD")


def test_fragments_and_reports(folder):
    model, train = folder / "p.treelens", folder / "train.csv"
    found = ok("fragments", model, train, "--json").data
    assert {row["endpoint"] for row in found["fragments"]} <= {"LogD", "KSOL (uM)", "kind"}
    assert set(found["size"]) == {"LogD", "KSOL (uM)", "kind"}
    one = ok("fragments", model, train, "--endpoint", "LogD", "--json").data
    assert "endpoint" not in one["fragments"][0]
    ok("explain", model, folder / "new.csv", "-o", folder / "all.html")
    page = (folder / "all.html").read_text()
    assert "What to expect of these 30 molecules" in page
    assert page.count('<article class="molecule">') == 8
    ok("explain", model, folder / "new.csv", "--endpoint", "LogD", "-o", folder / "logd.html")
    assert "Prediction of &#39;LogD&#39;" in (folder / "logd.html").read_text()


def test_a_profile_adds_its_probability_and_counts_likely_rows(folder, tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text('LogD = "> 2"\n"KSOL (uM)" = "100 to 500"\nkind = "big"\n')
    table, found = _predicted(folder, "--profile", profile)
    model, new = tl.load(folder / "p.treelens"), pd.read_csv(folder / "new.csv")[:30]
    measured = new[["LogD", "KSOL (uM)", "kind"]]
    oracle = tl.profile_table(
        model, new["smiles"].tolist(), tl.Profile.read(profile), measured=measured
    ).sort_values("index")
    for name in ("probability_of_profile", "profile_share", "KSOL (uM)_in_profile"):
        np.testing.assert_allclose(table[name][:30], oracle[name], rtol=1e-5, atol=1e-12)
    assert np.isnan(table["probability_of_profile"][30])
    n = int((oracle["probability_of_profile"] > 0.5).sum())
    assert found["n_in_profile"] == n > 0
    printed = ok("predict", folder / "p.treelens", folder / "new.csv", "--profile", profile)
    assert f"{n} of 30 have a probability of the profile above 50 %" in printed.err


def test_a_profile_that_does_not_suit_the_model_is_refused_before_the_work(folder, tmp_path):
    profile = tmp_path / "profile.toml"
    model, new = folder / "p.treelens", folder / "new.csv"
    for text, words in (
        ('logD = "> 2"', "Did you mean 'LogD'?"),
        ('kind = "huge"', "none of its classes, big, small"),
        ("LogD > 2", "profile.toml cannot be read"),
    ):
        profile.write_text(text)
        refused(run("predict", model, new, "--profile", profile), words)


def test_suggestions_by_a_profile_are_those_of_the_library(folder, tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text('LogD = "> 2"\nkind = "big"\n')
    model, new = folder / "p.treelens", folder / "new.csv"
    done = ok("suggest", model, new, "--n", 4, "--profile", profile, "--json")
    found = pd.DataFrame(done.data["suggestions"])
    loaded = tl.load(model)
    pool = tl.read_table(new, smiles="smiles", model=loaded)
    with pytest.warns(UserWarning, match="measured in the pool"):
        expected = tl.suggest(loaded, pool, 4, profile=tl.Profile.read(profile))
    assert found["index"].tolist() == expected["index"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"])
    printed = ok("suggest", model, new, "--n", 4, "--profile", profile)
    assert "by the probability of" in printed.out


def test_text_among_measured_values_counts_as_not_measured(folder, tmp_path):
    new = pd.read_csv(folder / "new.csv", dtype=str)[:4]
    new["LogD"] = ["bad", "1.5", None, "2"]
    new.to_csv(tmp_path / "text.csv", index=False)
    done = ok("predict", folder / "p.treelens", tmp_path / "text.csv", "--out", tmp_path / "p.csv")
    assert "column 'LogD' holds no number in 1 rows, such as row 1" in done.err
    shown = pd.read_csv(tmp_path / "p.csv")["LogD_measured"]
    assert shown.isna().tolist() == [True, False, True, False]
