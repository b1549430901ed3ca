"""GraphPanel: gaps, siblings, what it shares, files and wrong input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from strategies import random_collection
from treelens.errors import GraphDataError
from treelens.gp import choice, panel_fit, panel_model, panel_posterior, terms
from treelens.storage.files import ModelFileError

ENDPOINTS = ["size", "copy", "noise"]


@pytest.fixture(scope="module")
def data():
    """The second endpoint is the first on another scale, the third has nothing to do with them."""
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 90, max_nodes=12)
    hidden = graphs.sizes + 2.0 * rng.normal(size=90)  # which the graphs do not tell
    table = np.stack([hidden, 100.0 - 10.0 * hidden, rng.normal(size=90)], axis=1)
    table += rng.normal(size=table.shape) * [0.2, 2.0, 0.2]
    return graphs, pd.DataFrame(table, columns=ENDPOINTS)


@pytest.fixture(scope="module")
def panel(data):
    graphs, table = data
    train = table[:70].copy()
    train.loc[::3, "size"] = np.nan
    train.loc[1::4, "copy"] = np.nan
    return tl.GraphPanel(depth=1, n_jobs=1).fit(graphs[:70], tl.Targets(train, transform="none"))


def test_what_goes_together_is_found(panel):
    assert panel.endpoints_ == ENDPOINTS
    assert panel.correlations_.loc["size", "copy"] < -0.8
    total = np.sum(panel.model_.joint.shared, axis=0)
    measured = np.sqrt(np.diagonal(total) + panel.model_.joint.noise)
    assert abs(total[0, 2]) < 0.35 * measured[0] * measured[2]  # of measurements
    np.testing.assert_allclose(panel.shares_.sum(), 1.0)
    assert panel.shares_.index.tolist() == ["patterns", "paths"]
    assert panel.noise_["copy"] > panel.noise_["size"]


def test_measured_siblings_tell_what_the_graph_does_not(data, panel):
    graphs, table = data
    new, truth = graphs[70:], table[70:]
    alone = panel.predict(new)
    known = truth[["copy"]]
    mean, std = panel.predict(new, return_std=True, measured=known)
    before = panel.predict(new, return_std=True)[1]
    error = [np.sqrt(np.mean((x[:, 0] - truth["size"]) ** 2)) for x in (alone, mean)]
    assert error[1] < 0.5 * error[0]
    assert (std[:, 0] < before[:, 0]).all()
    np.testing.assert_allclose(
        mean[:, 1], alone[:, 1], rtol=1e-10
    )  # what is known shows what was expected
    nothing = panel.predict(new, measured=truth * np.nan)
    np.testing.assert_allclose(nothing, alone)


def test_gaps_are_easier_than_new_molecules(panel):
    scores = panel.loo_
    assert scores.index.names == ["kind", "endpoint"]
    assert scores.loc[("gap", "size"), "rmse"] < 0.7 * scores.loc[("new", "size"), "rmse"]
    assert scores.loc[("gap", "size"), "n"] == 46
    assert scores.loc[["new", "gap"], "coverage"].between(0.75, 1.0).all()


def test_deviations_and_covariances_belong_together(data, panel):
    new = data[0][70:75]
    cov = panel.predict(new, return_cov="endpoints")[1]
    std = panel.predict(new, return_std=True)[1]
    assert cov.shape == (5, 3, 3)
    np.testing.assert_allclose(np.sqrt(cov[:, [0, 1, 2], [0, 1, 2]]), std)
    assert np.linalg.eigvalsh(cov).min() > 0
    quiet = panel.predict(new, return_std=True, include_noise=False)[1]
    np.testing.assert_allclose(std**2 - quiet**2, np.tile(panel.noise_**2, (5, 1)))
    table = panel.scores(data[0][70:], data[1][70:])
    assert table.index.tolist() == ENDPOINTS
    assert panel.score(data[0][70:], data[1][70:]) == pytest.approx(table["r2"].mean())


def test_a_file_keeps_it(data, panel, tmp_path):
    new = data[0][70:]
    panel.save(tmp_path / "p.treelens")
    loaded = tl.load(tmp_path / "p.treelens")
    assert isinstance(loaded, tl.GraphPanel)
    np.testing.assert_array_equal(loaded.predict(new), panel.predict(new))
    expected = panel.predict(new, return_std=True)[1]
    np.testing.assert_allclose(loaded.predict(new, return_std=True)[1], expected, rtol=1e-8)
    pd.testing.assert_frame_equal(loaded.loo_, panel.loo_)
    content = (tmp_path / "p.treelens").read_bytes()
    (tmp_path / "bad").write_bytes(content[:-200])
    with pytest.raises(ModelFileError):
        tl.load(tmp_path / "bad")


def test_small_endpoints_are_sampled_whole(data):
    graphs, table = data
    few = table[:70].copy()
    few.loc[10:, "noise"] = np.nan
    panel = tl.GraphPanel(depth=1, learning_size=60, max_steps=3).fit(graphs[:70], few)
    assert np.isfinite(panel.predict(graphs[70:])).all()


def test_shares_of_single_processes_minimise_the_error():
    rng = np.random.default_rng(0)
    truth, joint, single = rng.normal(size=(3, 2000))
    truth[:20] = np.nan
    ways = np.stack([truth + 0.5 * joint, truth + 0.5 * joint[::-1]])
    others = np.stack([truth + single, truth + single[::-1]])
    share = panel_fit.share_alone(truth, ways, others)
    best = share * (1 + 50 / 1980)  # as many cells speak for sharing
    known = ~np.isnan(truth)
    errors = [
        ((ways * (1 - w) + others * w - truth)[:, known] ** 2).sum()
        for w in (best, best + 0.01, best - 0.01)
    ]
    assert errors[0] == min(errors)
    assert 0.15 < share < 0.25
    exact, off = truth[None], truth[None] + joint
    assert panel_fit.share_alone(truth, off, exact) == 1.0
    assert panel_fit.share_alone(truth, exact, off) == 0.0
    assert panel_fit.share_alone(truth[:70], off[:, :70], exact[:, :70]) == pytest.approx(0.5)
    assert panel_fit.share_alone(truth[:29], off[:, :29], exact[:, :29]) == 0.0  # too few


def test_an_endpoint_that_sharing_would_hurt_stands_alone(data, monkeypatch):
    graphs, table = data
    train = table[:50].copy()
    train.loc[::3, "size"] = np.nan
    y = tl.Targets(train, transform="none")
    settings = {"depth": 1, "n_jobs": 1, "max_steps": 40}
    monkeypatch.setattr(choice, "FEWEST", 100)  # stages run on all graphs, as those of a panel do
    monkeypatch.setattr(terms, "LOGIT_SPREAD", 2.0)  # so few graphs leave narrow ones undecided
    monkeypatch.setattr(panel_fit, "share_alone", lambda *_: 0.0)
    joint = tl.GraphPanel(**settings).fit(graphs[:50], y)
    monkeypatch.setattr(panel_fit, "share_alone", lambda x, *_: float(np.isnan(x).any()))
    panel = tl.GraphPanel(**settings).fit(graphs[:50], y)
    assert joint.alone_.tolist() == [0.0, 0.0, 0.0]
    assert panel.alone_.tolist() == [1.0, 0.0, 0.0]
    new = graphs[70:75]
    mean, cov = panel.predict(new, return_cov="endpoints")
    other, cov_other = joint.predict(new, return_cov="endpoints")
    np.testing.assert_allclose(mean[:, 1:], other[:, 1:])
    np.testing.assert_allclose(cov[:, 1:, 1:], cov_other[:, 1:, 1:])
    # the lone endpoint is what its process says, as fitted to its values alone
    has = train["size"].notna().to_numpy()
    views = [tl.WLPatterns(), tl.Paths()]
    alone = tl.GraphRegressor(1, "depths", views=views, n_jobs=1, max_steps=40)
    alone.fit(graphs[np.flatnonzero(has)], tl.Targets(train["size"][has], transform="none"))
    expected = alone.predict(new, return_std=True)
    std = np.sqrt(cov[:, 0, 0])
    np.testing.assert_allclose(mean[:, 0], expected[0], rtol=0.08)
    np.testing.assert_allclose(std, expected[1], rtol=0.1)
    # correlations stay those of the joint process
    quiet, quiet_other = (
        each.predict(new, return_cov="endpoints", include_noise=False)[1] for each in (panel, joint)
    )
    for one in (quiet, quiet_other):
        one /= np.sqrt(one[:, [0, 1, 2], [0, 1, 2]])[:, :, None]
        one /= np.abs(one[:, [0, 1, 2], [0, 1, 2]])[:, None, :]
    np.testing.assert_allclose(quiet, quiet_other, rtol=1e-6)
    gaps = panel.predict(new, measured=table[70:75][["copy"]])
    assert not np.allclose(gaps[:, 0], mean[:, 0])
    loo = panel.loo_
    expected = loo.loc[("single", "size"), "rmse"]
    assert loo.loc[("new", "size"), "rmse"] == pytest.approx(expected)
    half = replace(panel.model_.alone[0], share=0.5)
    panel.model_ = replace(panel.model_, alone=(half,))
    both = panel.predict(new, return_std=True)
    np.testing.assert_allclose(both[0][:, 0], 0.5 * (mean[:, 0] + other[:, 0]))
    np.testing.assert_allclose(both[0][:, 1:], other[:, 1:])


def test_an_unrelated_endpoint_changes_little():
    changes = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        graphs = random_collection(rng, 300, max_nodes=14)
        first = graphs.sizes + rng.normal(size=300)
        y = np.stack([first, graphs.sizes + rng.normal(size=300), rng.permutation(first)], axis=1)
        train = y[:100].copy()
        train[::3, 0], train[1::3, 1] = np.nan, np.nan
        errors = []
        for n in (2, 3):
            targets = tl.Targets(train[:, :n], transform="none")
            panel = tl.GraphPanel(depth=1, n_jobs=1).fit(graphs[:100], targets)
            off = (panel.predict(graphs[100:]) - y[100:, :n])[:, :2]
            errors.append(np.sqrt((off**2).mean(axis=0)))
        changes.append(errors[1] / errors[0] - 1.0)
    assert np.abs(np.mean(changes)) < 0.01
    assert np.mean(np.abs(changes)) < 0.015


def test_molecules_have_descriptors_as_well():
    pytest.importorskip("rdkit")
    smiles = ["C" * k + end for k in range(1, 13) for end in ("O", "N", "C(=O)O")]
    length = np.array([len(s) for s in smiles], dtype=float)
    y = np.stack([length, 2.0 * length + 1.0], axis=1)
    panel = tl.GraphPanel(depth=1, max_steps=10).fit(smiles, y)
    assert panel.shares_.index.tolist() == ["patterns", "paths", "descriptors"]
    assert panel.endpoints_ == ["endpoint 1", "endpoint 2"]
    assert np.corrcoef(panel.predict(smiles)[:, 1], length)[0, 1] > 0.95


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: y[["size"]], "one column: learn it with GraphRegressor"),
        (lambda y: y.assign(copy=np.nan), "'copy' has 0 values"),
        (lambda y: y.assign(copy="high"), "'copy': y holds one class only"),
        (lambda y: y.assign(copy=["high", 1.5] * 45), "'high' in the column 'copy', at position 0"),
        (lambda y: y.assign(copy=["a", "b", "c"] * 30), "'copy' has 3 classes"),
        (lambda y: y[:5], "90 graphs but 5 values"),
        (lambda y: y.set_axis(["a", "a", "b"], axis=1), "two columns of one name"),
    ],
)
def test_what_cannot_be_learned(data, change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        tl.GraphPanel(depth=1).fit(data[0], change(data[1]))


def test_what_a_panel_refuses(data, panel):
    graphs, table = data
    with pytest.raises(GraphDataError, match="'other' is none of the endpoints"):
        panel.predict(graphs[:3], measured=table[:3].rename(columns={"size": "other"}))
    with pytest.raises(ValueError, match="return_cov must be False or 'endpoints'"):
        panel.predict(graphs[:3], return_cov=True)
    with pytest.raises(GraphDataError, match=r"y has 3 columns .*GraphPanel"):
        tl.GraphSVC().fit(graphs, table)
    with pytest.raises(GraphDataError, match="'copy' holds classes, such as 'a'"):
        tl.GraphRegressor(depth=1).fit(graphs, table.assign(copy=["a", "b"] * 45))


def test_through_landmarks_it_predicts_nearly_as_exactly(data, panel, tmp_path):
    graphs, table = data
    train = table[:70].copy()
    train.loc[::3, "size"] = np.nan
    train.loc[1::4, "copy"] = np.nan
    y = tl.Targets(train, transform="none")
    found = {}
    for n in (90, 400):
        some = tl.GraphPanel(depth=1, n_jobs=1, exact_size=150, n_landmarks=n)
        found[n] = some.fit(graphs[:70], y)
        # what a file keeps
        some.save(tmp_path / f"{n}.treelens")
        loaded = tl.load(tmp_path / f"{n}.treelens")
        mean, std = loaded.predict(graphs[70:], return_std=True)
        expected = some.predict(graphs[70:], return_std=True)
        np.testing.assert_allclose(mean, expected[0], rtol=1e-8)
        np.testing.assert_allclose(std, expected[1], rtol=1e-6)
    assert found[90].model_.joint.basis.shape == (90,)
    expected = panel.predict(graphs[70:], return_std=True)
    every = found[400].predict(graphs[70:], return_std=True)
    scale = table.std().to_numpy()
    # shares of single processes are found on other cells
    np.testing.assert_allclose(every[0] / scale, expected[0] / scale, atol=0.1)
    np.testing.assert_allclose(every[1], expected[1], rtol=0.1)
    errors = [
        np.sqrt(((model.predict(graphs[70:]) - table[70:]) ** 2).mean())
        for model in (panel, found[90])
    ]
    assert (errors[1] < 1.1 * errors[0]).all()
    scores = found[90].loo_
    assert scores.loc[("gap", "size"), "rmse"] < 0.7 * scores.loc[("new", "size"), "rmse"]
    assert scores.loc[["new", "gap"], "coverage"].between(0.75, 1.0).all()


@pytest.mark.parametrize("exact_size", [12_000, 60])
def test_limits_and_noise_are_used(exact_size, tmp_path):
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 120, max_nodes=14)
    first = graphs.sizes + 0.3 * rng.normal(size=120)
    y = np.stack([first, 10.0 - 0.5 * graphs.sizes + 0.3 * rng.normal(size=120)], axis=1)
    train, new = y[:70].copy(), graphs[70:]
    train[::3, 1] = np.nan
    high = np.quantile(first, 0.5)  # the end of an assay's range
    cut = train[:, 0] > high
    train[cut, 0], train[cut, 1] = high, np.nan
    limits = np.stack([cut, np.zeros(70)], axis=1).astype(int)
    noise = np.stack([np.where(cut, 3.0, 0.1), np.full(70, np.nan)], axis=1)
    settings = {"depth": 1, "n_jobs": 1, "exact_size": exact_size, "n_landmarks": 90}
    as_values, as_limits, with_errors = (
        tl.GraphPanel(**settings).fit(graphs[:70], tl.Targets(train, transform="none", **known))
        for known in ({}, {"limits": limits}, {"noise": noise})
    )
    errors = [
        np.sqrt(np.mean((model.predict(new)[:, 0] - first[70:]) ** 2))
        for model in (as_values, as_limits, with_errors)
    ]
    assert errors[1] < 0.8 * errors[0]
    assert errors[2] < errors[0]
    found = as_limits.explain(graphs[3], endpoint="endpoint 1")
    expected = as_limits.model_.decide(graphs[3:4]).mean[0, 0]
    assert found.base + found.node_contributions.sum() == pytest.approx(expected, abs=1e-8)
    assert as_limits.endpoint("endpoint 1").summary(new[:4])["domain"] is not None
    # limits are neither scored nor known of new molecules
    assert as_limits.loo_.loc[("new", "endpoint 1"), "n"] == int((~cut).sum())
    targets = tl.Targets(train, limits=limits)
    exact = np.stack([np.where(cut, np.nan, train[:, 0]), train[:, 1]], axis=1)
    known = as_limits.predict(graphs[:70], measured=targets)
    np.testing.assert_allclose(known, as_limits.predict(graphs[:70], measured=exact))
    assert as_limits.scores(graphs[:70], targets).loc["endpoint 1", "n"] == int((~cut).sum())
    as_limits.save(tmp_path / "p.treelens")
    loaded = tl.load(tmp_path / "p.treelens")
    expected = as_limits.predict(new, return_std=True)[1]
    np.testing.assert_allclose(loaded.predict(new, return_std=True)[1], expected, rtol=1e-6)
    np.testing.assert_array_equal(loaded.model_.training.limits, limits)


def test_equal_weights_are_none(data):
    graphs, table = data
    settings = {"depth": 1, "n_jobs": 1, "max_steps": 40}
    twice = np.full((30, 3), 2.0)
    same, plain, other = (
        tl.GraphPanel(**settings).fit(graphs[:30], tl.Targets(table[:30], transform="none", **more))
        for more in (
            {"sample_weight": twice},
            {},
            {"sample_weight": twice * np.where(np.arange(30) < 15, 1.0, 30.0)[:, None]},
        )
    )
    expected = plain.predict(graphs[30:50])
    np.testing.assert_allclose(same.predict(graphs[30:50]), expected)
    assert not np.allclose(other.predict(graphs[30:50]), expected, rtol=1e-2)


def test_of_many_cells_the_covariance_is_rounded(data, panel, monkeypatch, tmp_path):
    graphs, table = data
    monkeypatch.setattr(panel_posterior, "_MOST_IN_DOUBLE", 100)
    train = table[:70].copy()
    train.loc[::3, "size"] = np.nan
    train.loc[1::4, "copy"] = np.nan
    rounded = tl.GraphPanel(depth=1, n_jobs=1).fit(graphs[:70], tl.Targets(train, transform="none"))
    again = rounded.model_.joint.completed(
        rounded.model_.cells(rounded.model_.joint), rounded.model_.training_graphs, 1
    )
    kept = np.triu(rounded.model_.joint.factor)  # which leaving cells out has overwritten
    np.testing.assert_allclose(kept, np.triu(again.factor), atol=1e-4)
    with monkeypatch.context() as patched:
        patched.setattr(panel_model, "cholesky_in_place", None)
        mean, std = rounded.predict(graphs[70:], return_std=True)
    expected = panel.predict(graphs[70:], return_std=True)
    size = table.std().to_numpy()
    np.testing.assert_allclose(mean / size, expected[0] / size, atol=1e-3)
    np.testing.assert_allclose(std, expected[1], rtol=1e-3)
    np.testing.assert_allclose(rounded.loo_["rmse"], panel.loo_["rmse"], rtol=1e-3)


@pytest.mark.parametrize("sizes", [{}, {"exact_size": 60, "n_landmarks": 50}])
def test_variances_come_from_the_file_where_it_keeps_them(data, sizes, tmp_path, monkeypatch):
    graphs, table = data
    some = tl.GraphPanel(depth=1, n_jobs=1, max_steps=3, **sizes).fit(graphs[:50], table[:50])
    expected = some.predict(graphs[70:], return_std=True)
    some.save(tmp_path / "plain")
    some.save(tmp_path / "more", variances=True)
    assert (tmp_path / "more").stat().st_size > (tmp_path / "plain").stat().st_size
    loaded = tl.load(tmp_path / "more")
    monkeypatch.setattr(panel_model, "cholesky_in_place", None)
    monkeypatch.setattr(panel_model, "CellsThroughLandmarks", None)
    mean, std = loaded.predict(graphs[70:], return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-3)


def test_intervals_are_wider_where_similar_graphs_were_predicted_worse(tmp_path):
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 240, max_nodes=12)
    noise = np.where(graphs.sizes > np.median(graphs.sizes), 3.0, 0.3)  # large graphs are noisy
    y = np.stack([graphs.sizes + noise * rng.normal(size=240), graphs.sizes + noise], axis=1)
    y[::4, 1] = np.nan
    panel = tl.GraphPanel(depth=1, n_jobs=1, max_steps=20)
    panel.fit(graphs[:160], tl.Targets(y[:160], transform="none"))
    new, truth, noisy = graphs[160:], y[160:, 0], noise[160:] > 1.0
    std = panel.predict(new, return_std=True)[1][:, 0]
    assert std[noisy].mean() > 1.3 * std[~noisy].mean()
    mean, cov = panel.predict(new, return_cov="endpoints")
    np.testing.assert_allclose(np.sqrt(cov[:, 0, 0]), std)
    assert 0.8 < np.mean(np.abs(truth - mean[:, 0]) < 1.645 * std) < 0.98
    panel.save(tmp_path / "p.treelens")
    loaded = tl.load(tmp_path / "p.treelens").predict(new, return_std=True)[1]
    np.testing.assert_allclose(loaded[:, 0], std, rtol=1e-6)
