"""Baselines on fingerprints: predictions, tuning, and the kernel of the Gaussian process."""

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import treelens as tl
from treelens import chem
from treelens.chem import baselines
from treelens.chem.baselines import BASELINES, climb
from treelens.chem.ecfp import fingerprint_counts
from treelens.evaluation.splits import DistinctKFold

Chem = pytest.importorskip("rdkit.Chem")
CORES = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
TAILS = ["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC", "O", "CO", "C(=O)N", "Cl"]
SMILES = [core + tail for core in CORES for tail in TAILS]
ACID = np.array(["acid" if "(=O)O" in s else "other" for s in SMILES])
VALUES = np.array([s.count("O") + 0.1 * len(s) for s in SMILES])


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    start = {"columns": "counts and descriptors", "learning_rate": 0.1, "min_samples_leaf": 3}
    for kind in BASELINES["boosting"]:
        monkeypatch.setattr(kind, "_axes", {"learning_rate": (0.1, 0.2)})
        monkeypatch.setattr(kind, "_start", start)
    for kind in BASELINES["ecfp_forest"]:
        monkeypatch.setattr(kind, "_axes", {"columns": ("bits", "counts", "bits and descriptors")})
    monkeypatch.setattr(baselines, "_N_TREES", (10, 40))
    monkeypatch.setattr(baselines, "_LEARNED_IN_ALL", 0.8)


@pytest.mark.parametrize("name", BASELINES)
def test_classes_are_predicted(name):
    kind = BASELINES[name][0]
    graphs = tl.as_graph_collection(SMILES)
    model = kind(n_jobs=1, random_state=0).fit(graphs[::2], ACID[::2])
    said = model.predict_proba(graphs[1::2])
    assert said.shape == (30, 2)
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    assert np.mean(model.predict(graphs[1::2]) == ACID[1::2]) > 0.8
    again = clone(model).fit(graphs[::2], ACID[::2])
    np.testing.assert_array_equal(again.predict_proba(graphs[1::2]), said)
    three = np.array(["abc"[i % 3] for i in range(60)])
    assert set(kind(random_state=0).fit(graphs, three).predict(graphs)) <= set("abc")


@pytest.mark.parametrize("name", BASELINES)
def test_numbers_are_predicted(name):
    kind = BASELINES[name][1]
    model = kind(n_jobs=1, random_state=0).fit(SMILES[::2], VALUES[::2])
    error = np.sqrt(np.mean((model.predict(SMILES[1::2]) - VALUES[1::2]) ** 2))
    assert error < 0.8 * VALUES.std()
    whole = kind(random_state=0).fit(SMILES, np.arange(60.0))  # no classes
    assert len(np.unique(whole.predict(SMILES))) > 10


def test_columns_that_boosting_cannot_split_change_nothing():
    model = BASELINES["boosting"][1](random_state=0).fit(SMILES, VALUES)
    table = model._table(tl.as_graph_collection(SMILES), "counts and descriptors")
    settings = {name: x for name, x in model.best_params_.items() if name != "columns"}
    settings["max_iter"] = round(0.8 / settings["learning_rate"])
    plain = ensemble.HistGradientBoostingRegressor(random_state=0, **settings).fit(table, VALUES)
    np.testing.assert_array_equal(model.predict(SMILES), plain.predict(table))
    assert model._fitted[0].kept_.sum() < table.shape[1] / 4


def test_a_rare_class_is_named():
    rare = np.where(np.arange(60) < 6, "hit", "no")
    model = BASELINES["ecfp_gp"][0](random_state=0).fit(SMILES, rare)
    assert (model.predict(SMILES) == "hit").any()
    half = BASELINES["ecfp_gp"][0](random_state=0, threshold=0.999).fit(SMILES, rare)
    assert not (half.predict(SMILES) == "hit").any()


