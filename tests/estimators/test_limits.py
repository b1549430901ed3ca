"""GraphRegressor with limits: against a naive twin, in files, scores, landmarks and reports."""

import numpy as np
import pytest

import treelens as tl
from naive import censoring as naive
from strategies import random_collection
from treelens.estimators.prediction_table import file_columns
from treelens.evaluation.metrics import number_scores

SETTINGS = {"depth": 1, "weights": "uniform", "descriptors": False, "progress": False}


def _data(n=70, seed=0):
    """Random graphs whose value counts labels, with noise; the largest are known as limits."""
    rng = np.random.default_rng(seed)
    graphs = random_collection(rng, n, 9)
    counts = np.array([[graph.node_labels.count(x) for x in "CNO"] for graph in graphs])
    truth = counts @ [1.0, -0.5, 0.3] + 0.3 * rng.normal(size=n)
    limit = np.quantile(truth, 0.7)
    limits = (truth > limit).astype(int)
    return graphs, truth, np.where(limits, limit, truth), limits


@pytest.fixture(scope="module")
def fitted():
    graphs, truth, values, limits = _data()
    train = slice(0, 50)
    model = tl.GraphRegressor(**SETTINGS).fit(graphs[train], values[train], limits=limits[train])
    return model, graphs, truth, values, limits


def _naive_predictions(model, train, new, values, limits):
    """Means and deviations by the twin, with the kernel and the noise of a fitted model."""
    fitted = model.model_
    every = fitted.refine(tl.as_graph_collection(train)).features
    at = fitted.refine(tl.as_graph_collection(new)).features
    kernel, across = (fitted.kernel.matrix(x, every) for x in (every, at))
    y = (values - fitted.target_offset[0]) / fitted.target_scale
    noise = np.full(len(y), fitted.noise)
    few, exact = limits != 0, limits == 0
    among = kernel[np.ix_(exact, exact)] + fitted.noise * np.eye(exact.sum())
    solved = np.linalg.solve(among, kernel[np.ix_(exact, few)])
    left = kernel[np.ix_(few, few)] - kernel[np.ix_(few, exact)] @ solved
    left += 1e-9 * np.eye(few.sum())
    sites = naive.propagate(y[few], limits[few], noise[few], solved.T @ y[exact], left, 30)
    y[few], noise[few] = sites[0], 1 / sites[1]
    gain = np.linalg.solve(kernel + np.diag(noise), across.T)
    variance = fitted.kernel.variance - (across.T * gain).sum(axis=0) + fitted.noise
    mean = fitted.target_offset[0] + fitted.target_scale * (gain.T @ y)
    return mean, fitted.target_scale * np.sqrt(variance)


def test_predictions_agree_with_the_twin(fitted):
    model, graphs, _, values, limits = fitted
    expected = _naive_predictions(model, graphs[:50], graphs[50:], values[:50], limits[:50])
    mean, std = model.predict(graphs[50:], return_std=True)
    np.testing.assert_allclose(mean, expected[0], atol=2e-3)
    np.testing.assert_allclose(std, expected[1], rtol=2e-3)


def test_leave_one_out_agrees_with_leaving_out(fitted):
    """Sites of the others hardly depend on the graph that is left out."""
    model, graphs, _, values, limits = fitted
    unseen = [k for k in range(50) if (model.model_.training.histograms.n_nodes[k] > 2)]
    for k in [unseen[int(np.flatnonzero(limits[unseen])[0])], unseen[0], unseen[3]]:
        rest = np.delete(np.arange(50), k)
        mean, std = _naive_predictions(
            model, graphs[rest], graphs[k : k + 1], values[rest], limits[rest]
        )
        assert model.loo_.predictions[k] == pytest.approx(mean[0], abs=0.3 * std[0])
        assert model.loo_.std[k] == pytest.approx(std[0], rel=0.1)


def test_limits_are_learned_from_but_not_scored(fitted):
    model, graphs, truth, values, limits = fitted
    assert model.train_limits_.tolist() == limits[:50].tolist()
    exact = limits[:50] == 0
    left_out = model.loo_
    expected = number_scores(values[:50][exact], left_out.predictions[exact], left_out.std[exact])
    assert left_out.rmse == expected["rmse"]
    assert left_out.coverage == expected["coverage"]
    clipped = tl.GraphRegressor(**SETTINGS).fit(graphs[:50], values[:50])
    error, other = (
        np.sqrt(np.mean((m.predict(graphs[50:]) - truth[50:]) ** 2)) for m in (model, clipped)
    )
    assert error < other
    assert model.predict(graphs[:50][limits[:50] == 1]).max() > values.max()
    # A limit that holds is no error, one that does not is as wrong as it is far off.
    errors = model.model_.left_out_errors()[:, 0]
    held = (limits[:50] == 1) & (left_out.predictions > values[:50])
    assert held.any()
    assert (errors[held] == 0).all()
    np.testing.assert_array_equal(errors[~held], (values[:50] - left_out.predictions)[~held])


def test_upper_limits_mirror_lower_ones_and_files_keep_them(fitted, tmp_path):
    model, graphs, _, values, limits = fitted
    model.save(tmp_path / "m")
    loaded = tl.load(tmp_path / "m")
    for one, same in zip(model.predict(graphs, True), loaded.predict(graphs, True), strict=True):
        np.testing.assert_allclose(one, same, rtol=1e-9)
    assert loaded.train_limits_.tolist() == model.train_limits_.tolist()
    other = tl.GraphRegressor(**SETTINGS).fit(
        graphs[:50], -values[:50], limits=["<" if x else "=" for x in limits[:50]]
    )
    # Parts of the graphs that the search begins on are not the same.
    np.testing.assert_allclose(other.predict(graphs), -model.predict(graphs), atol=0.1)
    assert other.evidence_ == pytest.approx(model.evidence_, abs=0.5)


