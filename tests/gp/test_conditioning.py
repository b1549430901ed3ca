"""More graphs: joined counts and inherited weights. Known noise: recovered, used, and read."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import treelens as tl
from strategies import random_collection
from treelens.chem.repeats import merged_measurements
from treelens.errors import GraphDataError
from treelens.gp.censoring import most_likely_noise


@pytest.fixture(scope="module")
def measured():
    """Graphs whose values have errors of very different size, and the true values."""
    rng = np.random.default_rng(5)
    graphs = random_collection(rng, 160)
    labels = np.array(
        [[list(g.node_labels).count(x) for x in graphs.node_alphabet] for g in graphs]
    )
    truth = labels @ rng.normal(size=labels.shape[1])
    std = rng.choice([0.02, 2.0], size=len(graphs)) * truth.std()
    return graphs, truth, truth + std * rng.normal(size=len(graphs)), std


def test_the_learned_part_maximises_the_likelihood():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    kernel = np.exp(-np.abs(points[:, None] - points[None]).sum(axis=2))
    known = rng.uniform(0.0, 0.5, size=60)
    covariance = kernel + np.diag(known + 0.2)
    y = rng.multivariate_normal(np.zeros(60), covariance)[:, None]
    found = most_likely_noise(kernel, known, y)
    grid = np.exp(np.linspace(np.log(1e-4), np.log(2.0), 400))
    likelihood = [
        multivariate_normal(np.zeros(60), kernel + np.diag(known + t)).logpdf(y[:, 0]) for t in grid
    ]
    assert found == pytest.approx(grid[int(np.argmax(likelihood))], rel=0.05)


def test_known_noise_improves_predictions_and_their_deviations(measured):
    graphs, truth, y, std = measured
    plain = tl.GraphRegressor(depth=1).fit(graphs[:100], y[:100])
    known = tl.GraphRegressor(depth=1).fit(graphs[:100], y[:100], noise=std[:100])
    errors = [
        np.sqrt(np.mean((truth[100:] - model.predict(graphs[100:])) ** 2))
        for model in (plain, known)
    ]
    assert errors[1] < 0.7 * errors[0]
    model = known.model_
    variances = known.noise_ / model.sample_weights
    learned = variances - std[:100] ** 2
    np.testing.assert_allclose(learned, learned[0], rtol=1e-8)  # known plus one for all
    mean, deviation = known.predict(graphs[100:], return_std=True, include_noise=False)
    inside = np.abs(truth[100:] - mean) < 1.645 * np.sqrt(deviation**2 + learned[0])
    assert 0.75 <= inside.mean() <= 1.0


def test_noise_of_targets_is_used(measured):
    graphs, _, y, std = measured
    given = tl.GraphRegressor(depth=1).fit(graphs[:60], y[:60], noise=std[:60])
    beside = tl.GraphRegressor(depth=1).fit(graphs[:60], tl.Targets(y, noise=std)[:60])
    np.testing.assert_array_equal(given.predict(graphs[60:]), beside.predict(graphs[60:]))
    landmarks = tl.GraphRegressor(depth=1, exact_size=40, n_landmarks=35)
    landmarks.fit(graphs[:60], y[:60], noise=std[:60])
    assert np.corrcoef(landmarks.predict(graphs[60:]), given.predict(graphs[60:]))[0, 1] > 0.9


def test_noise_that_cannot_be_used(measured):
    graphs, _, y, std = measured
    model = tl.GraphRegressor(depth=1)
    with pytest.raises(ValueError, match="not both"):
        model.fit(graphs, y, np.ones(160), noise=std)
    with pytest.raises(GraphDataError, match="graph 3"):
        model.fit(graphs, y, noise=np.where(np.arange(160) == 3, -1.0, std))
    with pytest.raises(GraphDataError, match="noise"):
        model.fit(graphs, y, noise=std[:5])
    with pytest.raises(GraphDataError, match="of numbers, not of classes"):
        tl.GraphClassifier(depth=1).fit(graphs, y > 0, noise=std)


def noise_of(y, groups):
    """The noise of the means of replicates."""
    return merged_measurements(tl.Targets(y), groups)[0].noise


def test_pooled_spread_of_replicates_is_recovered_in_spite_of_mistakes():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(300), 1 + np.arange(300) % 4)
    y = rng.normal(size=300)[groups] + 0.3 * rng.normal(size=len(groups))
    y[::50] += 100.0  # a wrong unit now and then
    found = noise_of(y, groups)
    np.testing.assert_allclose(found * np.sqrt(1 + np.arange(300) % 4), found[0])
    assert found[0] == pytest.approx(0.3, rel=0.15)
    copies = np.repeat(y, 2)  # verbatim copies are no replicates
    np.testing.assert_allclose(noise_of(copies, np.repeat(groups, 2)), found)
    assert noise_of(y[:8], groups[:8]) is None


def test_error_bars_of_training_molecules_keep_the_spread_of_replicates(tmp_path):
    pytest.importorskip("rdkit")
    rng = np.random.default_rng(0)
    smiles = ["C" * (1 + k % 20) + "NO"[k // 20] for k in range(40)]
    once = {"smiles": smiles, "noisy": 0.0, "exact": [0.2 * len(text) for text in smiles]}
    frame = pd.concat([pd.DataFrame(once), pd.DataFrame(once).head(15).assign(exact=np.nan)])
    frame["noisy"] = frame["smiles"].str.len() * 0.2 + rng.normal(0, 0.5, len(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = tl.read_table(tmp_path / "t.csv", target="noisy", transform="none")
    spread = table.targets.noise.max()
    np.testing.assert_allclose(np.unique(table.targets.noise), [spread / np.sqrt(2), spread])
    (note,) = [note for note in table.notes if "repeat the molecule" in note]
    assert f"standard deviation of {spread:.2g}" in note
    std = tl.GraphRegressor(depth=1).fit(*table).predict(table.graphs, return_std=True)[1]
    assert std.min() >= spread
    both = tl.read_table(tmp_path / "t.csv", target=["noisy", "exact"], transform="none")
    np.testing.assert_allclose(both.targets.noise[:, 0], table.targets.noise)
    assert np.isnan(both.targets.noise[:, 1]).all()
    assert any(note.startswith("noisy: 15 rows") for note in both.notes)
    std = tl.GraphRegressor(depth=1).fit(*both).predict(both.graphs, return_std=True)[1]
    assert std[:, 0].min() >= spread > std[:, 1].max()
    # Of fewer replicates the spread is said, and the fit is as it is without any.
    frame.head(45).to_csv(tmp_path / "few.csv", index=False)
    few = tl.read_table(tmp_path / "few.csv", target="noisy", transform="none")
    assert few.targets.noise is None
    assert any("5 of at least 10" in note for note in few.notes)


def test_tables_with_a_noise_column_and_replicates(tmp_path):
    pytest.importorskip("rdkit")
    rng = np.random.default_rng(0)
    smiles = [("C" * (1 + k % 15) + "NO"[k // 15]) for k in range(30)] * 2
    log = np.array([0.2 * len(s) for s in smiles]) + 0.1 * rng.normal(size=60)
    frame = pd.DataFrame({"smiles": smiles, "IC50": 10**log, "sd": 0.1 * 10**log})
    frame.loc[3, "sd"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"target": "IC50", "transform": "log10"}
    merged = tl.read_table(tmp_path / "t.csv", **options)
    assert len(merged.graphs) == 30
    on_scale = merged.targets.noise / merged.targets.values / np.log(10)
    assert on_scale == pytest.approx(0.1 / np.sqrt(2), rel=0.5)
    named = tl.read_table(tmp_path / "t.csv", noise="sd", **options)
    on_scale = named.targets.learned_noise()
    assert np.median(on_scale) == pytest.approx(0.1 / np.log(10) / np.sqrt(2), rel=0.05)
    assert any("no standard deviation" in note for note in named.notes)
    kept = tl.read_table(tmp_path / "t.csv", duplicates="keep", **options)
    assert kept.targets.noise is None
    model = tl.GraphRegressor(depth=1).fit(*named)
    learned = model.noise_ / model.model_.sample_weights - on_scale**2
    np.testing.assert_allclose(learned, learned[0], rtol=1e-6)
    learned = named.targets.learned()
    same = tl.GraphRegressor(depth=1).fit(named.graphs, learned, noise=on_scale)
    np.testing.assert_allclose(same.noise_, model.noise_, rtol=1e-6)
    frame.loc[4, "sd"] = -1.0
    frame.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(GraphDataError, match="row 5"):
        tl.read_table(tmp_path / "bad.csv", noise="sd", **options)


def test_new_patterns_inherit_the_weights_that_predictions_give_them():
    rng = np.random.default_rng(1)
    graphs = random_collection(rng, 60)
    values = np.array([len(g.node_labels) for g in graphs]) + rng.normal(size=60)
    model = tl.GraphRegressor(depth=2, weights="branches").fit(graphs[:30], values[:30]).model_
    before = model.patterns.refine(graphs[30:]).features.diagonal  # unseen patterns included
    extended, counts = model.patterns.extended(graphs[30:])
    extended.validate()
    after = extended.data(counts).diagonal
    np.testing.assert_allclose(after, before, rtol=1e-10)
