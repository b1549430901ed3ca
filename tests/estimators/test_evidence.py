"""GraphRegressor and GraphClassifier: what they promise."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import treelens as tl
from strategies import random_collection, renumbered


@pytest.fixture(scope="module")
def numbers():
    """Graphs and a number that the labels decide, with a little noise."""
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 120)
    labels = np.array(
        [[list(g.node_labels).count(x) for x in graphs.node_alphabet] for g in graphs]
    )
    values = labels @ rng.normal(size=labels.shape[1]) + 0.1 * rng.normal(size=len(graphs))
    return graphs, values


@pytest.fixture(scope="module")
def fitted(numbers):
    graphs, values = numbers
    return tl.GraphRegressor(depth=2, n_jobs=1).fit(graphs[:80], values[:80])


def test_learning_beats_uniform_weights_where_labels_decide(numbers, fitted):
    graphs, values = numbers
    uniform = tl.GraphRegressor(depth=2, weights="uniform").fit(graphs[:80], values[:80])
    errors = [
        np.sqrt(np.mean((values[80:] - model.predict(graphs[80:])) ** 2))
        for model in (fitted, uniform)
    ]
    assert errors[0] < 0.8 * errors[1]
    assert fitted.learning_gain_.difference > 2 * fitted.learning_gain_.standard_error
    assert "better" in fitted.learning_gain_.sentence
    assert uniform.learning_gain_.difference == 0.0
    np.testing.assert_allclose(uniform.weights_, 1.0)
    mean, std = fitted.predict(graphs[80:], return_std=True)
    assert 0.75 <= np.mean(np.abs(values[80:] - mean) < 1.645 * std) <= 1.0
    assert fitted.loo_.coverage == pytest.approx(0.9, abs=0.1)
    assert fitted.loo_.rmse == pytest.approx(
        np.sqrt(np.mean((values[:80] - fitted.loo_.predictions) ** 2))
    )
    history = fitted.history_
    assert fitted.converged_
    assert history["evidence"].is_monotonic_increasing
    assert fitted.evidence_ == history["evidence"].iloc[-1]
    assert set(history["stage"]) == {fitted.best_weights_}
    moved = tl.GraphRegressor(depth=2).fit(graphs[:80], 1e4 + 1e-3 * values[:80])
    np.testing.assert_allclose((moved.predict(graphs[80:]) - 1e4) * 1e3, mean, atol=1e-4)


def test_neither_order_nor_numbering_nor_threads_matter(numbers, fitted):
    graphs, values = numbers
    rng = np.random.default_rng(1)
    order = rng.permutation(80)
    mean, std = fitted.predict(graphs[80:], return_std=True)
    shuffled = tl.GraphRegressor(depth=2).fit(graphs[order], values[order])
    renamed = tl.GraphRegressor(depth=2).fit(renumbered(graphs[:80], rng), values[:80])
    # Another order deals graphs to other parts: the search ends nearby, not at the same point.
    for other, within in ((shuffled, 0.1 * std.max()), (renamed, 1e-6)):
        np.testing.assert_allclose(other.predict(graphs[80:]), mean, atol=within)
        np.testing.assert_allclose(other.predict(graphs[80:], True)[1], std, atol=within)
    threaded = tl.GraphRegressor(depth=2, n_jobs=2).fit(graphs[:80], values[:80])
    np.testing.assert_allclose(threaded.predict(graphs[80:]), mean, atol=1e-6)
    np.testing.assert_allclose(threaded.weights_, fitted.weights_, rtol=1e-6)


def test_permuted_values_bring_nothing(numbers):
    graphs, values = numbers
    rng = np.random.default_rng(2)
    gains = []
    for _ in range(3):
        mixed = rng.permutation(values)
        learned, uniform = (
            tl.GraphRegressor(depth=2, weights=kind).fit(graphs[:80], mixed[:80])
            for kind in ("branches", "uniform")
        )
        errors = [np.mean((mixed[80:] - m.predict(graphs[80:])) ** 2) for m in (learned, uniform)]
        gains.append(1 - errors[0] / errors[1])
    assert np.mean(gains) < 0.1


def test_odd_but_legal_targets(numbers):
    graphs, _ = numbers
    constant = tl.GraphRegressor(depth=1).fit(graphs[:20], np.full(20, 3.5))
    mean, std = constant.predict(graphs[20:30], return_std=True)
    np.testing.assert_allclose(mean, 3.5, atol=1e-6)
    assert np.isfinite(std).all()
    tenth = tl.GraphRegressor(depth=1).fit(graphs[:20], np.full(20, 0.1))
    np.testing.assert_allclose(tenth.predict(graphs[20:30], True)[1], std)  # rounding is no spread
    assert np.isfinite(tenth.learning_gain_.difference)
    two = tl.GraphRegressor(depth=1).fit(graphs[:2], [1.0, 2.0])
    assert np.isfinite(two.predict(graphs[:5])).all()
    with pytest.raises(ValueError, match="at least 2"):
        tl.GraphRegressor().fit(graphs[:1], [1.0])
    twice = [graphs[i] for i in (0, 0, 1, 1, 2, 2)]
    repeated = tl.GraphRegressor(depth=1).fit(twice, [1.0, 1.0, 2.0, 2.0, 4.0, 5.0])
    mean, std = repeated.predict(graphs[:3], return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    # A single pattern predicts the mean; few separable graphs give no certain probabilities.
    dots = tl.as_graph_collection([([], {0: "a"})] * 10 + [([], {0: "b"})] * 10)
    model = tl.GraphRegressor(depth=0).fit(dots[:4], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(model.predict(dots[:4]), 2.5, atol=1e-6)
    model = tl.GraphClassifier(depth=0).fit(dots, [0] * 10 + [1] * 10)
    assert model.predict_proba(dots).max() < 0.995


def test_equal_texts_of_two_trees_are_distinguished():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCCO", "CC=O", "CCC=O", "CCCC", "CCCCO"]
    model = tl.GraphRegressor(depth=1).fit(smiles, [1.0, 2.0, 4.0, 5.0, 0.0, 3.0])
    assert model.model_.patterns.source.trees == ("labels", "fine")
    oxygen = model.patterns_[model.patterns_["pattern"] == "O"]
    assert sorted(oxygen["tree"]) == ["fine", "labels"]
    found = model.explain("CC=O").pattern_contributions
    assert sorted(found[found["pattern"] == "O"]["tree"]) == ["fine", "labels"]


def test_landmarks_and_samples_stay_near_the_exact_process(numbers, fitted):
    graphs, values = numbers
    rough = tl.GraphRegressor(
        depth=2, learning_size=60, exact_size=70, n_landmarks=50, random_state=0
    ).fit(graphs[:80], values[:80])
    assert len(rough.model_.basis_indices) == 50
    exact = fitted.predict(graphs[80:])
    assert np.corrcoef(rough.predict(graphs[80:]), exact)[0, 1] > 0.97
    assert rough.loo_.coverage == pytest.approx(0.9, abs=0.1)  # as sure as predictions are
    found = rough.explain(graphs[80])
    assert found.decision == pytest.approx(rough.predict(graphs[80:81])[0], abs=1e-8)


@pytest.fixture(scope="module")
def classes():
    train = tl.make_synthetic(n_per_substructure=10, substructures=[1, 2, 3, 4], random_state=0)
    test = tl.make_synthetic(n_per_substructure=10, substructures=[5, 6, 7, 8], random_state=1)
    return *train, *test


@pytest.fixture(scope="module")
def classifier(classes):
    return tl.GraphClassifier(depth=2).fit(*classes[:2])


def test_classes_and_probabilities(classes, classifier):
    _, _, test, truth = classes
    probabilities = classifier.predict_proba(test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (classifier.classes_[probabilities.argmax(axis=1)] == classifier.predict(test)).all()
    assert classifier.score(test, truth) > 0.8
    decisions = classifier.decision_function(test)
    assert decisions.shape == (len(test),)
    assert ((decisions > 0) == (classifier.predict(test) == classifier.classes_[1])).all()
    assert 0.5 < classifier.loo_.accuracy <= 1.0
    table = classifier.patterns_
    planted = table[table["pattern"] == "0(0,1,2)"]["weight"].iloc[0]
    assert planted > table[table["depth"] == 1]["weight"].median()


def test_many_classes_share_one_kernel():
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 90)
    codes = np.array([list(g.node_labels).count(graphs.node_alphabet[0]) for g in graphs]) % 3
    names = np.array(["red", "green", "blue"])[codes]
    model = tl.GraphClassifier(depth=1).fit(graphs[:70], names[:70])
    assert model.decision_function(graphs[70:]).shape == (20, 3)
    assert model.predict_proba(graphs[70:]).shape == (20, 3)
    found = model.explain(graphs[70], class_label="red")
    column = model.classes_.tolist().index("red")
    assert found.decision == pytest.approx(model.decision_function(graphs[70:71])[0, column])
    assert found.base + found.node_contributions.sum() == pytest.approx(found.decision)


def test_scikit_learn_habits(classes):
    train, y, test, _ = classes
    model = tl.GraphClassifier(depth=1, weights="depths")
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, train, y, cv=2).shape == (2,)
    before = model.fit(train, y).predict(test)
    model.views = [tl.WLPatterns(trees=["no such tree"])]
    with pytest.raises(ValueError, match="trees"):
        model.fit(train, np.where(y == y[0], "X", "Y"))
    assert (model.predict(test) == before).all()  # a fit that fails leaves the model as it was
    for bad in ({"depth": -1}, {"weights": "all"}, {"prior_strength": 0.0}, {"views": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            tl.GraphClassifier(**bad).fit(train, y)


def test_replicates_of_noise_do_not_look_predictable():
    """Five copies of each graph with one random value: no leave-one-out score from copies."""
    rng = np.random.default_rng(0)
    graphs = tl.make_synthetic(n_per_substructure=5, random_state=0)[0]
    values = rng.normal(size=len(graphs))
    several = np.repeat(np.arange(len(graphs)), 5)
    measured = values[several] + 0.01 * rng.normal(size=len(several))
    with pytest.warns(UserWarning, match="copies"):
        model = tl.GraphRegressor(depth=1).fit(graphs[several], measured)
    assert model.loo_.r2 < 0.3


@pytest.mark.filterwarnings("ignore:.*are copies of others")
def test_copies_that_agree_on_their_class_are_observations():
    """Few kinds of graphs, each often: new graphs will be of these kinds, too."""
    graphs = tl.make_synthetic(n_per_substructure=2, random_state=0)[0]
    rng = np.random.default_rng(0)
    chance = rng.beta(0.3, 0.3, size=len(graphs))  # of class 1, by kind
    kinds = rng.integers(len(graphs), size=600)
    y = (rng.random(600) < chance[kinds]).astype(int)
    train, test = np.arange(200), np.arange(200, 600)
    model = tl.GraphClassifier(depth=1).fit(graphs[kinds[train]], y[train])
    best = -np.log(np.where(y == 1, chance[kinds], 1 - chance[kinds]))[test].mean()
    found = log_loss(y[test], model.predict_proba(graphs[kinds[test]]))
    assert found < best + 0.15
    assert model.loo_.log_loss == pytest.approx(found, abs=0.1)


def test_probabilities_at_the_bound_of_their_slope_are_named():
    graphs = tl.make_synthetic(n_per_substructure=2, random_state=0)[0][np.zeros(20, dtype=int)]
    with pytest.warns(UserWarning, match="close to even"):
        tl.GraphClassifier(depth=0).fit(graphs, np.arange(20) % 2)
