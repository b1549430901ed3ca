"""Pair sums: the same matrix however the work is cut."""

import numpy as np
import pytest

from strategies import random_collection
from treelens.kernels.gram import normalize_kernel, pair_sums
from treelens.patterns.histograms import PAIR_KINDS, PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted

ATOL = 1e-12


def tables_of(kind: str, unit: bool = False) -> tuple[PairFeatures, PairFeatures]:
    """Pair features of 40 graphs and of 15 others over the same patterns."""
    rng = np.random.default_rng(7)
    train, new = random_collection(rng, 40), random_collection(rng, 15)
    vocabulary, colors = PatternVocabulary.fit(train, 2)
    sides = [
        PairFeatures.from_histograms(PatternHistograms.from_colors(vocabulary, c), kind, unit)
        for c in (colors, vocabulary.transform(new))
    ]
    return sides[0], sides[1]


def dense_rows(pairs: PairFeatures) -> np.ndarray:
    return pairs.rows.to_sparse(pairs.n_patterns).toarray()


def by_definition(left: PairFeatures, right: PairFeatures, weights: np.ndarray) -> np.ndarray:
    a, b = dense_rows(left)[:, None, :], dense_rows(right)[None, :, :]
    combined = np.minimum(a, b) if left.minimum else a * b
    return (combined @ weights) * left.scale[:, None] * right.scale[None, :]


@pytest.fixture(params=PAIR_KINDS)
def sides(request: pytest.FixtureRequest) -> tuple[PairFeatures, PairFeatures]:
    return tables_of(request.param, unit=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_what_the_formula_says(sides, weighted: bool, rng: np.random.Generator) -> None:
    train, new = sides
    weights = rng.random(train.n_patterns) if weighted else None
    ones = np.ones(train.n_patterns) if weights is None else weights
    within, across = pair_sums(train, None, weights), pair_sums(new, train, weights)
    np.testing.assert_allclose(within, by_definition(train, train, ones), atol=ATOL)
    np.testing.assert_allclose(across, by_definition(new, train, ones), atol=ATOL)
    assert (within == within.T).all()
    assert (within == pair_sums(train, train, weights)).all()


def test_what_does_not_fit_is_named() -> None:
    train, _ = tables_of("wasserstein")
    for out in (np.empty((3, 3)), np.empty((40, 40), np.float32), np.empty((40, 80))[:, ::2]):
        with pytest.raises(ValueError, match=r"float64 array of shape \(40, 40\)"):
            pair_sums(train, out=out)
    with pytest.raises(ValueError, match=rf"{train.n_patterns} patterns; .* shape \(3,\)"):
        pair_sums(train, None, np.ones(3))
    with pytest.raises(ValueError, match="same patterns and the same kind"):
        pair_sums(tables_of("subtree")[0], train)
    with pytest.raises(ValueError, match="'cosine' or 'tanimoto', got 'length'"):
        normalize_kernel(np.ones((1, 1)), np.ones(1), np.ones(1), "length")


@pytest.fixture
def counted_gram(rng: np.random.Generator) -> np.ndarray:
    counts = rng.integers(0, 5, (9, 6)).astype(float)
    counts[4] = 0.0  # shares nothing with anybody
    return np.minimum(counts[:, None], counts[None]).sum(axis=-1)


@pytest.mark.parametrize("how", ["cosine", "tanimoto"])
def test_normalised_by_formula(how: str, counted_gram: np.ndarray) -> None:
    own = np.diag(counted_gram)
    norm = (
        np.sqrt(np.outer(own, own)) if how == "cosine" else own[:, None] + own[None] - counted_gram
    )
    expected = np.divide(counted_gram, norm, out=np.zeros_like(counted_gram), where=norm > 0)
    found = normalize_kernel(counted_gram.copy(), own, own, how)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert (found == found.T).all()
    assert np.diag(found).tolist() == [float(x > 0) for x in own]