def test_the_gaussian_process_is_ours_on_fingerprint_counts():
    """With uniform weights its kernel is the mixture kernel of plain ECFP6 counts."""
    model = tl.GraphRegressor(3, "uniform", views=[chem.Ecfp(3)]).fit(SMILES[::2], VALUES[::2])
    counts = fingerprint_counts([Chem.MolFromSmiles(s) for s in SMILES], radius=3).toarray()
    shared = np.minimum(counts[1::2, None], counts[None, ::2]).sum(axis=2)  # (n_new, n_train)
    own, other = counts[1::2].sum(axis=1), counts[::2].sum(axis=1)
    fitted, term = model.model_, model.model_.patterns_term
    kernel = term.amplitude * term.kernel.of_sums(shared.astype(float), own, other)
    expected = fitted.target_offset + kernel @ fitted.coefficients.T
    np.testing.assert_allclose(model.predict(SMILES[1::2]), expected[:, 0], rtol=1e-9)


def test_radii_have_weights_and_new_environments_a_covariance():
    model = tl.GraphRegressor(3, "depths", views=[chem.Ecfp(3)]).fit(SMILES, VALUES)
    assert model.best_weights_ == "depths"
    assert len(np.unique(model.weights_.round(9))) == 4
    known, new = ["C" * n + "O" for n in range(1, 12)], ["CCN", "CCCN", "OCC(F)(F)F", "C" * 7 + "O"]
    model = tl.GraphRegressor(weights="depths", views=[chem.Ecfp(2)], n_jobs=1).fit(
        known, np.arange(11.0)
    )
    mean, std = model.predict(new, return_std=True)
    joint, cov = model.predict(new, return_cov=True)
    np.testing.assert_allclose(joint, mean)
    np.testing.assert_allclose(np.diagonal(cov), std**2)
    assert cov[0, 1] > cov[0, 2]  # amines share what training never had
    np.testing.assert_allclose(model.predict(new[-1:]), mean[-1:])  # whatever stands beside it


DEPTHS = (1, 2, 6)
LEVELS = (0.0, 0.0, 0.0, 1.0, 4.0, 3.0, 3.5)  # scores of seven settings


def held_out_by_hand(model, graphs, y, settings, n_folds):
    """The prediction of each graph by trees fitted to the other folds, one graph at a time."""
    table, found = model._table(graphs, settings["columns"]), [None] * len(y)
    split = DistinctKFold(n_folds, random_state=0).split(graphs, y if y.dtype == int else None)
    for train, test in split:
        trees = model._fitted_trees(table[train], y[train], baselines._N_TREES[0], settings)
        for row in test.tolist():
            found[row] = model._predicted(trees, table[[row]])[0]
    return np.array(found)


def tuned(kind, monkeypatch, start):
    """A model that chooses a depth of its trees, and all that it may choose."""
    every = [{"columns": "counts", "max_depth": depth} for depth in DEPTHS]
    monkeypatch.setattr(kind, "_axes", {"max_depth": DEPTHS})
    monkeypatch.setattr(kind, "_start", every[start])
    return kind(n_jobs=1, random_state=0), every


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("many", [False, True])
def test_numbers_choose_the_setting_with_the_smallest_held_out_error(start, many, monkeypatch):
    graphs = tl.as_graph_collection(SMILES)
    monkeypatch.setattr(baselines, "_MANY", 50 if many else 100)
    model, every = tuned(BASELINES["ecfp_forest"][1], monkeypatch, start)
    held_out = model._fit_tuned(graphs, VALUES)
    found = [held_out_by_hand(model, graphs, VALUES, s, 3 if many else 5) for s in every]
    errors = [((one - VALUES) ** 2).mean() for one in found]
    assert errors[0] > errors[1] > errors[2]  # so that there is one way to go
    assert model.best_params_ == every[2]
    np.testing.assert_allclose(held_out, found[2], rtol=1e-12)