def test_neighbours_and_reports_show_which_values_are_limits(fitted, tmp_path):
    model, graphs, truth, values, limits = fitted
    summary = model.summary(graphs[50:], truth[50:])
    assert summary["validation"]["n_graphs"] == int((limits[:50] == 0).sum())
    assert summary["model"]["n_limits"] == limits[:50].sum()
    text = model.report(tmp_path / "r.html", graphs[50:], truth[50:]).read_text()
    assert "only a limit is known" in text
    assert np.isfinite(model.predict_table(graphs[50:])["expected_error"]).all()
    near = model.kneighbors(graphs[50:], 8)
    signs = np.where(limits[:50] == 1, ">", "")
    assert near["limit"].tolist() == signs[near["neighbor"]].tolist()
    assert set(near["limit"]) == {">", ""}
    explained = model.explain(graphs[50], n_neighbors=8).neighbors
    assert explained["limit"].tolist() == near["limit"][:8].tolist()
    graphs = graphs.with_names([f"g{k}" for k in range(len(graphs))])
    named = tl.GraphRegressor(**SETTINGS).fit(graphs[:50], values[:50], limits=limits[:50])
    assert "nearest_limit" in file_columns(named)
    assert "limit" not in tl.GraphRegressor(**SETTINGS).fit(graphs, values).kneighbors(graphs)


@pytest.mark.parametrize("n_exact", [2, 5])
def test_nearly_all_values_are_limits(n_exact):
    graphs, truth, _, _ = _data(40, seed=5)
    limits = np.ones(40, dtype=int)
    limits[:n_exact] = 0
    values, trust = np.where(limits, truth - 1.0, truth), np.where(limits, 2.0, 1.0)
    model = tl.GraphRegressor(**{**SETTINGS, "weights": "auto", "max_steps": 5})
    model.fit(graphs, values, trust, limits=limits)
    mean, std = model.predict(graphs, return_std=True)
    assert np.isfinite([*mean, model.evidence_, model.learning_gain_.difference]).all()
    assert (std > 0).all()
    assert (mean > values - 3 * std).all()


def test_landmarks_come_near_the_exact_posterior():
    graphs, _, values, limits = _data(160, seed=1)
    exact = tl.GraphRegressor(**SETTINGS).fit(graphs, values, limits=limits)
    through = tl.GraphRegressor(**SETTINGS, exact_size=100, n_landmarks=90)
    through.fit(graphs, values, limits=limits)
    assert len(through.model_.basis_indices) == 90
    difference = through.predict(graphs) - exact.predict(graphs)
    assert np.sqrt(np.mean(difference**2)) < 0.15 * values.std()
    assert (through.predict(graphs[limits == 1]) > values.max()).any()


@pytest.mark.parametrize(
    ("limits", "words"),
    [(["="] * 9, "shape"), (["?"] * 40, "position 0"), ([1] * 39 + [0], "at least 2")],
)
def test_what_is_wrong_with_limits(limits, words):
    graphs, truth, _, _ = _data(40)
    with pytest.raises(ValueError, match=words):
        tl.GraphRegressor(**SETTINGS).fit(graphs, truth, limits=limits)


def test_a_classifier_takes_no_limits():
    graphs, truth, _, _ = _data(40)
    with pytest.raises(ValueError, match="of numbers, not of classes"):
        tl.GraphClassifier(**SETTINGS).fit(graphs, truth > 0, limits=["="] * 39 + ["<"])


@pytest.mark.parametrize("repeats", [False, True])
def test_fit_uses_the_limits_of_a_table(repeats, tmp_path):
    """Values grow with the chain, known up to 1000 only; also where repeats were merged."""
    pytest.importorskip("rdkit")
    rows = ["smiles,IC50"]
    for n in range(1, 21):
        for k, end in enumerate("ON"):
            value = 10 ** (0.2 * n + 0.3 * k)
            rows.append(f"{'C' * n}{end},{'>1000' if value > 1000 else value}")
            if repeats and n < 6:
                rows.append(f"{end}{'C' * n},{1.2 * value}")
    path = tmp_path / "assay.csv"
    path.write_text("\n".join(rows) + "\n")
    table = tl.read_table(path, target="IC50", transform="log10")
    graphs, y = table
    settings = {**SETTINGS, "descriptors": True}
    model = tl.GraphRegressor(**settings).fit(graphs, y)
    assert model.train_limits_.tolist() == table.targets.limits.tolist()
    beyond = model.predict(graphs[table.targets.limits == 1])
    assert (beyond > 900.0).all()  # in the units of the table
    assert beyond.max() > 2000.0
    ignored = tl.GraphRegressor(**settings).fit(graphs, tl.Targets(y.values, transform="log10"))
    assert ignored.predict(graphs).max() < 1500.0
    assert np.allclose(model.train_values_, np.log10(y))


def test_more_data_keep_the_sites_of_limits(fitted):
    """Conditioning on more values leaves what limits said as it was."""
    model, graphs, truth, values, limits = fitted
    more = model.condition(graphs[50:60], truth[50:60])
    assert more.train_limits_.tolist() == [*limits[:50].tolist(), *[0] * 10]
    assert more.predict(graphs[:50][limits[:50] == 1]).max() > values.max()
    assert (more.loo_.std < 2 * truth.std()).all()
    few = model.condition(graphs[50:51], model.predict(graphs[50:51]))
    np.testing.assert_allclose(few.predict(graphs[51:]), model.predict(graphs[51:]), atol=1e-6)
