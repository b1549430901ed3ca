"""Models with several views: what they predict, explain, keep and refuse."""

import warnings

import numpy as np
import pytest

import treelens as tl
from strategies import random_collection
from treelens.views import View

VIEWS = [tl.WLPatterns(), tl.Paths(max_distance=4)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 70, max_nodes=10)
    return graphs, graphs.sizes + 0.3 * rng.normal(size=len(graphs))


@pytest.fixture(scope="module")
def model(data):
    graphs, y = data
    return tl.GraphRegressor(depth=2, views=VIEWS, random_state=0).fit(graphs[:50], y[:50])


def test_the_usual_views_can_be_listed(data):
    graphs, y = data
    usual = tl.GraphRegressor(depth=1).fit(graphs[:50], y[:50])
    views = [tl.WLPatterns(), tl.Paths()]
    listed = tl.GraphRegressor(depth=1, views=views).fit(graphs[:50], y[:50])
    np.testing.assert_array_equal(usual.predict(graphs), listed.predict(graphs))


def test_predictions_are_those_of_the_sum_of_two_kernels(data, model):
    graphs, y = data
    fitted = model.model_
    kernel = model.kernel_matrix(graphs) / fitted.target_scale**2
    parts = [term.amplitude for term in fitted.kernel.terms]
    np.testing.assert_allclose(np.diagonal(kernel), sum(parts))
    noisy = kernel[:50, :50] + fitted.noise * np.eye(50)
    targets = (y[:50] - fitted.target_offset) / fitted.target_scale
    mean = kernel[50:, :50] @ np.linalg.solve(noisy, targets)
    expected = fitted.target_offset + fitted.target_scale * mean
    np.testing.assert_allclose(model.predict(graphs[50:]), expected, rtol=1e-6)
    left = kernel[50:, 50:] - kernel[50:, :50] @ np.linalg.solve(noisy, kernel[:50, 50:])
    cov = model.predict(graphs[50:], return_cov=True, include_noise=False)[1]
    np.testing.assert_allclose(cov, fitted.target_scale**2 * left, atol=1e-6)
    std = model.predict(graphs[50:], return_std=True)[1]
    both = np.sqrt(np.diagonal(cov) + fitted.target_scale**2 * fitted.noise)
    np.testing.assert_allclose(std, both, rtol=1e-6)


def test_explanations_leave_nothing_out(data, model):
    graphs, _ = data
    trees = set()
    for graph in graphs[50:55]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # patterns that training never saw
            found = model.explain(graph)
        total = found.base + found.node_contributions.sum()
        assert total == pytest.approx(found.decision) == pytest.approx(model.predict([graph])[0])
        table = found.pattern_contributions
        views = found.view_contributions
        assert list(views.index) == ["patterns", "paths"]
        assert views.sum() == pytest.approx(found.node_contributions.sum())
        if not found.out_of_vocabulary:
            assert table["contribution"].sum() == pytest.approx(views.sum(), rel=1e-2)
        trees |= set(table["tree"])
        assert table["contribution"].abs().is_monotonic_decreasing
        assert found.neighbors["contribution"].sum() != 0.0
    assert {"labels", "paths"} <= trees


def test_fragments_count_all_that_is_at_their_nodes(data, model):
    """Left out of the model as in leave-one-out predictions, whatever the view."""
    graphs, _ = data
    table = model.fragments_
    assert len(table)
    assert (table["error"] > 0).all()
    from treelens.explain.effects import effects_of_graphs, inverse_covariances

    expansion = model.model_.expansion
    found = effects_of_graphs(expansion, graphs[:50], inverses=inverse_covariances(expansion))
    np.testing.assert_allclose(found.decisions, model.loo_.predictions, atol=1e-6)
    owner = np.repeat(np.arange(50), graphs[:50].sizes)
    np.testing.assert_allclose(found.base + np.bincount(owner, found.phi), found.decisions)


def test_files_and_reports_have_all_views(data, model, tmp_path):
    graphs, y = data
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    assert loaded.views == VIEWS
    page = loaded.report(tmp_path / "r.html", graphs[50:], y[50:]).read_text(encoding="utf-8")
    shares = model.shares_
    assert shares.index.tolist() == model.views_ == ["patterns", "paths"]
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    assert f"paths {round(100 * shares['paths'])}" in " ".join(page.split())


