"""Profiles: conditions on several endpoints, and the probability that all hold at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

import treelens as tl
from decisions.conftest import EFFECTS, ENDS, benzene
from treelens.errors import GraphDataError
from treelens.estimators.profile import Condition, Outlook, between, box_probability
from treelens.kernels.weighted import similarities
from treelens.maps import Logarithm, Logit

PAIRS = [(end, other) for end in ENDS for other in EFFECTS]
SMILES = [benzene(*pair) for pair in PAIRS]
PROFILE = {"logd": ">= 1", "ksol": "10 to 60", "active": "yes"}


@pytest.fixture(scope="module")
def cells():
    """Three endpoints go together by what the structure does not tell."""
    rng = np.random.default_rng(3)
    shared = np.array([0.5 * ENDS.index(end) + EFFECTS[x] for end, x in PAIRS])
    shared = shared + 0.8 * rng.normal(size=len(shared))
    columns = {
        "logd": shared + 0.2 * rng.normal(size=len(shared)),
        "ksol": 30.0 * np.exp(-0.4 * shared + 0.1 * rng.normal(size=len(shared))),
        "active": np.where(shared + 0.3 * rng.normal(size=len(shared)) > 0.8, "yes", "no"),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def panel(cells):
    panel = tl.GraphPanel(depth=2, descriptors=False, max_steps=30, n_jobs=1)
    y = tl.Targets(cells[:48], transform={"ksol": "log10"})
    return panel.fit(SMILES[:48], y)


def _boxes(n, size, seed):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(n, size, size))
    covariance = parts @ parts.transpose(0, 2, 1) + 0.1 * np.eye(size)
    std = np.sqrt(np.einsum("nii->ni", covariance))
    low = rng.normal(size=(n, size)) - 1.0
    high = low + rng.uniform(0.3, 3.0, size=low.shape)
    low[rng.random(low.shape) < 0.4], high[rng.random(low.shape) < 0.3] = -np.inf, np.inf
    return low, high, covariance / (std[:, :, None] * std[:, None])


@pytest.mark.parametrize(("size", "error"), [(1, 1e-12), (2, 1e-7), (3, 1e-3), (5, 1e-3)])
def test_the_probability_of_a_box_is_that_of_scipy(size, error):
    low, high, correlation = _boxes(15, size, size)
    found = box_probability(low, high, correlation)
    for k in range(15):
        oracle = multivariate_normal.cdf(
            high[k], np.zeros(size), correlation[k], lower_limit=low[k], rng=0
        )
        assert found[k] == pytest.approx(oracle, abs=error)


@pytest.mark.parametrize("size", [2, 4])
def test_the_probability_of_a_box_is_a_product_without_correlation(size):
    low, high, _ = _boxes(20, size, 7)
    found = box_probability(low, high, np.tile(np.eye(size), (20, 1, 1)))
    np.testing.assert_allclose(found, between(low, high).prod(axis=1), atol=1e-7)


def test_two_variables_that_are_nearly_the_same_and_limits_at_zero():
    low, high = np.array([[0.0, -np.inf], [-1.0, -1.0]]), np.array([[np.inf, 0.0], [1.0, 1.0]])
    for sign, expected in ((1.0, [0.0, norm.cdf(1) - norm.cdf(-1)]), (-1.0, [0.5, None])):
        own = np.tile([[1.0, sign], [sign, 1.0]], (2, 1, 1))
        found = box_probability(low, high, own)
        assert found[0] == pytest.approx(expected[0], abs=1e-6)
        assert found[1] == pytest.approx(norm.cdf(1) - norm.cdf(-1), abs=1e-6)


def test_probabilities_are_those_of_samples_of_the_joint_posterior(panel):
    """Classes hold where the decision is above what has their calibrated probability."""
    new = SMILES[48:54]
    table = tl.profile_table(panel, new, PROFILE).sort_values("index")
    _, covariance = panel.predict(new, return_cov="endpoints")
    rng = np.random.default_rng(0)
    columns = panel.predict_table(new)
    chance = panel.predict_proba(new)["active"][:, 1]
    for k in range(len(new)):
        std = np.sqrt(np.diagonal(covariance[k]))
        log_ksol = np.log10(columns["ksol_median"].iloc[k])
        mean = [columns["logd_prediction"].iloc[k], log_ksol, std[2] * norm.ppf(chance[k])]
        sample = rng.multivariate_normal(mean, covariance[k], 40_000)
        holds = (sample > [1.0, 1.0, 0.0]) & (sample < [np.inf, np.log10(60.0), np.inf])
        found = table.iloc[k]
        for name, share in zip(PROFILE, holds.mean(axis=0), strict=True):
            assert found[f"{name}_in_profile"] == pytest.approx(share, abs=0.02)
        joint = holds.all(axis=1).mean()
        assert found["probability_of_profile"] == pytest.approx(joint, abs=0.02)
        assert found["profile_share"] == pytest.approx(holds.mean(), abs=0.02)
    product = table[[f"{name}_in_profile" for name in PROFILE]].prod(axis=1)
    assert (table["probability_of_profile"] - product).abs().max() > 0.03  # it is none


def test_tables_are_ranked_and_say_what_was_predicted(panel):
    table = tl.profile_table(panel, SMILES[48:], PROFILE)
    assert table["probability_of_profile"].is_monotonic_decreasing
    assert sorted(table["index"]) == list(range(16))
    assert [SMILES[48 + k] for k in table["index"]] == table["smiles"].tolist()
    expected = panel.predict_table(SMILES[48:])["logd_prediction"].to_numpy()
    np.testing.assert_allclose(table["logd_prediction"], expected[table["index"]])


def test_measured_cells_hold_or_do_not_and_tell_of_the_others(panel, cells):
    new, known = SMILES[48:], cells[48:].reset_index(drop=True)
    known.loc[::2, "logd"], known["ksol"] = np.nan, np.nan
    known.loc[5:, "active"] = None
    table = tl.profile_table(panel, new, PROFILE, measured=known).sort_values("index")
    there = known["logd"].notna().to_numpy()
    holds = (known["logd"] >= 1.0).to_numpy()[there]
    assert 0 < holds.sum() < len(holds)
    np.testing.assert_array_equal(table["logd_in_profile"].to_numpy()[there], holds)
    assert (table["probability_of_profile"].to_numpy()[there][~holds] == 0).all()
    classes = (known["active"][:5] == "yes").to_numpy()
    np.testing.assert_array_equal(table["active_in_profile"].to_numpy()[:5], classes)
    before = tl.profile_table(panel, new, PROFILE).sort_values("index")
    change = (table["ksol_in_profile"] - before["ksol_in_profile"]).abs()
    assert change.to_numpy()[there].max() > 0.01
    all_known = tl.profile_table(panel, new, {"logd": ">= 1"}, measured=cells[48:])
    assert set(all_known["probability_of_profile"]) == {0.0, 1.0}


def test_a_measured_value_at_a_limit_is_in_it_where_the_limit_is_included(panel):
    known = pd.DataFrame({"ksol": [12.345], "logd": [0.7]})
    for condition, holds in (("< 12.345", 0), ("<= 12.345", 1), ("12.345 to 20", 1), ("> 9", 1)):
        table = tl.profile_table(panel, SMILES[48:49], {"ksol": condition}, measured=known)
        assert table["probability_of_profile"].tolist() == [holds]


@pytest.mark.parametrize(
    ("scale", "condition", "expected"),
    [
        (Logarithm("log10"), "> 0", 1.0),
        (Logarithm("log10"), "< -1", 0.0),
        (Logarithm("log10"), "-5 to 100", norm.cdf(1.0)),
        (Logit(0.0, 100.0), "<= 100", 1.0),
        (Logit(0.0, 100.0), "> 100", 0.0),
        (Logit(0.0, 100.0), ">= 0", 1.0),
        (None, "> 0", norm.cdf(1.0)),
    ],
)
def test_limits_beyond_a_scale_are_none_or_cannot_be_met(scale, condition, expected):
    ones = np.ones(1)
    outlook = Outlook("x", scale, None, ones, ones, None, np.nan * ones)
    low, high = outlook.limits(Condition.of(condition, "here"))
    assert between(low, high)[0] == pytest.approx(expected, abs=1e-9)


def test_models_of_one_endpoint_and_of_classes(model, classifier, halves):
    new = [SMILES[k] for k in halves[1]]
    table = tl.profile_table(model, new, {"target": "1 to 2"}).sort_values("index")
    mean, std = model.predict(new, return_std=True, learned_scale=True)
    expected = norm.cdf((2 - mean) / std) - norm.cdf((1 - mean) / std)
    np.testing.assert_allclose(table["probability_of_profile"], expected, atol=1e-9)
    chances = tl.profile_table(classifier, new, {"target": "low"}).sort_values("index")
    found = chances["probability_of_profile"]
    np.testing.assert_allclose(found, classifier.predict_proba(new)[:, 1], rtol=1e-9)
    with pytest.raises(ValueError, match="several endpoints"):
        tl.profile_table(model, new, {"target": "> 1"}, measured=np.ones((len(new), 1)))


def test_profiles_are_read_from_toml_and_json(tmp_path):
    pytest.importorskip("tomllib")
    toml, json = tmp_path / "p.toml", tmp_path / "p.json"
    toml.write_text('LogD = "1 to 3"\n"HLM CLint" = {condition = "≤ 3e1", weight = 2}\nhit = true')
    json.write_text('{"LogD": "1 to 3", "HLM CLint": "<= 30", "hit": true}')
    one, other = tl.Profile.read(toml).conditions, tl.Profile.read(json).conditions
    assert one["HLM CLint"].weight == 2.0
    assert one["HLM CLint"][1:5] == other["HLM CLint"][1:5] == (-np.inf, 30.0, True, True)
    assert one["LogD"] == other["LogD"]
    assert one["hit"].text == "True"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no conditions"),
        ({"LogD": "3 to 1"}, "'LogD': '3 to 1' is empty"),
        ({"LogD": "< high"}, "'LogD': '< high' is no condition: write it like"),
        ({"LogD": [1, 2]}, r"'LogD': \[1, 2\] is no condition"),
        ({"LogD": {"condition": "> 1", "wieght": 2}}, "has condition and weight"),
        ({"LogD": {"condition": "> 1", "weight": 0}}, "weight must be a number"),
    ],
)
def test_malformed_conditions_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        tl.Profile(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"LogD": "> 1"}, "'LogD', and the model has no such endpoint. Did you mean 'logd'"),
        ({"logd": "yes"}, "'logd' to be 'yes', and it is an endpoint of numbers"),
        ({"active": "> 1"}, "none of its classes, no, yes"),
    ],
)
def test_conditions_that_do_not_suit_the_model_are_named(panel, given, message):
    with pytest.raises(GraphDataError, match=message):
        tl.profile_table(panel, SMILES[:2], given)


def test_files_that_are_no_profiles_are_named(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"LogD": }')
    with pytest.raises(GraphDataError, match=r"p\.json cannot be read"):
        tl.Profile.read(path)


# --- suggestions ----------------------------------------------------------------------------------


def test_greedy_suggestions_are_the_most_probable_new_molecules(panel):
    pool = [SMILES[0], *SMILES[48:], SMILES[50]]
    with pytest.warns(UserWarning, match="left out"):
        found = tl.suggest(panel, pool, 5, "greedy", profile=PROFILE)
    ranked = tl.profile_table(panel, SMILES[48:], PROFILE)
    assert found["smiles"].tolist() == ranked["smiles"][:5].tolist()
    assert [pool[k] for k in found["index"]] == found["smiles"].tolist()
    np.testing.assert_allclose(found["score"], ranked["probability_of_profile"][:5])


def test_chosen_molecules_lower_the_scores_of_similar_ones(panel):
    """The oracle is explicit conditioning, with the similarity of patterns as the covariance."""
    pool = SMILES[48:]
    found = tl.suggest(panel, pool, 6, profile=PROFILE)
    table = tl.profile_table(panel, pool, PROFILE).sort_values("index")
    chances = table["probability_of_profile"].to_numpy()
    features = panel.model_.refine(panel._new_graphs(pool)).patterns.features
    alike = similarities(features, features)
    np.fill_diagonal(alike, 1.0)
    chosen: list[int] = []
    for score in found["score"]:
        left = np.ones(len(pool))
        if chosen:
            given = alike[:, chosen]
            left -= (given @ np.linalg.inv(alike[np.ix_(chosen, chosen)]) * given).sum(axis=1)
        wanted = chances * left
        wanted[chosen] = -1.0
        chosen.append(int(wanted.argmax()))
        assert score == pytest.approx(wanted.max(), rel=1e-5)
    assert found["index"].tolist() == chosen
    greedy = tl.suggest(panel, pool, 6, "greedy", profile=PROFILE)["index"].tolist()
    assert chosen != greedy


def test_cells_of_the_pool_count_as_known(panel, cells, tmp_path):
    new = cells[48:].assign(smiles=SMILES[48:])
    new.loc[new.index[8:], ["logd", "ksol", "active"]] = np.nan
    new[["smiles", "logd", "active"]].to_csv(tmp_path / "pool.csv", index=False)
    pool = tl.read_table(tmp_path / "pool.csv", smiles="smiles")
    found = tl.suggest(panel, pool, 16, "greedy", profile=PROFILE)
    measured = found[found["index"] < 8].set_index("index")["logd_in_profile"]
    expected = (new["logd"] >= 1.0).reset_index(drop=True)[measured.index]
    assert measured.tolist() == expected.tolist()
    unknown = found[found["index"] >= 8]["logd_in_profile"]
    assert unknown.between(0.001, 0.999).all()


def test_candidates_whose_profile_is_measured_are_left_out(panel, cells, tmp_path):
    new = cells[48:].assign(smiles=SMILES[48:])
    new.loc[new.index[8:], "logd"] = np.nan
    new[["smiles", "logd"]].to_csv(tmp_path / "pool.csv", index=False)
    pool = tl.read_table(tmp_path / "pool.csv", smiles="smiles")
    with pytest.warns(UserWarning, match="8 of 16 candidates left out: measured in the pool"):
        found = tl.suggest(panel, pool, 8, "greedy", profile={"logd": "> 1"})
    assert sorted(found["index"]) == list(range(8, 16))
    assert [SMILES[48 + k] for k in found["index"]] == found["smiles"].tolist()


def test_a_model_of_one_endpoint_suggests_by_a_range(model, molecules, halves):
    pool = [molecules[0][k] for k in halves[1]]
    found = tl.suggest(model, pool, 3, "greedy", profile={"target": "1 to 2"})
    table = tl.profile_table(model, pool, {"target": "1 to 2"})
    assert found["index"].tolist() == table["index"][:3].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"has 3 endpoints \(logd, ksol, active\): say what is wanted of them"),
        ({"profile": PROFILE, "strategy": "ucb"}, "strategy of a profile must be one of"),
        ({"profile": PROFILE, "maximize": False}, "The profile says what is wanted"),
        ({"profile": {"x": "> 1"}}, "no such endpoint"),
    ],
)
def test_suggestions_that_a_panel_cannot_make_are_refused(panel, settings, message):
    with pytest.raises(ValueError, match=message):
        tl.suggest(panel, SMILES[48:], 2, **settings)