@pytest.mark.parametrize(("n_rare", "n_folds"), [(12, 5), (4, 4), (1, 2)])
def test_classes_choose_by_held_out_area_with_some_of_the_rarest_in_each_fold(
    n_rare, n_folds, monkeypatch
):
    graphs = tl.as_graph_collection(SMILES)
    codes = np.zeros(len(SMILES), dtype=int)
    codes[np.flatnonzero(ACID == "acid")[:n_rare]] = 1
    model, every = tuned(BASELINES["ecfp_forest"][0], monkeypatch, 1)
    model.classes_ = np.array([0, 1])
    held_out = model._fit_tuned(graphs, codes)
    found = [held_out_by_hand(model, graphs, codes, s, n_folds) for s in every]
    areas = [roc_auc_score(codes, one[:, 1]) for one in found]
    best = int(np.argmax(areas))
    assert min(areas) < max(areas)
    assert model.best_params_ == every[best]
    np.testing.assert_allclose(held_out, found[best], rtol=1e-12)


@pytest.mark.parametrize("start", range(len(LEVELS)))
def test_the_search_climbs_from_where_it_begins(start):
    """It stops below what it cannot see behind a valley, and where nothing is gained."""
    axes = {"place": tuple(range(len(LEVELS)))}
    found, predicted = climb(axes, {"place": start}, lambda s: LEVELS[s["place"]], float)
    assert found["place"] == {0: 0, 1: 1, 5: 6, 6: 6}.get(start, 4)
    assert predicted == LEVELS[found["place"]]


def test_settings_that_are_given_are_not_tuned():
    settings = {"columns": "bits", "max_features": "sqrt"}
    for kind, y in zip(BASELINES["ecfp_forest"], (ACID, VALUES), strict=True):
        model = kind(settings=settings, n_jobs=1, random_state=0).fit(SMILES, y)
        assert model.best_params_ == settings


def test_the_chosen_setting_is_fitted_to_all_with_all_trees():
    model = BASELINES["ecfp_forest"][1](n_jobs=1, random_state=0).fit(SMILES, VALUES)
    settings = dict(model.best_params_)
    table = model._table(tl.as_graph_collection(SMILES), settings.pop("columns"))
    forest = ensemble.RandomForestRegressor(baselines._N_TREES[1], random_state=0, **settings)
    np.testing.assert_allclose(model.predict(SMILES), forest.fit(table, VALUES).predict(table))


def test_a_class_that_no_tree_has_seen_has_no_chance():
    model = BASELINES["ecfp_forest"][0](n_jobs=1, random_state=0)
    model.classes_ = np.array(["a", "b", "c"])
    table, codes = model._table(tl.as_graph_collection(SMILES), "counts"), 2 * (ACID == "acid")
    found = model._predicted(model._fitted_trees(table, codes, 10, {}), table)
    assert found.shape == (len(SMILES), 3)
    assert (found[:, 1] == 0).all()
    assert np.mean(found.argmax(axis=1) == codes) > 0.9


def test_tables_are_counts_bits_or_counts_beside_descriptors():
    model, graphs = BASELINES["boosting"][1](), tl.as_graph_collection(SMILES)
    names = ("counts", "bits", "counts and descriptors", "bits and descriptors")
    counts, bits, both, marked = (model._table(graphs, name) for name in names)
    assert counts.max() > 1
    np.testing.assert_array_equal(bits, counts > 0)
    np.testing.assert_array_equal(both[:, : counts.shape[1]], counts)
    assert both.shape[1] > counts.shape[1]
    np.testing.assert_array_equal(marked, np.hstack([bits, both[:, counts.shape[1] :]]))


def test_a_threshold_of_a_forest_is_kept():
    for threshold in (0.05, 0.95):
        model = BASELINES["ecfp_forest"][0](n_jobs=1, random_state=0, threshold=threshold)
        model.fit(SMILES, ACID)
        rare = model.predict_proba(SMILES)[:, 0]
        expected = np.where(rare >= threshold, "acid", "other")
        np.testing.assert_array_equal(model.predict(SMILES), expected)
