"""``advise`` of several endpoints: what a change does to each, and to a profile."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import treelens as tl
from treelens.decisions.advice_page import write_advice
from treelens.gp.panel import Cells, CellTable

LEAD = "c1cc(Br)ccc1CC=O"
PROFILE = {"LogD": "< 0", "KSOL": "> 20", "toxic": "no"}


@pytest.fixture(scope="module")
def panel(molecules):
    smiles, values = molecules
    rng = np.random.default_rng(3)
    own = values - values.mean()
    table = pd.DataFrame(
        {
            "LogD": own,
            "KSOL": 10 ** (1.0 - 0.5 * own + 0.2 * rng.normal(size=len(own))),
            "toxic": np.where(own + 0.3 * rng.normal(size=len(own)) > 0, "yes", "no"),
        }
    )
    table.loc[::3, "LogD"] = np.nan
    table.loc[1::4, "KSOL"] = np.nan
    return tl.GraphPanel(depth=1, n_jobs=1).fit(smiles[:48], table[:48])


@pytest.fixture(scope="module")
def advice(panel):
    return tl.advise(panel, LEAD, None, profile=PROFILE, only_better=False)


def test_deviations_of_differences_are_those_of_a_dense_process(panel):
    new = [LEAD, "c1cc(F)ccc1CC=O", "c1cc(Br)ccc1CCBr", "CCO"]
    model, graphs = panel.model_, panel._new_graphs(new)
    found = panel._decide_from_first(graphs)
    off = np.zeros((len(new), len(model.endpoints)))
    for k, process in enumerate((model.joint, *model.alone)):
        values = model.standardised(model.training.targets)[:, process.columns]
        cells = Cells.of(CellTable.plain(values))
        own = cells.graphs, cells.endpoints
        seen = process.seen(found.graphs).features
        matrix = np.diag(process.spreads.copy())
        n = len(process.columns)
        across, among = np.zeros((n, len(new), len(values))), np.zeros((n, len(new), len(new)))
        across = np.zeros((n, len(new), len(cells.graphs)))
        for view, (kernel, shared) in enumerate(zip(process.kernels, process.shared, strict=True)):
            train = model.shown(k)[view]
            between = shared[np.ix_(own[1], own[1])]
            matrix += between * kernel.matrix(train, train, 1)[np.ix_(own[0], own[0])]
            rows = kernel.matrix(seen[view], train, 1)[:, own[0]]
            wider, stored = process.views[view].extended(graphs, 1)
            alike = kernel.matrix(wider.data(stored), wider.data(stored), 1)
            for t in range(n):
                across[t] += rows * shared[t][own[1]]
                among[t] += shared[t, t] * alike
        for t, column in enumerate(process.columns.tolist()):
            left = among[t] - across[t] @ np.linalg.solve(matrix, across[t].T)
            difference = np.diagonal(left) + left[0, 0] - 2.0 * left[0]
            std = np.sqrt(np.maximum(difference, 0.0))
            share = process.share if k else 1.0
            off[:, column] += share * (std - off[:, column])
    np.testing.assert_allclose(found.from_first, model.scale * off, rtol=1e-5, atol=1e-6)
    assert (found.from_first[0] == 0).all()


def test_rows_are_ranked_by_the_gain_of_the_profile(panel, advice):
    assert advice["profile_gain"].is_monotonic_decreasing
    chances = tl.profile_table(panel, [LEAD, *advice["smiles"]], PROFILE).set_index("smiles")
    chances = chances["probability_of_profile"]
    np.testing.assert_allclose(advice["probability_of_profile"], chances[advice["smiles"]])
    gain = chances[advice["smiles"]].to_numpy() - chances[LEAD]
    np.testing.assert_allclose(advice["profile_gain"], gain, atol=1e-12)
    assert advice.attrs["lead"]["probability_of_profile"] == chances[LEAD]
    better = tl.advise(panel, LEAD, None, profile=PROFILE)
    assert better["smiles"].tolist() == advice.loc[advice["profile_gain"] > 0, "smiles"].tolist()


def test_every_endpoint_has_its_difference_and_its_direction(panel, advice):
    for name, sign in {"LogD": -1.0, "KSOL": 1.0, "toxic": 1.0}.items():
        scaled = advice[f"{name}_difference"] / advice[f"{name}_std"]
        expected = norm.cdf(sign * scaled)
        np.testing.assert_allclose(advice[f"{name}_probability_better"], expected, atol=1e-12)
    table = panel.predict_table([LEAD, *advice["smiles"]])
    np.testing.assert_allclose(advice["KSOL_prediction"], table["KSOL_prediction"][1:])
    chance = table["toxic_probability_no"].to_numpy()
    np.testing.assert_allclose(advice["toxic_probability_no"], chance[1:])
    safer = advice["toxic_difference"] > 0  # decision values of the class that is wanted
    assert (chance[1:][safer] > chance[0]).all()


def test_pairs_count_by_endpoint(panel, advice, molecules):
    mined = advice[advice["source"] == "pairs"]
    assert len(mined)
    assert (advice["n_pairs"] > 0).sum() == len(mined)
    assert (mined["LogD_n_pairs"] < mined["n_pairs"]).any()
    known = panel.model_.measured
    row = mined[mined["smiles"] == "O=CCc1ccc(F)cc1"].iloc[0]
    texts = molecules[0][:48]
    pairs = [(k, texts.index(s.replace("Br", "F"))) for k, s in enumerate(texts)
             if "Br" in s and s.replace("Br", "F") in texts]  # fmt: skip
    off = np.array([known[b, 1] - known[a, 1] for a, b in pairs])
    assert row["KSOL_n_pairs"] == (~np.isnan(off)).sum()
    assert row["KSOL_pair_mean"] == pytest.approx(np.nanmean(off))


def test_one_endpoint_or_none_may_be_wanted(panel, tmp_path):
    found = tl.advise(panel, LEAD, 5, endpoint="LogD", maximize=False)
    assert (found["LogD_probability_better"] > 0.5).all()
    assert "KSOL_probability_higher" in found
    assert "KSOL_probability_better" not in found
    every = tl.advise(panel, LEAD, None)
    assert "profile_gain" not in every
    assert len(every) == every.attrs["n_tried"]
    page = write_advice(found, tmp_path / "page.html").read_text()
    assert page.count("<tr>") == 6
    assert "LogD" in page
    with pytest.raises(ValueError, match="endpoint"):
        tl.advise(panel, LEAD, endpoint="nothing")
    with pytest.raises(ValueError, match="leave"):
        tl.advise(panel, LEAD, profile=PROFILE, maximize=False)
    with pytest.raises(ValueError, match="no such endpoint"):
        tl.advise(panel, LEAD, profile={"PSA": "> 1"})


def test_a_model_of_one_endpoint_takes_a_profile(model):
    found = tl.advise(model, LEAD, None, profile={"target": "0 to 1"}, only_better=False)
    assert found["profile_gain"].is_monotonic_decreasing
    assert found["probability_of_profile"].between(0, 1).all()
