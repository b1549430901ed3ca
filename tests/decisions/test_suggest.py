"""``suggest``: the batch, the table about it, and the candidates that are left out."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from rdkit.Chem import Descriptors, MolFromSmiles
from scipy.stats import norm

import treelens as tl
from decisions.test_batches import naive_batch
from treelens.decisions import suggest as suggest_module
from treelens.decisions.suggest import STRATEGIES, Aim, _likely_values


@pytest.fixture(scope="module")
def pool(molecules, halves):
    smiles = molecules[0]
    return [smiles[k] for k in halves[1]]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("maximize", [True, False])
def test_every_strategy_chooses_different_candidates(model, pool, strategy, maximize):
    found = tl.suggest(model, pool, 8, strategy, maximize)
    assert found["index"].is_unique
    assert [pool[k] for k in found["index"]] == found["smiles"].tolist()
    mean = model.predict(pool)
    if strategy == "greedy":
        order = np.argsort(-mean if maximize else mean, kind="stable")[:8]
        assert found["index"].tolist() == order.tolist()
    elif strategy != "uncertainty":  # what is wanted is also expected
        chosen = mean[found["index"]].mean()
        assert chosen > mean.mean() if maximize else chosen < mean.mean()


def test_a_batch_takes_variances_from_conditioning_on_its_predictions(model, pool):
    """The oracle is the model itself, given the choices so far with the values it predicts."""
    found = tl.suggest(model, pool, 4, "uncertainty")["index"].tolist()
    given, left = model, list(range(len(pool)))
    for choice in found:
        _, std = given.predict([pool[k] for k in left], return_std=True, include_noise=False)
        assert left[int(std.argmax())] == choice
        given = given.condition([pool[choice]], given.predict([pool[choice]]))
        left.remove(choice)


def test_the_first_choice_has_the_largest_expected_improvement(model, pool, tmp_path):
    model.save(tmp_path / "model.treelens")
    found = tl.suggest(tl.load(tmp_path / "model.treelens"), pool, 3, n_best=1)
    mean, std = model.predict(pool, return_std=True, include_noise=False)
    z = (mean - model.train_values_.max()) / std
    improvement = std * (z * norm.cdf(z) + norm.pdf(z))
    assert found["index"].iloc[0] == improvement.argmax()
    assert found["score"].iloc[0] == pytest.approx(improvement.max(), rel=1e-6)


@pytest.mark.parametrize("strategy", ["expected_improvement", "ucb", "uncertainty"])
def test_scores_are_those_of_values_without_noise_given_measurements_with_it(model, pool, strategy):
    mean, cov = model.predict(pool, return_cov=True, include_noise=False)
    aim = Aim(strategy, np.sort(model.train_values_)[-6:], exploration=1.5)
    chosen, scores = naive_batch(mean, cov, model.noise_, 6, aim, with_scores=True)
    found = tl.suggest(model, pool, 6, strategy, exploration=1.5)
    assert found["index"].tolist() == chosen
    np.testing.assert_allclose(found["score"], scores, rtol=1e-6)


def test_a_shortlist_has_the_largest_scores_without_noise(molecules, halves, pool, monkeypatch):
    """Noise would make all deviations alike, and the order of the scores that of the means."""
    smiles, values = molecules
    known = halves[0]
    values = values + np.random.default_rng(2).normal(size=len(values))
    model = tl.GraphRegressor(depth=2, descriptors=False, n_jobs=1)
    model.fit([smiles[k] for k in known], values[known])
    mean, std = model.predict(pool, return_std=True, include_noise=False)
    noisy_std = np.sqrt(std**2 + model.noise_)

    def told_apart(cut, exploration):
        wanted = top(mean + exploration * std, cut)
        others = mean + exploration * noisy_std, mean + 3.0 * std
        return wanted not in [top(scores, cut) for scores in others]

    pairs = product(range(1, 20), (5.0, 10.0, 30.0))
    cut, exploration = next(pair for pair in pairs if told_apart(*pair))
    wanted = mean + exploration * std
    monkeypatch.setattr(suggest_module, "LARGEST_SHORTLIST", cut)
    found = tl.suggest(model, pool, cut, "ucb", exploration=exploration)
    assert set(found["index"]) == top(wanted, cut)
    sampled = tl.suggest(model, pool, cut, "thompson")  # by bounds of three deviations
    assert set(sampled["index"]) == top(mean + 3.0 * std, cut) != top(wanted, cut)


def top(scores, n):
    return set(np.argsort(-scores, kind="stable")[:n].tolist())


def test_the_table_says_what_predict_and_kneighbors_say(model, pool):
    found = tl.suggest(model, pool, 5, "ucb", maximize=False)
    chosen = [pool[k] for k in found["index"]]
    mean, std = model.predict(chosen, return_std=True)
    np.testing.assert_allclose(found["prediction"], mean)
    np.testing.assert_allclose(found["std"], std)
    expected = norm.cdf(model.train_values_.min(), mean, std)
    np.testing.assert_allclose(found["probability_better"], expected, rtol=1e-9)
    near = model.kneighbors(chosen, 1)
    assert found["nearest_smiles"].tolist() == near["smiles"].tolist()
    np.testing.assert_allclose(found["nearest_value"], near["value"])
    np.testing.assert_allclose(found["similarity"], near["similarity"])


def test_measured_and_repeated_candidates_are_left_out(model, molecules, halves, pool):
    smiles, known = molecules[0], halves[0]
    other_way = "Oc1ccccc1" if "c1ccccc1O" in [smiles[k] for k in known] else smiles[known[0]]
    mixed = [smiles[known[0]], pool[0], other_way, pool[1], pool[0]]
    with pytest.warns(UserWarning, match="candidates") as heard:
        found = tl.suggest(model, mixed, 5, "greedy")
    assert sorted(found["index"]) == [1, 3]
    texts = [str(each.message) for each in heard]
    assert any("2 of 5 candidates left out: already" in text for text in texts)
    assert any("1 of 5 candidates left out: repeat" in text for text in texts)
    with pytest.raises(ValueError, match="fitted to all"):
        tl.suggest(model, [smiles[k] for k in known])


def test_molecules_that_patterns_confuse_are_told_apart():
    """Depth 0 counts atoms only: isomers are no duplicates, other spellings are."""
    known = ["CCCO", "CCO", "CCCCO", "CCCCCO", "CCCCCCO", "CCCCCCCO"]
    model = tl.GraphRegressor(depth=0, n_jobs=1, views=[tl.WLPatterns(trees=("labels",))])
    model.fit(known, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    with pytest.warns(UserWarning, match="1 of 4"):
        found = tl.suggest(model, ["CC(C)O", "OCCC", "CCOC", "CCCCCCCCO"], 3)
    assert sorted(found["index"]) == [0, 2, 3]


def test_graphs_with_other_unseen_patterns_are_not_taken_for_copies():
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=0)
    model = tl.GraphClassifier(depth=1, n_jobs=1).fit(graphs, y)
    star = ([(0, 1), (0, 2), (0, 3)], {0: "new", 1: "new", 2: "new", 3: "new"})
    path = ([(0, 1), (1, 2), (2, 3)], {0: "new", 1: "new", 2: "new", 3: "new"})
    strange = tl.as_graph_collection([star, path])
    assert model.out_of_vocabulary(strange).tolist() == [1.0, 1.0]
    assert len(tl.suggest(model, strange, 2)) == 2


# --- conditions and tables ------------------------------------------------------------------------


def test_conditions_by_descriptors_are_rdkits(model, pool):
    found = tl.suggest(model, pool, 50, "greedy", where="MW < 150 and HBD >= 1")
    expected = {
        k
        for k, s in enumerate(pool)
        if Descriptors.MolWt(MolFromSmiles(s)) < 150
        and Descriptors.NumHDonors(MolFromSmiles(s)) >= 1
    }
    assert 0 < len(expected) < len(pool)
    assert set(found["index"]) == expected


def test_rows_of_a_table_are_counted_with_those_that_cannot_be_read(model, pool, tmp_path):
    path = tmp_path / "pool.csv"
    rows = [f"X{k},{s},{k % 3},{'in' if k % 2 else 'out'}" for k, s in enumerate(pool)]
    rows.insert(2, "bad,c1ccccc1(,0,in")
    path.write_text("\n".join(["id,smiles,price,stock", *rows]) + "\n")
    table = tl.read_table(path, model=model, max_invalid=0.5)
    where = "price < 2 and stock == 'in'"
    found = tl.suggest(model, table, 50, "greedy", where=where)
    lines = [rows[k].split(",") for k in found["index"]]
    assert [line[1] for line in lines] == found["smiles"].tolist()
    assert [line[0] for line in lines] == found["name"].tolist()
    assert all(int(line[2]) < 2 and line[3] == "in" for line in lines)
    assert len(lines) == sum(k % 3 < 2 and k % 2 for k in range(len(pool)))


def test_a_learned_scale_is_undone_in_the_table(molecules, halves, pool, tmp_path):
    smiles, values = molecules
    path = tmp_path / "known.csv"
    lines = [f"{smiles[k]},{10 ** values[k]:.9g}" for k in halves[0]]
    path.write_text("\n".join(["smiles,value", *lines]) + "\n")
    graphs, y = tl.read_table(path, target="value", transform="log10")
    model = tl.GraphRegressor(depth=2, descriptors=False, n_jobs=1).fit(graphs, y)
    found = tl.suggest(model, pool, 5)
    chosen = [pool[k] for k in found["index"]]
    np.testing.assert_allclose(found["prediction"], model.predict(chosen))
    mean, std = model.predict(chosen, return_std=True, learned_scale=True)
    better = norm.sf(np.log10(y).max(), mean, std)
    np.testing.assert_allclose(found["probability_better"], better, rtol=1e-6)
    assert np.abs(found["nearest_value"].to_numpy()[:, None] / y - 1).min(axis=1).max() < 1e-6


# --- classes --------------------------------------------------------------------------------------


def test_greedy_for_a_class_takes_its_largest_probabilities(classifier, pool):
    for wanted in ("high", "low"):
        found = tl.suggest(classifier, pool, 6, "greedy", wanted=wanted)
        code = classifier.classes_.tolist().index(wanted)
        chances = classifier.predict_proba(pool)[:, code]
        assert found["index"].tolist() == np.argsort(-chances, kind="stable")[:6].tolist()
    by_default = tl.suggest(classifier, pool, 6, "greedy")  # the second class
    assert by_default["index"].tolist() == found["index"].tolist()
    assert "probability_better" not in found


def test_of_active_and_inactive_the_active_are_looked_for(molecules, halves, pool):
    smiles, values = molecules
    known = [smiles[k] for k in halves[0]]
    y = np.where(values[halves[0]] > np.median(values), "active", "inactive")
    model = tl.GraphClassifier(depth=1, descriptors=False, n_jobs=1).fit(known, y)
    for maximize, code in ((True, 0), (False, 1)):
        found = tl.suggest(model, pool, 6, "greedy", maximize=maximize)
        chances = model.predict_proba(pool)[:, code]
        assert found["index"].tolist() == np.argsort(-chances, kind="stable")[:6].tolist()
        assert found.attrs["wanted"] == model.classes_[code]
    explained = model.explain(pool[0])
    assert explained.class_label == model.fragments_.attrs["toward"] == "active"
    assert explained.decision == pytest.approx(-model.decision_function(pool[:1])[0])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_for_classes(classifier, pool, strategy):
    found = tl.suggest(classifier, pool, 6, strategy, wanted="high")
    assert found["index"].is_unique
    chances = classifier.predict_proba(pool)[:, 0]
    apart = np.abs(chances - 0.5)
    if strategy == "uncertainty":
        assert apart[found["index"]].mean() < apart.mean()
    else:
        assert chances[found["index"]].mean() > chances.mean()


def test_several_classes_need_a_wanted_one(molecules, pool):
    smiles, values = molecules
    classes = np.digitize(values, np.quantile(values, [0.33, 0.67]))
    model = tl.GraphClassifier(depth=1, descriptors=False, n_jobs=1).fit(smiles[:40], classes[:40])
    with pytest.raises(ValueError, match="wanted"):
        tl.suggest(model, pool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tl.suggest(model, smiles[40:], 4, "greedy", wanted=2)
    chances = model.predict_proba(smiles[40:])[:, 2]
    assert chances[found["index"]].min() >= np.sort(chances)[-8]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n": 0}, "whole number"),
        ({"n": 2.5}, "whole number"),
        ({"n": True}, "n must be a whole number"),
        ({"n_best": 0}, "whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"exploration": float("nan")}, "exploration must be a number"),
        ({"exploration": float("inf")}, "exploration must be a number"),
        ({"exploration": -float("inf")}, "exploration must be a number"),
        ({"exploration": -0.5}, "exploration must be a number from 0"),
        ({"exploration": "2"}, "exploration must be a number"),
        ({"maximize": "no"}, "maximize must be True or False"),
        ({"maximize": None}, "maximize must be True or False"),
        ({"where": 500}, "where must be a condition"),
        ({"strategy": "best"}, "strategy"),
        ({"wanted": "active"}, "wanted"),
        ({"where": "MW > 5000"}, "No candidate of"),
        ({"where": "price < 3"}, "column"),
        ({"model": tl.GraphSVC()}, "GraphRegressor"),
    ],
)
def test_bad_settings_are_refused(model, pool, bad, message):
    with pytest.raises(ValueError, match=message):
        tl.suggest(**{"model": model, "pool": pool, "strategy": "ucb", **bad})


def test_a_class_and_the_opposite_direction_contradict_each_other(classifier, pool):
    with pytest.raises(ValueError, match="leave maximize=False"):
        tl.suggest(classifier, pool, maximize=False, wanted="high")


def test_a_limit_is_at_least_as_good_as_it_says():
    """The best of the training set is known only to lie above a limit."""
    smiles = ["C" * n + "O" for n in range(1, 16)]
    y = [float(n) for n in range(1, 16)]
    limits = ["="] * 14 + [">"]
    y[14] = 13.0  # 15 in truth
    model = tl.GraphRegressor(depth=1, descriptors=False).fit(smiles, y, limits=limits)
    likely = _likely_values(model)
    assert likely[:14].tolist() == y[:14]
    assert likely[14] == max(13.0, model.loo_.predictions[14]) > 13.0
    best = likely.max()
    mean, std = model.predict(["C" * 14 + "N"], return_std=True)
    found = tl.suggest(model, ["C" * 14 + "N"], n=1)
    assert found["probability_better"].iloc[0] == pytest.approx(norm.sf((best - mean) / std)[0])


def test_limits_of_a_model_on_another_scale_are_filled_in_on_that_scale():
    smiles = [f"{'C' * n}{end}" for n in range(1, 11) for end in ("O", "N", "Cl")]
    y = np.exp(0.6 * np.arange(30.0))
    limits = np.where(np.arange(30) % 5 == 0, ">", "=")
    targets = tl.Targets(y, limits=limits, transform="normal_scores")
    model = tl.GraphRegressor(depth=1, n_jobs=1).fit(smiles, targets)
    filled, known = _likely_values(model), model.model_.training.targets
    lower = limits == ">"
    assert (filled[lower] >= known[lower]).all()
    np.testing.assert_array_equal(filled[~lower], known[~lower])
    assert np.abs(filled).max() < 10.0  # of y the largest is 4e7
