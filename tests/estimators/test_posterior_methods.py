"""What fitted Gaussian processes tell: covariances, kernels, neighbours, more data, tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

import treelens as tl
from gp.test_posterior import Precomputed
from strategies import make_random_graphs, random_collection
from treelens.estimators.prediction_table import DOMAIN_COLUMNS
from treelens.evaluation.metrics import NINETY
from treelens.gp.posterior import JITTER

N, M = 60, 75  # training graphs, and with those that are added


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(3)
    graphs = random_collection(rng, 90)
    labels = np.array(
        [[list(g.node_labels).count(x) for x in graphs.node_alphabet] for g in graphs]
    )
    values = 20.0 + labels @ rng.normal(size=labels.shape[1]) + 0.3 * rng.normal(size=len(graphs))
    return graphs, values


@pytest.fixture(scope="module")
def fitted(numbers):
    graphs, values = numbers
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=N)
    return tl.GraphRegressor(depth=2, n_jobs=1).fit(graphs[:N], values[:N], weights)


def dense(model, graphs, values, n, weights):
    """The textbook: mean and noise-free covariance of the graphs from ``n`` on."""
    kernel = model.kernel_matrix(graphs)
    offset = model.model_.target_offset[0]
    noise = np.diag(model.noise_ / weights + JITTER * np.diagonal(kernel)[:n])
    inverse = np.linalg.inv(kernel[:n, :n] + noise)
    mean = offset + kernel[n:, :n] @ inverse @ (values[:n] - offset)
    return mean, kernel[n:, n:] - kernel[n:, :n] @ inverse @ kernel[:n, n:]


def test_kernel_matrix_knows_unseen_patterns(numbers, fitted):
    graphs, _ = numbers
    assert fitted.out_of_vocabulary(graphs[N:]).max() > 0.1
    kernel = fitted.kernel_matrix(graphs)
    variance = fitted.model_.target_scale**2 * fitted.model_.kernel.variance
    np.testing.assert_allclose(np.diagonal(kernel), variance, rtol=1e-12)
    np.testing.assert_allclose(kernel[:20, 50:], fitted.kernel_matrix(graphs[:20], graphs[50:]))
    assert np.linalg.eigvalsh(kernel).min() > -1e-9 * variance
    rows = fitted.model_.kernel_rows(fitted.model_.refine(graphs[N:]).features)
    np.testing.assert_allclose(kernel[N:, :N], fitted.model_.target_scale**2 * rows, rtol=1e-10)
    distance = fitted.distance_matrix(graphs)
    assert (np.diagonal(distance) == 0).all()
    np.testing.assert_allclose(distance**2, 2 * (variance - kernel), atol=1e-9 * variance)
    i, j, k = np.random.default_rng(0).integers(len(graphs), size=(3, 500))
    assert (distance[i, j] + distance[j, k] >= distance[i, k] - 1e-9).all()


def test_covariance_is_that_of_scikit_learn_and_of_the_textbook(numbers, fitted):
    graphs, values = numbers
    mean, cov = fitted.predict(graphs[N:], return_cov=True, include_noise=False)
    textbook = dense(fitted, graphs, values, N, fitted.model_.sample_weights)
    np.testing.assert_allclose(mean, textbook[0], atol=1e-8)
    np.testing.assert_allclose(cov, textbook[1], atol=1e-8)
    kernel, offset = fitted.kernel_matrix(graphs), fitted.model_.target_offset[0]
    alpha = fitted.noise_ / fitted.model_.sample_weights + JITTER * np.diagonal(kernel)[:N]
    theirs = GaussianProcessRegressor(Precomputed(kernel), alpha=alpha, optimizer=None)
    theirs.fit(np.arange(N)[:, None], values[:N] - offset)
    expected = theirs.predict(np.arange(N, 90)[:, None], return_cov=True)
    np.testing.assert_allclose(mean, offset + expected[0], atol=1e-8)
    np.testing.assert_allclose(cov, expected[1], atol=1e-8)
    same, std = fitted.predict(graphs[N:], return_std=True, include_noise=False)
    np.testing.assert_allclose(same, mean)
    np.testing.assert_allclose(std**2, np.diagonal(cov), rtol=1e-8)
    with_noise = fitted.predict(graphs[N:], return_std=True)[1]
    np.testing.assert_allclose(with_noise**2, std**2 + fitted.noise_, rtol=1e-8)
    with pytest.raises(ValueError, match="not for both"):
        fitted.predict(graphs[N:], return_std=True, return_cov=True)
    with pytest.raises(TypeError, match="blocks"):
        fitted.predict(tl.CollectionBlocks(graphs, None, 10), return_cov=True)
    some = graphs[N : N + 6]
    drawn = fitted.sample_y(some, n_samples=40_000, random_state=1)
    mean, cov = fitted.predict(some, return_cov=True)
    error = np.sqrt(np.diagonal(cov) / 40_000)
    assert (np.abs(drawn.mean(axis=1) - mean) < 5 * error).all()
    np.testing.assert_allclose(np.cov(drawn), cov, atol=0.04 * cov.max())
    np.testing.assert_array_equal(drawn, fitted.sample_y(some, 40_000, random_state=1))
    plain = fitted.sample_y(some[[0, 0]], 3, include_noise=False)
    np.testing.assert_allclose(plain[0], plain[1], atol=1e-6)  # one molecule has one value


def test_neighbours_are_those_of_the_prediction_table(numbers, fitted):
    graphs, values = numbers
    found = fitted.kneighbors(graphs[N:], n_neighbors=3)
    assert len(found) == 3 * (90 - N)
    first = found.groupby("graph").first()
    table = fitted.predict_table(graphs[N:])
    np.testing.assert_array_equal(first["neighbor"], table["nearest"])
    np.testing.assert_allclose(first["similarity"], table["similarity"])
    np.testing.assert_array_equal(found["value"], values[found["neighbor"]])
    assert fitted.kneighbors(graphs[:2], 1)["similarity"].tolist() == pytest.approx([1.0, 1.0])
    assert len(fitted.kneighbors(graphs[:1], 1000)) == N


@pytest.mark.parametrize("from_file", [False, True])
@pytest.mark.parametrize("with_covariates", [False, True])
def test_condition_is_a_refit_with_fixed_weights(numbers, from_file, with_covariates, tmp_path):
    graphs, values = numbers
    extra = pd.DataFrame({"t": np.linspace(0.0, 1.0, 90)})
    trust = np.r_[np.random.default_rng(0).uniform(0.5, 2.0, size=N), np.linspace(0.5, 2.0, M - N)]
    model = tl.GraphRegressor(depth=1, n_jobs=1)
    graphs = graphs.with_data(extra) if with_covariates else graphs
    model.fit(graphs[:N], values[:N], trust[:N], covariates=["t"] if with_covariates else None)
    trust[:N] = model.model_.sample_weights
    if from_file:
        model.save(tmp_path / "m.treelens")
        model = tl.load(tmp_path / "m.treelens")
    more = model.condition(graphs[N:M], values[N:M], trust[N:])
    mean, cov = more.predict(graphs[M:], return_cov=True, include_noise=False)
    textbook = dense(model, graphs, values, M, trust)
    np.testing.assert_allclose(mean, textbook[0], atol=1e-8)
    np.testing.assert_allclose(cov, textbook[1], atol=1e-8)
    assert model.model_.training.histograms.n_graphs == N  # the first model is as it was
    np.testing.assert_array_equal(more.train_values_, values[:M])
    assert more.evidence_ == model.evidence_
    more.save(tmp_path / "more.treelens")
    loaded = tl.load(tmp_path / "more.treelens")
    np.testing.assert_array_equal(loaded.predict(graphs[M:]), more.predict(graphs[M:]))
    twice = model.condition(graphs[N:70], values[N:70], trust[N:70])
    twice = twice.condition(graphs[70:M], values[70:M], trust[70:])
    np.testing.assert_allclose(twice.predict(graphs[M:]), mean, atol=1e-8)


def test_leave_one_out_after_condition_is_that_of_refits(numbers, fitted):
    graphs, values = numbers
    more = fitted.condition(graphs[N:M], values[N:M])
    weights = np.concatenate([fitted.model_.sample_weights, np.ones(M - N)])
    for i in (0, 30, N, M - 1):
        order = np.r_[np.delete(np.arange(M), i), i]
        mean, cov = dense(fitted, graphs[order], values[order], M - 1, weights[order[:-1]])
        assert more.loo_.predictions[i] == pytest.approx(mean[0], abs=1e-7)
        variance = cov[0, 0] + more.noise_ / weights[i]
        assert more.loo_.std[i] ** 2 == pytest.approx(variance, rel=1e-6)


def test_landmarks_have_covariances_and_refuse_to_be_conditioned(numbers):
    graphs, values = numbers
    options = {"depth": 1, "exact_size": 40, "n_landmarks": 30, "weights": "uniform"}
    model = tl.GraphRegressor(**options).fit(graphs[:N], values[:N])
    mean, cov = model.predict(graphs[N:], return_cov=True)
    same, std = model.predict(graphs[N:], return_std=True)
    np.testing.assert_allclose(mean, same)
    np.testing.assert_allclose(np.diagonal(cov), std**2, rtol=1e-8)
    assert np.linalg.eigvalsh(cov).min() > 0
    with pytest.raises(ValueError, match="landmarks"):
        model.condition(graphs[N:M], values[N:M])


def test_classifiers_are_conditioned_too(numbers):
    graphs, values = numbers
    y = np.where(values > np.median(values), "high", "low")
    model = tl.GraphClassifier(depth=1, class_weight="balanced").fit(graphs[:N], y[:N])
    more = model.condition(graphs[N:M], y[N:M])
    weights, signs = more.model_.sample_weights, np.where(y == "low", 1.0, -1.0)
    np.testing.assert_array_equal(weights[:N], model.model_.sample_weights)
    expected, _ = dense(model, graphs, signs, M, weights)
    np.testing.assert_allclose(more.decision_function(graphs[M:]), expected, atol=1e-8)
    assert set(model.kneighbors(graphs[N:])["value"]) <= {"high", "low"}
    with pytest.raises(ValueError, match="middle"):
        model.condition(graphs[N:62], ["high", "middle"])


def test_units_of_the_table(tmp_path):
    pytest.importorskip("rdkit")
    rng = np.random.default_rng(0)
    smiles = ["C" * k + "O" * (k % 2) + "N" * (k % 3 == 0) for k in range(1, 41)]
    frame = pd.DataFrame({"id": [f"m{k}" for k in range(40)], "smiles": smiles})
    frame["IC50"] = 10 ** (0.1 * np.arange(40) + 0.1 * rng.normal(size=40))
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = tl.read_table(tmp_path / "t.csv", target="IC50", transform="log10", names="id")
    model = tl.GraphRegressor(depth=1).fit(*table)
    new = ["CCCCCO", "CCCCN", "CCOCC"]
    median, cov = model.predict(new, return_cov=True, point="median")
    on_scale = model.predict(new, learned_scale=True)
    np.testing.assert_allclose(np.log10(median), on_scale)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), model.predict(new, True)[1])
    drawn = model.sample_y(new, 200_000, learned_scale=True)
    np.testing.assert_allclose(np.cov(10**drawn), cov, rtol=0.1, atol=0.01 * cov.max())
    np.testing.assert_allclose(10 ** drawn[:, :5], model.sample_y(new, 200_000)[:, :5])
    near = model.kneighbors([smiles[6]], 1).iloc[0]
    assert (near["smiles"], near["name"]) == (smiles[6], "m6")
    assert near["value"] == pytest.approx(frame["IC50"][6])


# --- tables ---------------------------------------------------------------------------------------

GRAPHS = make_random_graphs(18, n_nodes=(4, 8), n_labels=3, random_state=0)
OTHERS = make_random_graphs(5, n_nodes=(4, 8), n_labels=4, random_state=1)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])
FEW = {"depth": 1, "max_steps": 5}


few_steps = pytest.mark.filterwarnings("ignore")  # that the search did not converge


@few_steps
def test_the_table_of_numbers():
    model = tl.GraphRegressor(**FEW, n_jobs=10**6).fit(GRAPHS, VALUES)  # all that there can be
    table = model.predict_table(OTHERS)
    mean, std = model.predict(OTHERS, return_std=True)
    np.testing.assert_allclose(table["prediction"], mean)
    np.testing.assert_allclose(table["std"], std)
    np.testing.assert_allclose(table["upper_90"] - mean, NINETY * std)
    np.testing.assert_allclose(mean - table["lower_90"], NINETY * std)
    assert list(table)[4:] == list(DOMAIN_COLUMNS)
    np.testing.assert_array_equal(table["out_of_vocabulary"], model.out_of_vocabulary(OTHERS))
    assert model.domain(OTHERS).equals(table[list(DOMAIN_COLUMNS)])
    np.testing.assert_allclose(model.predict_table(GRAPHS)["similarity"], 1.0)
    named = OTHERS.with_names(list("abcde"))
    assert model.predict_table(named).index.tolist() == list("abcde")
    first = model.domain_
    assert model.domain_ is first
    model.fit(GRAPHS[:12], VALUES[:12])
    assert model.domain_ is not first


@few_steps
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_table_of_classes(n_classes):
    y = np.array(["x", "y", "z"])[np.argsort(np.argsort(VALUES)) % n_classes]
    model = tl.GraphClassifier(**FEW).fit(GRAPHS, y)
    table, chances = model.predict_table(OTHERS), model.predict_proba(OTHERS)
    assert table["class"].tolist() == model.predict(OTHERS).tolist()
    codes = np.searchsorted(model.classes_, table["class"])
    np.testing.assert_allclose(table["probability"], chances[np.arange(5), codes])
    for column, name in enumerate(model.classes_):
        np.testing.assert_allclose(table[f"probability_{name}"], chances[:, column])
    decisions = model.decision_function(OTHERS)
    expected = decisions if n_classes == 2 else decisions[np.arange(5), codes]
    np.testing.assert_allclose(table["decision"], expected)


@few_steps
def test_a_notebook_shows_scores_and_escapes_everything():
    assert "sk-" in tl.GraphRegressor()._repr_html_()  # scikit-learn's own, before the fit
    shown = tl.GraphRegressor(**FEW).fit(GRAPHS, VALUES)._repr_html_()
    for words in ("GraphRegressor", "18 graphs", "RMSE", "support"):
        assert words in shown
    evil = "<script>alert(1)</script>"
    labels = [evil if i % 2 else "C" for i in range(4)]
    graphs = [tl.Graph(tuple(labels[: 2 + i % 3]), ((0, 1),)) for i in range(24)]
    y = np.where(np.arange(24) % 3 == 0, evil, "b<b>")
    model = tl.GraphClassifier(depth=1, weights="uniform").fit(graphs, y)
    shown = model._repr_html_()
    assert shown == model._repr_mimebundle_()["text/html"]
    assert "ROC AUC" in shown
    assert "<script>" not in shown
    assert "b<b>" not in shown
    table = model.predict_table(graphs)._repr_html_()
    assert "<script>" not in table
    assert "in_domain" in table
