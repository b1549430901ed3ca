"""Nothing is learned from what is not for training.

Held-out graphs, other graphs to be predicted and labels that mean nothing must not help a model.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

import treelens as tl
from strategies import random_collection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.search import SCORES, KernelSearch, grid

ONE_SPLIT = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)
ONE = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": ONE_SPLIT, "random_state": 0}
CANDIDATES = grid(["wwl", "laplacian", "tanimoto", "wl-subtree"], [1, 2], [0.0, 1.0], [3.0], [1.0])


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(8, random_state=0)


def strangers(n_graphs: int = 30) -> tl.GraphCollection:
    """Graphs with some labels of the training graphs and some of their own."""
    graphs = random_collection(np.random.default_rng(9), n_graphs, labels="0123xyz")
    relabelled = [
        tl.Graph(tuple(int(x) if x.isdigit() else x for x in graph.node_labels), graph.edges)
        for graph in graphs
    ]
    return tl.as_graph_collection(relabelled)


# --- labels that mean nothing -------------------------------------------------------------------


def test_learning_on_permuted_labels_brings_no_advantage():
    """Weights learned from shuffled labels guess held-out graphs as badly as uniform ones.

    Forty held-out graphs in each of six draws: a guess scores 1/2, give or take 0.03.
    True labels, by the same way, are learned almost perfectly.
    """
    scores = {"permuted, uniform": [], "permuted, learned": [], "true, learned": []}
    for seed in range(6):
        graphs, y = tl.make_synthetic(10, random_state=seed)
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:40], order[40:]
        shuffled = np.random.default_rng(100 + seed).permutation(y)
        for name, labels, radius in (
            ("permuted, uniform", shuffled, 0.0),
            ("permuted, learned", shuffled, 3.0),
            ("true, learned", y, 3.0),
        ):
            model = tl.GraphSVC("wwl", weight_radius=radius, **ONE)
            fitted = model.fit(graphs[train], labels[train])
            scores[name].append(fitted.score(graphs[test], labels[test]))
    means = {name: np.mean(x) for name, x in scores.items()}
    assert means["true, learned"] > 0.95
    assert means["permuted, learned"] == pytest.approx(0.5, abs=0.1)
    assert means["permuted, learned"] < means["permuted, uniform"] + 0.1


def test_the_inner_validation_sees_through_permuted_labels(data):
    """Its score of learned weights is a held-out score: it stays near one half too."""
    graphs, y = data
    chosen = []
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(y)
        model = tl.GraphSVC("wwl", 2, 3.0, 1.0, 10.0, cv=2, random_state=seed)
        chosen.append(model.fit(graphs, shuffled).best_params_["score"])
        assert model.score(graphs, shuffled) > 0.9  # whereas the training graphs are fitted
    assert np.mean(chosen) == pytest.approx(0.5, abs=0.12)


# --- the search and its held-out graphs ---------------------------------------------------------


def search_on(graphs: tl.GraphCollection, codes: np.ndarray, splits: list) -> KernelSearch:
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    return KernelSearch(
        partial(histograms.select_depths, 0),
        codes,
        splits,
        tl.PairwiseWeights(random_state=0),
        sample_weight=np.ones(len(codes)),
        score=SCORES["accuracy"],
        final=True,
    )


def test_graphs_beside_the_splits_change_nothing(data):
    """One vocabulary for all graphs: the same scores with and without graphs nobody uses."""
    graphs, y = data
    codes = (y > 0).astype(int)
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    alone = search_on(graphs, codes, splits).run(CANDIDATES, race=False)
    others = strangers()
    more = tl.as_graph_collection([*others[:10], *graphs, *others[10:]])
    padded = np.concatenate([np.zeros(10, int), codes, np.ones(20, int)])
    moved = [(train + 10, validation + 10) for train, validation in splits]
    together = search_on(more, padded, moved).run(CANDIDATES, race=False)
    for candidate in CANDIDATES:
        ours, expected = together.decisions[candidate], alone.decisions[candidate]
        # The sums are added up in another order, and the machine stops at a tolerance of 1e-3.
        np.testing.assert_allclose(ours[10:-20], expected, atol=3e-3, err_msg=str(candidate))
        assert np.isnan(ours[:10]).all()
        assert np.isnan(ours[-20:]).all()


def test_labels_of_held_out_graphs_change_no_decision(data):
    """Turning the labels of a validation part around leaves its decision values as they were."""
    graphs, y = data
    codes = (y > 0).astype(int)
    split = next(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    turned = codes.copy()
    turned[split[1]] = 1 - turned[split[1]]
    right, wrong = (
        search_on(graphs, c, [split]).run(CANDIDATES, race=False) for c in (codes, turned)
    )
    for candidate in CANDIDATES:
        np.testing.assert_array_equal(right.decisions[candidate], wrong.decisions[candidate])
        assert right.scores[candidate][0] == pytest.approx(1 - wrong.scores[candidate][0])


# --- predicting ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["wwl", "laplacian", "tanimoto", "wl-subtree-cosine"])
def fitted(request, data):
    return tl.GraphSVC(request.param, weight_radius=1.0, **ONE).fit(*data)


def test_a_prediction_does_not_depend_on_the_company(fitted):
    new, _ = tl.make_synthetic(2, random_state=5)
    crowd = tl.as_graph_collection([*strangers(), *new])
    together = fitted.decision_function(crowd)[30:]
    alone = np.concatenate([fitted.decision_function([graph]) for graph in new])
    np.testing.assert_allclose(together, alone, atol=1e-12)
    np.testing.assert_allclose(fitted.out_of_vocabulary(crowd)[30:], fitted.out_of_vocabulary(new))


def test_predicting_leaves_the_model_alone(fitted, data):
    weights, before = fitted.weights_.copy(), fitted.decision_function(data[0])
    table = fitted.patterns_
    for predict in (fitted.predict, fitted.predict_proba, fitted.out_of_vocabulary):
        predict(strangers())
    np.testing.assert_array_equal(fitted.weights_, weights)
    np.testing.assert_array_equal(fitted.decision_function(data[0]), before)
    assert fitted.patterns_.equals(table)
