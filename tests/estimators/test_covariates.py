"""Models with covariates: fitted, explained, and what is said of wrong ones."""

import numpy as np
import pytest

import treelens as tl
from treelens.errors import GraphDataError

SMILES = ["C" * n + end for n in range(1, 13) for end in ("O", "N")]
VALUES = np.arange(24.0)


@pytest.fixture(scope="module")
def chains():
    """Chains whose value is their length plus an effect of temperature."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, size=80)
    graphs = tl.as_graph_collection(
        [([(i, i + 1) for i in range(n)], dict.fromkeys(range(n + 1), "C")) for n in lengths]
    )
    warmth = rng.normal(size=80)
    return graphs, warmth, 0.3 * lengths + np.sin(warmth) + 0.05 * rng.normal(size=80)


@pytest.fixture(scope="module")
def fitted(chains):
    graphs, warmth, y = chains
    return tl.GraphRegressor(depth=1, views=[tl.WLPatterns()]).fit(
        graphs[:60], y[:60], covariates={"temperature": warmth[:60]}
    )


def test_the_effect_of_covariates_is_learned_and_reported_separately(chains, fitted):
    graphs, warmth, y = chains
    plain = tl.GraphRegressor(depth=1).fit(graphs[:60], y[:60])
    new = graphs[60:].with_data({"temperature": warmth[60:]})
    errors = [np.std(model.predict(new) - y[60:]) for model in (fitted, plain)]
    assert errors[0] < 0.2 * errors[1]
    table = fitted.predict_table(new)
    assert np.corrcoef(table["from_covariates"], np.sin(warmth[60:]))[0, 1] > 0.95
    assert "from_covariates" not in plain.predict_table(new)
    assert fitted.covariates_ == ["temperature"]
    assert plain.covariates_ == []
    mean = fitted.predict(graphs[60:], covariates={"temperature": warmth[60:]})
    np.testing.assert_array_equal(mean, fitted.predict(new))


def test_it_is_the_process_of_the_sum_of_two_kernels(chains, fitted):
    graphs, warmth, y = chains
    model, new = fitted.model_, graphs[60:].with_data({"temperature": warmth[60:]})
    scaled = (warmth - warmth[:60].mean()) / warmth[:60].std()
    own, seen = model.refine(new).features, model.basis_graphs
    plain, numbers = model.kernel.terms
    spread, length = numbers.amplitude, numbers.kernel.length

    def both(left, right, a, b):
        squares = (a[:, None] - b[None, :]) ** 2
        return plain.matrix(left.patterns, right.patterns) + spread * np.exp(
            -0.5 * squares / length**2
        )

    among = both(seen, seen, scaled[:60], scaled[:60]) + model.noise * np.eye(60)
    across = both(own, seen, scaled[60:], scaled[:60])
    scale = model.target_scale
    expected = y[:60].mean() + across @ np.linalg.solve(among, y[:60] - y[:60].mean())
    mean, std = fitted.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    left = plain.amplitude + spread - (across * np.linalg.solve(among, across.T).T).sum(1)
    np.testing.assert_allclose(std, scale * np.sqrt(left + model.noise), rtol=1e-4)


def test_through_landmarks_and_with_classes(chains):
    graphs, warmth, y = chains
    graphs = graphs.with_data({"temperature": warmth, "lab": np.where(warmth > 0, "warm", "cold")})
    small = tl.GraphRegressor(depth=1, exact_size=20, n_landmarks=40, random_state=0)
    small.fit(graphs, y, covariates=["temperature", "lab"])
    assert np.std(small.predict(graphs) - y) < 0.3 * np.std(y)
    assert small.domain(graphs)["in_domain"].mean() > 0.5
    named = tl.GraphClassifier(depth=1).fit(graphs, y > np.median(y), covariates="temperature")
    assert np.mean(named.predict(graphs) == (y > np.median(y))) > 0.9
    table = {"temperature": warmth}
    bare = tl.as_graph_collection(list(graphs))
    np.testing.assert_array_equal(named.predict(bare, covariates=table), named.predict(graphs))
    chances = named.predict_proba(bare, covariates=table)
    np.testing.assert_array_equal(chances, named.predict_proba(graphs))
    assert named.fragments(graphs, y > np.median(y)) is not None


def test_forgotten_or_unasked_covariates_are_named(chains, fitted):
    graphs, warmth, y = chains
    plain = tl.GraphRegressor(depth=1, weights="uniform", descriptors=True).fit(SMILES, VALUES)
    for covariates in ({"nonsense": ["a", "b"]}, np.ones((2, 1)), ["nonsense"]):
        with pytest.raises(ValueError, match="covariates must be those"):
            plain.predict(SMILES[:2], covariates=covariates)
    with pytest.raises(GraphDataError, match="'temperature' is missing"):
        fitted.predict(graphs)
    for wrong in ({"Temperature": warmth}, np.zeros((len(y), 2))):
        with pytest.raises(ValueError, match="covariates must be those"):
            fitted.predict(graphs, covariates=wrong)
    with pytest.raises(ValueError, match="use device"):
        tl.GraphRegressor(device="cuda").fit(graphs, y, covariates={"temperature": warmth})
    with pytest.raises(ValueError, match="trees must be"):
        tl.GraphRegressor(views=[tl.WLPatterns(trees=([1],))]).fit(graphs, y)


def test_a_covariate_or_a_value_that_training_never_saw_is_named():
    model = tl.GraphRegressor(depth=1, weights="uniform", descriptors=True)
    model.fit(SMILES, VALUES, covariates={"assay": list("ab" * 12)})
    with pytest.raises(ValueError, match="assay") as error:
        model.predict(SMILES[:2], covariates={"heat": [1.0, 2.0]})
    assert "rdkit:" not in str(error.value)
    with pytest.warns(UserWarning, match="'Z'"):
        model.predict(SMILES[:2], covariates={"assay": ["a", "Z"]})


def test_descriptors_that_are_asked_for_are_used_or_refused(chains):
    few = tl.GraphRegressor(depth=1, weights="uniform", descriptors=True)
    assert few.fit(SMILES[:8], VALUES[:8]).uses_descriptors_
    explained = few.explain(SMILES[9])
    assert len(explained.descriptor_contributions) == 21
    assert explained.rest.empty
    assert "(descriptor)" in repr(explained)
    few.fit(SMILES, VALUES, covariates={"assay": list("ab" * 12)})
    one = tl.as_graph_collection(SMILES[:1]).with_data({"assay": ["a"]})
    explained = few.explain(one)
    assert explained.rest[["name", "value"]].to_numpy().tolist() == [["assay", "a"]]
    assert ", assay " in repr(explained)
    with pytest.raises(ValueError, match="molecules"):
        tl.GraphRegressor(descriptors=True).fit(chains[0], chains[2])
    with pytest.raises(ValueError, match="descriptors"):
        tl.GraphRegressor(descriptors=True, device="cuda").fit(SMILES, VALUES)


def test_the_share_of_descriptors_is_learned():
    """It is large where they are the whole truth, and small where they say nothing."""
    from rdkit import Chem
    from rdkit.Chem.Descriptors import TPSA

    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=(60, 3)).tolist()
    smiles = ["C" + "C(=O)" * a + "C(N)" * b + "C(Cl)" * c + "C" for a, b, c in counts]
    polarity = np.array([TPSA(Chem.MolFromSmiles(text)) for text in smiles])
    settings = {"depth": 1, "weights": "uniform"}
    told, untold = (
        tl.GraphRegressor(**settings).fit(smiles, y) for y in (polarity, rng.normal(size=60))
    )
    assert told.shares_.index.tolist() == ["patterns", "paths", "descriptors"]
    amplitudes = [model.model_.kernel.terms[2].amplitude for model in (told, untold)]
    assert amplitudes[1] < 0.15 < amplitudes[0]
    more = tl.GraphRegressor(**settings, descriptors="fast").fit(smiles, polarity)
    assert len(told.covariates_) == 21 < 150 < len(more.covariates_)


def test_a_report_shows_covariates_apart_from_atoms(chains, fitted, tmp_path):
    graphs, warmth, y = chains
    new = graphs[60:].with_data({"temperature": warmth[60:]})
    text = fitted.report(tmp_path / "report.html", new, y[60:]).read_text()
    assert "(temperature) =" in text
    assert "<dt>Covariates</dt><dd>temperature" in text
    row = fitted.summary(new, y[60:])["cards"]["rows"][0]
    one = new[row["index"]]
    explained = fitted.explain(one)
    ((name, value),) = row["rest"]
    assert name == "temperature"
    added = explained.rest["contribution"].sum()
    assert value == pytest.approx(added, abs=0.01)
    total = explained.base + added + explained.atom_contributions.sum()
    assert total == pytest.approx(fitted.predict([one])[0]) == pytest.approx(explained.decision)
    assert ", temperature " in repr(explained)
