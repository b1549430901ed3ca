"""The scale that numbers are learned on, chosen by left-out densities and undone in predictions."""

import numpy as np
import pytest
from scipy import stats

import treelens as tl
from strategies import random_collection
from treelens.gp.scales import candidate_scales, left_out, marginal_gain
from treelens.maps import Logarithm, SmoothScores
from treelens.views import ViewSettings

N = 160


@pytest.fixture(scope="module")
def data():
    """Random graphs, and a number that their patterns and noise decide."""
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, N, max_nodes=8)
    counts = np.array([graph.n_nodes for graph in graphs], dtype=float)
    signal = (counts - counts.mean()) / counts.std()
    return graphs, signal + 0.3 * rng.normal(size=N)


@pytest.fixture(scope="module")
def skewed(data):
    graphs, y = data
    return tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1).fit(graphs, np.exp(3.0 * y))


def test_values_of_a_normal_distribution_are_learned_as_they_are(data):
    graphs, y = data
    model = tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1).fit(graphs, y)
    assert model.model_.training.record.scale is None
    plain = tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1)
    plain.fit(graphs, tl.Targets(y, transform="none"))
    np.testing.assert_array_equal(model.predict(graphs[:5]), plain.predict(graphs[:5]))


def test_skewed_values_are_learned_on_another_scale(data, skewed):
    graphs, y = data
    record = skewed.model_.training.record
    assert record.chosen
    assert isinstance(record.scale, (Logarithm, SmoothScores))
    median, truth = skewed.predict(graphs, point="median"), np.exp(3.0 * y)
    assert (skewed.predict(graphs) > median).mean() > 0.9  # the mean of a long tail
    assert stats.spearmanr(median, truth)[0] > 0.9
    assert skewed.loo_.predictions.min() >= 0.0
    assert 0.8 <= skewed.loo_.coverage <= 1.0


def test_a_transform_that_is_given_is_kept(data):
    graphs, y = data
    for name in ("none", "log10", "normal_scores"):
        model = tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1)
        model.fit(graphs, tl.Targets(np.exp(y), transform=name))
        record = model.model_.training.record
        assert (record.transform or "none") == name
        assert not record.chosen
    with pytest.raises(ValueError, match="values from 0 to 100"):
        model.fit(graphs, tl.Targets(np.exp(3 * y) - 1.0, transform="logit"))
    with pytest.raises(ValueError, match="normal_scores"):
        tl.Targets(y, transform="sqrt")


def test_intervals_are_quantiles_of_what_is_drawn(data, skewed):
    graphs, _ = data
    some = graphs[:4]
    drawn = skewed.sample_y(some, 20_000, random_state=1)
    for level in (0.5, 0.9):
        bounds = skewed.predict_interval(some, level)
        inside = (bounds[:, :1] <= drawn) & (drawn <= bounds[:, 1:])
        np.testing.assert_allclose(inside.mean(axis=1), level, atol=0.02)
    mean, std = skewed.predict(some, return_std=True)
    center = np.sort(drawn)[:, 100:-100].mean(axis=1)  # without the rarest draws
    np.testing.assert_allclose(mean, center, rtol=0.15)
    joint, cov = skewed.predict(some, return_cov=True)
    np.testing.assert_allclose(joint, mean)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), std)
    with pytest.raises(ValueError, match="probability"):
        skewed.predict_interval(some, 90)
    with pytest.raises(ValueError, match="point"):
        skewed.predict(some, point="mode")


def test_files_keep_the_scale(data, skewed, tmp_path):
    graphs, _ = data
    skewed.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    for point in ("mean", "median"):
        np.testing.assert_allclose(
            loaded.predict(graphs[:9], point=point), skewed.predict(graphs[:9], point=point)
        )
    table = loaded.predict_table(graphs[:9])
    assert list(table.columns[:5]) == ["prediction", "median", "std", "lower_90", "upper_90"]
    np.testing.assert_allclose(table["prediction"], skewed.predict(graphs[:9]))
    np.testing.assert_allclose(table[["lower_90", "upper_90"]], skewed.predict_interval(graphs[:9]))


def test_densities_are_those_of_values_in_their_units(data):
    """Under a logarithm the densities are log-normal ones, whose integral over values is one."""
    graphs, y = data
    settings = ViewSettings(1)
    views = (tl.WLPatterns().fit(graphs, settings),)
    plain = left_out(tl.Targets(y), None, views)
    found = left_out(tl.Targets(np.exp(y)), Logarithm("ln"), views)
    expected = plain.densities - y  # the slope of ln is exp(-y)
    np.testing.assert_allclose(found.densities, expected, rtol=1e-6)


def test_the_values_alone_screen_the_candidates():
    rng = np.random.default_rng(0)
    assert candidate_scales(rng.normal(size=500)) == []
    tail = np.exp(rng.normal(size=500))
    assert {scale.name for scale in candidate_scales(tail)} == {"ln", "normal_scores"}
    percent = 100.0 / (1.0 + np.exp(-2.0 - 2.0 * rng.normal(size=500)))
    assert "logit" in {scale.name for scale in candidate_scales(percent)}
    logs = np.log(tail)
    log_normal = stats.lognorm.logpdf(tail, np.std(logs), scale=np.exp(logs.mean()))
    normal = stats.norm.logpdf(tail, tail.mean(), np.std(tail))
    expected = log_normal.mean() - normal.mean()
    assert marginal_gain(Logarithm("ln"), tail) == pytest.approx(expected)


def test_the_scale_does_not_depend_on_the_order_of_rows(data):
    graphs, y = data
    order = np.random.default_rng(3).permutation(N)
    found = [
        tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1).fit(graphs[k], np.exp(3.0 * y[k]))
        for k in (np.arange(N), order)
    ]
    one, other = (model.model_.training.record.scale for model in found)
    assert type(one) is type(other)
    new = graphs[:10]
    np.testing.assert_allclose(*(m.predict(new, point="median") for m in found), rtol=1e-2)


def test_known_noise_counts_on_the_scale_that_is_tried(data):
    graphs, y = data
    values = np.exp(3.0 * y)
    noisy = tl.Targets(values, noise=0.1 * values)  # the same on a logarithmic scale
    model = tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1).fit(graphs, noisy)
    assert model.model_.training.record.scale is not None
    assert 0.75 <= model.loo_.coverage <= 1.0


def test_no_scale_whose_means_are_beyond_all_values(data):
    """Over twelve powers of ten, log-normal means have nothing to do with the values."""
    graphs, y = data
    values = np.where(y < np.quantile(y, 0.1), 1e-12, np.exp(3.0 * y))
    model = tl.GraphRegressor(depth=1, weights="uniform", n_jobs=1).fit(graphs, values)
    assert not isinstance(model.model_.training.record.scale, Logarithm)
    assert model.predict(graphs).max() < 10.0 * values.max()