def test_more_measurements_join_all_views(data, model):
    graphs, y = data
    more = model.condition(graphs[50:60], y[50:60])
    kernel = model.kernel_matrix(graphs[:60]) / model.model_.target_scale**2
    weights = model.model_.sample_weights.tolist() + [1.0] * 10
    noisy = kernel + model.noise_ / model.model_.target_scale**2 * np.diag(1 / np.array(weights))
    targets = (y[:60] - model.model_.target_offset) / model.model_.target_scale
    mean = kernel @ np.linalg.solve(noisy, targets)
    expected = model.model_.target_offset + model.model_.target_scale * mean
    np.testing.assert_allclose(more.predict(graphs[:60]), expected, atol=1e-4)


@pytest.mark.parametrize("n_landmarks", [20, 45])
def test_landmarks_and_blocks_see_all_views(data, n_landmarks):
    graphs, y = data
    settings = {"depth": 1, "views": VIEWS, "weights": "uniform", "n_landmarks": n_landmarks}
    model = tl.GraphRegressor(**settings, exact_size=n_landmarks).fit(graphs, y)
    blocks = tl.GraphRegressor(**settings).fit(tl.CollectionBlocks(graphs, y, 16))
    for each in (model, blocks):
        assert len(each.model_.kernel.terms) == 2
        assert np.corrcoef(each.predict(graphs), y)[0, 1] > 0.9


def test_paths_tell_what_shallow_patterns_cannot():
    """Whether two rare labels are three bonds apart, or one."""
    rng, given, y = np.random.default_rng(0), [], []
    for k in range(60):
        labels = dict.fromkeys(range(10), "C")
        first, apart = int(rng.integers(0, 6)), 3 if k % 2 else 1
        labels[first] = labels[first + apart] = "N"
        given.append(([(i, i + 1) for i in range(9)], labels))
        y.append(float(k % 2))
    graphs, y = tl.as_graph_collection(given), np.array(y)
    scores = [
        tl.GraphRegressor(0, "uniform", views=views)
        .fit(graphs[:40], y[:40])
        .score(graphs[40:], y[40:])
        for views in ([tl.WLPatterns()], VIEWS)
    ]
    assert scores[1] > 0.8 > scores[0] + 0.5


@pytest.mark.parametrize(
    ("views", "words"),
    [
        ([], r"counts patterns, such as tl.WLPatterns\(\)"),
        ([tl.Table({})], r"counts patterns, such as tl.WLPatterns\(\)"),
        ([tl.WLPatterns(), tl.Table("a.csv", name="x"), tl.Table("b.csv", name="x")], "'x'"),
        (["paths"], r"tl.Paths\(\)\]; got 'paths'"),
        ([*VIEWS, tl.WLPatterns()], "twice"),
        ([tl.WLPatterns(trees=5)], "trees must be 'auto' or different ones"),
        ([tl.WLPatterns(), tl.Paths(max_distance=1000)], "above 100"),
        ([tl.WLPatterns(), tl.Paths(max_distance=True)], "max_distance"),
        ([tl.WLPatterns(trees=["leaves"])], "trees must be 'auto' or different ones"),
        ([tl.WLPatterns(), tl.Paths(max_distance=0)], "max_distance"),
        ([tl.WLPatterns(), tl.Paths(labels="fine")], "fine node labels"),
    ],
)
def test_what_is_no_view(data, views, words):
    graphs, y = data
    with pytest.raises((ValueError, TypeError), match=words):
        tl.GraphRegressor(depth=1, views=views).fit(graphs, y)


def test_no_view_is_ignored_on_a_gpu(data):
    with pytest.raises(ValueError, match="views is not supported with device='cuda'"):
        tl.GraphRegressor(depth=1, views=VIEWS, device="cuda").fit(*data)


def test_views_are_settings():
    assert tl.Paths() == tl.Paths(8)
    assert isinstance(tl.WLPatterns(), View)
